"""Lower bounds for all mechanisms on an interval: a prior with a density and atoms, and a threshold for each input.

For any lam(dx) >= 0 and thresholds nu(x) let r(x, y) = L(y - x) - nu(x), for unbiased mechanisms with the variance
r(x, y) = (y - x)^2 - nu(x) - mu(x) (y - x). A mechanism with floor m and rows K between m and E m has

    int E[L|x] lam(dx) = int nu dlam + int int r K dlam >= int nu dlam + int g(y) m(dy),
    g(y) = int r(x, y) + (E - 1) min(r(x, y), 0) lam(dx),                                                            (*)

so that g >= 0 for all outputs y proves int nu dlam (over lam(all), for the worst case), and g >= -c proves c less, as m has
mass at most 1.

Means are exact at inputs without weight, too. For any slope s and bend b the line r(y) = s (b - y) has, by the same inequality,

    s (b - x) = E[r(Y)|x] >= int r + (E - 1) min(r, 0) dm     for every input x,

so that a ray (s, b) may add s (x - b) to the bound and r + (E - 1) min(r, 0) to g. The latter is the same for all x: best are the
ends of the domain, x = 1 for s > 0 and x = 0 for s < 0. It is concave and homogeneous in (s, s b): one ray for each is enough.

Here the set {r < 0} is an interval of outputs for each input, with ends that are linear in x on the cells of a
mesh, lam has a density that is linear there (and atoms): then g consists of polynomials between breakpoints that are
known, and Bernstein coefficients in balls bound it on the whole continuum of outputs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Annotated, Any

from flint import arb, arb_poly, ctx, fmpq

from optdp.certificates.base import Bound, Certificate
from optdp.exact import enclosures, require, sweep, work
from optdp.exact.fields import OPTIONAL, Within
from optdp.exact.numbers import Log, Number
from optdp.exact.polynomial import bernstein, exact
from optdp.exact.sweep import Branches, Cell, Path, Sweep
from optdp.problem.domains import Interval
from optdp.problem.objectives import Average, WorstCase
from optdp.problem.priors import Prior
from optdp.problem.privacy import LDP

if TYPE_CHECKING:
    from optdp.problem.problem import Problem

#: Most nodes of a mesh, layers and atoms; the largest multiplier.
NODES, LAYERS, ATOMS, LARGEST = 4096, 12, 4096, 2.0**60
#: Most rays, where one for each end is enough.
RAYS = 8

Numbers = Annotated[tuple[float, ...], Within(-LARGEST, LARGEST, most=NODES)]
Tables = Annotated[tuple[Numbers, ...], Within(most=LAYERS)]
Rational = float | Fraction
Ray = Annotated[tuple[float, float], Within(-LARGEST, LARGEST)]


@dataclass(frozen=True)
class KernelCertificate(Certificate):
    """A prior and thresholds for which (*) bounds every mechanism on an interval with the guarantee eps-LDP from below.

    Inputs and outputs are shares of the domain. The threshold of an input x is given by the outputs that it favours, those
    between x + a t and x + b t with the loss's own slopes a < 0 < b (for losses of the distance: at most t away), where t is the
    `reach`; for unbiased mechanisms by those at most `reach` away from a `centre`.

    **Arguments:**

    - `mesh`: increasing inputs in [0, 1] between which densities, reaches and centres are linear.
    - `densities`: one row for each layer, >= 0 at each node of the mesh. (For an average under a density: shares of it, that sum
      to at most 1 at each node.)
    - `reaches`, `centres`: of each layer at each node; `centres` are empty unless means are used.
    - `points`, `weights`, `point_reaches`, `point_centres`: the same for atoms. For an average under finitely many points
      these are among the prior's, with weights that sum to at most its probabilities.
    - `rays`: pairs (slope, bend), for means at the ends of the domain, whatever their weights. Only with `centres`.

    **Proves** bounds for the worst case and averages of losses that consist of polynomial pieces (others are replaced by pieces
    below them), every family, and outputs in any range.
    """

    tag = "kernel"
    mesh: Annotated[tuple[float, ...], Within(0.0, 1.0, most=NODES)] = ()
    densities: Tables = ()
    reaches: Tables = ()
    centres: Tables = ()
    points: Annotated[tuple[Rational, ...], Within(most=ATOMS, kind=tuple[Number, ...])] = ()
    weights: Annotated[tuple[float, ...], Within(0.0, LARGEST, most=ATOMS)] = ()
    point_reaches: Annotated[tuple[float, ...], Within(0.0, LARGEST, most=ATOMS)] = ()
    point_centres: Annotated[tuple[float, ...], Within(-LARGEST, LARGEST, most=ATOMS)] = ()
    rays: Annotated[tuple[Ray, ...], Within(most=RAYS)] = field(default=(), metadata=OPTIONAL)

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        if not isinstance(privacy, LDP) or not enclosures.at_most(privacy.eps, require.MAX_EPS):
            self._refuse("it is for local differential privacy with eps at most 30")
        if not isinstance(domain, Interval) or not isinstance(objective, WorstCase | Average):
            self._refuse("it is for the worst case or the average on an interval")
        self._validate()
        tilted = bool(self.centres or self.point_centres or self.rays)
        if tilted and not (problem.unbiased and objective.loss.exponent == 2):
            self._refuse("it has multipliers of the means, which only unbiased mechanisms with the variance allow")
        branches, slopes = objective.loss.branches(domain.exact_width, True, float(privacy.eps)), objective.loss.slopes
        if branches is None or slopes is None:
            self._refuse(f"it is for losses in polynomial pieces, and not for {objective.loss.name}")
        with ctx.workprec(branches.bits):
            places = _places(objective, domain)
            self._spend(objective, places)
            at = [exact(x) if places is None else places[x][0] for x in self.points]
            prior = _density(objective, domain)
            dual = _Dual(self, at, branches, (exact(slopes[0]), exact(slopes[1])), prior, tilted)
            if isinstance(objective, WorstCase) and not dual.mass > 0:
                self._refuse("a worst case needs a prior with positive mass")
            growth = enclosures.exp(privacy.eps) - 1
            low, high = self._span(problem, domain, dual, growth)
            if low + high == 1 and branches.even and self._symmetric and prior is None and places is None:
                high = fmpq(1, 2)  # g(y) = g(1 - y)
            least = dual.least(low, high, growth)
            value = dual.value + least
            if isinstance(objective, WorstCase):
                value /= dual.mass
            found = max(0.0, enclosures.round_down(value)) if value.is_finite() else 0.0
        size = f"a prior with {len(self.mesh)} nodes and {len(self.points)} atoms"
        return Bound(found, f"kernel dual, {size}, all outputs, ball arithmetic", objective.loss.assumptions)

    def _validate(self) -> None:
        """Refuse what no proof should be run on."""
        inside = all(not isinstance(x, Log) and 0 <= x <= 1 for x in self.points)
        if any(a >= b for a, b in pairwise(self.mesh)) or not inside:
            self._refuse("the mesh must increase, and points must lie within [0, 1]")
        layers = (self.densities, self.reaches, *((self.centres,) if self.centres else ()))
        if {len(t) for t in layers} != {len(self.densities)} or len(self.densities) > LAYERS:
            self._refuse(f"there must be at most {LAYERS} layers, each with a density and a reach")
        short = self.densities and len(self.mesh) < 2
        if short or any(len(row) != len(self.mesh) for table in layers for row in table):
            self._refuse("every layer needs a number at each node of the mesh, and a mesh of at least 2 nodes")
        tilted, count = self.centres or self.point_centres or self.rays, (len(self.densities), len(self.points))
        if tilted and (len(self.centres), len(self.point_centres)) != count:
            self._refuse("centres must be given everywhere or nowhere")
        if not len(self.points) == len(self.weights) == len(self.point_reaches):
            self._refuse("each point must have a weight and a reach")
        positive = (v for table in (self.densities, self.reaches) for row in table for v in row)
        signed = (v for row in (*self.centres, *self.rays) for v in row)
        if not all(0 <= v <= LARGEST for v in positive) or not all(abs(v) <= LARGEST for v in signed):
            self._refuse(f"multipliers must lie between 0 and {LARGEST:g}")
        if len(self.rays) > RAYS or any(len(ray) != 2 for ray in self.rays):
            self._refuse(f"there must be at most {RAYS} rays, each with a slope and a bend")

    @property
    def _symmetric(self) -> bool:
        """Whether inputs x and 1 - x have the same weights, and thresholds that mirror each other, exactly."""

        def mirrored(row: Iterable[Rational], other: Iterable[Rational]) -> bool:
            both = ((min(pair), max(pair)) for pair in zip(row, other, strict=True))
            # From 1/2 to 2 the difference from 1 is a float.
            return all(1 - high == low if high <= 2 else exact(low) + exact(high) == 1 for low, high in both)

        if self.rays or any(row != row[::-1] for table in (self.densities, self.reaches) for row in table):
            return False
        atoms = list(zip(self.points, self.point_centres or self.points, self.weights, self.point_reaches, strict=True))
        pairs = zip(sorted(atoms), sorted(atoms, key=lambda atom: (-atom[0], -atom[1], *atom[2:])), strict=True)
        even = all(mirrored(row, reversed(row)) for row in (self.mesh, *self.centres))
        return even and all(a[2:] == b[2:] and mirrored(a[:2], b[:2]) for a, b in pairs)

    def _spend(self, objective: WorstCase | Average, places: dict[Rational, tuple[fmpq, Fraction]] | None) -> None:
        """Refuse to give inputs more than the probabilities of an average."""
        if isinstance(objective, WorstCase):
            return
        if places is not None:
            if self.densities or any(x not in places for x in self.points):
                self._refuse("the prior has finitely many points: there must be no density, and no other point")
            left = {x: chance for x, (_, chance) in places.items()}
            for point, weight in zip(self.points, self.weights, strict=True):
                left[point] -= Fraction(weight)
            if min(left.values()) < 0:
                self._refuse("it gives a point more than its probability under the problem's prior")
        elif self.points or any(sum(map(Fraction, shares)) > 1 for shares in zip(*self.densities, strict=True)):
            self._refuse("shares of the prior's density must sum to at most 1 at each node, without atoms")

    def _span(self, problem: Problem, domain: Interval, dual: _Dual, growth: arb) -> tuple[fmpq, fmpq]:
        """The shares of the domain within which outputs must be searched."""
        low, high = Fraction(0), Fraction(1)
        if problem.outputs is not None:
            low, high = ((Fraction(end) - Fraction(domain.lower)) / domain.exact_width for end in problem.outputs)
        if not dual.tilted:  # an output outside the domain is never better than the nearest end
            low, high = (min(max(end, Fraction(0)), Fraction(1)) for end in (low, high))
        elif len(ends := dual.span(growth)) == 2:
            first, last = ends
            if problem.outputs is None:
                return first, last
            start, end = exact(low), exact(high)
            if start <= last and first <= end:  # beyond these ends g grows
                return max(start, first), min(end, last)
        elif problem.outputs is None:
            self._refuse("outputs are unlimited, and it does not close off those far away")
        return exact(low), exact(high)


def _places(objective: WorstCase | Average, domain: Interval) -> dict[Rational, tuple[fmpq, Fraction]] | None:
    """For a prior of finitely many points: by its nearest float, each point's exact share of the domain, and its probability.

    Of two points with the same nearest float one is left out: a bound without it holds.
    """
    if isinstance(objective, WorstCase) or not isinstance(objective.prior, Prior):
        return None
    low, width = Fraction(domain.lower), domain.exact_width
    shares = [(Fraction(point) - low) / width for point in objective.prior.categories]
    return {float(x): (exact(x), chance) for x, chance in zip(shares, objective.prior.exact, strict=True)}


def _density(objective: WorstCase | Average, domain: Interval) -> list[tuple[fmpq, fmpq, arb_poly]] | None:
    """The prior's density in pieces (start, end, coefficients) over shares of the domain, if it has one."""
    if isinstance(objective, WorstCase) or isinstance(objective.prior, Prior):
        return None
    return [(exact(a), exact(b), arb_poly([arb(exact(c)) for c in row])) for a, b, row in objective.density(domain)]


class _Dual:
    """g of (*), its breakpoints (`marks`), int nu dlam (`value`) and int dlam (`mass`)."""

    def __init__(
        self, c: KernelCertificate, at: list[fmpq], branches: Branches, slopes: tuple[fmpq, fmpq],
        prior: list[Any] | None, tilted: bool,
    ) -> None:  # fmt: skip
        self.branches, self.slopes, self.tilted = branches, slopes, tilted
        self.knots = [exact(k) for k in branches.knots]
        self.rows = [[exact(a) for a in row] for row in branches.rows]
        self.polys = [arb_poly([arb(a) for a in row]) for row in self.rows]
        self.marks = [fmpq(0)]
        self.terms: sweep.Terms | None = None
        self.value, self.mass = arb(0), sum(map(arb, c.weights), arb(0))
        #: Words of the multipliers, for counted work.
        tables = (*c.densities, *c.reaches, *c.centres, *c.rays, c.mesh, c.points)
        self.size = work.words(v for table in tables for v in table)
        x = list(map(exact, c.mesh))
        self.layers = [
            _Layer(self, x, list(map(exact, c.densities[k])), list(map(exact, c.reaches[k])),
                   list(map(exact, c.centres[k])) if c.centres else None, prior, c)
            for k in range(len(c.densities)) if any(c.densities[k])
        ]  # fmt: skip
        # Atoms: below all marks the polynomials of the total and of the favoured part, and at each mark how they change.
        self.start, zero = (arb_poly(), arb_poly()), arb_poly()
        self.atoms: list[tuple[fmpq, arb_poly, arb_poly]] = []
        degree = max(map(len, self.rows))
        #: What the rays favour below all marks, and above them.
        self.far = [zero, zero]
        for s, b in (map(exact, ray) for ray in c.rays):
            self.value += arb((max(s, fmpq(0)) - s * b) * self.rows[0][2])
            r, up = arb_poly([arb(s * b * self.rows[0][2]), arb(-s * self.rows[0][2])]), s > 0
            self.far[up] += r
            self.start = self.start[0] + r, self.far[0]
            self.atoms.append((b, zero, r if up else -r))
            self.marks.append(b)
        each = len(self.rows) * (3 + degree**2 / 20 + 0.1 * len(self.rows))
        work.count(len(at) * (each + 12 * work.flint(2 * self.size + work.words(branches.knots))))
        for i, (p, weight, reach) in enumerate(zip(at, c.weights, c.point_reaches, strict=True)):
            w, t = exact(weight), exact(reach)
            if not w:
                continue
            centre = exact(c.point_centres[i]) if c.point_centres else p
            a, b, nu = self.ends(p, t, centre)
            self.value += arb(w * nu)
            subtract = arb(t * t * self.rows[0][2] if tilted else nu)
            u, scale = arb_poly([arb(-centre), 1]), arb(w)
            parts = [(row(u) - subtract) * scale for row in self.polys]
            self.start = self.start[0] + parts[0], self.start[1]
            cuts = [centre + k for k in self.knots]
            for cut, before, after in zip(cuts, parts, parts[1:], strict=False):
                change = after - before
                self.atoms.append((cut, change, change if a < cut < b else zero))
            if a < b:
                first, last = parts[bisect_right(cuts, a)], parts[bisect_left(cuts, b)]
                self.atoms += [(a, zero, first), (b, zero, -last)]
            self.marks += [a, b, *cuts]
        self.atoms.sort(key=lambda event: event[0])
        self._cuts = [event[0] for event in self.atoms]

    def ends(self, x: fmpq, reach: fmpq, centre: fmpq) -> tuple[fmpq, fmpq, fmpq]:
        """The outputs between which those that x favours lie, and nu(x)."""
        if self.tilted:
            return centre - reach, centre + reach, (reach * reach - (x - centre) ** 2) * self.rows[0][2]
        u = self.slopes[1] * reach
        return x + self.slopes[0] * reach, x + u, sweep.horner(self.rows[bisect_left(self.knots, u)], u)

    def span(self, growth: arb) -> list[fmpq]:
        """Outputs between which g is proven to be least: it is convex beyond all marks, where rays alone favour outputs."""
        total = sum([layer.total for layer in self.layers] + [event[1] for event in self.atoms], self.start[0])
        found = []
        for sign, part in zip((-1, 1), self.far, strict=True):
            slope, end = (total + part * growth).derivative(), max(sign * mark for mark in self.marks)
            steps = [0, *(2**k for k in range(70))]  # the vertex of a parabola may lie beyond
            found += [y for y in (sign * (end + step) for step in steps) if sign * slope(arb(y)) >= 0][:1]
        return found

    def least(self, low: fmpq, high: fmpq, growth: arb) -> arb:
        """A lower bound of g on [low, high], and of 0."""
        if low == high:
            high = low + fmpq(1, 2**80)
        best, reached, zero = arb(0), arb(0), arb(0)
        inside = sweep.pieces(self.marks, low, high)
        work.count(len(inside) * (30 + sum(layer.sweep.each for layer in self.layers)) + 10 * len(self.marks))
        for y0, y1, total, near in self._pieces(inside):
            g = total + near * growth
            rest = g.coeffs() or [zero]
            if not self.branches.drops and sum((c.min(zero) for c in rest[1:]), rest[0]) >= zero:
                continue
            values = bernstein(rest)
            if self.branches.drops:  # at a jump the least value that is near counts, for every atom by itself
                reached = reached.min(values[-1] + self._drop(y1, growth))
                if y0 == low:
                    reached = reached.min(values[0] - self._drop(y0, growth, after=True))
            if not all(value >= zero for value in values):
                scale = abs(total(arb(0.5))) + abs(near(arb(0.5))) * growth
                reached = reached.min(values[0]).min(values[-1])
                best = best.min(sweep.least(g, scale * sweep.FINE, reached))
        return best.min(reached)

    def _drop(self, y: fmpq, growth: arb, after: bool = False) -> arb:
        """The sum of the atoms' jumps at y downwards (upwards), not above (below) it."""
        found, at = arb(0), arb(y)
        for k in range(*(side(self._cuts, y) for side in (bisect_left, bisect_right))):
            _, total, near = self.atoms[k]
            jump = total(at) + near(at) * growth
            found += jump.max(arb(0)) if after else jump.min(arb(0))
        return found

    def _pieces(self, inside: list[tuple[fmpq, fmpq]]) -> Iterator[tuple[fmpq, fmpq, arb_poly, arb_poly]]:
        """Pieces (start, end, ...) with the polynomials of the whole integral of r and of that over the inputs that favour y."""
        done, (total, near) = 0, self.start
        for y0, y1 in inside:
            while done < len(self.atoms) and self._cuts[done] <= y0:
                total, near, done = total + self.atoms[done][1], near + self.atoms[done][2], done + 1
            whole, part, y = total, near, sweep.line(y0, y1)
            for layer in self.layers:
                a, b = layer.at(y0, y1)
                whole, part = whole + a, part + b
            yield y0, y1, whole(y), part(y)


class _Layer:
    """One density with its thresholds."""

    def __init__(
        self, dual: _Dual, x: list[fmpq], density: list[fmpq], reach: list[fmpq], centre: list[fmpq] | None,
        prior: list[Any] | None, certificate: KernelCertificate,
    ) -> None:  # fmt: skip
        size, degree = dual.size + work.words(dual.branches.knots), max(map(len, dual.rows))
        work.count(len(x) * (len(dual.knots) * 6 * work.flint(size) + 10))
        slopes = dual.slopes if centre is None else (fmpq(-1), fmpq(1))
        low, high = ([m + slope * t for m, t in zip(centre or x, reach, strict=True)] for slope in slopes)
        if any(p > q for ends in (low, high) for p, q in pairwise(ends)):
            certificate._refuse("the ends of the favoured outputs must not decrease")
        keep = [any(density[max(i - 1, 0) : i + 2]) for i in range(len(x))]  # elsewhere thresholds are of no use
        x, density, reach, low, high = (list(compress(row, keep)) for row in (x, density, reach, low, high))
        centre = centre and list(compress(centre, keep))
        # Nodes are added where a window's upper end passes a knot of the loss, and where the prior's density changes.
        inner = {p for a, b, _ in prior or () for p in (a, b) if x[0] < p < x[-1]}
        if centre is None:
            for t in [k / dual.slopes[1] for k in dual.knots if k > 0]:
                for i in range(len(x) - 1):
                    if min(reach[i], reach[i + 1]) < t < max(reach[i], reach[i + 1]):
                        inner.add(x[i] + (x[i + 1] - x[i]) * (t - reach[i]) / (reach[i + 1] - reach[i]))
        nodes = sorted(set(x) | inner) if inner else x
        times = 4 if len(nodes) > len(x) else 2
        long, places = times * size, times * work.words([*x, *reach, *(centre or ())])
        each = 4 + degree**2 / 10 + 0.1 * len(prior or ()) + (15 + 8 * len(dual.knots)) * work.flint(long)
        work.count(len(nodes) * each)
        lam, t = _along(x, density, nodes), _along(x, reach, nodes)
        middle = nodes if centre is None else _along(x, centre, nodes)
        low, high = _along(x, low, nodes), _along(x, high, nodes)
        cells = []
        for i, (p, q) in enumerate(pairwise(nodes)):
            weight, threshold = sweep.line(lam[i], lam[i + 1]), sweep.line(t[i], t[i + 1])
            if prior is not None:
                row = next((row for s, e, row in prior if s <= p and q <= e), arb_poly())
                weight *= row(sweep.line(p, q))
            if centre is None:
                u = dual.slopes[1] * (t[i] + t[i + 1]) / 2
                subtract = weight * dual.polys[bisect_left(dual.knots, u)](threshold * arb(dual.slopes[1]))
            else:
                off, square = sweep.line(p - middle[i], q - middle[i + 1]), weight * arb(dual.rows[0][2])
                subtract = square * threshold * threshold
                dual.value -= (square * off * off).integral()(arb(1)) * arb(q - p)
            cells.append(Cell(p, q, middle[i], middle[i + 1], weight, subtract))
        self.sweep = over = Sweep(cells, dual.branches, -1, 2 * places, dual.terms)
        dual.terms = over.terms
        mass, *_, value = over.totals
        dual.mass, dual.value = dual.mass + mass, dual.value + value
        dual.marks += [*low, *high, *(m - o for m in middle for o in over.offsets)]
        # Inputs favour y between that whose upper end is y and that whose lower end is y.
        self.ends = Path(high[:-1], high[1:]), Path(low[:-1], low[1:])
        self._until, self._known = -sweep.NEVER, (arb_poly(), arb_poly())

    @property
    def total(self) -> arb_poly:
        """The whole integral, for a loss in one piece."""
        return self.sweep.whole()

    def at(self, y0: fmpq, y1: fmpq) -> tuple[arb_poly, arb_poly]:
        """The whole integral and that over the inputs that favour y, as polynomials in y between y0 and y1, piece after piece."""
        over, (a, b) = self.sweep, self.ends
        if y0 >= self._until:
            for path in (a, b, over):
                path.seek(y0)
            self._until = min(a.until, b.until, over.until)
            self._known = over.whole(), over.between(a.limit, b.limit, (y0 + y1) / 2)
        return self._known


def _along(x: list[fmpq], values: list[fmpq], nodes: list[fmpq]) -> list[fmpq]:
    """The piecewise linear function through (x, values) at the nodes."""
    if nodes is x:
        return values
    out = []
    for p in nodes:
        i = min(max(bisect_left(x, p), 1), len(x) - 1)
        out.append(values[i - 1] + (values[i] - values[i - 1]) * (p - x[i - 1]) / (x[i] - x[i - 1]))
    return out
