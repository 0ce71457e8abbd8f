"""The optimal unbiased frequency oracle for one of d categories.

**The program.** Messages y with probabilities k_i(y) under the categories i = 1, ..., d, and vectors v(y) that estimate the
one-hot vector without bias: minimise the worst of sum_y k_i |v(y) - e_i|^2.

**By symmetry and duality** (`optdp.certificates.frequency`) a message is worth its concentration (sum k^2)/(sum k)^2, largest
where w categories send it with e^eps times the probability of the others, w next to d/(e^eps + 1). Subset selection, which
sends a uniform set of w categories with the own one in it with probability w E/(w E + d - w), consists of such messages
alone, and attains the bound exactly.

**Two integers instead of w.** The error of a set depends on the pairs of categories that are in it together, so that the sets
{c : a c + b mod q < w} with a != 0 do as well among q categories, q prime. For other d the next prime is taken, and the
residues that are no categories are ignored; the error is computed exactly and compared with the bound for d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optdp.certificates.frequency import certify
from optdp.closed_forms.frequency import best_size
from optdp.design.progress import ProgressLike
from optdp.design.registry import FAINTEST, Run, not_unbiased, register, solve
from optdp.exact import Number, enclosures, require
from optdp.mechanisms.frequency import AffineOracle, SubsetOracle, prime_at_least
from optdp.problem import LDP, OneHot, Problem, Unbiased, WorstCase, listed
from optdp.solution import Solution
from optdp.solvers.conic import set_program, solved
from optdp.solvers.lp import SolverFailure

METHODS = ("auto", "plain")
#: The plain program has 2^d sets of d categories.
PLAIN = 10
MESSAGES = ("auto", "set", "pair")


def solve_frequency(
    eps: Number | str, categories: int | Sequence[Any], *, message: str = "auto", backend: str = "auto",
    rtol: float = 1e-3, progress: ProgressLike = None,
) -> Solution:  # fmt: skip
    """The best unbiased eps-LDP mechanism for one of d categories, from whose messages frequencies are estimated.

    **Arguments:**

    - `eps`: privacy parameter in [1e-20, 30]: a float, or exactly a Fraction, a decimal string or `optdp.log(3)`.
    - `categories`: their number d, from 2 to 10^9, or a list of their names.
    - `message`: "set": a set of categories, exactly optimal; "pair": two integers for any d, optimal for prime d and within a
      certified factor of about q/d else, q the next prime; "auto": one category where sets of one are best, else two
      integers where their certified gap is at most `rtol`, else a set.
    - `backend`: "auto": the structured solution; "plain": the conic program over all 2^d sets, d at most 10, by cvxpy, whose
      most frequent size is taken. The bracket is certified in the same way.
    - `rtol`: the gap at which the status is OPTIMAL; `progress`: see `optdp.solve`.

    **Returns** a `Solution`: `value` is E|Y - e_x|^2 for Y = the decoded message of one client, the same for every category x: n
    clients estimate the d frequencies with a total squared error of at most value/n. `mechanism.randomize` gives messages,
    `mechanism.decode` the estimates; `optdp.estimate` adds their uncertainty.

    **Raises** TypeError or ValueError naming the argument.

    **Source:** subset selection: Ye and Barg, "Optimal schemes for discrete distribution estimation under locally differential
    privacy", IEEE Trans. Inf. Theory 64(8), 2018.

        >>> import optdp
        >>> best = optdp.solve_frequency(1.0, 1009)
        >>> best.mechanism.message, best.gap < 1e-12
        ((2,), True)
    """
    privacy, names = LDP(require.exact_epsilon(eps, least=FAINTEST)), listed(categories)
    if names is None:
        require.integer("categories", categories, low=2, high=10**9)
    elif len(names) < 2:
        raise ValueError("categories are not allowed: there must be at least 2, their number or a list of them")
    domain = OneHot(categories if names is None else names)
    problem = Problem(privacy, domain, WorstCase("squared"), constraints=(Unbiased(),))
    return solve(problem, rtol, method=require.choice("backend", backend, METHODS), progress=progress, message=message)


def accepts(problem: Problem) -> str | None:
    """Unbiased mechanisms on one-hot vectors: the worst case (and the uniform average) of the squared error."""
    return not_unbiased(problem, OneHot, "one-hot vectors", averaged=True)


def design(run: Run, *, message: str = "auto") -> Solution:
    """See `solve_frequency`."""
    problem = run.problem
    domain: Any = problem.domain
    eps: Any = problem.eps
    require.choice("message", message, MESSAGES)
    size = best_size(enclosures.exp_below(eps, 200), domain.d)
    told: dict[str, Any] = {"solver": "structured (one integer)"}
    if run.method == "plain":
        run.progress(f"conic program over 2^{domain.d} sets")
        size, told = _plain(problem)
    certificate = certify(problem)
    mechanism: SubsetOracle = SubsetOracle.private(eps, domain, size)
    if message == "pair" or (message == "auto" and size > 1):
        pair = affine(eps, domain, size)
        proven = certificate.bound(problem).value
        if message == "pair" or float(pair.exact_value) - proven <= run.rtol * proven:
            mechanism = pair
    variables = f"{2**domain.d} masses and vectors of R^{domain.d}" if run.method == "plain" else "the size of the sets"
    return run.solution(
        mechanism, certificate, variables,
        f"{domain.d} masses, {domain.d}^2 means, {domain.d} errors", build=build_model, arguments=(problem,), **told,
    )  # fmt: skip


register(
    "frequency",
    ("LDP", "OneHot", "WorstCase or uniform Average of squared", "AllMechanisms", "Unbiased"),
    accepts, design, METHODS, solvers=False, least={"message": "set"},
)  # fmt: skip


def affine(eps: Number, domain: OneHot, near: int) -> AffineOracle:
    """The oracle with two integers and the size of the least error; `near`: the best size for sets of d categories."""
    q = prime_at_least(domain.d)
    centre = round(near * q / domain.d)
    sizes = {min(max(w, 1), q - 1) for w in range(centre - 2, centre + 3)}
    return min((AffineOracle.private(eps, domain, w) for w in sizes), key=lambda oracle: oracle.exact_value)


def build_model(problem: Problem) -> Any:
    """The plain program: see `optdp.solvers.conic.set_program`. **Raises** ValueError for more than 10 categories."""
    d = problem.domain.d
    if d > PLAIN:
        raise ValueError(
            f"the plain program is not built for {d} categories: it has 2^d sets, and d may be at most {PLAIN}"
        )
    return set_program(math.exp(float(problem.eps)), d)  # type: ignore[arg-type]


def _plain(problem: Problem) -> tuple[int, dict[str, Any]]:
    """The size of sets with the largest mass, and what to tell of the program."""
    model = build_model(problem)
    ended, d = solved(model), problem.domain.d
    theta = next(v for v in model.variables() if v.name() == "theta").value
    if theta is None or not np.isfinite(theta).all() or not math.isfinite(model.value):
        raise SolverFailure(f"the conic program over sets has no solution: {ended}")
    sizes = np.array([bin(s).count("1") for s in range(2**d)])
    mass = np.bincount(sizes, weights=theta * (d + (math.exp(float(problem.eps)) - 1) * sizes))[1:d]  # type: ignore[arg-type]
    told = {"solver": "cvxpy, Clarabel", "objective": float(model.value), "message": model.status}
    return int(np.argmax(mass)) + 1, told
