"""The layout of the package, read from its source: rooms in order, solvers at the edge, one home for each thing."""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import optdp
from tests.trees import imports_of, parsed

PACKAGE = Path(optdp.__file__).parent
#: Rooms may import from those before them.
ROOMS = tuple(
    "exact problem closed_forms mechanisms certificates solution solvers design statistics report audit cli".split()  # noqa: SIM905
)
#: Top-level files that import nothing of the package, and what ties all together.
LEAVES, TOP = ("files", "status", "hooks", "checker"), ("__init__", "__main__")


@cache
def modules():
    """Dotted name within the package -> (path, syntax tree)."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found[name] = (path, parsed(path))
    return found


def room(name):
    return name.split(".")[0]


@cache
def imports():
    """(importing module, imported module, line), wherever the statement stands: in functions and under TYPE_CHECKING too."""
    names, found = set(modules()), []

    def target(dotted):
        while dotted and dotted not in names:
            dotted = dotted.rpartition(".")[0]
        return dotted

    for name, (path, tree) in modules().items():
        for node in imports_of(tree):
            if isinstance(node, ast.Import):
                wanted = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                base = node.module or ""
                wanted = [f"{base}.{a.name}" for a in node.names]
            else:
                pytest.fail(f"{path}:{node.lineno}: relative import")
            for full in wanted:
                if full == "optdp" or full.startswith("optdp."):
                    inner = target(full[len("optdp.") :])
                    found.append((name, inner or "__init__", node.lineno))
    return found


def test_no_room_imports_a_later_one():
    wrong = []
    for source, into, line in imports():
        if source in TOP or into in LEAVES or source == into:
            continue
        if source in LEAVES:
            wrong.append(f"{source}:{line} imports {into}: it must import nothing of optdp")
        elif into == "__init__":
            if room(source) not in ("audit", "cli"):
                wrong.append(f"{source}:{line} imports the package itself")
        elif room(into) not in ROOMS or room(source) not in ROOMS:
            wrong.append(f"{source}:{line} imports {into}: a room that has no place in the order")
        elif ROOMS.index(room(into)) > ROOMS.index(room(source)):
            wrong.append(f"{source}:{line} imports the later {into}")
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_no_circles_between_files():
    edges = {}
    for source, into, _ in imports():
        if source not in TOP and into not in TOP and source != into:
            edges.setdefault(source, set()).add(into)
    done, circles = set(), []

    def visit(node, path):
        if node in path:
            circles.append(" -> ".join([*path[path.index(node) :], node]))
            return
        if node in done:
            return
        for after in sorted(edges.get(node, ())):
            visit(after, [*path, node])
        done.add(node)

    for name in modules():
        visit(name, [])
    assert not circles, "\n".join(circles)


SOLVERS = ("highspy", "cvxpy", "pyscipopt", "gurobipy", "casadi", "clarabel")


def test_only_solvers_import_solvers():
    """Also scipy's linear programs and Pyomo's solver factories; writing a Pyomo model elsewhere is fine."""
    wrong = []
    for name, (_, tree) in modules().items():
        if room(name) == "solvers":
            continue
        for node in imports_of(tree):
            if isinstance(node, ast.Import):
                found = [a.name for a in node.names]
            else:
                found = [f"{node.module}.{a.name}" for a in node.names]
            for full in found:
                if full.split(".")[0] in SOLVERS or full.endswith((".linprog", ".SolverFactory", ".milp")):
                    wrong.append(f"{name}:{node.lineno} imports {full}")
    assert not wrong, "\n".join(wrong)


def loss_classes():
    _, tree = modules()["problem.losses"]
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def test_nobody_asks_for_a_losss_type():
    names, wrong = loss_classes() - {"Loss"}, []
    for name, (_, tree) in modules().items():
        if name == "problem.losses":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                asked = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                asked |= {n.attr for n in ast.walk(node.args[1]) if isinstance(n, ast.Attribute)}
                if asked & names:
                    wrong.append(f"{name}:{node.lineno} isinstance of {', '.join(asked & names)}")
            if isinstance(node, ast.Compare) and any(isinstance(c, ast.Call) and getattr(c.func, "id", "") == "type" for c in
                                                     [node.left, *node.comparators]):  # fmt: skip
                asked = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                if asked & names:
                    wrong.append(f"{name}:{node.lineno} compares a type with {', '.join(asked & names)}")
            if isinstance(node, ast.MatchClass) and getattr(node.cls, "id", getattr(node.cls, "attr", "")) in names:
                wrong.append(f"{name}:{node.lineno} matches {ast.unparse(node.cls)}")
    assert not wrong, "\n".join(wrong)


def defines(tree):
    return [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef | ast.FunctionDef)]


@pytest.mark.parametrize(
    ("word", "most"),
    [("truncatedlaplace", 1), ("discretelaplace", 1), ("alias", 1), ("coin", 1), ("laplace", 1), ("staircase", 1), ("gaussian", 1)],  # noqa: E501
)  # fmt: skip
def test_each_thing_has_one_home(word, most):
    """Classes named after it, among mechanisms and samplers."""
    found = []
    for name, (_, tree) in modules().items():
        if room(name) not in ("exact", "mechanisms"):
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name.lower().replace("mechanism", "").strip("_") == word:
                found.append(f"{name}.{node.name}")
    assert len(found) <= most, found


def test_no_second_alias_table():
    """Vose's method keeps lists called small and large: nowhere but in exact/sampling.py."""
    homes = []
    for name, (path, tree) in modules().items():
        if not {"small", "large", "pop"} <= set(re.findall(r"\w+", path.read_text(encoding="utf-8"))):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                pops = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
                if {"small", "large"} <= names and "pop" in pops:
                    homes.append(f"{name}.{node.name}")
    assert homes == ["exact.sampling.__init__"], homes


def public_functions():
    """(module, qualified name, node) of functions and methods without a leading underscore in public modules."""
    for name, (_, tree) in modules().items():
        if any(part.startswith("_") for part in name.split(".")):
            continue
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield name, node.name, node
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                        yield name, f"{node.name}.{inner.name}", inner


def test_any_is_rare_in_public_signatures(capsys):
    """Parameters and returns of public functions annotated as nothing but Any: below 10 %."""
    total, loose, where = 0, 0, []
    for name, function, node in public_functions():
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        slots = [(a.arg, a.annotation) for a in arguments if a.arg not in ("self", "cls")] + [("return", node.returns)]
        for slot, annotation in slots:
            total += 1
            if annotation is None or ast.unparse(annotation) == "Any":
                loose += 1
                where.append(f"{name}.{function}({slot})")
    with capsys.disabled():
        print(f"\nAny in public signatures: {loose} of {total}, {100 * loose / total:.1f} %")
    assert loose < 0.10 * total, "\n".join(where)


def test_what_is_public_is_documented():
    """Every name of the package, and every public module, class and function of the rooms, has a docstring."""
    missing = [name for name, (_, tree) in modules().items() if not ast.get_docstring(tree)]
    for name, (_, tree) in modules().items():
        for node in tree.body:
            if (
                isinstance(node, ast.ClassDef | ast.FunctionDef)
                and not node.name.startswith("_")
                and not ast.get_docstring(node)
            ):
                missing.append(f"{name}.{node.name}")
    assert not missing, missing


@pytest.mark.parametrize("name", sorted(set(optdp.__all__) - {"__version__", "audit", "discoveries", "Status"}))
def test_public_names_say_arguments_and_returns(name):
    """Functions of the front door describe what they take and give."""
    thing = getattr(optdp, name)
    assert inspect.getdoc(thing), f"{name} has no docstring"
    if inspect.isfunction(thing) and len(inspect.signature(thing).parameters) > 1:
        assert "Arguments" in thing.__doc__, name
        assert "Returns" in thing.__doc__ or "Raises" in thing.__doc__, name


def test_registered_modules_exist():
    from optdp import closed_forms
    from optdp.certificates import base as certificates
    from optdp.design import registry
    from optdp.mechanisms import base as mechanisms

    for room_name, listed in (("certificates", certificates.MODULES), ("mechanisms", mechanisms.MODULES),
                              ("design", registry.MODULES), ("closed_forms", closed_forms.MODULES)):  # fmt: skip
        for module in listed:
            importlib.import_module(f"optdp.{room_name}.{module}")


def test_no_internal_words_in_public_text():
    """Working papers, issue numbers and private shorthand stay out of the source."""
    wrong = []
    for name, (path, _) in modules().items():
        text = path.read_text(encoding="utf-8").lower()
        for word in ("our notes", "text at hand", "math.md", "findings.md", "/work/", "issue 10", "helper h"):
            if word in text:
                wrong.append(f"{name}: {word}")
    assert not wrong, wrong
