"""What the package costs to import, what it needs, and that its objects travel between processes."""

import ast
import copy
import doctest
import importlib
import pickle
import pkgutil
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import optdp
from tests.trees import imports_of, parsed

ROOT = Path(__file__).parent.parent

#: One tiny problem for each design, and for the forms in which solutions come.
SOLVES = {
    "piecewise": lambda: optdp.solve_piecewise(optdp.log(3)),
    "piecewise, own pieces": lambda: optdp.solve_piecewise("1/2", loss=optdp.Pieces((0, 1), ((0, 0, 1), (-1, 2)))),
    "piecewise, circle": lambda: optdp.solve_piecewise(1.0, 2, "squared", domain=optdp.Circle(6.28)),
    "ptt": lambda: optdp.solve_ptt(1.0, "II"),
    "composite": lambda: optdp.solve_composite(1.0, "A2", "B1"),
    "additive": lambda: optdp.solve_additive(1.0, 0.1, rtol=0.05),
    "additive, integers": lambda: optdp.solve_additive(1.0, 0.1, sensitivity=2, discrete=True, rtol=0.05),
    "kernel": lambda: optdp.solve_kernel(1.0, rtol=0.1),
    "kernel, unbiased": lambda: optdp.solve_kernel(1.0, unbiased=True, rtol=0.1),
    "kernel, prior": lambda: optdp.solve_kernel(1.0, prior=([0.0, 0.5], [0.5, 0.5]), rtol=0.1),
    "kernel, alphabet": lambda: optdp.solve_kernel(1.0, [[0, 1, 1], [1, 0, 1], [1, 1, 0]], domain=optdp.Alphabet(3)),
    "lip": lambda: optdp.solve_lip([0.2, 0.3, 0.5], 1.0, task="histogram"),
}


def python(code):
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_optdp_loads_nothing():
    """Not even numpy: so it costs less than numpy's own import."""
    code = "import sys; before = set(sys.modules); import optdp; print(*set(sys.modules) - before)"
    assert {name.split(".")[0] for name in python(code).split()} <= {"optdp", *sys.stdlib_module_names}


@pytest.mark.parametrize(
    ("use", "heavy"),
    [
        (
            "s = optdp.solve_piecewise(1.0); assert s.verify()",
            "scipy sympy pandas matplotlib pyomo cvxpy highspy pyscipopt",
        ),
        (
            "optdp.Problem(optdp.LDP(1.0), (0, 1), 'abs').statement()",
            "scipy sympy pandas matplotlib pyomo cvxpy highspy",
        ),
        ("optdp.gap_report(optdp.solve_piecewise(1.0)).to_html()", "scipy sympy pandas matplotlib pyomo cvxpy highspy"),
    ],
)
def test_packages_are_imported_when_they_are_used(use, heavy):
    assert python(f"import sys, optdp\n{use}\nprint(*sorted(set('{heavy}'.split()) & set(sys.modules)))") == "\n"


def test_every_public_name_resolves():
    assert set(optdp.__all__) == {"__version__", "audit", *optdp._HOME}
    for name in optdp.__all__:
        assert getattr(optdp, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        optdp.nothing  # noqa: B018


@pytest.mark.parametrize("name", list(SOLVES))
def test_solutions_are_pickled_copied_and_saved(name, tmp_path):
    solution = SOLVES[name]()
    assert solution.verify(), str(solution.verify())
    solution.save(tmp_path / "s.json")
    others = [pickle.loads(pickle.dumps(solution)), copy.deepcopy(solution), optdp.Solution.load(tmp_path / "s.json")]
    for other in others:
        assert other == solution
        assert hash(other.problem) == hash(solution.problem)
        assert other.verify()
        assert str(other) == str(solution)
    if solution.program.build is not None and "own" not in name:  # the model is built again where it is asked for
        assert type(others[0].program.model) is type(solution.program.model)


def test_designs_are_asked_in_an_order_that_imports_do_not_change():
    code = """
import importlib, sys
for name in ("piecewise", "lip", "additive"):
    for module in [m for m in sys.modules if m.partition(".")[0] == "optdp"]:
        del sys.modules[module]
    importlib.import_module(f"optdp.design.{name}")
    print([d.name for d in importlib.import_module("optdp.design.registry").designs()])
"""
    told = python(code).splitlines()
    assert len(told) == 3 and len(set(told)) == 1


def test_solutions_come_back_from_other_processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(optdp.solve_piecewise, [0.5, 1.0]))
        verified = list(pool.map(optdp.Solution.verify, found))
    for solution, eps in zip(found, (0.5, 1.0), strict=True):
        here = optdp.solve_piecewise(eps)
        assert (solution.problem, solution.value, solution.mechanism) == (here.problem, here.value, here.mechanism)
    assert all(verified)


def test_solutions_come_back_from_dask():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        found = list(client.get_executor().map(optdp.solve_piecewise, [0.5, 1.0]))
    assert [s.value for s in found] == [optdp.solve_piecewise(eps).value for eps in (0.5, 1.0)]


def modules():
    """Every module of the package but the command line's entry."""
    found = pkgutil.walk_packages([str(ROOT / "optdp")], "optdp.")
    return sorted(m.name for m in found if m.name != "optdp.__main__")


def test_every_example_in_a_docstring_is_true():
    tried = 0
    for name in ["optdp", *modules()]:
        module = importlib.import_module(name)
        if ">>>" not in Path(module.__file__).read_text(encoding="utf-8"):
            continue  # to look through its names takes longer than the examples of others
        outcome = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
        assert not outcome.failed, name
        tried += outcome.attempted
    assert tried > 20


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    out = capsys.readouterr().out
    said = "the least worst-case E(Y - x)^2 over all log(3)-LDP mechanisms from [0, 60] to [0, 60]"
    assert out.startswith(said + "\n") and f"# {said}\n" in block
    solution = optdp.Solution.load("solution.json")
    assert "FAIL" not in out and "moved PM" in out and solution.verify()
    low, high = map(float, re.search(r"# between ([0-9.]+) and ([0-9.]+), both", block).groups())
    assert low < solution.lower_bound <= 675 < solution.value < high


def test_the_table_of_the_readme_is_true():
    """Each row: the solve gives the optimum as printed, to a thousandth, and the least of the published mechanisms beside it."""
    text = (ROOT / "README.md").read_text()
    rows = [line.split("|")[-4:-1] for line in text.splitlines() if line.startswith("|") and "`optdp." in line]
    assert len(rows) == 5
    for call, optimum, published in rows:
        solution = eval(call.strip(" `"), {"optdp": optdp})
        own = ("optimum", "truncated staircase")  # the cut staircase is not published: it is one of the discoveries
        others = [row["value"] for row in optdp.compare(solution.problem).rows if row["mechanism"] not in own]
        assert solution.gap <= 1e-3 and solution.lower_bound <= float(optimum)
        assert float(optimum) == pytest.approx(
            solution.value, rel=1e-3
        )  # other releases of numpy find other mechanisms
        assert min(others) <= float(published) <= min(others) * (1 + 5e-4)


def test_the_readme_links_to_what_is_there():
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert len(links) > 15
    assert not [link for link in links if not (ROOT / link).exists()]
    makes = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"make ([\w-]+)(?=  |`)", text)) - {"alone"} <= makes


CALLS = """
import numpy as np
import optdp

optdp.plan({"job": optdp.Category(["a", "b"]), "age": optdp.Number(0, 120), "smoker": optdp.Flag()}, "1/2", n=1000)
optdp.LDP("1/3"), optdp.ApproxDP("1", "1e-6"), optdp.GDP("1/2"), optdp.KL("0.1"), optdp.RDP(2, "0.1")
optdp.LIP("1/2", optdp.Prior.of([0.5, 0.5])), optdp.MetricLDP("1/2", [[0, 1], [1, 0]])
optdp.Profile([(1.0, 0.1), ("2", "1/100")]), optdp.Curve([(0.0, 0.1), (1.0, 0.01)])
optdp.Alphabet(5), optdp.Alphabet(["yes", "no"]), optdp.OneHot(10), optdp.OneHot(["a", "b"]), optdp.Box([0, 0], [4, 3])
optdp.Points([(1, 2), (3, 4)], "haversine"), optdp.Graph([(0, 1), (1, 2)]), optdp.Distances(np.ones((2, 2)) - np.eye(2))
optdp.Pieces((0, "1/5"), ((0,), (1,))), optdp.Density(["0", 1], [[0, 2]])
optdp.audit("OGPM-5", progress=False), optdp.discoveries("D-LIP-1")
value: float = optdp.solve_kernel(1.0, 1 - np.eye(3), domain=["a", "b", "c"]).value
"""


def test_type_checkers_accept_what_the_documentation_writes(tmp_path):
    """Fields are of one type, what they are made of is not: lists, strings, numbers of categories."""
    pytest.importorskip("mypy")
    wrong = "import optdp\noptdp.Category(3)\noptdp.LDP([1])\noptdp.Alphabet(None)\n"
    words = [sys.executable, "-m", "mypy", "--no-error-summary"]  # options as `make lint` has them: one cache for both
    paths = [tmp_path / "right.py", tmp_path / "wrong.py"]
    for path, code in zip(paths, (CALLS, wrong), strict=True):
        path.write_text(code)
    done = subprocess.run([*words, *paths], cwd=ROOT, capture_output=True, text=True)
    told = done.stdout + done.stderr
    assert told.count("[arg-type]") == told.count("wrong.py:") == 3 == len(told.splitlines()), told


def test_every_package_that_is_imported_is_declared_and_the_optional_ones_name_their_extra():
    """Read from the source: third-party imports against pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {re.split(r"[><=]", d)[0] for d in project["dependencies"]}
    extras = {
        re.split(r"[><=]", d)[0]: extra
        for extra in ("plot", "tables", "scip", "gurobi", "ipopt", "dask", "data")
        for d in project["optional-dependencies"][extra]
    }
    for path in (ROOT / "optdp").rglob("*.py"):
        text, nodes = path.read_text(), list(imports_of(parsed(path)))
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0]
        for package in {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"optdp"}:
            known = "python-flint" if package == "flint" else package
            assert known in core or known in extras, f"{path}: {package} is not declared"
            if known not in core and known != "matplotlib":  # figures begin in report/plots.py, which asks for it
                brings = {extras[known]} | ({"data"} if known == "pandas" else set())  # data brings pandas with it
                assert any(f"optdp[{extra}]" in text for extra in brings), f"{path}: {package} does not name its extra"


def test_the_versions_agree():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == optdp.__version__
    assert f"## {optdp.__version__}" in (ROOT / "CHANGELOG.md").read_text()
