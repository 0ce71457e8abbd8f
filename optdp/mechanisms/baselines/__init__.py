"""The published mechanisms, in one registry: what comparisons, gap reports and `optdp randomize` know of them.

    >>> from optdp.mechanisms import baselines
    >>> import optdp
    >>> problem = optdp.Problem(optdp.LDP(1.0), optdp.Interval(-1, 1), "squared", constraints=[optdp.Unbiased()])
    >>> list(baselines.applicable(problem))
    ['Laplace', 'discrete Laplace on a lattice', 'staircase', 'Duchi', 'PM', 'HM', 'PM-SUB', 'PM-OPT', 'Three-Outputs', 'HM-TP']
    >>> baselines.get("Duchi").build(problem).variance(0.0).round(3)
    np.float64(4.683)

To add one, call `register(Baseline(...))`; `docs/extending/baseline.md` is a worked example. A name stands for one mechanism:
PM is the unbiased mechanism as published, with outputs beyond the domain; "moved PM" is the same window with its range
mapped affinely onto the domain, which is biased. Importing this module loads no mechanism.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import ctx

from optdp.exact import Number, enclosures, require
from optdp.problem import Interval, Problem
from optdp.problem.privacy import SENSITIVITIES

if TYPE_CHECKING:
    from optdp.mechanisms.base import Mechanism

#: Baselines that add noise with the width of the domain as sensitivity.
SPANNING = "clamped:clamped_laplace", "clamped:clamped_staircase"


@dataclass(frozen=True)
class Baseline:
    """A published mechanism, and how to build it for a problem.

    **Arguments:**

    - `name`: what it is called in tables and on the command line; unique.
    - `source`: authors, title, venue and year.
    - `privacy`: the tags of the notions that it can be built for: "ldp", "approx", "profile", "gdp", "rdp", "kl", "metric-ldp".
    - `domains`: the tags of the domains: "interval", "circle", "line", "integers", "one-hot", "sphere", "ball", "box".
    - `unbiased`: whether E[Y | x] = x at every input.
    - `make`: takes a `Problem` with such a privacy notion and domain, and gives the mechanism with that guarantee on that
      domain; None where the parameters do not allow it (noise that needs delta > 0, say).
    """

    name: str
    source: str
    privacy: tuple[str, ...]
    domains: tuple[str, ...]
    unbiased: bool
    make: Callable[[Problem], Mechanism | None] = field(repr=False, compare=False)

    def build(self, problem: Problem) -> Mechanism:
        """The mechanism for a problem. **Raises** ValueError if it is not for such problems."""
        fits = problem.domain.tag in self.domains and problem.privacy.tag in self.privacy
        made = self.make(problem) if fits else None
        if made is None:
            raise ValueError(f"{self.name} is not allowed here: it is not for {problem.privacy} on {problem.domain}")
        return made


_known: dict[str, Baseline] = {}


def register(baseline: Baseline) -> Baseline:
    """Add a baseline to the registry. **Raises** ValueError if there is another one of that name."""
    if _known.setdefault(baseline.name, baseline) != baseline:
        raise ValueError(f"name = {baseline.name!r} is not allowed: there is another baseline of that name")
    return baseline


def get(name: str) -> Baseline:
    """The baseline of that name. **Raises** ValueError naming all of them."""
    if name not in _known:
        raise ValueError(f"name = {name!r} is not allowed: it must be one of {', '.join(map(repr, _known))}")
    return _known[name]


def baselines(
    domain: str | None = None, privacy: str | None = None, unbiased: bool | None = None
) -> dict[str, Baseline]:
    """The registered baselines by name, in the order of registration.

    **Arguments:** only those for domains with this tag, for privacy notions with this tag, unbiased or not; None: any.
    """
    return {
        name: known
        for name, known in _known.items()
        if domain in (None, *known.domains) and privacy in (None, *known.privacy) and unbiased in (None, known.unbiased)
    }


def applicable(problem: Problem) -> dict[str, Mechanism]:
    """Every baseline that may stand beside the optimum of `problem`, built with its privacy and domain: name -> mechanism.

    Those with outputs where the problem does not allow them are left out, noise that reaches where a user's loss is not known or
    not finite, and biased ones if the problem asks for unbiased ones. Whether they belong to the problem's family is not asked:
    the family is the author's choice, and they may do better than its best.
    """
    known = baselines(problem.domain.tag, problem.privacy.tag, True if problem.unbiased else None)
    made = {name: mechanism for name, baseline in known.items() if (mechanism := baseline.make(problem)) is not None}
    made = {name: mechanism for name, mechanism in made.items() if _known_for(mechanism, problem)}
    if problem.outputs is None:
        return made
    low, high = problem.outputs
    built = {name: (mechanism, *mechanism.support()) for name, mechanism in made.items()}
    return {name: mechanism for name, (mechanism, least, most) in built.items() if low <= least and most <= high}


def _known_for(mechanism: Mechanism, problem: Problem) -> bool:
    """Whether the loss is one wherever noise reaches: a user's own is known up to a distance, and may be infinite beyond one."""
    radius: Callable[[], float] | None = getattr(mechanism, "noise_radius", None)
    if radius is None or not problem.loss.assumptions:
        return True
    far = radius()
    with np.errstate(over="ignore"):
        return math.isfinite(far) and math.isfinite(far * float(problem.loss.of(0.0, far)))


def float_below(eps: Number) -> float:
    """The largest float that is at most `eps`: what mechanisms that compute in floats are built with."""
    with ctx.workprec(enclosures.PRECISION):
        return eps if isinstance(eps, float) else enclosures.round_down(enclosures.ball(eps))


def _find(where: str) -> Callable[..., Any]:
    """The class or function "module:name" of this package."""
    module, name = where.split(":")
    return getattr(importlib.import_module(f"optdp.mechanisms.baselines.{module}"), name)


def _local(where: str, problem: Problem, floats: bool = False) -> Mechanism | None:
    """The constructor `where` with the problem's eps and domain."""
    eps: Any = problem.eps
    if not 0 < float(eps) <= require.MAX_EPS:
        return None
    if (
        where.startswith("vector:") and problem.loss.exponent != 2
    ):  # their errors have formulas for the squared loss alone
        return None
    if where in SPANNING and not _spanned(problem.domain):
        return None
    return _find(where)(float_below(eps) if floats else eps, problem.domain)


def _spanned(domain: Any) -> bool:
    """Whether there is noise for the width of an interval as sensitivity."""
    low, high = SENSITIVITIES
    return low <= enclosures.round_up(domain.exact_width) <= high


def _of_metric(where: str) -> Callable[[Problem], Mechanism | None]:
    """The constructor `where` with the problem's privacy and domain, where outputs are the symbols."""

    def make(problem: Problem) -> Mechanism | None:
        rows = getattr(problem.objective.loss, "rows", ((),))
        made: Mechanism | None = _find(where)(problem.privacy, problem.domain) if len(rows) == len(rows[0]) else None
        return made

    return make


def _noise(kind: str, problem: Problem, **options: Any) -> Mechanism | None:
    """Additive noise with the problem's eps, delta and sensitivity; on an interval, only if all of its inputs are neighbours."""
    noise: Any = _find(f"noise:{kind}")
    privacy, domain = problem.privacy, problem.domain
    eps, delta, reach = (getattr(privacy, name, 0.0) for name in ("eps", "delta", "sensitivity"))
    if (eps == 0 and noise.needs_eps) or (delta == 0 and noise.needs_delta) or float(eps) > require.MAX_EPS:
        return None
    if kind == "DiscreteGaussian" and _find("noise:Gaussian")(eps, delta, reach).sigma > _find("calibrated:WIDEST"):
        return None  # its masses are tabulated
    if isinstance(domain, Interval):
        near = _spanned(domain) and (privacy.tag == "ldp" or Fraction(reach) >= domain.exact_width)
        return noise.local(eps, domain, delta, **options) if near else None
    # No additive noise hides any two numbers of a line from each other.
    return None if privacy.tag == "ldp" else noise(eps, delta, reach, **options)


#: Notions for which noise is calibrated in `calibrated`.
DIVERGENCES = ("profile", "gdp", "rdp", "kl")
_ALSO = " " + " ".join(DIVERGENCES)


def _for_notion(kind: str, problem: Problem) -> Mechanism | None:
    """Additive noise for a profile, Gaussian DP, Renyi DP or KL: by its own proof, or by a pair (eps, delta) that implies it.

    Where several pairs do, the one with the least loss.
    """
    notion, direct = problem.privacy, {"Gaussian": "gaussian", "DiscreteGaussian": "discrete_gaussian"}
    if kind == "Laplace":
        laplace: Mechanism | None = _find("calibrated:laplace")(notion)
        return laplace
    if kind == "Gaussian" or (kind == "DiscreteGaussian" and notion.tag in ("rdp", "kl")):
        made: Mechanism | None = _find(f"calibrated:{direct[kind]}")(problem)
        return made
    ways = [one for one in [_find("calibrated:pure")(notion)] if one is not None] + _find("calibrated:pairs")(notion)
    named = {"Staircase": _staircase, "cut": _cut_staircase}
    make = named.get(kind, partial(_noise, kind))
    found = [noise for way in ways if (noise := make(replace(problem, privacy=way))) is not None]
    found = [noise for noise in found if _known_for(noise, problem)]
    return min(found, key=lambda noise: noise.worst_case_loss(problem.loss), default=None)


def _either(
    kind: str, make: Callable[[Problem], Mechanism | None] | None = None
) -> Callable[[Problem], Mechanism | None]:
    """`make` (by default `_noise`) where there is an eps, else `_for_notion`."""

    def made(problem: Problem) -> Mechanism | None:
        if problem.privacy.tag in DIVERGENCES:
            return _for_notion(kind, problem)
        return (make or partial(_noise, kind))(problem)

    return made


def _staircase(problem: Problem) -> Mechanism | None:
    return _noise("Staircase", problem, steps="squared" if problem.loss.exponent == 2 else "abs")


def _cut_staircase(problem: Problem) -> Mechanism | None:
    """Only where it ends within reasonable bounds, and there is a delta."""
    from optdp.mechanisms.staircase import noise_of

    return next((noise for noise in noise_of(problem) if noise.cut), None)


def _classical(problem: Problem) -> Mechanism | None:
    """The formula is proven for eps <= 1."""
    eps: Any = problem.eps
    proven = enclosures.at_most(eps, 1.0) and eps != 0
    return _noise("Gaussian", problem, calibration="classical") if proven else None


def _central(problem: Problem) -> Mechanism | None:
    """As many steps as the sensitivity allows: neighbours at most width/(steps + 1) apart are served."""
    privacy: Any = problem.privacy
    steps = math.floor(problem.domain.exact_width / Fraction(privacy.sensitivity)) - 1
    if privacy.eps == 0 or not 0 <= steps <= 600 / float(privacy.eps):
        return None
    return _find("unbiased:central_piecewise")(float_below(privacy.eps), problem.domain, steps)


_LAPLACE = "Dwork, McSherry, Nissim and Smith, Calibrating noise to sensitivity in private data analysis, TCC 2006"
_STAIRCASE = (
    "Geng and Viswanath, The optimal mechanism in differential privacy, ISIT 2014; with Kairouz and Oh, The staircase mechanism "
    "in differential privacy, IEEE J. Sel. Topics Signal Process. 9(7), 2015"
)
_GEOMETRIC = "Ghosh, Roughgarden and Sundararajan, Universally utility-maximizing privacy mechanisms, STOC 2009"
_WANG = "Wang et al., Collecting and analyzing multidimensional data with local differential privacy, ICDE 2019"
_ZHAO = (
    "Zhao et al., Local differential privacy-based federated learning for Internet of Things, IEEE Internet of Things Journal "
    "8(11), 2021 (arXiv 2004.08856, 2020)"
)
_DUCHI = "Duchi, Jordan and Wainwright, Minimax optimal procedures for locally private estimation, JASA 113(521), 2018"
_MA = (
    "Ma, Zhu and Wang, OPTT: Optimal piecewise transformation technique for analyzing numerical data under local differential "
    "privacy, arXiv 2112.04745, 2021"
)
_MOVED = "; range moved to the domain as in Zheng, Mishra and Hu, arXiv 2505.15483"
_CLAMPED = "; output clamped to the domain"
_ULH = (
    "Wang, Blocki, Li and Jha, Locally differentially private protocols for frequency estimation, USENIX Security 2017"
)


def _add(
    name: str, source: str, make: Any, privacy: str = "ldp", domains: str = "interval", unbiased: bool = True
) -> None:
    """Register `make`: a function of the problem, or the constructor "module:name" that takes its eps and domain."""
    made = partial(_local, make) if isinstance(make, str) else make
    register(Baseline(name, source, tuple(privacy.split()), tuple(domains.split()), unbiased, made))


# fmt: off
_add("Laplace", _LAPLACE, _either("Laplace"), "ldp approx" + _ALSO, "interval line")
_add("clamped Laplace", _LAPLACE + _CLAMPED, "clamped:clamped_laplace", unbiased=False)
_add("discrete Laplace", _GEOMETRIC, _either("DiscreteLaplace"), "approx" + _ALSO, "integers")
_add("discrete Laplace on a lattice", _GEOMETRIC + "; input rounded at random to a lattice", "noise:discrete_laplace")
_add("clamped discrete Laplace", _GEOMETRIC + "; on a lattice, output clamped to the domain", "clamped:clamped_discrete_laplace",
     unbiased=False)
_add("staircase", _STAIRCASE, _either("Staircase", _staircase), "ldp approx" + _ALSO, "interval line")
_add("clamped staircase", _STAIRCASE + _CLAMPED, "clamped:clamped_staircase", unbiased=False)
_add("classical Gaussian", "Dwork and Roth, The algorithmic foundations of differential privacy, 2014, Theorem A.1",
     _classical, "approx", "interval line")
_add("uniform noise", "Geng and Viswanath, Optimal noise adding mechanisms for approximate differential privacy, IEEE "
     "Trans. Inf. Theory 62(2), 2016", _either("UniformNoise"), "approx profile", "interval line")
_add("Duchi", _DUCHI,
     partial(_local, "unbiased:duchi", floats=True))
_add("Gaussian", "Balle and Wang, Improving the Gaussian mechanism for differential privacy: analytical calibration and "
     "optimal denoising, ICML 2018", _either("Gaussian"), "approx" + _ALSO, "interval line")
_add("PM", _WANG, "unbiased:piecewise")
_add("HM", _WANG, partial(_local, "unbiased:hybrid", floats=True))
_add("truncated Laplacian", "Geng, Ding, Guo and Kumar, Tight analysis of privacy and utility tradeoff in approximate "
     "differential privacy, AISTATS 2020", _either("TruncatedLaplacian"), "approx profile", "interval line")
_add("truncated staircase", "the staircase of Geng and Viswanath, 2014, cut off where delta allows it, in exact arithmetic: "
     "optdp, discovery D-TLAP-2", _either("cut", _cut_staircase), "approx profile", "line")
_add("rounded Gaussian", "Gaussian noise rounded to the nearest integer, which is post-processing: optdp, discovery D-TLAP-9",
     partial(_for_notion, "Gaussian"), "profile gdp rdp kl", "integers")
_add("discrete Gaussian", "Canonne, Kamath and Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020",
     _either("DiscreteGaussian"), "approx profile rdp kl", "integers")
_add("PM-SUB", _ZHAO, "unbiased:pm_sub")
_add("PM-OPT", _ZHAO + "; the best I-PTT of " + _MA, "unbiased:pm_opt")
_add("Three-Outputs", _ZHAO, partial(_local, "unbiased:three_outputs", floats=True))
_add("HM-TP", _ZHAO, partial(_local, "unbiased:hm_tp", floats=True))
_add("central piecewise", "Yamamoto et al., the central piecewise mechanism, https://github.com/ay0408/Central-PM", _central,
     "approx")
_add("moved PM", _WANG + _MOVED, "windows:pm", unbiased=False)
_add("moved SW", "Li et al., Estimating numerical distributions under local differential privacy, SIGMOD 2020" + _MOVED,
     "windows:sw", unbiased=False)
_add("moved PTT", _MA + _MOVED, "windows:ptt", unbiased=False)
_add("uniform", "an output that ignores the input: what any mechanism must beat", "windows:uniform",
     domains="interval circle", unbiased=False)
_add("k-RR", "Kairouz, Bonawitz and Ramage, Discrete distribution estimation under local privacy, ICML 2016", "frequency:direct",
     domains="one-hot")
_add("RAPPOR", "Erlingsson, Pihur and Korolova, RAPPOR: Randomized aggregatable privacy-preserving ordinal response, CCS 2014; "
     "the basic one-time form", "frequency:rappor", domains="one-hot")
_add("OUE", _ULH, "frequency:optimised_unary", domains="one-hot")
_add("OLH", _ULH + "; with affine hash functions over a prime field", "frequency:local_hashing", domains="one-hot")
_add("HR", "Acharya, Sun and Zhang, Hadamard response: estimating distributions privately, efficiently, and with little "
     "communication, AISTATS 2019", "frequency:hadamard", domains="one-hot")
_add("SS", "Ye and Barg, Optimal schemes for discrete distribution estimation under locally differential privacy, IEEE "
     "Trans. Inf. Theory 64(8), 2018", "frequency:subset", domains="one-hot")
_add("Duchi l2", _DUCHI + "; vectors in the Euclidean unit ball", "vector:duchi_l2", domains="sphere ball")
_add("PrivUnit", "Bhowmick, Duchi, Freudiger, Kapoor and Rogers, Protection against reconstruction and its applications in "
     "private federated learning, arXiv 1812.00984, 2018; with the parameters of its theorem", "vector:priv_unit",
     domains="sphere ball")
_add("vector Laplace", _LAPLACE + "; independent noise on every coordinate", partial(_local, "vector:laplace", floats=True),
     domains="sphere ball box")
_add("Euclidean Laplace", "Hardt and Talwar, On the geometry of differential privacy, STOC 2010; the case of the Euclidean norm",
     partial(_local, "vector:euclidean_laplace", floats=True), domains="sphere ball box")
_add("Duchi linf", _DUCHI + "; vectors in a cube; for even d with sign vectors of inner product 0 in the preferred half-space "
     "alone, not in both, which is as private and has a smaller error", "vector:duchi_linf", domains="box")
_add("PM, k of d", _WANG, "vector:pm_sampled", domains="box")
_add("HM, k of d", _WANG, "vector:hm_sampled", domains="box")
_add("OPTT, 1 of d", _MA + "; Algorithm 3", "vector:one_coordinate", domains="box")
_add("exponential", "McSherry and Talwar, Mechanism design via differential privacy, FOCS 2007; over the symbols, by "
     "their distance", _of_metric("metric:exponential"), "metric-ldp", "alphabet", unbiased=False)
_add("planar Laplace", "Andres, Bordenabe, Chatzikokolakis and Palamidessi, Geo-indistinguishability: differential privacy for "
     "location-based systems, CCS 2013; output moved to the nearest place", _of_metric("metric:planar_laplace"), "metric-ldp",
     "alphabet", unbiased=False)
_add("clamped planar Laplace", "Andres, Bordenabe, Chatzikokolakis and Palamidessi, Geo-indistinguishability: differential "
     "privacy for location-based systems, CCS 2013; with the diagonal as the largest distance, output clamped to the rectangle",
     partial(_local, "plane:clamped_planar_laplace", floats=True), domains="box", unbiased=False)
# fmt: on
