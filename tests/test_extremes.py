"""Extremes one by one: each ends in a bracket that verifies, no worse than the best closed form known, or in a sentence."""

import io
import math
import sys
from fractions import Fraction

import numpy as np
import pytest

import optdp
from optdp.cli import main
from optdp.design.additive.releases import budgets
from optdp.exact import enclosures
from optdp.exact.numbers import span
from optdp.exact.rounding import TOTAL, Table
from optdp.mechanisms.baselines import unbiased
from optdp.mechanisms.baselines.clamped import ClampedLaplace, ClampedStaircase, clamped_discrete_laplace
from optdp.mechanisms.baselines.noise import Staircase, truncated_radius
from optdp.mechanisms.composite import CompositeMechanism
from optdp.mechanisms.finite import FiniteMechanism
from optdp.mechanisms.frequency import FrequencyOracle
from optdp.mechanisms.kernel import KernelMechanism
from optdp.mechanisms.mixture import MixtureMechanism
from optdp.mechanisms.piecewise import PiecewiseMechanism
from optdp.problem.losses import as_loss
from optdp.problem.shapes import Quartic, Sine
from tests.faults import Faulty

EPS = (1e-9, 1e-6, 30.0)
SOLVES = {
    "piecewise": lambda e: optdp.solve_piecewise(e),
    "circle": lambda e: optdp.solve_piecewise(e, domain=optdp.Circle(2.0)),
    "power": lambda e: optdp.solve_piecewise(e, 3, optdp.Power(0.01)),
    "ptt": lambda e: optdp.solve_ptt(e),
    "ptt II": lambda e: optdp.solve_ptt(e, "II"),
    "composite": lambda e: optdp.solve_composite(e, "A2", "B2"),
    "lip": lambda e: optdp.solve_lip([0.5, 0.3, 0.2], e),
    "lip of a rare category": lambda e: optdp.solve_lip([1 - 1e-12, 1e-12], e),
    "frequency": lambda e: optdp.solve_frequency(e, 1000),
    "finite": lambda e: optdp.solve_kernel(e, 1 - np.eye(4), domain=optdp.Alphabet(4)),
    "kernel": lambda e: optdp.solve_kernel(e, rtol=0.5),
    "integers": lambda e: optdp.solve_additive(e, 0.3, discrete=True),
}
FAR = [(0, 1e-300), (-1e300, 1e300), (1e15, 1e15 + 1), (2.0**53, 2.0**53 + 2), (0, 1e200), (-1e-300, 1), (0, 5e-324)]


def sound(make, *, rtol=None):
    """The solution if it holds; None after a sentence that says what is allowed."""
    try:
        found = make()
    except (ValueError, TypeError) as refused:
        assert "allowed" in str(refused) or "must be" in str(refused), str(refused)
        assert "Refusal" not in type(refused).__name__
        return None
    assert found.verify(), str(found.verify())
    assert 0 <= found.lower_bound <= found.value < math.inf
    assert rtol is None or found.gap <= rtol
    return found


@pytest.mark.parametrize("eps", EPS)
@pytest.mark.parametrize("which", list(SOLVES))
def test_every_solve_works_at_both_ends_of_eps(which, eps):
    assert sound(lambda: SOLVES[which](eps)) is not None


@pytest.mark.parametrize("ends", FAR, ids=str)
def test_domains_of_all_sizes(ends):
    width = float(ends[1]) - float(ends[0])
    for make in (
        lambda: optdp.solve_piecewise(1.0, domain=ends), lambda: optdp.solve_piecewise(1.0, 3, optdp.Power(1.03), domain=ends),
        lambda: optdp.solve_composite(1.0, inputs=ends), lambda: optdp.solve_composite(1.0, sensitivity=width),
        lambda: optdp.solve_piecewise(1.0, domain=optdp.Circle(width)),
        lambda: optdp.solve_kernel(1.0, "squared", domain=ends, rtol=0.5),
        lambda: optdp.solve_kernel(1.0, unbiased=True, domain=ends, rtol=0.5),
        lambda: optdp.solve_additive(1.0, sensitivity=width),
    ):  # fmt: skip
        found = sound(make)
        if found is not None and isinstance(found.mechanism.domain, optdp.Interval):
            x = np.array([found.mechanism.domain.lower, found.mechanism.domain.upper])
            assert np.isfinite(found.mechanism.randomize(x, 0)).all()


def test_steps_that_underflow_end():
    """Losses near the least float: once an endless loop."""
    assert sound(lambda: optdp.solve_piecewise(1, 3, optdp.Power(1.03), domain=(0, 1e-300))) is not None
    sound(lambda: optdp.solve_composite(1, sensitivity=1e-155))
    sound(lambda: optdp.solve_piecewise(1e-320))


@pytest.mark.parametrize(
    "arguments", [("--domain", "0", "1e200"), ("--circle", "1e300"), ("--domain", "0", "1e-320"), ("--eps", "2")]
)
def test_the_command_line_says_so_in_one_sentence(arguments, capsys):
    try:
        status = main(["solve", "piecewise", "--eps", "1", *arguments])
    except SystemExit as ended:  # of the parser: --eps given twice, of which the first would be forgotten
        status = ended.code
    told = capsys.readouterr()
    assert status in (0, 2) and "Traceback" not in told.err and (status == 0 or "not allowed" in told.err)


def test_losses_that_overflow_raise_or_are_constant():
    def broken(d):
        raise KeyError("a loss of the user's own")

    for loss in (lambda d: d * 1e308, lambda d: 0 * d + 1.0, lambda d: d * math.nan):
        sound(lambda loss=loss: optdp.solve_piecewise(1.0, 3, loss))
    sound(lambda: optdp.solve_additive(1.0, 0.1, optdp.Power(100), time_limit=1.0, rtol=0.5))
    with pytest.raises((KeyError, ValueError, TypeError)):
        optdp.solve_piecewise(1.0, 3, broken)


def test_a_constant_loss_takes_no_time():
    found = sound(lambda: optdp.solve_additive(1.0, 0.1, lambda d: 0 * d + 2.0, n=4))
    assert found is None or found.value == pytest.approx(2.0)


def test_an_epsilon_just_below_one_is_not_printed_as_one():
    statement = optdp.solve_piecewise(0.9999999).problem.statement()
    assert "0.9999999-LDP" in statement and "at most 1 " not in statement


def test_what_a_mask_hides_is_not_answered():
    hidden = np.ma.masked_array([0.25, 0.5], [True, False])
    with pytest.raises(ValueError, match="masked"):
        optdp.solve_piecewise(1.0).mechanism.randomize(hidden)
    with pytest.raises(ValueError, match="masked"):
        optdp.solve_lip([0.5, 0.5], 1.0).mechanism.randomize(np.ma.masked_array([0, 1], [True, False]))
    for rows in ([hidden, hidden], [0.25, np.ma.masked]):  # numpy forgets the masks of a list's entries
        with pytest.raises(ValueError, match="masked"):
            optdp.solve_piecewise(1.0).mechanism.randomize(rows)
    vectors, additive = np.ma.masked_array(np.ones((2, 3)), np.eye(2, 3)), optdp.solve_additive(1.0).mechanism
    for mechanism, outputs in (
        (optdp.solve_piecewise(1.0).mechanism, hidden),
        (additive, hidden),
        (optdp.solve_frequency(1.0, 3).mechanism, np.ma.masked_array([0, 1], [True, False])),
        (optdp.solve_vector(1.0, 3).mechanism, vectors),
    ):
        with pytest.raises(ValueError, match=r"outputs .* masked"):
            optdp.estimate(mechanism, outputs, "frequencies" if isinstance(mechanism, FrequencyOracle) else "mean")


@pytest.mark.parametrize("beside", [0.5, np.float32(0.5), -1])
def test_an_integer_that_a_list_would_round_is_refused_where_guarantees_are_of_distances(beside):
    for large in (2**63 + 1, np.uint64(2**63 + 1)):
        with pytest.raises(ValueError, match=r"x \(entry 0\) is not allowed: x must be numbers that are floats"):
            optdp.solve_additive(1.0).mechanism.randomize([large, beside])
    assert optdp.problem.Line().check([2**53, 2.0**60, beside]).shape == (3,)


def test_complex_outputs_are_not_taken_for_their_real_parts():
    with pytest.raises(TypeError, match="outputs"):
        optdp.estimate(optdp.solve_vector(1.0, 3).mechanism, np.ones((4, 3)) * 1j)


def test_a_byte_order_mark_on_standard_input_and_a_quote_as_delimiter(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\ufeffage\n30\n".encode()), encoding="utf-8"))
    out = tmp_path / "out.csv"
    arguments = ["randomize", "--eps", "1", "--column", "age", "--lower", "0", "--upper", "120", "-"]
    assert main([*arguments, str(out)]) == 0 and out.read_text().splitlines()[0] == "age"
    try:
        status = main([*arguments, "--delimiter", '"', str(out), "--only"])
    except SystemExit as ended:
        status = ended.code
    assert status == 2 and "Traceback" not in capsys.readouterr().err


def test_a_solver_that_answers_zeros():
    for fault in ("zeros", "nan", "RuntimeError"):
        sound_or_failure = []
        for make in (
            lambda s: optdp.solve_kernel(1.0, rtol=0.1, solver=s, backend="dense"),
            lambda s: optdp.solve_additive(1.0, 0.1, solver=s, rtol=0.1),
            lambda s: optdp.solve_lip([0.5, 0.3, 0.2], 1.0, solver=s),
        ):  # fmt: skip
            try:
                sound_or_failure.append(bool(make(Faulty(fault)).verify()))
            except RuntimeError as failure:
                assert "faulty" in str(failure)
        assert all(sound_or_failure)


def test_a_solver_must_be_one():
    with pytest.raises(TypeError, match="LinearSolver"):
        optdp.solve_kernel(1.0, solver="highs")


@pytest.mark.parametrize("loss", ["abs", "squared", optdp.Huber(0.1)])
def test_a_kernel_is_no_worse_than_the_piecewise_mechanism(loss):
    for eps, ends in ((1.0, (0, 1)), (30.0, (0, 1)), (1.0, (0, 1e100))):
        kernel = optdp.solve_kernel(eps, loss, domain=ends, rtol=0.3, time_limit=2.0)
        best = optdp.solve_piecewise(eps, 3, loss, domain=ends)
        assert kernel.value <= best.value * (1 + 1e-6) or kernel.gap <= 0.3
        assert kernel.verify()


def test_unbiased_kernels_say_from_which_eps_on():
    assert sound(lambda: optdp.solve_kernel(1e-6, unbiased=True)) is not None
    with pytest.raises(ValueError, match=r"\[1e-06, 30\]"):
        optdp.solve_kernel(1e-7, unbiased=True)


def test_tiny_deltas_work():
    for eps, delta, discrete in ((20.0, 1e-300, False), (0.5, 1e-300, True), (0.5, 1e-12, True), (30.0, 5e-324, True)):
        found = sound(lambda e=eps, d=delta, i=discrete: optdp.solve_additive(e, d, discrete=i, time_limit=2.0))
        assert found is not None and math.isfinite(truncated_radius(eps, delta))


def test_basic_composition_keeps_the_total():
    """The share of an eps that is no float is rounded down."""
    for k in (2, 3, 7, 1000):
        for eps in (optdp.log(3), 1.0, Fraction(1, 3)):
            share = budgets(eps, 0, k, 1.0, "basic", lambda *_: None)["basic"].eps
            assert enclosures.at_most_exp(enclosures.exp_below(Fraction(share) * k), eps)
            assert Fraction(share) * k * (1 + Fraction(1, 2**50)) >= Fraction(float(eps)) * (1 - Fraction(1, 2**50))


def test_unbiased_answers_beyond_64_bits_are_refused():
    start = 1_700_000_000 * 10**9
    ends = (float(start), float(start + 86_400 * 10**9))
    mechanism = optdp.solve_composite(1e-6, inputs=ends).mechanism
    with pytest.raises(ValueError, match="beyond 64-bit integers") as refused:
        mechanism.randomize(np.array([start + 1234567890123]))
    assert "1234567890123" not in str(refused.value)
    assert np.isfinite(mechanism.randomize(np.array([ends[0]]), 0)).all()


def test_messages_and_symbols_of_another_shape_are_refused_by_name():
    oracle = optdp.solve_frequency(1.0, 12, message="pair").mechanism
    for wrong in (3, [1, 2, 3], "x"):
        with pytest.raises(ValueError, match="y is not allowed"):
            oracle.probability(wrong, 1)
    with pytest.raises(ValueError, match="broadcast"):
        optdp.solve_lip([0.5, 0.5], 1.0).mechanism.probability([0, 1, 0], [0, 1])
    with pytest.raises(ValueError, match="symbols"):
        optdp.Alphabet(10**400)
    with pytest.raises(TypeError, match="privacy notion"):
        optdp.solve_piecewise(1.0).mechanism.satisfies(1.0)


@pytest.mark.parametrize(
    "solve", [lambda eps: optdp.solve_frequency(eps, 100), lambda eps: optdp.solve_vector(eps, 3),
              lambda eps: optdp.solve_vector(eps, 3, norm="linf"), lambda eps: optdp.solve_vector(eps, 3, inputs="ball"),
              lambda eps: optdp.solve_lip([0.5, 0.5], eps)],
)  # fmt: skip
def test_an_eps_too_faint_for_the_arithmetic_is_refused_with_the_range(solve):
    assert solve(1e-14).verify()
    with pytest.raises(ValueError, match=r"^eps = 1e-\d+ is not allowed: eps must be a number in \[1e-\d+, 30\]$"):
        solve(1e-320)


def test_probabilities_of_symbols_of_other_shapes_are_refused():
    mechanism = optdp.solve_kernel(1.0, [[0, 1], [1, 0]], domain=optdp.Alphabet(2)).mechanism
    assert mechanism.probability([[0], [1]], [0, 1]).shape == (2, 2)
    with pytest.raises(ValueError, match="shape"):
        mechanism.probability([0, 1, 0], [])


@pytest.mark.parametrize(
    "far", [10**400, [-(10**400)], "a", 1j, [[0.0], [0.0, 1.0]]], ids=["huge", "list", "text", "complex", "ragged"]
)
def test_outputs_that_are_not_floats_are_refused_without_a_word_of_them(far):
    made = [
        optdp.solve_piecewise(1.0),
        optdp.solve_kernel(1.0, rtol=0.05),
        optdp.solve_ptt(1.0),
        optdp.solve_composite(1.0),
    ]
    made += [optdp.solve_additive(1.0), optdp.solve_additive(1.0, 0.1, rtol=0.1)]
    for mechanism in (solution.mechanism for solution in made):
        x = mechanism.domain.lower if np.isfinite(mechanism.domain.lower) else 0.0
        with pytest.raises((TypeError, ValueError), match=r"^y is not allowed: y must be"):
            mechanism.density(far, x)
    circle = optdp.solve_piecewise(1.0, domain=optdp.Circle(1.0)).mechanism
    with pytest.raises((TypeError, ValueError)):
        optdp.estimate(circle, far)


def test_intervals_beyond_all_floats_are_printed():
    """Outputs of a mechanism in a file whose domain is nearly all floats: printing it raised an error."""
    assert span(-math.inf, math.inf) == "[-inf, inf]" and span(1.0, math.inf) == "[1, inf]"


@pytest.mark.parametrize("kind", ["centred", "linear", "A1B1", "A2B2", "ends", "mean"])
def test_losses_far_from_0_are_those_of_the_same_mechanism_next_to_it(kind):
    """Places were rounded before differences were taken: on [2^52, 2^52 + 8] variances were -4.9 for 4.0, means off by 3."""
    far = 2.0**52

    def made(lower):
        area = optdp.Interval(lower, lower + 8)
        if kind in ("centred", "linear"):
            return PiecewiseMechanism.private(2.0, 0.4, area, kind)
        if kind == "A1B1":
            return CompositeMechanism.private(2.0, 0.4, area, shift=0.3)
        if kind == "A2B2":
            return CompositeMechanism.private(2.0, 0.4, area, Sine(), Quartic(0.7))
        return KernelMechanism.private(2.0, (1, 2, 1), (-2.0, 0.25, 0.75), (0.25, 0.75, 3.0), 0.3, area, kind)

    one, other, x = made(0.0), made(far), np.arange(9.0)
    off = 0.5 if kind in ("drawn part", "hm_tp") else 0.0  # the three outputs that some of these send are floats
    deviation = np.sqrt(one.variance(x))
    assert (np.abs(other.variance(far + x) - deviation**2) <= off * (2 * deviation + off) + 1e-12 * deviation**2).all()
    assert other._bias(far + x) == pytest.approx(one._bias(x), abs=off + 1e-12)
    assert np.abs(other.mean(far + x) - far - one.mean(x)).max() <= 0.5 + off
    y = np.arange(-2.0, 11.0)[:, None]
    assert other.cumulative(far + y, far + x) == pytest.approx(one.cumulative(y, x), abs=1e-9)
    if kind != "A2B2":
        assert other.expected_loss(far + x, "abs") == pytest.approx(one.expected_loss(x, "abs"), rel=1e-9)


@pytest.mark.parametrize("kind", ["piecewise", "circle", "composite", "kernel", "finite"])
def test_distribution_functions_at_the_ends_and_of_no_number(kind):
    """P(Y <= nan) was 1 or 0. What is no number was refused without its name."""
    atoms = KernelMechanism.private(1.0, (1, 2, 1), (0.0, 0.2, 1.0), (0.0, 0.8, 1.0), 0.3)
    mechanism = {
        "piecewise": PiecewiseMechanism.private(1.0, 0.4), "circle": PiecewiseMechanism.private(1.0, 0.4, optdp.Circle(2.0)),
        "composite": CompositeMechanism.private(1.0, 0.4), "kernel": atoms,
        "finite": FiniteMechanism(optdp.Alphabet(2), (0, 1), Table(np.array([[3, 1], [1, 3]]) * (TOTAL // 4))),
    }[kind]  # fmt: skip
    x = mechanism.domain.symbols[1] if kind == "finite" else 0.25
    low, high = mechanism.support()
    found = mechanism.cumulative(np.array([-np.inf, np.nextafter(low, -np.inf), high, np.inf, np.nan]), x)
    assert found[:4] == pytest.approx([0, 0, 1, 1], abs=1e-15) and np.isnan(found[4])
    with pytest.raises(TypeError, match=r"^y is not allowed"):
        mechanism.cumulative("a", x)


@pytest.mark.parametrize(
    "kind", ["ClampedLaplace", "ClampedStaircase", "clamped lattice", "drawn part", "mixture", "hm_tp"]
)
def test_biases_far_from_0_are_those_of_the_same_mechanism_next_to_it(kind):
    """Means were rounded before inputs were taken from them: variances on [2^52, 2^52 + 8] were 5.5 for 11.0."""
    far = 2.0**52

    def made(lower):
        area = optdp.Interval(lower, lower + 8)
        table = Table(np.array([[2, 1, 1], [1, 2, 1], [1, 1, 2]]) * (TOTAL // 4))
        return {
            "ClampedLaplace": lambda: ClampedLaplace(1.0, area), "ClampedStaircase": lambda: ClampedStaircase(1.0, area),
            "clamped lattice": lambda: clamped_discrete_laplace(1.0, area, 8),
            "drawn part": lambda: unbiased.Mixture((unbiased.duchi(1.0, area), ClampedLaplace(1.0, area)), (0.5, 0.5)),
            "mixture": lambda: MixtureMechanism(area, (lower, lower + 2, lower + 8), (lower, lower + 3, lower + 8), table),
            "hm_tp": lambda: unbiased.hm_tp(1.0, area),
        }[kind]()  # fmt: skip

    one, other, x = made(0.0), made(far), np.arange(9.0)
    off = 0.5 if kind in ("drawn part", "hm_tp") else 0.0  # the three outputs that some of these send are floats
    deviation = np.sqrt(one.variance(x))
    assert (np.abs(other.variance(far + x) - deviation**2) <= off * (2 * deviation + off) + 1e-12 * deviation**2).all()
    assert other._bias(far + x) == pytest.approx(one._bias(x), abs=off + 1e-12)
    assert np.abs(other.mean(far + x) - far - one.mean(x)).max() <= 0.5 + off


class DensityAlone(optdp.Mechanism):
    """A density and no formulas: all else is numerical."""

    def __init__(self, known):
        self.known, self.domain = known, known.domain

    def randomize(self, x, rng=None):
        return self.known.randomize(x, rng)

    def density(self, y, x):
        return self.known.density(y, x)

    def support(self, x=None):
        return self.known.support(x)


def test_numerical_means_far_from_0_are_as_accurate_as_next_to_it():
    """Quadrature was relative to outputs: a mean on [2^30, 2^30 + 1] was off by 7.9."""
    far = 2.0**30
    known = CompositeMechanism.private(1.0, 0.4, (far, far + 1), Sine(), Quartic(0.7))
    x = far + np.array([0.0, 0.3, 0.8])
    assert DensityAlone(known).mean(x) - far == pytest.approx(known.mean(x) - far, abs=3e-7)


@pytest.mark.parametrize("shift", [0, 2**52])
def test_variances_of_outputs_on_an_alphabet_do_not_depend_on_where_they_are(shift):
    """They were differences of squares, rounded to 2^52."""
    table = Table(np.array([[2, 1, 1], [1, 2, 1], [1, 1, 2]]) * (TOTAL // 4))
    finite = FiniteMechanism(optdp.Alphabet(3), tuple(shift + k for k in (0, 3, 8)), table)
    rows = np.array([[2, 1, 1], [1, 2, 1], [1, 1, 2]]) / 4
    y = np.array([0.0, 3.0, 8.0])
    assert finite.variance([0, 1, 2]) == pytest.approx(rows @ y**2 - (rows @ y) ** 2, rel=1e-14)


def test_variances_of_estimates_do_not_depend_on_where_they_are():
    """Of values near 1e9 the variance was rounded to multiples of 128."""
    near, far = (optdp.solve_lip([0.2, 0.3, 0.5], 1.0, values=(k, k + 1, k + 3)).mechanism for k in (0, 10**9))
    assert far.kernel == near.kernel
    assert far.variance([0, 1, 2]) == pytest.approx(near.variance([0, 1, 2]), rel=1e-6)


@pytest.mark.parametrize("kind", ["centred", "linear", "circle", "composite", "ends", "mean"])
@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e300])
def test_losses_are_the_same_in_all_units(kind, unit):
    """Integrals of the loss underflow on tiny domains: means of |Y - x| were 0, a fifth of what they are, or infinite."""

    def made(width):
        area = optdp.Circle(width) if kind == "circle" else optdp.Interval(0.0, width)
        if kind == "composite":
            return CompositeMechanism.private(2.0, 0.4, area)
        if kind in ("ends", "mean"):
            return KernelMechanism.private(2.0, (1, 2, 1), (-2.0, 0.25, 0.75), (0.25, 0.75, 3.0), 0.3, area, kind)
        return PiecewiseMechanism.private(2.0, 0.4, area, "linear" if kind == "linear" else "centred")

    x = np.array([0.0, 0.25, 0.5])
    assert made(unit).expected_loss(unit * x, "abs") / unit == pytest.approx(
        made(1.0).expected_loss(x, "abs"), rel=1e-9
    )


@pytest.mark.parametrize("unit", [1e-150, 1e-120, 1e120, 1e150])
def test_losses_of_steps_of_noise_are_the_same_in_all_units(unit):
    """Integrals of the loss are no floats: the variance of the staircase was 0, or no number."""
    one, other, law = Staircase(1.0), Staircase(1.0, sensitivity=unit), as_loss("squared")
    assert other.noise_loss(law) / unit**2 == pytest.approx(one.noise_loss(law), rel=1e-12)
    assert other.partial_loss(unit, law) / unit**2 == pytest.approx(one.partial_loss(1.0, law), rel=1e-12)


@pytest.mark.parametrize("loss", ["abs", "squared", optdp.Power(0.5), optdp.Threshold(0.3), optdp.Huber(0.4)], ids=str)
@pytest.mark.parametrize("ends", [(-0.7, 1.1), (0.2, 0.9), (-0.5, -0.1), (0.0, 0.6), (0.4, 0.4), (0.0, 0.0)])
def test_means_of_losses_are_those_of_many_places(loss, ends):
    law = as_loss(loss)
    places = np.linspace(*ends, 20001)
    middle = (places[1:] + places[:-1]) / 2
    assert float(law.between(*ends)) == pytest.approx(float(law(np.abs(middle)).mean()), abs=1e-4)
    reach = abs(ends[1])
    assert float(law.mean(reach)) == pytest.approx(float(law.between(0.0, reach)), rel=1e-12)
