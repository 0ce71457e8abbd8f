"""Where random bits come from, and what somebody finds who looks at the last bits of what is sent."""

import copy
import math
import os
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from randomgen import AESCounter
from scipy.stats import beta

import optdp
from optdp.exact import sampling
from optdp.exact.sampling import SystemGenerator, as_rng
from optdp.mechanisms import baselines
from tests.solutions import MAKE, solution

# --- the source


def test_the_system_generator_is_the_ciphers_counter_mode(monkeypatch):
    """Its words are AES of 0, 1, 2 ... under a key that the operating system gave: FIPS 197 says which the first one is."""
    monkeypatch.setattr(os, "urandom", lambda size: bytes(range(size)))
    bits, same = sampling._keyed(), AESCounter(key=int.from_bytes(bytes(range(16)), "little"), counter=0)
    assert np.array_equal(bits.random_raw(1000), same.random_raw(1000))


def test_a_broken_cipher_is_refused(monkeypatch):
    monkeypatch.setattr("randomgen.AESCounter", lambda **_: np.random.PCG64(1))
    with pytest.raises(RuntimeError, match="broken"):
        sampling._keyed()


def test_one_generator_per_process():
    rng = as_rng(None)
    assert isinstance(rng, SystemGenerator) and as_rng(None) is rng
    assert copy.copy(rng) is rng and copy.deepcopy(rng) is rng and pickle.loads(pickle.dumps(rng)) is rng
    assert rng.spawn(2) == [rng, rng]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_draws_other_bits():
    rng, seen = as_rng(None), []
    for _ in range(3):
        ours, theirs = os.pipe()
        if os.fork() == 0:  # what was held before the fork, and what is asked for after it
            os.write(theirs, rng.bytes(16) + as_rng(None).bytes(16))
            os._exit(0)
        os.wait()
        seen += [os.read(ours, 32), rng.bytes(32)]
    words = {part[i : i + 16] for part in seen for i in (0, 16)}
    assert len(words) == 12


def test_threads_share_it():
    drawn = [[] for _ in range(4)]

    def work(into):
        for _ in range(50):
            into.append(as_rng(None).integers(0, sampling.LIMB, size=500))

    threads = [threading.Thread(target=work, args=(into,)) for into in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate([np.concatenate(part) for part in drawn])
    assert words.size == 100_000 == np.unique(words).size


def test_seeds_repeat_and_the_system_does_not():
    mechanism = solution("piecewise abs").mechanism
    x = np.full(100, 0.3)
    assert np.array_equal(mechanism.randomize(x, 7), mechanism.randomize(x, as_rng(7)))
    assert not np.array_equal(
        mechanism.randomize(x, 7), mechanism.randomize(x, np.random.default_rng(7))
    )  # who made data
    assert not np.array_equal(mechanism.randomize(x), mechanism.randomize(x))


class IntegersAlone(np.random.Generator):
    """A generator of which nothing but uniform integers may be asked, and shuffling, which numpy does with bounded integers."""

    def __getattribute__(self, name):
        if name not in ("integers", "permuted", "capsule", "__class__"):
            raise AssertionError(f"rng.{name} was asked for")
        return super().__getattribute__(name)


#: Kernels on intervals toss a coin of 53 bits.
SCALAR = [name for name in MAKE if not name.startswith(("kernel", "vector ball of one"))]


@pytest.mark.parametrize("name", SCALAR)
def test_solved_mechanisms_ask_for_integers_alone(name):
    mechanism = solution(name).mechanism
    domain = mechanism.domain
    ends = getattr(domain, "lower", math.inf)
    inside = [domain.lower, domain.upper] if np.isfinite(ends).all() else [0, 1, 2]
    x = getattr(domain, "symbols", getattr(domain, "names", None) or inside)
    if domain.tag in ("sphere", "ball", "box"):
        x = np.eye(domain.dimension)[:3]
    rng = IntegersAlone(np.random.PCG64(0))
    with pytest.raises(AssertionError):
        rng.random()
    assert np.shape(mechanism.randomize(list(x), rng))[:1] == (len(x),)  # a frequency oracle sends several integers


# --- attacks


def reached(y, x, scale):
    """Mironov (2012): whether x + noise = y for Laplace noise of this scale made from the logarithm of a 53-bit uniform float.

    The noise that would be needed is turned into its uniform number, and the numbers beside that one are tried.
    """
    u = np.exp(-np.abs(y - x) / scale)
    grid, found = np.rint(u * 2.0**53), np.zeros(y.shape, dtype=bool)
    for step in range(-4, 5):
        noise = scale * np.log(np.maximum(grid + step, 1) * 2.0**-53)
        found |= (x + noise == y) | (x - noise == y)
    return found


def events(y, pair, scale):
    """Rows of what an attacker asks of each output: is it reached from one input alone; what are its last bits."""
    reach = [reached(y, x, scale) for x in pair]
    mantissa, exponent = np.frexp(y)
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    zeros = np.log2(np.where(whole == 0, 2**53, whole & -whole).astype(float)).astype(int)
    unit = exponent - 53 + zeros  # y is an odd multiple of 2^unit
    shifted = [np.where(y == x, 0, np.frexp(y - x)[1]) for x in pair]
    asked = [reach[0] & ~reach[1], reach[1] & ~reach[0]]
    asked += [zeros == k for k in range(9)] + [(whole & 7) == k for k in range(8)]
    asked += [unit < k for k in range(-60, -40)] + [(unit < -53) & (np.abs(y - x) < 0.5) for x in pair]
    asked += [s == k for s in shifted for k in range(-8, 2)]
    return np.array(asked)


def epsilon_found(sample, pair, scale=1.0, count=40_000):
    """A lower bound on the mechanism's epsilon, by Clopper and Pearson, wrong once in a million times at most: the largest
    log-ratio of the probabilities of one event under the two inputs.
    """
    hits = [events(sample(np.full(count, x), 0 if x == pair[0] else 1), pair, scale).sum(axis=1) for x in pair]
    level, found = 1e-6 / (4 * hits[0].size), 0.0
    for a, b in ((hits[0], hits[1]), (hits[1], hits[0])):
        low = np.where(a > 0, beta.ppf(level, np.maximum(a, 1), count - a + 1), 0.0)
        high = beta.ppf(1 - level, b + 1, np.maximum(count - b, 1))
        found = max(found, float(np.log(np.maximum(low, 1e-12) / high).max()))
    return found


def naive(x, seed):
    return x + np.random.default_rng(seed).laplace(0.0, 1.0, x.shape)


def test_the_attacks_succeed_on_naive_laplace_noise():
    """eps = 1 is promised: outputs near one input give it away, by Mironov's test and by their last bits each."""
    assert epsilon_found(naive, (0.0, 1.0)) > 5
    y = naive(np.zeros(10_000), 0)
    assert reached(y, 0.0, 1.0).mean() > 0.99
    assert reached(y, 1.0, 1.0).mean() < 0.7  # the others exclude the neighbour
    near = y[np.abs(y) < 0.5]
    assert np.mean(near * 2.0**53 % 1 != 0) > 0.2  # and no output from 1 has such last bits
    other = naive(np.ones(10_000), 1)
    assert not np.any(other[np.abs(other) < 0.5] * 2.0**53 % 1)


ATTACKED = [
    ("additive delta=0", (0.0, 1.0)), ("additive discrete delta=0", (0, 1)), ("piecewise abs", (0.25, 0.75)),
    ("piecewise linear", (0.0, 1.0)), ("piecewise [0, 2]", (0.1, 1.9)), ("piecewise circle", (0.1, 0.6)), ("ptt I", (-1.0, 1.0)),
    ("ptt free", (-1.0, 1.0)), ("composite A1B1", (-0.7, 0.9)), ("composite A2B1", (-0.7, 0.9)), ("composite A3B2", (-1.0, 1.0)),
    ("composite own base", (-0.1, 0.9)), ("kernel abs", (0.0, 1.0)), ("kernel unbiased [-1, 1]", (-1.0, 0.37)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "pair"), ATTACKED)
def test_the_attacks_find_nothing_here(name, pair):
    mechanism = solution(name).mechanism
    eps = float(solution(name).problem.privacy.eps)
    assert epsilon_found(mechanism.randomize, pair) <= eps


def test_every_output_is_one_of_every_input():
    """The additive mechanism at two neighbours: one grid, and all that one input sends the other one can send."""
    noise = solution("additive delta=0").mechanism
    g = noise._grid()[0]
    for x in (0.0, 1.0, 0.1, 0.1 + 1e-9):
        y = noise.randomize(np.full(2000, x), 3)
        assert all((Fraction(v) / Fraction(g)).denominator == 1 for v in y.tolist())
    assert noise.exact_ratio is not None and math.isfinite(noise.exact_ratio)  # no cell has the probability 0


def test_baselines_in_floats_use_the_same_source(monkeypatch):
    problem = optdp.Problem(optdp.LDP(1.0), optdp.Interval(-1, 1), "squared", constraints=[optdp.Unbiased()])
    monkeypatch.setattr(sampling, "_system", lambda: IntegersAlone(np.random.PCG64(0)))
    with pytest.raises(AssertionError, match="was asked for"):
        baselines.get("Laplace").build(problem).randomize(np.zeros(3))
