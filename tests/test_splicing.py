"""Parts of solutions in other solutions: accepted only where the resulting statement is true.

The truth about a problem is the bracket of its own, untampered solution: a claimed lower bound above its value, or a claimed
value below its lower bound, is false. Every ordered pair of kinds and of solutions of one kind is tried (`make soak`: of all
solutions), in three ways and with the numbers that help the forger most.
"""

import itertools
import json
import math
import random
from dataclasses import dataclass, fields, replace

import pytest

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.bathtub import BathtubCertificate
from optdp.exact.fields import FieldError
from optdp.exact.work import Overwork
from tests.solutions import often, solutions


@pytest.fixture(scope="session")
def made():
    return solutions()


@pytest.fixture
def remembered(made, monkeypatch):
    """Proofs about the same object and the same problem are run once: else each would be run some eighty times."""

    def once(method):
        known = {}

        def call(self, about):
            key = id(self), about
            if key not in known:
                try:
                    known[key] = method(self, about), None
                except (Refusal, TypeError, ValueError) as refusal:
                    known[key] = None, refusal
            found, refusal = known[key]
            if refusal is not None:
                raise refusal
            return found

        return call

    for kind in {type(part) for s in made.values() for part in (s.mechanism, s.certificate)}:
        for name in {"feasible", "enclose", "bound"} & set(dir(kind)):
            monkeypatch.setattr(kind, name, once(getattr(kind, name)))


def kind(solution):
    """Of what types its parts are, and what is optimised over whom."""
    problem = solution.problem
    parts = solution.certificate, solution.mechanism, problem.privacy, problem.domain, problem.family, problem.objective
    return tuple(map(type, parts))


def pairs(made, every):
    """All ordered pairs; or those of one kind, and one of each two kinds."""
    first = firsts(made)
    for own, other in itertools.permutations(made, 2):
        if every or kind(made[own]) == kind(made[other]) or {own, other} <= first:
            yield made[own], made[other]


def firsts(made):
    """The name of one solution of each kind."""
    return set({kind(s): name for name, s in reversed(made.items())}.values())


def true_of(claim, honest):
    """Whether `claim` (a solution of the same problem) says nothing that the honest bracket contradicts."""
    return claim.lower_bound <= honest.value and claim.value >= honest.lower_bound


def proven(certificate, problem):
    """What the certificate proves for the problem; None if it refuses. Nothing else may be raised."""
    try:
        return certificate.bound(problem).value
    except Refusal as refusal:
        assert len(str(refusal)) < 1000 and str(refusal)
        return None


def attained(mechanism, problem):
    """What the mechanism attains, if it is feasible for the problem, else None; only TypeError and ValueError may be raised."""
    if not all(check.passed for check in mechanism.feasible(problem)):
        return None
    try:
        return mechanism.enclose(problem.objective)[1]
    except (TypeError, ValueError):
        return None


def accepted(claim):
    """Whether it verifies within the default limit of work."""
    try:
        return bool(claim.verify())
    except Overwork:
        return False


@dataclass
class Count:
    tried: int = 0
    accepted: int = 0
    wrong: int = 0

    def add(self, claim, honest, wrong):
        self.tried += 1
        if accepted(claim):
            self.accepted += 1
            if not true_of(claim, honest):
                self.wrong += 1
                wrong.append(repr(claim))


def test_the_solutions_verify(made):
    assert len(made) >= 40
    for name, solution in made.items():
        assert solution.verify(), f"{name}: {solution.verify()}"
        assert solution.lower_bound <= solution.value and math.isfinite(solution.value)
        assert solution.gap <= 0.06, name
        assert solution.problem.statement() in str(solution.verify())


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_every_ordered_pair(made, remembered, capsys, every):
    """The certificate, the mechanism, the problem of one in the other."""
    counts = {kind: Count() for kind in ("certificate", "mechanism", "problem")}
    wrong = []
    for own, other in pairs(made, every):
        # the other's certificate, claiming all that it proves here
        bound = proven(other.certificate, own.problem)
        lower = own.lower_bound if bound is None else max(bound, 0.0)
        counts["certificate"].add(replace(own, certificate=other.certificate, lower_bound=lower), own, wrong)
        if bound is not None and bound > own.value:
            wrong.append(f"{other.certificate!r:.200} proves {bound} for {own!r}")
        # the other's mechanism, claiming what it attains here
        value = attained(other.mechanism, own.problem)
        claimed = own.value if value is None else value
        counts["mechanism"].add(replace(own, mechanism=other.mechanism, value=claimed), own, wrong)
        if value is not None and value < own.lower_bound:
            wrong.append(f"{other.mechanism!r:.200} attains {value} in {own!r}")
        # relabelled: a problem with a solution that is not its own
        counts["problem"].add(replace(own, problem=other.problem), other, wrong)
    with capsys.disabled():
        print(f"\nsplices of {len(made)} solutions:")
        for kind, count in counts.items():
            print(f"  {kind:14} tried {count.tried:6}, accepted {count.accepted:5}, wrong {count.wrong}")
    assert not wrong, "\n".join(wrong[:20])
    assert counts["certificate"].accepted > 100 and counts["mechanism"].accepted > 20  # the test can accept


def scaled(privacy, factor):
    """The notion with its first parameter times a factor."""
    if isinstance(privacy, optdp.Profile):
        return replace(privacy, pairs=tuple((float(eps) * factor, delta) for eps, delta in privacy.pairs))
    if isinstance(privacy, optdp.Curve):
        return replace(privacy, points=tuple((float(eps) * factor, delta) for eps, delta in privacy.points))
    name = next(name for name in ("eps", "mu", "bound") if hasattr(privacy, name))
    return replace(privacy, **{name: float(getattr(privacy, name)) * factor})


def neighbours(problem):
    """Problems that differ from the given one in one part."""
    for factor in (1.5, 1 / 1.5):
        yield replace(problem, privacy=scaled(problem.privacy, factor))
    yield replace(problem, constraints=())
    if isinstance(problem.family, optdp.Piecewise | optdp.AffineWindow | optdp.Composite):
        yield replace(problem, family=optdp.AllMechanisms())
        yield replace(problem, family=optdp.Piecewise(7))
        yield replace(problem, family=optdp.AffineWindow("free"))


def test_certificates_about_changed_problems(made, remembered):
    """A certificate may prove a bound for a changed problem, but never one above the value that is attained there.

    For a larger class the own mechanism still is feasible: what it attains bounds every lower bound.
    """
    tried, turns, first = 0, itertools.cycle(range(8)), firsts(made)
    for name, own in made.items():
        for changed in neighbours(own.problem):
            value = attained(own.mechanism, changed)
            if value is None:
                continue
            others = [other for n, other in made.items() if n in first or kind(other) == kind(own)]
            for other in others[next(turns) :: 8]:
                bound = proven(other.certificate, changed)
                if bound is not None:
                    tried += 1
                    assert bound <= value, f"{name}: {other.certificate!r:.200} about {changed}"
    assert tried > 10


# --- forgeries, one by one


def refused(solution, *words):
    verification = solution.verify()
    assert not verification
    said = " ".join(f"{c.name}: {c.detail}" for c in verification.failures)
    for word in words:
        assert word in said, said
    return said


def through_a_file(solution, tmp_path, **edits):
    """The solution saved, the JSON edited (dotted names), and loaded again."""
    path = tmp_path / "forged.json"
    solution.save(path)
    data = json.loads(path.read_text())
    for name, value in edits.items():
        *inner, last = name.split("__")
        at = data
        for part in inner:
            at = at[int(part)] if part.isdigit() else at[part]
        at[last] = value
    path.write_text(json.dumps(data))
    return optdp.Solution.load(path)


def test_s1_inputs_outside_the_domain(made, tmp_path):
    """A kernel certificate whose inputs are spread beyond the domain, its weights scaled to match."""
    own = made["kernel abs"]
    moved = [0.5 + 4 * (x - 0.5) for x in own.certificate.mesh]
    quarter = tuple(tuple(v / 4 for v in row) for row in own.certificate.densities)
    with pytest.raises(ValueError, match="mesh are not allowed"):
        replace(own.certificate, mesh=tuple(moved), densities=quarter)
    with pytest.raises(FieldError, match=r"certificate\.mesh\[0\] = -1\.5"):
        through_a_file(own, tmp_path, certificate__mesh=moved, lower_bound=1.26, value=1.27)


def test_s2_windows_of_another_kind(made, tmp_path):
    """I-PTT with the II-PTT certificate; composites with another base's; rules and bases that do not exist."""
    one, two = made["ptt I"], made["ptt II"]
    refused(replace(one, certificate=two.certificate, lower_bound=13.1), "bracket")
    refused(replace(one, certificate=two.certificate, lower_bound=5.5, value=13.2), "lower bound")
    assert proven(two.certificate, one.problem) is None or proven(two.certificate, one.problem) <= one.value
    a, b = made["composite A1B1"], made["composite own base"]
    assert b.lower_bound > a.value
    refused(replace(a, certificate=b.certificate, lower_bound=b.lower_bound, value=b.value), "lower bound")
    for edits in (
        {"problem__family__rule": "foo"}, {"problem__family__base": "hello"}, {"problem__family__kind": "III"},
        {"problem__family__activation": "A1"}, {"problem__family": {"type": "bump"}},
    ):  # fmt: skip
        source = one if "problem__family__kind" in edits else a
        with pytest.raises(FieldError, match=r"problem\.family"):
            through_a_file(source, tmp_path, **edits)


def test_s3_the_printed_sentences_are_true(made):
    """What is printed about a family is not contradicted by a mechanism outside of it."""
    window, kernel = made["piecewise abs"], made["kernel abs"]
    assert kernel.value < window.lower_bound
    said = str(window.verify())
    assert "same heights" in said and "whose density at every input consists of 3 pieces" in said
    assert "every mechanism with" not in said
    uniform, pointwise = made["composite own base"], made["composite own base pointwise"]
    assert pointwise.value < uniform.lower_bound
    assert uniform.problem.statement() != pointwise.problem.statement()


def test_s4_a_bound_above_the_value(made, tmp_path):
    """m = 3 with the m = 2 certificate; a kernel mechanism with a piecewise certificate; a constant certificate on a circle."""
    three, two, kernel, circle = (made[n] for n in ("piecewise abs", "piecewise m=2", "kernel abs", "piecewise circle"))
    refused(replace(three, certificate=two.certificate, lower_bound=0.5), "lower bound", "bracket")
    refused(replace(three, certificate=two.certificate), "two pieces")
    refused(replace(kernel, certificate=three.certificate, lower_bound=three.lower_bound), "heights")
    refused(replace(kernel, certificate=three.certificate), "heights")
    refused(replace(circle, certificate=two.certificate), "two pieces on an interval")
    refused(
        replace(
            circle,
            problem=replace(circle.problem, family=optdp.Piecewise(2)),
            certificate=two.certificate,
            lower_bound=0.25,
        )
    )
    refused(replace(three, lower_bound=0.4), "more than is proven", "bracket")
    refused(replace(three, certificate=BathtubCertificate(0.4), lower_bound=0.4, value=0.5), "too high")
    loaded = through_a_file(three, tmp_path, certificate={"type": "constant"}, lower_bound=0.5)
    refused(loaded, "two pieces")
    refused(through_a_file(three, tmp_path, certificate__threshold=0.45, lower_bound=0.45, value=0.45), "too high")


def test_s5_relabelled(made, tmp_path):
    """An eps = 1, abs solution called squared and eps = 0.1; m = 2 called m = 3."""
    one, two = made["piecewise abs"], made["piecewise m=2"]
    squared = made["piecewise squared"].problem
    refused(replace(one, problem=squared))
    refused(replace(one, problem=replace(squared, privacy=optdp.LDP(0.1))), "privacy", "e^0.1")
    refused(replace(two, problem=one.problem), "two pieces")
    assert {f.name for f in fields(one)} == {"problem", "value", "lower_bound", "mechanism", "certificate", "program"}
    refused(through_a_file(one, tmp_path, problem__privacy__eps=0.1), "e^0.1")
    refused(through_a_file(one, tmp_path, problem__privacy__eps=0.9999999), "e^0.9999999")
    refused(through_a_file(two, tmp_path, problem__family__m=3), "two pieces")
    refused(through_a_file(one, tmp_path, problem__domain={"type": "interval", "lower": 0.0, "upper": 2.0}), "domain")
    for name in ("spec", "status", "gap", "name", "closed_form"):
        with pytest.raises(FieldError, match=f"unknown field '{name}'"):
            through_a_file(one, tmp_path, **{name: "optimal"})
    with pytest.raises(FieldError, match=r"program.*unknown field 'name'"):
        through_a_file(one, tmp_path, program__name="the optimal mechanism")


def test_status_and_gap_are_computed(made, tmp_path):
    one = made["piecewise abs"]
    assert one.status is optdp.Status.OPTIMAL
    worse = replace(one, value=0.5)
    assert worse.verify() and worse.status is not optdp.Status.OPTIMAL and worse.gap > 0.2
    assert "gap 2.4e-01" in str(worse)
    loaded = through_a_file(one, tmp_path, value=0.5, program__message="OPTIMAL")
    assert loaded.status is not optdp.Status.OPTIMAL


@pytest.mark.parametrize("name", often())
def test_numbers_cannot_be_improved(name, made):
    """One ulp more of lower bound than is proven, or less of value than is attained, is refused; so are NaN and infinities."""
    own = made[name]
    bound = own.certificate.bound(own.problem).value
    _, high = own.mechanism.enclose(own.problem.objective)
    assert bound <= high or math.isclose(bound, high, rel_tol=1e-15)
    more = math.nextafter(bound, math.inf)
    refused(replace(own, lower_bound=more, value=max(more, own.value)), "lower bound")
    refused(replace(own, value=math.nextafter(high, -math.inf), lower_bound=0.0), "value")
    assert not replace(own, lower_bound=-1.0).verify() and not replace(own, value=math.inf).verify()
    for bad in ({"lower_bound": math.nan}, {"value": math.nan}, {"value": -1.0}):
        assert not replace(own, **bad).verify()


def test_other_objects_in_place_of_parts(made):
    """A solution put together from things that are no parts says so instead of verifying; no traceback where types are right."""
    one = made["piecewise abs"]

    class Liar(type(one.certificate)):
        def bound(self, problem):
            self._refuse("I prove nothing")

    refused(replace(one, certificate=Liar(0.9)), "I prove nothing")


def leaves(data, path=()):
    """Paths of all numbers (also those written as strings) in a JSON value."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, key))
        elif (isinstance(value, int | float) and not isinstance(value, bool)) or (
            isinstance(value, str) and value.lstrip("-").isdigit()
        ):
            yield (*path, key)


def changed_number(value, rng):
    """The number, a little or much different."""
    old = float(value) if isinstance(value, str) else value
    new = rng.choice(
        [
            old * 1.01,
            old * 0.99,
            old * 1.3,
            old * 0.5,
            old * 4,
            -old,
            old + 0.01,
            old + 1,
            0,
            1,
            old * (1 + 1e-9),
            1e6,
            0.5,
        ]
    )
    if isinstance(value, str):
        return str(int(new))
    return int(new) if isinstance(value, int) else float(new)


@pytest.mark.parametrize("name", often())
def test_no_multipliers_prove_what_is_false(name, made):
    """Random changes of one number or a few, or of all by a factor: what is then proven is still below the value."""
    own, rng = made[name], random.Random(name)
    kind = type(own.certificate)
    data = json.loads(json.dumps(own.certificate.to_dict()))
    paths = list(leaves(data))
    for turn in range(
        (20 if name.startswith("plane") else 60) if paths else 0
    ):  # of a plane each takes a tenth of a second
        forged = json.loads(json.dumps(data))
        if turn % 6 == 5:  # a whole list by one factor
            head = rng.choice(paths)[0]
            chosen, factor = [p for p in paths if p[0] == head], rng.choice([0.5, 0.9, 1.1, 2.0, 4.0])
        else:
            chosen, factor = rng.sample(paths, min(len(paths), rng.choice([1, 1, 2, 5]))), None
        for path in chosen:
            at = forged
            for key in path[:-1]:
                at = at[key]
            old = at[path[-1]]
            if factor is None:
                at[path[-1]] = changed_number(old, rng)
            else:
                at[path[-1]] = str(int(int(old) * factor)) if isinstance(old, str) else type(old)(old * factor)
        try:
            certificate = kind.from_dict(forged)
        except FieldError:
            continue
        bound = proven(certificate, own.problem)
        assert bound is None or bound <= own.value, f"{forged} proves {bound} above {own.value}"


def pool(made):
    """Parts of all problems, and some that no solution has."""
    problems = [s.problem for s in made.values()]

    def distinct(found):
        return list(dict.fromkeys(found))

    return {
        "privacy": distinct([p.privacy for p in problems] + [optdp.LDP(0.5), optdp.ApproxDP(1.0, 0.1, 0.5), optdp.ApproxDP(2.0)]),
        "domain": distinct(p.domain for p in problems),
        "objective": distinct(
            [p.objective for p in problems]
            + [optdp.At("squared", 0.5), optdp.At("abs", 0.0), optdp.Average("abs", "uniform"), optdp.WorstCase(optdp.Pinball(0.3))]  # noqa: E501
            + [optdp.WorstCase(optdp.Power(1.5)), optdp.WorstCase(optdp.PairLoss(squared_error))]
        ),
        "family": distinct([p.family for p in problems] + [optdp.Piecewise(4)]),
        "constraints": [
            (), (optdp.Unbiased(),), (optdp.Outputs(0, 1),), (optdp.Outputs(0.25, 0.75),), (optdp.Outputs(5, 6),),
            (optdp.Unbiased(), optdp.Outputs(-3, 4)),
        ],
    }  # fmt: skip


def squared_error(x, y):
    return (x - y) ** 2


def test_random_problems_made_of_all_parts(made, capsys):
    """Problems that nobody solved: no certificate proves more than any feasible mechanism attains, and nothing breaks."""
    rng, parts, first = random.Random(0), pool(made), sorted(firsts(made))
    bounds = values = both = tried = 0
    for _ in range(80):
        own = rng.choice(list(made.values())).problem
        change = {name: rng.choice(parts[name]) for name in rng.sample(list(parts), rng.choice([1, 1, 2, 2, 3]))}
        try:
            problem = replace(own, **change)
        except (TypeError, ValueError):
            continue
        tried += 1
        attain = [v for s in made.values() if (v := attained(s.mechanism, problem)) is not None]
        asked = made if attain else first  # where nothing is attained every bound is below it
        lowest = [b for name in asked if (b := proven(made[name].certificate, problem)) is not None]
        bounds, values, both = bounds + len(lowest), values + len(attain), both + bool(lowest and attain)
        assert not lowest or not attain or max(lowest) <= min(attain), problem
    with capsys.disabled():
        print(
            f"\nrandom problems: {tried}, bounds proven {bounds}, mechanisms feasible {values}, problems with both {both}, wrong 0"  # noqa: E501
        )
    assert tried > 50 and both > 6
