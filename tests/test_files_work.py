"""Files that ask for endless work are refused before it is done, in one sentence; a bounded part of `make soak-files`."""

import json
import math
import random
from fractions import Fraction
from unittest import mock

import pytest
from flint import arb

import optdp
from optdp.cli import main
from optdp.exact import enclosures, work
from optdp.exact.check import Check, Verification
from optdp.exact.work import Overwork
from tests import soak_files
from tests.solutions import MAKE, solution

DENOMINATOR = str(10**900 - 1)


def saved(name):
    return json.loads(json.dumps(solution(name).to_dict()))


def pieces(rows, degree):
    """A loss of many pieces of high degree with long coefficients."""
    rng = random.Random(0)
    return {
        "type": "pieces",
        "breaks": [f"{i}/{rows}" for i in range(rows)],
        "coefficients": [
            [f"{i}/{rows}", *(f"{rng.randrange(10**890)}/{DENOMINATOR}" for _ in range(degree))] for i in range(rows)
        ],
    }


def many_pieces(data):
    data["problem"]["objective"]["loss"] = pieces(30, 31)


def steep_pieces(data):
    data["problem"]["objective"]["loss"] = pieces(3, 31)
    data["mechanism"] |= {"n": 1, "weights": [1]}
    data["certificate"] |= {"n": 1000}


def many_cells(data):
    data["mechanism"] |= {"n": 10_000, "weights": [random.Random(i).randrange(1, 10**6) for i in range(10_000)]}


def cells_and_tail(data):
    data["mechanism"] |= {"n": 50_000, "weights": [5] * 50_000, "tail": [5] * 50_000, "decay": 2**61}


def slow_decay(data):
    n = data["mechanism"]["n"]
    data["mechanism"] |= {"decay": 2**62 - 2**46, "tail": [1] * n}


def long_lattice(data):
    multiplier = {"shift": 1, "weight": 1.0, "first": 200_000, "values": [0.5], "rest": 0.0}
    data["certificate"] |= {"n": 100_000, "multipliers": [multiplier]}


def many_knots(data):
    data["certificate"]["knots"] = [[i * 1e-3, 10.0 ** -(i % 300)] for i in range(30_000)]
    data["certificate"]["nu"] = [1e-300] * len(data["certificate"]["nu"])


def many_nodes(data):
    mesh = [i / 4095 for i in range(4096)]
    data["certificate"] |= {"mesh": mesh, "densities": [[1.0] * 4096] * 8, "reaches": [[0.3 + t / 9 for t in mesh]] * 8}


def many_outputs(data):
    edges = [i / 2**15 for i in range(2**15 + 1)]
    data["mechanism"] |= {"cells": [2**35] * 2**15, "lows": edges[:-1], "highs": edges[1:]}


STALLS = {
    "pieces": ("piecewise abs", many_pieces), "curves": ("additive", steep_pieces),
    "cells": ("additive", many_cells), "tail": ("additive delta=0", cells_and_tail),
    "decay": ("additive power 1.5", slow_decay), "lattice": ("additive power 1.5", long_lattice),
    "knots": ("lip sum", many_knots), "nodes": ("kernel abs", many_nodes), "outputs": ("kernel abs", many_outputs),
}  # fmt: skip

TEXTS = {
    "deep list": "[" * 10**6, "deep object": '{"a":' * 10**6, "digits": '{"optdp": ' + "9" * 10**7 + "}",
    "text": '{"optdp": "' + "9" * 10**7 + '"}', "exponent": '{"optdp": 1e999999999}', "lists": "[" + "[]," * 10**7 + "[]]",
    "fields": "{" + ",".join(f'"{i}":1' for i in range(10**5)) + "}", "bytes": "\0" * 10**6, "nothing": "",
}  # fmt: skip


def refused(capsys, path, *options):
    """What `optdp verify` says, in one line and with status 2."""
    status = main(["verify", *options, str(path)])
    out, err = capsys.readouterr()
    assert status == 2 and err.startswith(f"optdp: error: {path.name}") and err.count("\n") == 1 and len(err) < 1000, (
        err
    )
    assert "Traceback" not in err and "sys." not in err and (not out or out.endswith("NOT verified\n"))
    return err


@pytest.mark.parametrize("name", STALLS)
def test_work_is_counted_before_it_is_done(capsys, tmp_path, name):
    source, damage = STALLS[name]
    data = saved(source)
    damage(data)
    path = tmp_path / "s.json"
    path.write_text(json.dumps(data))
    options = ["--limit", "1"] if name in ("pieces", "knots", "cells", "nodes", "tail", "outputs") else []  # sooner
    said = refused(capsys, path, *options)
    shown = "where the limit is 1;" if options else "where the limit is 10;"
    assert "asks for more work than is allowed" in said and shown in said and "--limit" in said
    with pytest.raises(Overwork, match=r"where the limit is 0\.1;"):
        optdp.Solution.load(path, limit=0.1).verify(limit=0.1)


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_are_no_solution(capsys, tmp_path, name):
    path = tmp_path / "s.json"
    path.write_text(TEXTS[name])
    refused(capsys, path)
    for load in (optdp.Solution.load, optdp.Mechanism.load):
        with pytest.raises((ValueError, Overwork)) as caught:
            load(path)
        assert str(caught.value).startswith("s.json") and len(str(caught.value)) < 1000


def test_limits(capsys, tmp_path):
    """A larger limit lets the same file through, a smaller one does not; nonsense is refused; within another the least holds."""
    path = tmp_path / "s.json"
    solution("kernel abs").save(path)
    assert main(["verify", str(path)]) == 0 and main(["verify", "--limit", "1e9", str(path)]) == 0
    capsys.readouterr()
    assert "where the limit is 1e-06" in refused(capsys, path, "--limit", "1e-6")
    mechanism = tmp_path / "m.json"
    solution("kernel abs").mechanism.save(mechanism)
    with pytest.raises(Overwork):
        optdp.Mechanism.load(mechanism, limit=1e-6)
    assert optdp.Mechanism.load(mechanism).to_dict() == solution("kernel abs").mechanism.to_dict()
    for limit in (0, -1, math.nan, "10", True, None):
        with pytest.raises(ValueError, match="limit"):
            optdp.Solution.load(path, limit=limit)
        with pytest.raises(ValueError, match="limit"):
            solution("kernel abs").verify(limit=limit)
    with pytest.raises(Overwork, match=r"outer asks .* the limit is 1;"), work.limited(1.0, "outer"):
        with work.limited(5.0, "inner"):
            work.count(0.9e6)
        with work.limited(5.0, "inner"):
            work.count(0.2e6)
    work.count(1e300)  # nobody asked


def test_honest_solutions_are_far_from_the_limit():
    """All of them verify with a tenth of it."""
    for name in MAKE:
        data = saved(name)
        with work.limited(work.LIMIT / 10, name):
            assert optdp.Solution.from_dict(data).verify()


@pytest.mark.parametrize("name", ["additive discrete", "additive", "finite ordered", "lip sum", "lip ldp histogram"])
def test_counts_grow_with_the_work(name):
    """Each kind of proof counts something, always the same, and more for a larger problem."""
    small, again = (counted(optdp.Solution.from_dict(saved(name)).verify) for _ in range(2))
    assert small == again
    larger = {
        "additive discrete": lambda: optdp.solve_additive(1.0, 0.01, discrete=True, sensitivity=5, rtol=0.05),
        "additive": lambda: optdp.solve_additive(1.0, 0.1, rtol=0.002),
        "finite ordered": lambda: optdp.solve_kernel(
            1.0, [[abs(i - j) for i in range(8)] for j in range(8)], domain=optdp.Alphabet(8)
        ),
        "lip sum": lambda: optdp.solve_lip([1 / 32] * 32, 1.0),
        "lip ldp histogram": lambda: optdp.solve_lip([0.05] * 20, 1.0, task="histogram", notion="ldp"),
    }[name]()
    assert 0 < small < counted(larger.verify)


def counted(function):
    with work.limited(1e9):
        assert function(1e9)
        return work._meter.get().done


# --- mutated files


def test_mutated_files():
    """A small soak: every kind of forgery, for every solution."""
    tally = soak_files.soak(120, 12345)
    assert not any(tally.counts[kind] for kind in soak_files.BAD), tally.problems
    assert tally.counts["files"] == 120 and tally.counts["refused"] > 30 and tally.counts["not verified"] > 5
    assert tally.counts["accepted, judged on both sides"] > 10 and tally.counts["helped by claims that are proven"] > 10


def test_the_soak_notices_what_is_wrong():
    """With a checker that believes everything, with one that fails, and with messages that help nobody, the soak says so."""
    believed = Verification([Check("nothing", True, "whatever the file says")])
    few = {name: saved(name) for name in ("lip sum", "additive", "finite hamming")}  # the quickest to be judged
    with mock.patch.object(soak_files, "originals", lambda: few):
        with mock.patch.object(optdp.Solution, "verify", lambda self: believed):
            assert soak_files.soak(150, 7).counts["wrong accepted"] > 2
        with mock.patch.object(optdp.Solution, "verify", lambda self: 1 / 0):
            assert soak_files.soak(40, 7).counts["uncaught"] > 3
        with mock.patch("optdp.exact.fields._kind", lambda value: "TypeError"):
            assert soak_files.soak(100, 7).counts["unclear"] > 0


def test_a_radial_mechanism_is_of_few_dimensions():
    data = saved("vector radial")["mechanism"] | {"domain": optdp.Ball(100_000).to_dict()}
    with pytest.raises(ValueError, match="dim"):
        optdp.Mechanism.from_dict(data)


def test_tiny_and_huge_balls_are_rounded_outwards_before_they_are_written_out():
    """erfc(10^9) has 10^18 zeros behind the point: as a fraction it would fill the memory, which ends the process."""
    far, least = enclosures.FAR, Fraction(1, 2**enclosures.FAR)
    tiny, huge = (-(arb(10) ** 18)).exp(), (arb(10) ** 18).exp()
    assert (enclosures.lower(tiny), enclosures.upper(tiny)) == (0, least)
    assert (enclosures.lower(-tiny), enclosures.upper(-tiny)) == (-least, 0)
    assert enclosures.lower(huge) == 2**far == -enclosures.upper(-huge)
    for ask in (lambda: enclosures.upper(huge), lambda: enclosures.lower(-huge)):
        with pytest.raises(OverflowError):
            ask()
    assert 0 <= optdp.GDP(1e-9).delta_at(2.0) < 1e-300
    assert optdp.RDP(10_000, 1e6).delta_at(1.0) == 1
    assert optdp.ApproxDP(1.0, 1e-9).implied_by(optdp.GDP(1e-9))
