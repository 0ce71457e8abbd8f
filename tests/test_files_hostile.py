"""Saved solutions, damaged in every way: one clear sentence that names file and field, and no proof on unchecked numbers."""

import contextlib
import copy
import json
import random
import re
import time
from functools import cache
from unittest import mock

import pytest

import optdp
from optdp.certificates.base import Certificate
from optdp.exact.fields import FieldError, Fields, parse
from optdp.mechanisms.base import Mechanism
from optdp.problem.problem import Problem
from tests.soak_files import bytewise
from tests.solutions import MAKE, solution

#: One of each kind of file is damaged field by field.
NAMES = [
    "piecewise abs", "piecewise pieces", "piecewise circle", "ptt II", "composite A2B2", "composite own base", "additive",
    "additive discrete", "additive delta=0", "kernel abs", "kernel unbiased", "kernel prior", "finite ordered prior", "lip sum",
    "lip histogram", "lip lower", "lip ldp",
]  # fmt: skip

MISTYPED = [None, True, "x", "", -1, 0, 3.5, 10**400, -(10**25), 1e308, float("nan"), float("inf"), [], [1], {}, {"type": "x"}, "log(0)", "1/0",  # noqa: E501
            "9" * 5000, ["a", None], [[0]], "\u0000", "e" * 20_000]  # fmt: skip


@cache
def form(name):
    return solution(name).to_dict()


def saved(name):
    """The JSON form, fresh."""
    return copy.deepcopy(form(name))


def read(data, where="file.json"):
    return optdp.Solution.read(Fields(data, where))


def is_clear(text, where="file.json"):
    """One sentence (or a few words): file and field first, then what is wrong or allowed."""
    assert text.startswith(where), text
    assert "\n" not in text and "Traceback" not in text and len(text) < 700, text
    assert re.search(r"allowed|missing|must|unknown field|not JSON|needs|written by", text), text
    for word in (
        "Error",
        "NoneType",
        "unhashable",
        "has no attribute",
        "index out",
        "unsupported operand",
        "zip()",
        "argument '",
    ):
        assert word not in text, text


def paths(data, path=()):
    """All paths in a JSON value; of long lists the first, a middle and the last entry."""
    if path:
        yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from paths(value, (*path, key))
    elif isinstance(data, list):
        for i in sorted({0, len(data) // 2, len(data) - 1} & set(range(len(data)))):
            yield from paths(data[i], (*path, i))


def at(data, path):
    for key in path:
        data = data[key]
    return data


def damaged(data, path, value=KeyError):
    """A copy with the entry replaced (or removed)."""
    data = copy.deepcopy(data)
    parent = at(data, path[:-1])
    if value is KeyError:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return data


@pytest.fixture
def no_proofs():
    """Fails if any certificate proves, or any mechanism encloses or checks, while a file is read."""

    def forbidden(*_, **__):
        raise AssertionError("a proof ran while reading")

    for name in NAMES:
        form(name)
    kinds = [c for c in subclasses(Certificate) if "bound" in vars(c)]
    with mock.patch.multiple(Mechanism, feasible=forbidden):
        patches = [mock.patch.object(kind, "bound", forbidden) for kind in kinds]
        for patch in patches:
            patch.start()
        yield
        for patch in patches:
            patch.stop()


def subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


@pytest.mark.parametrize("name", NAMES)
def test_each_field_removed(name, no_proofs):
    """A missing field is named, wherever it is; lists may be shorter, but not by one entry alone."""
    data = saved(name)
    for path in paths(data):
        if isinstance(path[-1], int):
            continue
        try:
            read(damaged(data, path))
        except FieldError as error:
            is_clear(str(error))
            assert str(path[-1]) in str(error) or "needs" in str(error) or "not allowed" in str(error), (
                path,
                str(error),
            )
        else:
            pytest.fail(f"{name}: {'.'.join(map(str, path))} may be missing")


@pytest.mark.parametrize("name", NAMES)
def test_each_field_mistyped(name, no_proofs):
    """Any other value is accepted only if it is a value of the right kind; else one sentence names the field."""
    data = saved(name)
    rng = random.Random(name)
    for path in paths(data):
        if path[:1] == ("program",) and path[-1] in ("variables", "constraints", "message"):
            continue  # free text
        for value in rng.sample(MISTYPED, 5):
            try:
                read(damaged(data, path, value))
            except FieldError as error:
                is_clear(str(error))


@pytest.mark.parametrize("name", NAMES)
def test_unknown_fields(name, no_proofs):
    data = saved(name)
    for path in [(), *paths(data)]:
        if isinstance(at(data, path), dict):
            with pytest.raises(FieldError, match="surprise"):
                read(damaged(data, (*path, "surprise"), 1))


@pytest.mark.parametrize("name", NAMES)
def test_lists_too_long_or_too_short(name, no_proofs):
    """Lists of other lengths than belong together are refused, or give a solution that is honestly checked."""
    data = saved(name)
    for path in paths(data):
        value = at(data, path)
        if not isinstance(value, list):
            continue
        for other in (value[:-1], value + value[-1:], [], [value], value * (100_000 // max(len(value), 1) + 1)):
            try:
                read(damaged(data, path, other))
            except FieldError as error:
                is_clear(str(error))


def test_three_thousand_random_mutations(no_proofs):
    """Bytes of the file changed, cut, doubled, swapped: FieldError or a solution, nothing else."""
    rng = random.Random(0)
    texts = {name: json.dumps(saved(name)).encode() for name in NAMES}
    small = [name for name in NAMES if len(texts[name]) < 20_000]
    refused = 0
    began = time.perf_counter()
    for _ in range(3000):
        raw = bytearray(texts[rng.choice(small)])
        bytewise(raw, rng)
        try:
            optdp.Solution.read(parse(bytes(raw), "file.json"))
        except FieldError as error:
            refused += 1
            is_clear(str(error))
    assert refused > 1500 and time.perf_counter() - began < 120


def test_what_was_read_verifies_or_says_why():
    """Mutations that can be read: verify() answers, with reasons, and accepts nothing that is not proven."""
    rng = random.Random(1)
    accepted = 0
    for name in NAMES:
        data = saved(name)
        honest = solution(name)
        numbers = [
            p
            for p in paths(data)
            if isinstance(at(data, p), int | float) and not isinstance(at(data, p), bool) and p[0] != "program"
        ]
        for path in rng.sample(numbers, min(len(numbers), 25)):
            old = at(data, path)
            new = rng.choice([old * 1.1, old * 0.9, old + 1, 0, -old, old * 2, 1e-300])
            try:
                loaded = read(damaged(data, path, int(new) if isinstance(old, int) else new))
            except FieldError:
                continue
            verdict = loaded.verify()
            assert all(check.detail for check in verdict.checks)
            if verdict:
                accepted += 1
                if loaded.problem == honest.problem:
                    assert loaded.lower_bound <= honest.value and loaded.value >= honest.lower_bound
    assert accepted < 200


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"), (b"not json", "not JSON"), (b"\xff\xfe\x00", "not JSON"), (b"[]", "a list"), (b"5", "a number"),
        (b"null", "null"), (b'"text"', "a text"), (b"{}", "json has no entry 'optdp'"), (b'{"optdp": 1}', "0.1.0"),
        (b'{"optdp": 1, "certificate": 5}', "0.1.0"), (b'{"optdp": 2}', "optdp"), (b'{"optdp": {"format": 1, "version": "0"}}', "format"),  # noqa: E501
        (b'{"optdp": {"format": 99, "version": "9.9"}}', "format"), (b'{"optdp": {"format": 2}}', "version"),
        (b'{"optdp": {"format": 2, "version": "0.2.0"}}', "no entry 'problem'"), (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": NaN}', "NaN"), (b"[" * 100_000, "not JSON"), (b'{"a":' * 100_000, "not JSON"),
        (b'{"optdp": ' + b"9" * 6000 + b"}", "digits"), (b"\xef\xbb\xbf{}", "no entry 'optdp'"),
    ],
)  # fmt: skip
def test_files_that_are_none(tmp_path, content, said):
    path = tmp_path / "solution.json"
    path.write_bytes(content)
    with pytest.raises(FieldError, match=said) as caught:
        optdp.Solution.load(path)
    is_clear(str(caught.value), "solution.json")


def test_a_file_of_version_0_1_0(tmp_path):
    path = tmp_path / "old.json"
    path.write_text(json.dumps({
        "optdp": 1, "name": "piecewise", "spec": {"eps": 1.0}, "value": 0.3775, "lower_bound": 0.3775, "gap": 0.0, "status": "optimal",  # noqa: E501
        "mechanism": {"mechanism": "PiecewiseMechanism"}, "certificate": {"certificate": "bathtub", "eps": 1.0}, "program": {},
    }))  # fmt: skip
    with pytest.raises(FieldError, match=r"old\.json was written by optdp 0\.1\.0"):
        optdp.Solution.load(path)
    with pytest.raises(FieldError):
        Mechanism.load(path)


def test_missing_files_are_the_systems_business(tmp_path):
    with pytest.raises(OSError):
        optdp.Solution.load(tmp_path / "none.json")
    with pytest.raises(OSError):
        optdp.Solution.load(tmp_path)


@pytest.mark.parametrize("path", [None, 3, b"solution.json"])
def test_what_is_no_path_is_named(path):
    found = optdp.solve_piecewise(1.0)
    report = optdp.gap_report(found)
    for call in (optdp.Solution.load, Mechanism.load, optdp.Plan.load, found.save, found.program.write, report.save):
        with pytest.raises(TypeError, match=r"path = .* is not allowed: it must be a str or a pathlib\.Path"):
            call(path)


def test_the_file_says_its_format_and_the_library(tmp_path):
    path = tmp_path / "solution.json"
    solution("piecewise abs").save(path)
    assert set(json.loads(path.read_text())["optdp"]) == {"format", "version"}


@pytest.mark.parametrize("name", NAMES)
def test_truncated(name, tmp_path, no_proofs):
    raw = json.dumps(saved(name)).encode()
    path = tmp_path / "half.json"
    for share in (0.01, 0.3, 0.5, 0.9, 0.999):
        path.write_bytes(raw[: int(len(raw) * share)])
        with pytest.raises(FieldError, match="not JSON"):
            optdp.Solution.load(path)


@pytest.mark.parametrize("name", list(MAKE))
def test_round_trip(name, tmp_path):
    """Saved and loaded, a solution is equal, bit for bit, and verifies."""
    own = solution(name)
    path = tmp_path / "solution.json"
    own.save(path)
    again = optdp.Solution.load(path)
    assert again.problem == own.problem and again.certificate == own.certificate
    assert again.mechanism.to_dict() == own.mechanism.to_dict()
    assert (again.value, again.lower_bound) == (own.value, own.lower_bound)
    assert json.dumps(again.to_dict()) == json.dumps(own.to_dict())
    assert again.verify() and again.status is own.status
    assert Problem.from_dict(json.loads(json.dumps(own.problem.to_dict()))) == own.problem
    with pytest.raises(ValueError, match="files keep none"):
        _ = again.program.model


@pytest.mark.parametrize("name", NAMES)
def test_proofs_are_bounded_in_time(name):
    """Hostile multipliers within the allowed ranges do not stall verify()."""
    own = solution(name)
    data = own.certificate.to_dict()
    for path in [p for p in paths(data) if isinstance(at(data, p), float)][:6]:
        for value in (1e-300, 1e17, 123456.789e-17):
            try:
                certificate = Certificate.from_dict(damaged(data, path, value))
            except FieldError:
                continue
            began = time.perf_counter()
            with contextlib.suppress(ValueError):
                certificate.bound(own.problem)
            assert time.perf_counter() - began < 20


def test_huge_problems_in_files_do_not_stall():
    data = saved("piecewise abs")
    for path, value in (
        (("problem", "privacy", "eps"), "log(" + "9" * 1000 + ")"), (("problem", "privacy", "eps"), 1e308),
        (("problem", "privacy", "eps"), "1/" + "9" * 1000), (("problem", "domain", "upper"), 1.7e308),
        (("problem", "domain", "upper"), 1e-299), (("problem", "family", "m"), 10**6),
        (("problem", "objective", "loss"), {"type": "power", "exponent": 100.0}),
        (("problem", "objective", "loss"), {"type": "huber", "corner": 1e-150}),
        (("problem", "objective", "loss"), {"type": "pieces", "breaks": ["0", "1/3"], "coefficients": [["0", "1/" + "7" * 900]] * 2}),  # noqa: E501
    ):  # fmt: skip
        began = time.perf_counter()
        try:
            verdict = read(damaged(data, path, value)).verify()
            assert not verdict or path[-1] == "m"
        except FieldError as error:
            is_clear(str(error))
        assert time.perf_counter() - began < 10, path
