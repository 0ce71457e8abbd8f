"""The closed grammar of numbers, exact comparisons, and reading saved fields."""

import json
import math
import pickle
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given

import optdp
from optdp.exact import enclosures, numbers, require
from optdp.exact.fields import OPTIONAL, UNSAVED, FieldError, Fields, Within, parse, written
from optdp.exact.numbers import Log, encode, exp_of, number, prose, rational, show

mpmath.mp.dps = 60
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
RATIONALS = st.fractions(max_denominator=10**9)
POSITIVE = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**6)
NUMBERS = st.one_of(FLOATS, RATIONALS, POSITIVE.map(Log), st.integers(-(2**53), 2**53))


def exact(value):
    """The real number that a number of the grammar stands for, to 60 digits."""
    if isinstance(value, Log):
        return mpmath.log(mpmath.mpf(value.argument.numerator) / value.argument.denominator)
    f = Fraction(value)
    return mpmath.mpf(f.numerator) / f.denominator


@given(NUMBERS)
def test_a_number_survives_json_pickle_and_itself(value):
    found = number(value, "x")
    assert found == value and number(found, "x") == found
    again = number(json.loads(json.dumps(encode(found))), "x")
    assert again == found and type(again) in (type(found), Fraction, int, float)
    assert Fraction(again) == Fraction(found) if not isinstance(found, Log) else again.argument == found.argument
    assert pickle.loads(pickle.dumps(found)) == found and hash(again) == hash(found)


@given(FLOATS)
@example(0.1)
@example(0.9999999)
@example(5e-324)
@example(1e22)
def test_floats_mean_their_dyadic_rational_and_print_by_repr(value):
    assert Fraction(number(value, "x")) == Fraction(value)
    assert float(show(value)) == value and show(value) == repr(value)


def test_strings_are_read_exactly():
    assert number("0.1", "x") == Fraction(1, 10) != Fraction(0.1)
    assert number("3/7", "x") == Fraction(3, 7)
    assert number("-2", "x") == -2
    assert number("log(3)", "x") == optdp.log(3) == Log(Fraction(3))
    assert number("log(0.5)", "x") == optdp.log("1/2")
    assert show(Fraction(6, 4)) == "3/2" and show(optdp.log("0.1")) == "log(1/10)"
    assert exp_of(optdp.log(3)) == "3" and exp_of(1.0) == "e^1.0" and exp_of(Fraction(1, 3)) == "e^(1/3)"
    assert prose("at most e^(1/3) f, e^log(3) and e^1.0 f") == "at most $e^{1/3}$ f, $e^{log(3)}$ and $e^{1.0}$ f"


@pytest.mark.parametrize("eps", [2.0, 1.0, Fraction(1, 2), 1e-9, 30.0, optdp.log(3)])
def test_a_likelihood_ratio_is_printed_on_its_side_of_the_bound(eps):
    """The nearest float of a rational just below e^2 is above e^2."""
    most = enclosures.exp_below(eps, 80)
    told = optdp.LDP(eps).check(most).detail
    with mpmath.workdps(60):
        bound = (
            mpmath.mpf(3) if isinstance(eps, Log) else mpmath.exp(mpmath.fraction(*Fraction(eps).as_integer_ratio()))
        )
        shown = told.split(" is ")[1].split(" ")[0]
        assert mpmath.mpf(shown.removesuffix("...")) <= bound and (shown == "3" or shown.endswith("..."))
    assert told.endswith(f"(exact rational), at most {exp_of(eps)}")
    failed = optdp.LDP(eps).check(most + 1)
    assert not failed.passed and failed.detail.endswith(f"(exact rational), not proven to be at most {exp_of(eps)}")


def test_decimals_are_read_exactly():
    assert number(Decimal("0.1"), "x") == Fraction(1, 10) and optdp.LDP(Decimal("0.5")) == optdp.LDP("1/2")
    for bad in ("NaN", "Infinity", "1e999999999", "1e-999999999"):
        with pytest.raises(ValueError, match="eps"):
            number(Decimal(bad), "eps")


BAD_TEXT = ("", " ", "1e5", "nan", "inf", "-inf", "0x10", "1_000", "٣", "1/0", "--1", "1/2/3", "1.2.3", ".", "/", "+", "log",
            "log()", "log(0)", "log(-1)", "log(log(3))", "log(3", "exp(1)", "1/ 2", " 1", "1" * 5000, "log(" + "1" * 5000 + ")",
            "log(1/0)", "__import__('os')", "1.5/2", "³")  # fmt: skip


@pytest.mark.parametrize("text", BAD_TEXT)
def test_what_is_not_in_the_grammar_is_refused_by_name(text):
    with pytest.raises(ValueError, match="eps") as caught:
        number(text, "eps")
    assert "allowed" in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize("value", [True, None, [1.0], {"a": 1}, 1j, np.array([1.0, 2.0]), b"1", object()])
def test_other_types_are_refused(value):
    with pytest.raises(TypeError, match="eps"):
        number(value, "eps")
    with pytest.raises(TypeError):
        optdp.log(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan"), 10**2000, Fraction(1, 10**2000)])
def test_nan_infinity_and_oversized_are_refused(value):
    with pytest.raises(ValueError, match="eps"):
        number(value, "eps")


@pytest.mark.parametrize("value", [0, -1, "0", "-1/2", -0.0])
def test_logarithms_need_a_positive_argument(value):
    with pytest.raises(ValueError, match="must be > 0"):
        optdp.log(value)


@pytest.mark.parametrize("value", [10**400, Fraction(10) ** 400, "1" + "0" * 400])
def test_numbers_beyond_floats_are_refused_where_a_float_is_needed(value):
    for make in (
        lambda: optdp.ApproxDP(value),
        lambda: optdp.solve_piecewise(value),
        lambda: optdp.ApproxDP(1.0, value),
    ):
        with pytest.raises((ValueError, TypeError), match=r"eps|delta"):
            make()


@pytest.mark.parametrize("value", [np.float32(0.1), np.float64(0.1), np.int64(3), np.int8(3)])
def test_numpy_scalars_are_numbers(value):
    found = number(value, "x")
    assert type(found) in (int, float) and found == value
    json.dumps(encode(found))


@given(POSITIVE)
def test_the_float_of_a_logarithm_is_close(argument):
    got, true = float(Log(argument)), exact(Log(argument))
    assert abs(got - true) <= 4e-16 * max(abs(true), mpmath.mpf(2) ** -1000) + (
        4e-16 if argument > 2 or argument < 0.5 else 0
    )


def test_rational_refuses_logarithms():
    with pytest.raises(TypeError, match="delta"):
        rational(optdp.log(3), "delta")


@given(NUMBERS, NUMBERS)
def test_at_most_never_lies(a, b):
    answer = enclosures.at_most(a, b)
    left, right = exact(a), exact(b)
    if answer is True:
        assert left <= right + abs(right) * mpmath.mpf(10) ** -55
    elif answer is False:
        assert left >= right - abs(right) * mpmath.mpf(10) ** -55
    if not isinstance(a, Log) and not isinstance(b, Log):
        assert answer is (Fraction(a) <= Fraction(b))


@given(st.floats(1e-6, 30), st.sampled_from([64, 128, 256, 1000]))
def test_at_most_close_to_equality(eps, bits):
    """The guarantee of a mechanism is a logarithm within 2^-bits of eps: never called larger where it is smaller."""
    below, above = Log(enclosures.exp_below(eps, bits)), Log(enclosures.exp_above(eps, bits))
    assert enclosures.at_most(below, eps) is not False
    assert enclosures.at_most(above, eps) is not True
    assert enclosures.at_most(eps, above) is not False
    assert enclosures.at_most(eps, below) is not True
    assert optdp.LDP(eps).implied_by(optdp.LDP(below)) is not False
    if bits <= 128:
        assert enclosures.at_most(below, eps) is True and enclosures.at_most(above, eps) is False


@given(st.one_of(st.floats(0, 30), st.fractions(0, 30, max_denominator=10**6)), st.sampled_from([32, 64, 128]))
def test_exp_below_and_above_enclose(eps, bits):
    low, high = enclosures.exp_below(eps, bits), enclosures.exp_above(eps, bits)
    with mpmath.workdps(80):
        true = mpmath.exp(exact(eps))
        assert mpmath.mpf(low.numerator) / low.denominator <= true <= mpmath.mpf(high.numerator) / high.denominator
    assert high - low <= high * Fraction(1, 2 ** (bits - 2))
    if eps > 0:
        assert low < high


@given(st.fractions(1, 1000, max_denominator=1000))
def test_exponentials_of_logarithms_are_exact(argument):
    assert enclosures.exp_below(Log(argument)) == enclosures.exp_above(Log(argument)) == argument
    assert enclosures.at_most_exp(argument, Log(argument))
    assert not enclosures.at_most_exp(argument + Fraction(1, 10**40), Log(argument))


@given(st.fractions(-(10**6), 10**6))
def test_rounding_is_directed_and_tight(value):
    low, high = enclosures.round_down(value), enclosures.round_up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert Fraction(math.nextafter(low, math.inf)) > value or Fraction(low) == value
    assert Fraction(math.nextafter(high, -math.inf)) < value or Fraction(high) == value


@given(st.integers(2**53, 2**120), st.integers(-1300, 1100), st.sampled_from([1, -1]))
@example(2**54 + 3, 0, 1)  # the nearest is above
@example(2**54 + 1, 0, 1)
@example(2**53 + 1, -1074, -1)
def test_points_are_rounded_as_their_rationals(mantissa, exponent, sign):
    mantissa *= sign
    exact = mantissa * Fraction(2) ** exponent
    with ctx.workprec(256):
        point = arb(mantissa) * arb(2) ** exponent
        assert enclosures.round_down(point) == enclosures.round_down(exact)
        assert enclosures.round_up(point) == enclosures.round_up(exact)


def test_rounding_beyond_floats():
    huge, tiny = Fraction(10) ** 400, Fraction(1, 10**400)
    assert enclosures.round_down(huge) == 1.7976931348623157e308 and enclosures.round_up(huge) == math.inf
    assert enclosures.round_down(-huge) == -math.inf and enclosures.round_up(-huge) == -1.7976931348623157e308
    assert enclosures.round_down(tiny) == 0.0 and enclosures.round_up(tiny) == 5e-324


def test_balls_beyond_what_rationals_hold_have_ends_on_their_sides():
    tiny, huge, least, most = arb(2) ** -(2**21), arb(2) ** 2**21, Fraction(1, 2**enclosures.FAR), 2**enclosures.FAR
    assert (enclosures.lower(tiny), enclosures.upper(tiny)) == (0, least)
    assert (enclosures.lower(-tiny), enclosures.upper(-tiny)) == (-least, 0)
    assert enclosures.lower(huge) == most and enclosures.upper(-huge) == -most
    for end, ball in ((enclosures.upper, huge), (enclosures.lower, -huge)):
        with pytest.raises(OverflowError):
            end(ball)
    assert enclosures.lower(arb(1, 0.5)) <= 0.5 and enclosures.upper(arb(1, 0.5)) >= 1.5


@pytest.mark.parametrize("eps", [1e-3, 1.0, 29.5])
def test_a_ratio_a_little_above_is_not_kept(eps):
    """Balls cannot tell it from e^eps, which is no proof."""
    assert not enclosures.at_most_exp(enclosures.exp_above(eps, 400), eps)


def test_rationals_are_shown_no_smaller():
    assert enclosures.rounded_up(0.1) == "0.1" and Fraction(enclosures.rounded_up(Fraction(0.1))) > Fraction(0.1)


@given(st.fractions(1, 30), st.integers(1, 400))
def test_ratios_of_many_digits_are_rounded_up(ratio, times):
    power = ratio**times
    found = enclosures.log_of(power).argument
    assert power <= found <= power * (1 + Fraction(1, 2**1000)) and number(Log(found), "eps") == Log(found)
    assert found == power or max(power.as_integer_ratio()).bit_length() > 4096


@given(st.fractions(1, 10**9))
def test_log_above(ratio):
    eps = enclosures.log_above(ratio)
    assert exact(eps) >= mpmath.log(exact(ratio)) - mpmath.mpf(10) ** -50
    assert ratio == 1 or exact(math.nextafter(eps, -math.inf)) < mpmath.log(exact(ratio))


def test_exact_epsilon():
    assert require.exact_epsilon("log(3)") == optdp.log(3)
    for bad in (0, -1.0, 31, "31", optdp.log("0.5"), optdp.log(10**14)):
        with pytest.raises(ValueError, match="eps"):
            require.exact_epsilon(bad)
    assert require.exact_epsilon(0, zero=True) == 0


def test_e_to_the_eps_is_three_and_the_mechanism_keeps_it_exactly():
    solution = optdp.solve_piecewise(optdp.log(3))
    ratio = solution.mechanism.exact_ratio
    assert ratio <= 3 and 3 - ratio < Fraction(1, 10**30)
    assert "none more than 3 times another" in solution.problem.statement()
    assert "log(3)-LDP" in solution.problem.statement()
    assert solution.verify()
    just_less = optdp.Problem(optdp.LDP(Log(ratio - Fraction(1, 10**40))), (0, 1), "abs", optdp.Piecewise(3))
    assert not any(c.passed for c in solution.mechanism.feasible(just_less) if c.name == "privacy")


# --- fields

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=8,
)

READERS = {
    "real": lambda f: f.real("x", 0.0, 2.0),
    "number": lambda f: f.number("x"),
    "rational": lambda f: f.rational("x"),
    "integer": lambda f: f.integer("x", -5, 5),
    "flag": lambda f: f.flag("x"),
    "text": lambda f: f.text("x", 5),
    "choice": lambda f: f.choice("x", ("a", "b")),
    "child": lambda f: f.child("x"),
    "entries": lambda f: f.entries("x", 1, 3),
    "reals": lambda f: f.reals("x", 0.0, 1.0, most=3),
    "integers": lambda f: f.integers("x", 0, 9, most=3),
    "labels": lambda f: f.labels("x", most=3),
    "typed pairs": lambda f: f.typed("x", Annotated[tuple[tuple[float, float], ...], Within(0.0, 1.0, most=3)]),
    "typed or null": lambda f: f.typed("x", Annotated[int | None, Within(0, 9)]),
    "typed or a word": lambda f: f.typed("x", Annotated[Any, Within(kind=Part, words=("none",))]),
    "typed dataclass": lambda f: f.typed("x", Part),
}


@dataclass(frozen=True)
class Part:
    """One field of each kind that is read by its type."""

    size: Annotated[float, Within(0.0, 1.0)]
    eps: numbers.Number
    kind: Literal["a", "b"]
    counts: Annotated[tuple[int, ...], Within(0, 9, 1, 3)] = (1,)
    inner: Annotated[tuple["Part", ...], Within(most=2)] = ()
    told: bool = field(default=False, metadata=OPTIONAL)
    build: Any = field(default=None, metadata=UNSAVED)


PART = {"size": 0.5, "eps": "log(3)", "kind": "a", "counts": [1, 2], "inner": []}


def test_a_dataclass_is_read_by_its_types_and_written_back():
    part = Part(0.5, optdp.log(3), "a", (1, 2), (Part(1.0, 2.0, "b", told=True, build=print),))
    data = json.loads(json.dumps(written(part)))
    assert "told" not in data and data["inner"][0]["told"] is True and "build" not in data["inner"][0]
    read = Fields(data, "part").into(Part)
    assert replace(read, inner=()) == replace(part, inner=()) and read.inner[0] == replace(part.inner[0], build=None)
    assert Fields({"x": "none"}, "f").typed("x", Annotated[Any, Within(kind=Part, words=("none",))]) == "none"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("size", 1.5, "part.size"), ("size", True, "part.size"), ("eps", "log(-1)", "part.eps"), ("kind", "c", "part.kind"),
        ("counts", [], "part.counts"), ("counts", [1, 2, 3, 4], "part.counts"), ("counts", [10], r"part.counts\[0\]"),
        ("inner", [PART, {**PART, "size": 2.0}], r"part.inner\[1\].size"), ("inner", [PART] * 3, "part.inner"),
        ("inner", [{**PART, "more": 1}], "unknown field 'more'"), ("told", 1, "part.told"),
    ],
)  # fmt: skip
def test_a_dataclass_refuses_what_its_types_do_not_allow(name, value, said):
    with pytest.raises(FieldError, match=said):
        Fields({**PART, name: value}, "part").into(Part)
    if name != "told":
        with pytest.raises(FieldError, match=f"part.{name} is missing"):
            Fields({k: v for k, v in PART.items() if k != name}, "part").into(Part)


def test_large_integer_categories_stay_integers():
    prior = optdp.Prior((1, 1), (0, 2**63))
    assert optdp.Prior.from_dict(json.loads(json.dumps(prior.to_dict()))) == prior


@given(st.sampled_from(sorted(READERS)), VALUES)
def test_every_reader_returns_or_says_the_field(kind, value):
    fields = Fields({"x": value}, "file.part")
    try:
        found = READERS[kind](fields)
    except FieldError as error:
        text = str(error)
        assert text.startswith("file.part.x") and len(text) < 400 and "\n" not in text
    else:
        if kind == "real":
            assert isinstance(found, float) and 0 <= found <= 2
        if kind == "integer":
            assert type(found) is int and -5 <= found <= 5
        if kind in ("reals", "integers", "labels", "entries"):
            assert len(found) <= 3


@pytest.mark.parametrize("kind", sorted(READERS))
def test_a_missing_field_is_named(kind):
    with pytest.raises(FieldError, match=r"^file\.x is missing"):
        READERS[kind](Fields({}, "file"))


@pytest.mark.parametrize("value", [10**400, -(10**400), math.nan, math.inf, True, "1.0", None, [1.0]])
def test_reals_are_finite_floats(value):
    with pytest.raises(FieldError, match=r"file\.x"):
        Fields({"x": value}, "file").real("x")
    with pytest.raises(FieldError, match=r"file\.x\[0\]"):
        Fields({"x": [value]}, "file").reals("x")


@pytest.mark.parametrize("text", ["--5", "-", "5-", "- 5", "", "+5"])
def test_integers_as_texts_have_one_sign(text):
    with pytest.raises(FieldError, match=r"^file\.x = a text is not allowed"):
        Fields({"x": text}, "file").integer("x", -10, 10)


def test_huge_integers_in_messages():
    with pytest.raises(FieldError, match=r"file\.x"):
        Fields({"x": 10**6000}, "file").real("x")
    with pytest.raises(FieldError, match=r"file\.x"):
        Fields({"x": 10**6000}, "file").number("x")
    with pytest.raises(FieldError, match=r"file\.x"):
        Fields({"x": 10**6000}, "file").flag("x")
    with pytest.raises(FieldError, match=r"file\.x"):
        Fields({"x": 10**6000}, "file").integer("x", 0, 5)


def test_unknown_fields_are_named():
    fields = Fields({"x": 1.0, "surprise": 2}, "file")
    fields.real("x")
    with pytest.raises(FieldError, match="unknown field 'surprise'"):
        fields.done()


@pytest.mark.parametrize(
    ("text", "said"),
    [('{"a": 1, "a": 2}', "twice"), ('{"a": NaN}', "NaN"), ('{"a": -Infinity}', "Infinity"), ("[1]", "a list"), ("5", "a number"),
     ("", "not JSON"), ('{"a": 1', "not JSON"), ("\xff".encode("latin-1"), "not JSON"), ("[" * 100_000, "not JSON"),
     ('{"a": ' * 100_000, "not JSON"), ('{"a": ' + "1" * 5000 + "}", "digits"), ('{"a": 1e999}', None)],
)  # fmt: skip
def test_parse_says_what_is_wrong(text, said):
    if said is None:
        with pytest.raises(FieldError):
            parse(text, "file").real("a")
        return
    with pytest.raises(FieldError, match=said) as caught:
        parse(text, "file")
    assert str(caught.value).startswith("file") and len(str(caught.value)) < 300


def test_dots_tell_of_this_number_alone():
    Decimal(2) / 3  # leaves a flag behind
    assert [numbers.digits(q) for q in (Fraction(3), Fraction(1, 8), Fraction(1, 3))] == [
        "3",
        "0.125",
        "0." + "3" * 17 + "...",
    ]


@given(st.floats(-1e300, 1e300).filter(lambda v: v == 0 or abs(v) > 1e-290), st.integers(1, 15))
def test_what_is_printed_of_a_bound_is_one(value, digits):
    low, high = Fraction(numbers.below(value, digits)), Fraction(numbers.above(value, digits))
    assert low <= Fraction(value) <= high and high - low <= abs(Fraction(value)) * Fraction(10, 10**digits)


@given(st.floats(-1e300, 1e300), st.fractions(-1, 1))
def test_the_next_float_is_larger_and_no_other_is_between(value, more):
    for q in (Fraction(value), Fraction(value) * (1 + more / 2**53), more):
        found = numbers.next_float(q)
        assert Fraction(math.nextafter(found, -math.inf)) <= q < Fraction(found)


def test_plain_and_latex():
    assert [numbers.plain(v) for v in (0.0, 120.0, 0.1, 1e300)] == ["0", "120", "0.1", "1e+300"]
    assert numbers.latex(optdp.log(3)) == r"\log 3" and numbers.latex(Fraction(1, 3)) == r"\tfrac{1}{3}"
    assert numbers.latex(1e-9) == r"1 \cdot 10^{-9}" and numbers.latex(Fraction(4)) == "4"


def test_integers_are_read_up_to_both_ends_which_messages_name():
    for value in (3, 2**62, "3", str(2**62)):
        assert Fields({"n": value}, "file").integer("n", 3, 2**62) == int(value)
    for value in (2, 2**62 + 1, "2"):
        with pytest.raises(FieldError, match=r"must be an integer in \[3, 2\^62\]$"):
            Fields({"n": value}, "file").integer("n", 3, 2**62)
