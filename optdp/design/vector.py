"""The optimal unbiased mechanism for vectors of the unit sphere, and of the unit ball.

**The program.** Output directions u and lengths, with densities k_v(y) that differ by at most e^eps between inputs v: minimise
the worst E|Y - v|^2 over unbiased mechanisms.

**By symmetry and duality** (`optdp.certificates.vector`) an output direction is worth its mean along the input, which is
largest for a density e^eps on a cap {<u, v> >= g} and 1 elsewhere, with the g that equals that mean. Outputs r u of one length
with such a density attain the bound on the sphere.

**On the ball** there are two mechanisms in closed form. The direction x/|x| is reversed with probability
(1 - |x|)/2: at most 1 worse than the sphere's optimum, which bounds the ball's from below. Or x is lifted to the sphere of one
dimension more, (x, sqrt(1 - |x|^2)), and the last coordinate of the output is dropped: with the best cap the error is the same
for all x, and where d is large it is that of the sphere but for a share of about 1/d^2. Where the better one's gap is larger than
asked for, a floor on radii (`optdp.design.radial`) closes it. For d = 1 it is the problem of one number, which the kernel design
solves from eps = 1e-6 on: below, the two ends are all that matters, but for a share of eps^2.
"""

from __future__ import annotations

from typing import Any

from optdp.certificates.base import Certificate
from optdp.certificates.coordinates import CoordinatesCertificate
from optdp.certificates.vector import certify
from optdp.design import radial
from optdp.design.kernel import FAINTEST as KERNEL
from optdp.design.kernel import solve_kernel
from optdp.design.progress import ProgressLike
from optdp.design.registry import FAINTEST, Run, not_unbiased, register, solve
from optdp.exact import Number, enclosures, require
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.cap import CapMechanism
from optdp.mechanisms.lifted import LiftedMechanism
from optdp.mechanisms.product import ProductMechanism
from optdp.problem import LDP, Ball, Box, Domain, Problem, Sphere, Unbiased, WorstCase
from optdp.solution import Solution

NORMS = ("l2", "linf")
INPUTS = ("sphere", "ball")
#: Floors on radii are for outputs that are at most this long: else the sphere's optimum is close.
LONGEST = 1000.0
#: Seconds that no solve takes.
UNTIMED = 1e9


def solve_vector(
    eps: Number | str, dim: int, *, norm: str = "l2", inputs: str | None = None, rtol: float = 1e-3,
    progress: ProgressLike = None,
) -> Solution:  # fmt: skip
    """The best unbiased eps-LDP mechanism for one vector: the least worst-case E|Y - v|^2, Euclidean.

    **Arguments:**

    - `eps`: privacy parameter in [1e-20, 30]: a float, or exactly a Fraction, a decimal string or `optdp.log(3)`.
    - `dim`: the dimension, an integer from 1 to 10^9 (10^6 where a certificate enumerates coordinates).
    - `norm`, `inputs`: "l2" with "sphere" (None): unit vectors, solved exactly; "l2" with "ball": vectors with |v| <= 1, a
      certified bracket, whose status says if it reaches `rtol`; "linf" with "ball" (None): vectors of the cube
      [-1, 1]^dim, a bracket.
    - `rtol`: the gap at which the status is OPTIMAL, on the ball also the one to reach; `progress`: see `optdp.solve`.

    **Returns** a `Solution`: `mechanism.randomize` takes an array whose last axis has length `dim` and gives private vectors of
    the same shape; their mean is an unbiased estimate of the mean vector (`optdp.estimate` adds confidence regions).

    **Raises** TypeError or ValueError naming the argument.

    **Source:** see `optdp.mechanisms.cap.CapMechanism`.

        >>> import optdp
        >>> best = optdp.solve_vector(4.0, 1000)
        >>> round(best.value, 6), best.gap < 1e-12
        (434.603316, True)
        >>> best.mechanism.randomize([[1.0] + [0.0] * 999]).shape
        (1, 1000)
    """
    require.choice("norm", norm, NORMS)
    domain: Domain
    inputs = require.choice("inputs", ("sphere" if norm == "l2" else "ball") if inputs is None else inputs, INPUTS)
    if norm == "linf":
        if inputs == "sphere":
            raise ValueError("inputs = 'sphere' is not allowed with norm = 'linf': the cube is inputs = 'ball'")
        domain = Box.cube(require.integer("dim", dim, low=1, high=10**6))
    else:
        domain = (Sphere if inputs == "sphere" else Ball)(require.integer("dim", dim, low=1, high=10**9))
    problem = Problem(
        LDP(require.exact_epsilon(eps, least=FAINTEST)), domain, WorstCase("squared"), constraints=(Unbiased(),)
    )
    # No clock here: what is found is the same on every machine.
    return solve(problem, rtol, UNTIMED, progress=progress)


def accepts(problem: Problem) -> str | None:
    """Unbiased mechanisms on unit vectors or a ball: the worst case of the squared error (or its average on a sphere)."""
    return not_unbiased(problem, Sphere | Ball, "a sphere or a ball", averaged=isinstance(problem.domain, Sphere))


def design(run: Run) -> Solution:
    """See `solve_vector`."""
    problem, told = run.problem, "closed form (incomplete beta function)"
    domain: Any = problem.domain
    eps: Any = problem.eps
    if isinstance(domain, Ball) and domain.dim == 1 and float(eps) >= KERNEL:
        run.progress("the kernel of one number")
        inner = solve_kernel(eps, "squared", unbiased=True, domain=(-1, 1), rtol=run.rtol, time_limit=run.time_limit)
        certificate: Certificate = CoordinatesCertificate(inner.certificate)  # type: ignore[arg-type]
        return run.solution(ProductMechanism(domain, inner.mechanism), certificate, inner.program.variables,
                            inner.program.constraints, inner.program.solver, stopped=inner.program.stopped)  # fmt: skip
    direct = CapMechanism.private(eps, domain)
    certificate = certify(problem, enclosures.round_down(CapMechanism.private(eps, Sphere(domain.dim)).least - 1))
    mechanism: Mechanism = direct
    if isinstance(domain, Ball):
        lifted = LiftedMechanism.private(eps, domain)
        mechanism = min((direct, lifted), key=lambda m: m.enclose(problem.objective)[1])
        bracket = certificate.bound(problem).value, mechanism.enclose(problem.objective)[1]
        if bracket[1] - bracket[0] > run.rtol * bracket[1] and direct.square < LONGEST**2:
            return radial.design(run, bracket, mechanism, certificate, float(direct.square) ** 0.5)
    return run.solution(mechanism, certificate, "the height of the cap", "1", told)


register(
    "vector",
    ("LDP", "Sphere or Ball", "WorstCase (Sphere: or uniform Average) of squared", "AllMechanisms", "Unbiased"),
    accepts, design,
)  # fmt: skip
