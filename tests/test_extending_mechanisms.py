"""Mechanisms and baselines of one's own: the worked examples run, and the defaults against closed forms."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import optdp
from optdp.exact.sampling import as_rng
from optdp.mechanisms import baselines
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines.unbiased import three_outputs
from optdp.mechanisms.piecewise import PiecewiseMechanism

DOCS = Path(__file__).parents[1] / "docs" / "extending"


@pytest.mark.parametrize("name", ["mechanism", "baseline"])
def test_worked_examples_run(name, taken_back):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / f"{name}.md").read_text(), re.M | re.S)
    assert len(blocks) >= 4
    namespace = {"__name__": f"docs_extending_{name}"}
    for block in blocks:
        exec(compile(block, f"{name}.md", "exec"), namespace)


class Bare(Mechanism):
    """The sampler and the distribution of another mechanism: everything else is the default."""

    def __init__(self, inner):
        self.inner, self.domain = inner, inner.domain

    def randomize(self, x, rng=None):
        return self.inner.randomize(x, rng)


class Dense(Bare):
    def density(self, y, x):
        return self.inner.density(y, x)


class Atomic(Bare):
    def probability(self, y, x):
        return self.inner.probability(y, x)


class Mixed(Dense, Atomic):
    def support(self, x=None):
        return self.inner.support(x)


LOSSES = ["abs", "squared", optdp.Power(0.5), optdp.Huber(0.1), optdp.Threshold(0.25)]
CIRCLE = optdp.Circle(2 * math.pi, -1.0)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize(
    "inner",
    [
        PiecewiseMechanism.private(1.0, 0.2), PiecewiseMechanism.private(5.0, 0.01, (-3, 7)),
        PiecewiseMechanism.private(2.0, 0.3, (0, 4), "linear"), PiecewiseMechanism.private(1.5, 0.1, CIRCLE),
    ],
    ids=["narrow", "spike", "linear", "circle"],
)  # fmt: skip
def test_default_expectations_of_a_density_are_those_of_the_closed_form(inner, loss):
    mine = Dense(inner)
    x = np.linspace(inner.domain.lower, inner.domain.upper, 11)
    assert mine.expected_loss(x, loss) == pytest.approx(inner.expected_loss(x, loss), rel=1e-8)
    assert mine.worst_case_loss(loss) == pytest.approx(inner.worst_case_loss(loss), rel=1e-8)
    assert mine.average_loss(loss) == pytest.approx(inner.average_loss(loss), rel=1e-7)
    assert mine.expected_loss(x[:2].reshape(2, 1), loss).shape == (2, 1)
    assert mine.expected_loss(float(x[3]), loss).shape == ()


@pytest.mark.parametrize("domain", [(0.0, 1.0), (-3.0, 7.0), CIRCLE])
def test_default_mean_and_variance(domain):
    inner = PiecewiseMechanism.private(1.5, 0.2, domain)
    mine = Dense(inner)
    x = np.linspace(inner.domain.lower, inner.domain.upper, 9)[:-1]  # on a circle the last is the first
    assert mine.mean(x) == pytest.approx(inner.mean(x), abs=1e-8)
    assert mine.variance(x) == pytest.approx(inner.variance(x), rel=1e-7)
    assert not mine.exact and inner.exact


def test_on_a_circle_the_variance_is_about_the_mean_direction():
    class Shifted(Dense):
        def density(self, y, x):
            return self.inner.density(y, np.mod(x + 2.0 + 1.0, 2 * math.pi) - 1.0)

    mine, inner = Shifted(PiecewiseMechanism.private(1.5, 0.2, CIRCLE)), PiecewiseMechanism.private(1.5, 0.2, CIRCLE)
    assert mine.mean(0.5) == pytest.approx(2.5, abs=1e-7)
    assert mine.variance(0.5) == pytest.approx(inner.variance(0.5), rel=1e-6)


@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_defaults_of_atoms(eps):
    inner = three_outputs(eps)
    mine = Atomic(inner)
    x = np.linspace(-1, 1, 7)
    assert mine.atoms() == pytest.approx(np.sort(inner.atoms()))
    assert mine.support() == inner.support()
    assert mine.mean(x) == pytest.approx(x, abs=1e-12)
    assert mine.variance(x) == pytest.approx(inner.variance(x), rel=1e-12)
    for loss in ("abs", optdp.Pinball(0.3), optdp.PairLoss(lambda x, y: (y - x) ** 2 * (2 + x))):
        assert mine.expected_loss(x, loss) == pytest.approx(inner.expected_loss(x, loss), rel=1e-12)


@pytest.mark.parametrize("eps", [0.6, 2.0])
def test_defaults_of_density_and_atoms_together(eps):
    inner = baselines.get("clamped Laplace").build(optdp.Problem(optdp.LDP(eps), (0, 3), "abs"))
    mine, x = Mixed(inner), np.linspace(0, 3, 7)
    assert mine.mean(x) == pytest.approx(inner.mean(x), rel=1e-8)
    assert mine.expected_loss(x, "abs") == pytest.approx(inner.expected_loss(x, "abs"), rel=1e-8)
    assert mine.worst_case_loss("squared") == pytest.approx(inner.worst_case_loss("squared"), rel=1e-8)


def test_unbounded_outputs():
    inner = baselines.get("Laplace").build(optdp.Problem(optdp.LDP(1.0), (0, 3), "abs", constraints=[optdp.Unbiased()]))
    mine, x = Mixed(inner), np.linspace(0, 3, 5)
    assert mine.mean(x) == pytest.approx(x, abs=1e-8)
    for q in (1, 2, 3.5):
        assert mine.expected_loss(x, optdp.Power(q)) == pytest.approx(inner.expected_loss(x, optdp.Power(q)), rel=1e-8)


def test_missing_mass_is_refused():
    class Half(Dense):
        def density(self, y, x):
            return self.inner.density(y, x) / 2

    class Beyond(Dense):  # no `support`: outputs beyond the domain are missed
        pass

    half = Half(PiecewiseMechanism.private(1.0, 0.3))
    beyond = Beyond(optdp.solve_ptt(1.0).mechanism)
    for mine, sum_ in ((half, "0.5 instead of 1"), (beyond, "instead of 1")):
        for ask in (mine.mean, mine.variance, mine.expected_loss):
            with pytest.raises(ValueError, match=sum_):
                ask(0.3)

    class Rare(Atomic):  # the output at 0 never occurs in the draws
        def randomize(self, x, rng=None):
            return np.where(self.inner.randomize(x, rng) > 0, 1.0, -1.0) * self.inner.support()[1]

    with pytest.raises(ValueError, match="define `support` and `atoms`"):
        Rare(three_outputs(2.0)).mean(0.3)


class Response(Mechanism):
    """Randomised response on an alphabet."""

    def __init__(self, symbols, truth):
        self.domain, self.truth = optdp.Alphabet(symbols), truth

    def randomize(self, x, rng=None):
        rng, inputs = as_rng(rng), self.domain.check(x)
        other = rng.choice(np.array(self.domain.symbols), inputs.shape)
        return np.where(rng.random(inputs.shape) < self.truth, inputs, other)

    def probability(self, y, x):
        return (1 - self.truth) / len(self.domain) + self.truth * (np.asarray(y) == self.domain.check(x))


@pytest.mark.parametrize("symbols", [(0, 1, 2), ("a", "b", "c")])
def test_alphabets(symbols):
    mine, loss = Response(symbols, 0.4), optdp.problem.losses.MatrixLoss(((0, 1, 2), (1, 0, 1), (5, 1, 0)))
    assert mine.atoms().tolist() == list(symbols) and mine.support() == (symbols[0], symbols[-1])
    assert mine.expected_loss(list(symbols), loss) == pytest.approx([0.6, 0.4, 1.2])
    assert mine.worst_input(loss) == symbols[2] and mine.worst_case_loss(loss) == pytest.approx(1.2)
    assert mine.average_loss(loss) == pytest.approx(2.2 / 3)
    if symbols == (0, 1, 2):
        assert mine.mean([0, 2]) == pytest.approx([0.6, 1.4])
    with pytest.raises(ValueError, match="3 rows and 3 columns"):
        mine.expected_loss(symbols[0], optdp.problem.losses.MatrixLoss(((0, 1), (1, 0))))


def test_what_is_not_claimed_is_not_taken_for_granted():
    mine = Dense(PiecewiseMechanism.private(1.0, 0.3))
    assert mine.guarantee() is None and mine.satisfies(optdp.LDP(5.0)) is None
    with pytest.raises(ValueError, match="no guarantee is claimed"):
        mine.privacy()
    checks = {c.name: c.passed for c in mine.feasible(optdp.Problem(optdp.LDP(1.0), (0, 1), "abs"))}
    assert checks == {"domain": True, "privacy": False, "family": True, "outputs": True}
    assert not mine.check_unbiased().passed
    with pytest.raises(TypeError, match="no proven value"):
        mine.enclose(optdp.WorstCase("abs"))
    with pytest.raises(TypeError, match="no JSON form"):
        mine.to_dict()


def test_a_mechanism_of_which_nothing_is_known_says_what_to_define():
    class Middle(optdp.Mechanism):
        domain = optdp.Interval(0, 1)

        def randomize(self, x, rng=None):
            return np.full(np.shape(x), 0.5)

    with pytest.raises(TypeError, match=r"Middle on \[0, 1\] has neither .* density\(y, x\) or probability\(y, x\)"):
        optdp.compare(1.0, mechanisms=[Middle()])


@pytest.mark.parametrize("domain", [optdp.Sphere(3), optdp.Ball(3), optdp.Box([0, 0], [1, 1])], ids=str)
def test_where_outputs_are_vectors_the_methods_to_define_are_named(domain):
    class Many(Mechanism):
        def randomize(self, x, rng=None):
            return np.array(x)

        def density(self, y, x):
            return np.ones(np.shape(y)[:-1])

    mine = Many()
    mine.domain = domain
    x = domain.check(np.eye(domain.dimension)[0])
    for ask in (mine.mean, mine.variance, mine.expected_loss):
        with pytest.raises(TypeError, match="Many must define mean, variance and expected_loss"):
            ask(x)
    for ask in (mine.worst_case_loss, mine.average_loss):
        with pytest.raises(TypeError, match="must define worst_input and average_loss"):
            ask("squared")
    with pytest.raises(TypeError, match="Many must define support"):
        mine.support()


def test_on_an_alphabet_probabilities_are_needed():
    class Smooth(Bare):
        def density(self, y, x):
            return np.ones(np.broadcast(y, x).shape)

    mine = Smooth(Response(("a", "b"), 0.4))
    for ask in (mine.atoms, mine.support, mine.plot, lambda: mine.expected_loss("a", [[0, 1], [1, 0]])):
        with pytest.raises(TypeError, match=r"define the method probability\(y, x\)"):
            ask()
    with pytest.raises(TypeError, match="its outputs are no numbers"):
        Response(("a", "b"), 0.4).mean("a")


def test_what_is_negative_is_no_density_though_it_adds_up_to_one():
    class Tilted(Bare):
        def density(self, y, x):
            return 1 + 3 * (np.asarray(y) - 0.5) + 0 * np.asarray(x)

    class Signed(Bare):
        def probability(self, y, x):
            return np.where(np.asarray(y) == "a", 1.2, -0.2) + 0 * (np.asarray(x) == "a")

    with pytest.raises(ValueError, match="density of Tilted is not allowed: it is negative"):
        Tilted(PiecewiseMechanism.private(1.0, 0.3)).expected_loss(0.5)
    with pytest.raises(ValueError, match="probability of Signed is not allowed: it is negative"):
        Signed(Response(("a", "b"), 0.4)).expected_loss("a", [[0, 1], [1, 0]])

    class Halved(Atomic):
        def probability(self, y, x):
            return self.inner.probability(y, x) / 2

    with pytest.raises(ValueError, match=r"Halved add up to 0\.5 instead of 1"):
        Halved(Response(("a", "b"), 0.4)).expected_loss("a", [[0, 1], [1, 0]])


class Skewed(Mechanism):
    """Noise that is not symmetric: exponential, moved so that its median is 0."""

    domain = optdp.Line()

    def randomize(self, x, rng=None):
        return np.asarray(x) + as_rng(rng).exponential(1.0, np.shape(x)) - math.log(2)

    def density(self, y, x):
        z = np.asarray(y) - x + math.log(2)
        return np.where(z >= 0, np.exp(-np.maximum(z, 0.0)), 0.0)

    def quantile(self, level):
        return -np.log(2 * (1 - np.asarray(level)))


def test_a_quantile_of_the_error_is_not_taken_from_noise_that_may_not_be_symmetric():
    problem = optdp.Problem(optdp.GDP(1.0), optdp.Line(), optdp.Quantile(0.9), optdp.Additive())
    with pytest.raises(TypeError, match=r"Skewed has no value for it; define the method enclose\(objective\)"):
        optdp.compare(problem, mechanisms=[Skewed()], time_limit=0.5)


def test_a_mechanism_on_the_line_is_drawn_where_its_outputs_are():
    curve = Skewed().plot().lines[0]
    assert -0.7 < curve.get_xdata()[0] < 0 and 5 < curve.get_xdata()[-1] < 9
    assert max(curve.get_ydata()) == pytest.approx(1.0, abs=0.05)


def test_one_class_for_one_name():
    with pytest.raises(TypeError, match="there is a mechanism PiecewiseMechanism"):
        type("PiecewiseMechanism", (Dense,), {})


def test_a_finite_mechanism_of_ones_own_is_drawn_as_its_table():
    inner = optdp.solve_kernel(1.0, [[0, 1], [1, 0]], domain=optdp.Alphabet(["a", "b"])).mechanism
    mine, axes = Atomic(inner), Atomic(inner).plot()
    shown = axes.images[0].get_array()
    np.testing.assert_allclose(shown, inner.probability(inner.atoms(), np.array([["a"], ["b"]])))
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"] and mine.atoms().size == 2


def test_a_class_in_place_of_a_mechanism_is_told_so():
    """It can be called, but not with a problem, as a function of the user's that makes mechanisms is."""
    with pytest.raises(TypeError, match="it must be a Mechanism"):
        optdp.compare(1.0, mechanisms=Bare)


def test_atoms_of_a_mechanism_of_ones_own_on_strings_and_numbers():
    class Named(Mechanism):
        domain = optdp.Alphabet(["a", 1, "b"])

        def randomize(self, x, rng=None):
            place = self.domain.index(x)
            return np.where(as_rng(rng).random(place.shape) < 0.7, place, 0)

        def probability(self, y, x):
            return 0.7 * (np.asarray(y) == self.domain.index(x)) + 0.3 * (np.asarray(y) == 0)

    mechanism = Named()
    assert mechanism.atoms().tolist() == [0, 1, 2] and mechanism.worst_case_loss(1 - np.eye(3)) == pytest.approx(0.3)
