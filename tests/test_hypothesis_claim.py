"""The three-piece hypothesis, decided by certificate."""

from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import optdp
from optdp.audit.ogpm.hypothesis import HypothesisReport


@pytest.mark.parametrize("loss", ["abs", "squared", optdp.Power(3)])
def test_three_pieces_are_proven_optimal_at_every_draw(loss):
    found = optdp.check_hypothesis(300, range(3, 10), loss, seed=1)
    assert found.holds and found.proven.all() and found.gap.max() <= 1e-9
    assert "HOLDS at 300 of 300" in str(found)


def test_a_notebook_shows_a_table():
    found = optdp.check_hypothesis(3, 4)
    assert found.pieces == (4,) and "<table>" in found._repr_html_()
    for shown in (found, optdp.audit("OPTT-1"), optdp.discoveries("D-LIP-1"), optdp.atlas()):
        assert len(repr(shown)) < 200 and type(shown).__name__ in repr(shown)


def test_an_attack_by_local_search_does_not_get_below_the_bound():
    found = optdp.check_hypothesis(5, [4, 5], "abs", seed=2, attack=2, eps_range=(0.5, 3))
    assert len(found.attack) == 2 and set(next(iter(found.attack.values()))) == {4, 5}
    assert -1e-9 <= found.best_attack < 1e-6
    assert "Local search" in str(found)


def test_the_check_can_fail():
    """A value above the bound, or an attack below it, is not reported as proven."""
    good = optdp.check_hypothesis(5, [4], "abs")
    fields = {"eps": good.eps, "pieces": (4,), "loss": "abs", "bound": good.bound, "attack": {}}
    assert not HypothesisReport(value=good.value * 1.1, proven=np.zeros(5, bool), **fields).holds
    beaten = {float(good.eps[0]): {4: float(good.bound[0]) * 0.999}}
    assert not HypothesisReport(value=good.value, proven=good.proven, **{**fields, "attack": beaten}).holds


def test_what_is_not_proven_is_counted():
    """Of 5 epsilons with 2 proven it said: IS NOT PROVEN at 2 of 5, and that each row is a proof."""
    good = optdp.check_hypothesis(5, [4], "abs")
    fields = {"eps": good.eps, "pieces": (4,), "loss": "abs", "bound": good.bound, "attack": {}}
    told = str(HypothesisReport(value=good.value, proven=np.arange(5) < 2, **fields))
    assert "IS NOT PROVEN at 3 of 5 epsilons" in told and "Each row is a proof" not in told
    beaten = {float(good.eps[0]): {4: float(good.bound[0]) * 0.999}}
    told = str(HypothesisReport(value=good.value, proven=good.proven, **{**fields, "attack": beaten}))
    assert "IS NOT PROVEN at 5 of 5 epsilons" in told


def test_reports_say_what_is_taken_on_trust_of_a_function():
    loss = optdp.CustomLoss(lambda d: np.log1p(5 * d), shape="concave")
    given = "rovided that the loss is nondecreasing and concave between the points at which it was sampled."
    solution = optdp.solve_piecewise(1.0, 3, loss, domain=optdp.Circle(1))
    for told in (optdp.check_hypothesis(1, loss=loss), optdp.gap_report(solution), optdp.compare(solution.problem)):
        assert str(told).count(given) == 1, told
    assert "rovided that" not in str(optdp.check_hypothesis(1)) + str(optdp.gap_report(optdp.solve_piecewise(1.0)))


def test_an_executor_gives_the_same_answer():
    with ProcessPoolExecutor(2) as pool:
        there = optdp.check_hypothesis(40, [3], "squared", executor=pool)
    here = optdp.check_hypothesis(40, [3], "squared")
    assert np.array_equal(there.value, here.value) and np.array_equal(there.eps, here.eps)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"samples": 0}, "samples"), ({"pieces": [2]}, "pieces"), ({"pieces": []}, "pieces"), ({"eps_range": (2, 1)}, "eps_range"),
     ({"eps_range": (0, 1)}, "eps_range"), ({"attack": -1}, "attack"), ({"seed": -1}, "seed")],
)  # fmt: skip
def test_bad_input(change, words):
    with pytest.raises(ValueError, match=words):
        optdp.check_hypothesis(**({"samples": 3} | change))


def test_an_argument_that_is_no_pair_is_named():
    with pytest.raises(TypeError, match="eps_range = 1 is not allowed: it must be a pair"):
        optdp.check_hypothesis(3, eps_range=1)


def test_a_loss_of_nothing_has_no_gap():
    """It was nan, with a warning."""
    found = optdp.check_hypothesis(3, loss=optdp.CustomLoss(np.zeros_like))
    assert found.holds and found.gap.tolist() == [0.0] * 3


@pytest.mark.soak
def test_soak_local_search_at_many_epsilons():
    found = optdp.check_hypothesis(2000, range(3, 8), "squared", attack=10)
    assert found.holds
