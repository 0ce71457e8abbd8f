"""The bathtub dual: one number t that proves a lower bound for every mechanism with bounded likelihood ratios.

Let f be the density that a mechanism uses at the worst input (an end of an interval, any point of a circle), as a
function of the output, and let L be the loss, a nondecreasing function of the distance D. If all mechanisms in the
class satisfy f(y) <= E f(y') for all outputs y, y' (E = e^eps: heights shared by all inputs make this the LDP
constraint), then with c = inf f

    int f L  =  t + int f (L - t)  >=  t + c [ int (L - t)_+  -  E int (t - L)_+ ],

so that a threshold t with

    int (L - t)_+  >=  E int (t - L)_+                                                        (*)

is a lower bound: no number of pieces, no choice of heights goes below it. At the optimum (*) is an equality and t is
the optimal value itself. On an interval seen from an end, and on a circle seen from any point, distances are spread
uniformly over [0, reach], so that (*) is one inequality between one-dimensional integrals over [0, reach].
"""

from dataclasses import dataclass

from flint import ctx

from optdp.certificates.base import Bound, Threshold
from optdp.exact import enclosures
from optdp.problem import LDP, Average, Circle, Interval, Piecewise, Problem, WorstCase


@dataclass(frozen=True)
class BathtubCertificate(Threshold):
    """A threshold t, in units of the loss: where (*) holds for a problem, its optimum is at least t.

    **Proves** bounds for every piecewise family on an interval or a circle, and on a circle for all mechanisms (averaging over
    rotations makes the floor constant), for losses that are nondecreasing in the distance.
    """

    tag = "bathtub"

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        if not isinstance(privacy, LDP):
            self._refuse("it is for local differential privacy")
        if not isinstance(domain, Interval | Circle):
            self._refuse("it is for intervals and circles")
        circle = isinstance(domain, Circle)
        averaged = circle and isinstance(objective, Average) and objective.prior == "uniform"
        if not (isinstance(objective, WorstCase) or averaged) or not objective.loss.monotone:
            self._refuse("it is for the worst case of a loss that is nondecreasing in the distance")
        if not (circle or isinstance(problem.family, Piecewise)):
            self._refuse("it is for densities whose heights all inputs share (on a circle: for all mechanisms)")
        if problem.outputs != (domain.lower, domain.upper):
            self._refuse("it is for outputs in the domain")
        self._check(problem)
        return Bound(self.threshold, "bathtub dual, ball arithmetic", objective.loss.assumptions)

    def holds(self, problem: Problem) -> bool:
        """Whether (*) is proven: int (L - t)_+ - E int (t - L)_+ = int L - t reach - (E - 1) int (t - L)_+ >= 0."""
        loss, reach, eps = problem.objective.loss, problem.domain.exact_reach, problem.eps
        assert eps is not None
        with ctx.workprec(enclosures.precise(reach)):
            spread = (enclosures.exp(eps) - 1) * loss.deficit_above(self.threshold, reach)
            level = enclosures.ball(self.threshold) * enclosures.ball(reach)
            total = loss.mean_ball(reach) * enclosures.ball(reach)
            return bool(total - level - spread.upper() >= 0)


def certify(problem: Problem, estimate: float) -> BathtubCertificate:
    """The certificate of the largest threshold near `estimate`, which is one of the optimum, that can be proven."""
    proven, refused = BathtubCertificate.lowered(problem, estimate)
    for _ in range(20 if refused is not None else 0):  # doubling overshoots: walk back up
        assert refused is not None
        trial = BathtubCertificate((proven.threshold + refused) / 2)
        if not proven.threshold < trial.threshold < refused:
            break
        proven, refused = (trial, refused) if trial.holds(problem) else (proven, trial.threshold)
    return proven
