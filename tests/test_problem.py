"""The parts of a problem as values: equality, hashes, pickles, JSON, statements; implication between privacy notions."""

import copy
import itertools
import json
import math
import pickle
import re
from dataclasses import dataclass, replace
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given

import optdp
from optdp.exact import enclosures
from optdp.exact.fields import FieldError
from optdp.exact.numbers import Log
from optdp.problem.constraints import Constraint
from optdp.problem.domains import Domain
from optdp.problem.families import Family
from optdp.problem.losses import MatrixLoss
from optdp.problem.objectives import Objective
from optdp.problem.privacy import Privacy
from optdp.problem.problem import Problem
from optdp.problem.shapes import Quartic, Rectangle, Sine, Steps, Triangle
from optdp.problem.tasks import Aggregate
from tests.test_losses import DISTANCE

EPS = st.one_of(st.floats(1e-9, 30), st.fractions(Fraction(1, 10**6), 30, max_denominator=10**6), st.integers(1, 30),
                st.fractions(Fraction(1001, 1000), 10**6, max_denominator=1000).map(Log))  # fmt: skip
WEIGHTS = st.lists(st.integers(1, 50), min_size=2, max_size=5)
LABELS = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5))


@st.composite
def priors(draw):
    weights = draw(WEIGHTS)
    names = draw(st.one_of(st.just(None), st.lists(LABELS, min_size=len(weights), max_size=len(weights), unique=True)))
    return optdp.Prior.of([Fraction(w, sum(weights)) for w in weights], names)


PRIVACY = st.one_of(
    st.builds(optdp.LDP, EPS, ideal=st.booleans()),
    st.builds(
        optdp.ApproxDP, EPS, st.one_of(st.floats(0, 0.99), st.fractions(0, Fraction(99, 100))), st.floats(0.1, 10)
    ),
    st.builds(optdp.LIP, EPS, priors(), st.booleans(), ideal=st.booleans()),
)
DOMAIN = st.one_of(
    st.builds(lambda a, w: optdp.Interval(a, a + w), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)),
    st.builds(optdp.Circle, st.floats(1e-3, 1e6), st.floats(-100, 100)),
    st.just(optdp.Line()), st.just(optdp.Integers()),
    st.integers(2, 6).map(optdp.Alphabet),
    st.lists(LABELS, min_size=2, max_size=5, unique=True).map(lambda found: optdp.Alphabet(tuple(found))),
)  # fmt: skip
MATRIX = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.lists(st.floats(0, 1e6), min_size=n, max_size=n).map(tuple), min_size=2, max_size=4)
).map(lambda rows: MatrixLoss(tuple(rows)))  # fmt: skip
LOSS = st.one_of(DISTANCE, MATRIX, st.floats(0.01, 0.99).map(optdp.Pinball))
AGGREGATE = st.one_of(st.just(Aggregate("histogram")), st.just(Aggregate("sum", (0.0, 1.0, 5.5))))
OBJECTIVE = st.one_of(
    st.builds(optdp.WorstCase, LOSS),
    st.builds(optdp.Average, LOSS, st.one_of(st.just("uniform"), priors())),
    st.builds(optdp.At, LOSS, st.floats(-10, 10)),
    st.builds(optdp.BayesRisk, st.just(Aggregate("histogram")), priors()),
)
SHAPE = st.one_of(
    st.sampled_from([Rectangle(), Sine(), Triangle()]),
    st.fractions(Fraction(1, 10), Fraction(9, 10)).map(Quartic),
    st.lists(st.integers(1, 100), min_size=1, max_size=4).map(lambda h: Steps(tuple(h + h[::-1]), "mine")),
)
BASE = SHAPE.filter(lambda shape: shape.dip() > 0)
FAMILY = st.one_of(
    st.just(optdp.AllMechanisms()), st.integers(2, 9).map(optdp.Piecewise), st.just(optdp.Additive()),
    st.sampled_from(["I", "II", "free"]).map(optdp.AffineWindow),
    st.builds(optdp.Composite, SHAPE, st.one_of(st.just("B2"), BASE), st.sampled_from(["uniform", "pointwise"])),
)  # fmt: skip
CONSTRAINT = st.one_of(
    st.just(optdp.Unbiased()), st.builds(lambda a, w: optdp.Outputs(a, a + w), st.floats(-10, 10), st.floats(0.1, 10))
)
PARTS = {Privacy: PRIVACY, Domain: DOMAIN, Objective: OBJECTIVE, Family: FAMILY, Constraint: CONSTRAINT}


@st.composite
def problems(draw):
    constraints = draw(st.lists(CONSTRAINT, max_size=2, unique_by=type))
    try:
        return Problem(draw(PRIVACY), draw(DOMAIN), draw(OBJECTIVE), draw(FAMILY), tuple(constraints))
    except (ValueError, TypeError):
        assume(False)


def same(root, value):
    """JSON, pickle and copies give back an equal value with an equal hash, that says the same of itself."""
    text = json.dumps(value.to_dict(), allow_nan=False)
    for again in (root.from_dict(json.loads(text)), pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert again == value and hash(again) == hash(value) and type(again) is type(value)
        assert json.dumps(again.to_dict()) == text
        assert str(again) == str(value) and repr(again) == repr(value)


@given(st.sampled_from(list(PARTS)).flatmap(lambda root: st.tuples(st.just(root), PARTS[root])))
def test_parts_are_values(case):
    same(*case)


@given(problems())
def test_problems_are_values_and_say_themselves(problem):
    same(Problem, problem)
    said = problem.statement()
    assert said == str(problem) and "\n" not in said and said.startswith("the least ")
    assert problem.privacy.adjective in said and str(problem.domain) in said
    assert problem.objective.phrase in said and problem.family.clause(problem.eps) in said
    if problem.unbiased:
        assert "unbiased" in said
    for constraint in problem.constraints:
        if constraint.tag == "outputs":
            assert "[" in said.split(" to ", 1)[1]


@given(problems(), problems())
def test_statements_separate_problems(a, b):
    """Different problems have different sentences (categories of priors and alphabets beyond their names apart)."""
    if a.statement() == b.statement():
        named = isinstance(a.domain, optdp.Alphabet) or "sha256" in a.statement() or "prior" in a.statement()
        assert a == b or named


@given(problems())
def test_latex_is_balanced_and_has_no_loose_text_characters(problem):
    latex = problem.latex()
    assert latex.count("{") - latex.count(r"\{") == latex.count("}") - latex.count(r"\}")
    for inner in texts(latex):
        outside = re.sub(r"(?<!\\)\$[^$]*\$", "", inner)
        assert not re.search(r"(?<!\\)[\^_#%&]|[|<>]", outside), inner  # bars are dashes in text


def test_latex_says_what_is_minimised():
    prior = optdp.Prior.of([0.5, 0.5])
    wanted = {kind: optdp.BayesRisk(Aggregate(kind, values), prior).latex(optdp.Alphabet(2))
              for kind, values in (("sum", (0, 1)), ("histogram", None))}  # fmt: skip
    assert (
        "v(X)" in wanted["sum"]
        and "e_X" in wanted["histogram"]
        and all(r"X \sim P" in text for text in wanted.values())
    )
    assert "+" not in optdp.ApproxDP(1.0).latex() and r"+ \tfrac{1}{10}" in optdp.ApproxDP(1.0, "0.1").latex()


def test_guarantees_of_many_digits_are_told_rounded_up():
    """A delta just below 0.05 was told as a fraction of a hundred digits, also in the titles of figures."""
    third = Fraction(10**40, 3 * 10**40 + 1)
    for notion, said in (
        (
            optdp.ApproxDP(1.0, third),
            "(1.0, 0.333333333334)-DP, where neighbours are inputs at most 1.0 apart (delta rounded up)",
        ),
        (optdp.LDP(Fraction(2 * 10**30 - 1, 10**30)), "2-LDP (eps rounded up)"),
        (optdp.LDP(Fraction(2 * 10**30 + 1, 10**30)), "2.00000000001-LDP (eps rounded up)"),
        (optdp.LDP("1/3"), "1/3-LDP"),
        (optdp.LDP(optdp.log(3)), "log(3)-LDP"),
    ):
        assert str(notion) == said
    assert str(optdp.solve_piecewise(1.0).mechanism.guarantee()) == "1-LDP (eps rounded up)"


def test_a_circle_says_its_distance():
    problem = Problem(optdp.MetricLDP(1.0, "abs"), optdp.Circle(24), "abs")
    assert "from the circle of period 24 that starts at 0 (|.| is the shorter arc) to itself" in problem.statement()


def texts(latex):
    """The contents of \\text{...}."""
    for match in re.finditer(r"\\text\{", latex):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(latex[at], 0) if latex[at - 1] != "\\" else 0
            at += 1
        yield latex[match.end() : at - 1]


def test_a_problem_reads_well():
    assert Problem(optdp.LDP(1.0), (0, 1), "abs").statement() == (
        "the least worst-case E|Y - x| over all 1.0-LDP mechanisms from [0, 1] to [0, 1]"
    )
    assert Problem(optdp.LDP(0.9999999), (0, 1), "abs").statement().count("0.9999999-LDP") == 1
    assert Problem(optdp.LDP("log(3)"), (0, 120), "squared", constraints=(optdp.Unbiased(),)).statement() == (
        "the least worst-case E(Y - x)^2 over all unbiased log(3)-LDP mechanisms from [0, 120] to the real line"
    )


def test_problems_are_equal_as_mathematics():
    one = Problem(optdp.LDP(1), (0, 1), "abs", optdp.Piecewise(3))
    assert one == Problem(optdp.LDP(1.0), optdp.Interval(0.0, 1.0), optdp.WorstCase(optdp.Power(1)), optdp.Piecewise(3))
    assert one != replace(one, family=optdp.Piecewise(2)) != one
    both = (optdp.Unbiased(), optdp.Outputs(-1, 2))
    assert replace(one, constraints=both) == replace(one, constraints=both[::-1])
    assert replace(one, privacy=optdp.LDP("0.1")) != replace(one, privacy=optdp.LDP(0.1))


@pytest.mark.parametrize(
    ("change", "said"),
    [({"privacy": 1.0}, r"privacy = 1.0 .* such as optdp.LDP\(1.0\)"),
     ({"domain": (1, 0)}, "domain"), ({"domain": "x"}, "domain"), ({"objective": "cubic"}, "loss"),
     ({"family": "all"}, r"family .* optdp.Piecewise\(3\)"),
     ({"constraints": ("unbiased",)}, r"constraints .* optdp.Unbiased\(\)"),
     ({"constraints": (optdp.Unbiased(), optdp.Unbiased())}, "constraints"),
     ({"objective": optdp.At("abs", 2.0)}, "x"),
     ({"objective": optdp.At("squared", 0), "domain": optdp.OneHot(4)}, "At is for inputs that are numbers"),
     ({"objective": optdp.At("squared", 0), "domain": optdp.Ball(2)}, "At is for inputs that are numbers"),
     ({"objective": optdp.Average("abs", ([0.5, 3.0], [0.5, 0.5]))}, "prior")],
)  # fmt: skip
def test_wrong_parts_are_refused_by_name(change, said):
    good = {"privacy": optdp.LDP(1.0), "domain": (0, 1), "objective": "abs"}
    with pytest.raises((TypeError, ValueError), match=said):
        Problem(**(good | change))


def test_a_constraint_that_the_statement_cannot_hold_is_refused():
    """Bounds on outputs are part of the sentence or the problem is refused: never dropped silently."""
    for domain, objective in ((optdp.Alphabet(2), MatrixLoss(((0, 1), (1, 0)))),
                              (optdp.Alphabet(2), optdp.BayesRisk(Aggregate("histogram"), optdp.Prior.of([0.5, 0.5])))):  # fmt: skip  # noqa: E501
        with pytest.raises(ValueError, match="outputs"):
            Problem(optdp.LDP(1.0), domain, objective, constraints=(optdp.Outputs(0.0, 1.0),))
    line = Problem(optdp.ApproxDP(1.0, 0.1), optdp.Line(), "abs", constraints=(optdp.Outputs(0.0, 1.0),))
    assert "[0, 1]" in line.statement() and "[0, 1]" in line.latex()


def test_no_private_value_in_errors():
    """What a user's input was is never printed: place and rule are."""
    secret = 123.456789
    prior = optdp.Prior.of({"a": 0.5, "b": 0.5, "rare disease": 0.0})
    for call in (
        lambda: optdp.Interval(0, 1).check([0.5, secret]), lambda: optdp.Circle(1.0).check(secret),
        lambda: optdp.Line().check([secret, math.inf]), lambda: optdp.Integers().check([secret]),
        lambda: optdp.Alphabet(3).check([1, secret]), lambda: optdp.Alphabet(("a", "b")).check("secret: 123.456789"),
        lambda: optdp.Alphabet(3).check({"secret": 123}), lambda: optdp.Alphabet(("a", 1)).check([["a"], ["a", secret]]),
        lambda: prior.positions({"secret": 123}), lambda: prior.positions([["a"], ["a", "secret"]]),
        lambda: prior.positions("secret: 123.456789"), lambda: prior.positions(["a", "rare disease"]),
        lambda: optdp.Prior.of([0.5, 0.5]).positions(np.array([0, 123456789])),
        lambda: optdp.Prior.of([0.5, 0.5], [1.5, 2.5]).positions(np.array([1.5, secret])),
        lambda: optdp.solve_piecewise(1.0).mechanism.randomize([0.5, secret]),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError)) as caught:
            call()
        text = str(caught.value)
        assert "123" not in text and "secret" not in text
        assert "allowed" in text


@pytest.mark.parametrize("domain", [optdp.Line(), optdp.Integers()])
def test_neighbours_are_not_rounded_apart(domain):
    """2^53 + 1 and 2^53 + 2 are 1 apart, and as floats 2: noise for a sensitivity of 1 would not hide which it was."""
    assert domain.check(np.array([2**53, -(2**53)])).tolist() == [2.0**53, -(2.0**53)]
    for wrong in (2**53 + 1, -(2**53) - 1):
        with pytest.raises(ValueError, match=r"x \(entry 1\) is not allowed"):
            domain.check(np.array([0, wrong]))
    wide = np.array([0.5, 2.0**53], np.longdouble) + np.longdouble(0.25)
    if np.finfo(np.longdouble).nmant > 53 and domain == optdp.Line():
        assert domain.check(wide[:1]) == [0.75]
        with pytest.raises(ValueError, match=r"x \(entry 1\) is not allowed"):
            domain.check(wide)


def test_alphabets():
    mixed = optdp.Alphabet((1, "a", 2.5))
    assert mixed.index(["a"]).tolist() == [1] and mixed.index(np.array([1, "a"], dtype=object)).tolist() == [0, 1]
    assert mixed.index([1, "a", 2.5]).tolist() == [0, 1, 2]
    for bad in ((math.nan, 1.0), (1, True), (1, 1.0), ("a",), (None, 1), 1, True, "ab", [[0], [1]]):
        with pytest.raises((TypeError, ValueError), match="symbols"):
            optdp.Alphabet(bad)


def test_arrays_ranges_and_series_are_lists():
    assert optdp.Alphabet(np.array([1, 2])) == optdp.Alphabet(range(1, 3)) == optdp.Alphabet([1, 2])
    assert optdp.Alphabet(np.int64(3)) == optdp.Alphabet(3)
    assert Problem(optdp.LDP(1.0), np.array([0, 1]), "abs").domain == optdp.Interval(0, 1)
    assert optdp.solve_frequency(1.0, np.int64(4)).value == optdp.solve_frequency(1.0, range(4)).value
    points = optdp.Average("abs", np.array([[0.0, 1.0], [0.5, 0.5]]))
    assert points == optdp.Average("abs", ([0, 1], [0.5, 0.5]))


def test_a_list_of_names_is_an_alphabet():
    loss, names = [[0, 1], [1, 0]], ["here", "there"]
    for options in ({}, {"metric": optdp.Points([(0, 0), (0, 1)])}):
        one, two = (optdp.solve_kernel(1.0, loss, domain=area, **options) for area in (names, optdp.Alphabet(names)))
        assert one == two


def test_strings_and_numbers_stay_apart():
    """numpy makes strings of a mixture: the category 1 was taken for "1", and sent as "1"."""
    loss, mixed = [[0, 1], [1, 0]], ["1", 1]
    for mechanism in (
        optdp.solve_kernel(20.0, loss, domain=optdp.Alphabet(mixed)).mechanism,
        optdp.solve_lip({"1": 0.5, 1: 0.5}, 20.0, values={"1": 0, 1: 1}).mechanism,
    ):
        sent = mechanism.randomize([1, "1", 1, 1, "1"], 1).tolist()
        assert sent == [1, "1", 1, 1, "1"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Problem(optdp.LDP(1.0), "x", "abs"), "another optdp.Domain"),
        (lambda: optdp.solve_kernel(1.0, domain=[0, 1, 2]), "Alphabet or Box"),
        (lambda: optdp.solve_kernel(1.0, domain=["a", "b", "c"]), "must be a matrix"),
        (
            lambda: optdp.solve_kernel(1.0, domain=optdp.Circle(1), backend="dense"),
            "backend = 'dense' is not allowed with",
        ),
        (lambda: optdp.solve_kernel(1.0, backend="scip"), "must be one of 'auto', 'dense'$"),
        (lambda: optdp.solve_kernel(1.0, metric="euclid"), "a matrix of distances"),
        (lambda: optdp.solve_kernel(1.0, prior="flat"), "points, probabilities"),
        (
            lambda: optdp.solve_kernel(1.0, prior=([0, 0], [0.5, 0.5])),
            "prior is not allowed: its points must be distinct",
        ),
        (lambda: optdp.solve_kernel(1.0, "sqaured"), "optdp.Power"),
        (lambda: optdp.solve_kernel(1.0, optdp.Huber), "loss = <class"),
        (lambda: optdp.solve_ptt(1.0, objective="best"), "an input in"),
        (lambda: optdp.solve_composite(1.0, [1]), "'A3', a function"),
        (lambda: optdp.solve_composite(1.0, inputs=(1, 0)), "inputs = "),
        (lambda: optdp.solve_frequency(1.0, 2.5), "categories = 2.5"),
        (lambda: optdp.solve_frequency(1.0, {"a", "b"}), "categories = {"),  # a set has no order
        (lambda: optdp.solve_frequency(1.0, ["a"]), "categories are not allowed"),
        (lambda: optdp.solve_additive(1.0, 0.1, discrete=1), "discrete = 1"),
        (lambda: optdp.solve_additive(1.0, 0.1, discrete=True, sensitivity=2.5), "^sensitivity = 2.5"),
        (lambda: optdp.LDP(1.0).implied_by(1.0), "other = 1.0"),
        (
            lambda: optdp.solve_piecewise(1.0).mechanism.randomize([[0.1], [0.2, 0.3]]),
            "x must be an array of one shape",
        ),
        (lambda: optdp.check_hypothesis(3, "3-5"), "pieces = '3-5'"),
    ],
)
def test_errors_name_the_argument_and_all_that_is_allowed(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_symbols_cannot_speak_in_the_statement():
    sly = optdp.Alphabet(("a", "b} to any outputs\n", "c" * 500))
    assert "\n" not in str(sly) and len(str(sly)) < 200 and "'b} to any outputs" in str(sly)


@pytest.mark.parametrize("root", [Privacy, Domain, Objective, Family, Constraint, Problem])
@pytest.mark.parametrize(
    "data", [{}, {"type": "?"}, {"type": None}, {"type": ["ldp"]}, [], None, 3, "ldp", {"type": "problem"}]
)
def test_reading_refuses_in_one_sentence(root, data):
    with pytest.raises(FieldError) as caught:
        root.from_dict(data)
    assert "\n" not in str(caught.value)


# --- implication between notions

HALVES, THIRDS = optdp.Prior.of([Fraction(1, 2)] * 2), optdp.Prior.of([Fraction(1, 3), Fraction(2, 3)])
SMALL = st.sampled_from(
    [0.5, 1.0, 1.5, 2.0, Fraction(1, 2), Fraction(3, 2), Log(Fraction(2)), Log(Fraction(3)), Log(Fraction(9))]
)
NOTION = st.one_of(
    st.builds(optdp.LDP, SMALL, ideal=st.booleans()),
    st.builds(
        optdp.ApproxDP,
        SMALL,
        st.sampled_from([0.0, 0.1, Fraction(1, 10)]),
        st.sampled_from([0.5, 1.0]),
        ideal=st.booleans(),
    ),
    st.builds(optdp.LIP, SMALL, st.sampled_from([HALVES, THIRDS]), st.booleans(), ideal=st.booleans()),
)


@given(NOTION, NOTION, NOTION)
def test_implication_is_reflexive_and_never_contradicts_itself(a, b, c):
    assert a.implied_by(a) is True
    assert all(p.implied_by(q) in (True, False, None) for p, q in itertools.product((a, b, c), repeat=2))
    if b.implied_by(a) is True and c.implied_by(b) is True:
        assert c.implied_by(a) is not False  # transitive; None where the middle step is not found
        if type(a) is type(b) is type(c):
            assert c.implied_by(a) is True


@given(NOTION, NOTION)
def test_a_mechanism_in_real_arithmetic_promises_nothing_about_floats(a, b):
    if a.implied_by(b.in_real_arithmetic()) is True:
        assert a.ideal
    real = replace(a, ideal=False)
    assert real.implied_by(replace(b, ideal=True)) is not True
    assert a.in_real_arithmetic().implied_by(replace(b, ideal=False)) == a.in_real_arithmetic().implied_by(
        replace(b, ideal=True)
    )
    assert "floats are sampled" in str(real.in_real_arithmetic()) and "floats" not in str(real)


def binary(keep):
    """Randomised response K(y|x) with exact entries: K(x|x) = keep."""
    return [[keep, 1 - keep], [1 - keep, keep]]


def satisfies(kernel, notion):
    """Whether a 2 x 2 kernel on neighbours 0 and 1 (distance 1) has a notion: from its definition, in rationals and 60 digits."""
    import mpmath

    with mpmath.workdps(60):
        eps = notion.eps
        factor = eps.argument if isinstance(eps, Log) else None
        if factor is None:
            e = mpmath.exp(mpmath.mpf(Fraction(eps).numerator) / Fraction(eps).denominator)
            factor = Fraction(int(e * 10**50), 10**50)
        if isinstance(notion, optdp.LDP):
            return all(kernel[a][y] <= factor * kernel[b][y] for y in (0, 1) for a, b in ((0, 1), (1, 0)))
        if isinstance(notion, optdp.ApproxDP):
            if notion.sensitivity < 1:
                return True  # no neighbours
            return all(
                sum(max(kernel[a][y] - factor * kernel[b][y], 0) for y in (0, 1)) <= Fraction(notion.delta)
                for a, b in ((0, 1), (1, 0))
            )
        p = notion.prior.exact
        for y in (0, 1):
            mass = sum(p[x] * kernel[x][y] for x in (0, 1))
            for x in (0, 1):
                if kernel[x][y] * factor < mass or (not notion.lower_only and kernel[x][y] > factor * mass):
                    return False
        return True


@given(NOTION, NOTION, st.fractions(0, 1, max_denominator=200), st.fractions(0, 1, max_denominator=200))
def test_implication_is_sound(a, b, p, q):
    """No kernel has b and lacks a where b is said to imply a: tried on 2 x 2 kernels with exact entries."""
    if a.implied_by(b) is True:
        for kernel in (binary(p), [[p, 1 - p], [q, 1 - q]]):
            if satisfies(kernel, b):
                assert satisfies(kernel, a)


@pytest.mark.parametrize("b", [optdp.LDP(1.0), optdp.LDP(Log(Fraction(3))), optdp.ApproxDP(1.0, 0.1), optdp.ApproxDP(0.5, Fraction(1, 10)),  # noqa: E501
                               optdp.LIP(1.0, THIRDS), optdp.LIP(1.0, THIRDS, True), optdp.LIP(0.5, HALVES)])  # fmt: skip
@pytest.mark.parametrize("a", [optdp.LDP(0.5), optdp.LDP(Log(Fraction(2))), optdp.ApproxDP(1.0, 0.05), optdp.ApproxDP(0.5, 0.05),
                               optdp.LIP(0.5, THIRDS), optdp.LIP(0.5, THIRDS, True), optdp.LIP(0.25, HALVES)])  # fmt: skip
def test_where_implication_is_denied_a_mechanism_shows_it_and_else_none(a, b):
    told = a.implied_by(b)
    for steps in [120] if told is False else [20] if told else []:
        grid = [Fraction(k, steps) for k in range(steps + 1)]
        kernels = ([[p, 1 - p], [q, 1 - q]] for p in grid for q in grid)
        assert any(satisfies(kernel, b) and not satisfies(kernel, a) for kernel in kernels) is not told


def test_neighbourhoods_are_compared():
    wide, narrow = optdp.ApproxDP(1.0, 0.1, 2.0), optdp.ApproxDP(1.0, 0.1, 1.0)
    assert narrow.implied_by(wide) is True and wide.implied_by(narrow) is None
    assert wide.implied_by(optdp.LDP(1.0)) is True and optdp.LDP(1.0).implied_by(optdp.ApproxDP(1.0, 0.0)) is None
    assert optdp.LIP(1.0, HALVES).implied_by(optdp.LIP(1.0, THIRDS)) is None
    assert optdp.LDP(2.0).implied_by(optdp.LIP(1.0, THIRDS)) is True
    assert optdp.LDP(1.9).implied_by(optdp.LIP(1.0, THIRDS)) is None


def test_one_side_of_information_privacy_is_not_the_other():
    """A category with a small prior may be revealed by more than e^eps: such a kernel has neither of what LIP gives."""
    kernel = [[Fraction(29, 100), Fraction(71, 100)], [Fraction(1, 10), Fraction(9, 10)]]
    one_sided = optdp.LIP(0.5, THIRDS, lower_only=True)
    assert satisfies(kernel, one_sided)
    for asked in (optdp.LDP(1.0), optdp.LIP(0.5, THIRDS)):
        assert not satisfies(kernel, asked) and asked.implied_by(one_sided) is None


def test_every_pair_of_a_profile_must_be_implied():
    pure, curve = optdp.LDP(0.5), optdp.Curve([(0.5, 0.1), (1.0, 0.01)])
    assert optdp.Profile([(0.25, 0.2), (0.5, 0.1)]).implied_by(pure) is True
    assert optdp.Profile([(0.25, 0.01), (0.5, 0.1)]).implied_by(pure) is None
    # Of what is bounded from above alone nothing is denied.
    for other in (optdp.RDP(2, 0.1), optdp.KL(0.1), curve):
        assert optdp.ApproxDP(1.0, 1e-6).implied_by(other) is None
    assert optdp.KL(1e-3).implied_by(curve) is None


@dataclass(frozen=True)
class Renyi(Privacy):
    tag = "test-renyi"
    alpha: float
    eps: float

    @property
    def adjective(self):
        return f"({self.alpha}, {self.eps})-RDP"

    @classmethod
    def _read(cls, fields):
        return cls(fields.real("alpha", 1.0), fields.real("eps", 0.0))


def test_a_notion_of_ones_own_needs_only_its_own_lines():
    mine = Renyi(2.0, 1.0)
    same(Privacy, mine)
    assert mine.implied_by(Renyi(2.0, 1.0)) is True and mine.implied_by(Renyi(2.0, 0.5)) is None
    assert mine.implied_by(optdp.LDP(1.0)) is None and optdp.LDP(1.0).implied_by(mine) is None
    problem = Problem(mine, (0, 1), "abs")
    assert "(2.0, 1.0)-RDP mechanisms" in problem.statement()
    with pytest.raises(ValueError, match="no design solves"):
        optdp.solve(problem)


def test_the_nearest_design_is_named_first():
    """What could be mended stood among twenty reasons of designs for other problems."""
    with pytest.raises(
        ValueError, match=r"no design solves.*Reasons:\n  additive: a function must be declared convex"
    ) as caught:
        optdp.solve_additive(1.0, 1e-3, optdp.CustomLoss(lambda d: np.minimum(d, 1.0)))
    assert str(caught.value).index("  kernel: privacy must be LDP") > 0


@given(EPS)
def test_guarantees_are_the_smallest(eps):
    assume(float(eps) < 25)
    mechanism = optdp.solve_piecewise(eps).mechanism
    own = mechanism.guarantee()
    assert optdp.LDP(eps).implied_by(own) is True and mechanism.satisfies(optdp.LDP(eps)) is True
    assert mechanism.satisfies(optdp.LDP(Log(mechanism.exact_ratio - Fraction(1, 10**60)))) is False
    assert mechanism.satisfies(optdp.ApproxDP(1.0, 0.1)) in (True, None)
    assert enclosures.at_most(own.eps, mechanism.privacy()) is True and mechanism.privacy() == pytest.approx(
        float(eps), rel=1e-9
    )


@pytest.mark.parametrize("points", [[0, 2**53 + 1], [2**53 + 1, 2**53 + 3], np.array([0, 2**63 - 1])])
def test_points_of_a_prior_that_are_no_floats_are_refused(points):
    """They were rounded, and what was solved was another problem."""
    area = optdp.Interval(0, 2.0**64)
    for make in (
        lambda: optdp.Average("abs", (points, [0.5, 0.5])),
        lambda: optdp.Average("abs", optdp.Prior.of([0.5, 0.5], points)).on(area),
    ):
        with pytest.raises(ValueError, match=r"prior points are not allowed: integers beyond 2\^53 must be floats"):
            make()
    kept = optdp.Average("abs", ([0, 2**53 + 2], [0.5, 0.5])).on(area)
    assert kept.prior.categories == (0.0, 2.0**53 + 2)


def test_fractions_of_numpys_integers_are_read_as_exact_ones():
    """They keep numpy's integers, which overflow and have no bit_length."""
    counts = np.array([5, 3, 2])
    prior = optdp.Prior.of([Fraction(n, counts.sum()) for n in counts])
    assert prior == optdp.Prior.of([Fraction(n, 10) for n in (5, 3, 2)])
    assert {type(w) for w in prior.weights} == {int}
