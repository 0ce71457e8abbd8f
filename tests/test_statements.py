"""What is printed about a problem: complete, exact, and true beside every other solution."""

import itertools
import re

import numpy as np
import pytest

import optdp
from optdp.exact.fields import FieldError
from optdp.mechanisms.kernel import KernelMechanism
from tests.solutions import MAKE, solution, solutions


def lower_bound_sentence(solution):
    (check,) = [c for c in solution.verify().checks if c.name == "lower bound"]
    return check.detail


@pytest.mark.parametrize("name", list(MAKE))
def test_the_lower_bound_sentence_is_complete(name):
    """It names the objective, the privacy notion with its exact parameters, the domain, the outputs and the family."""
    own = solution(name)
    problem, said = own.problem, lower_bound_sentence(own)
    statement = problem.statement()
    assert said.startswith(statement) and " is at least " in said
    assert problem.phrase in statement and problem.privacy.adjective in statement
    assert problem.privacy.clause in statement and f"mechanisms from {problem.domain} to " in statement
    assert problem.family.clause(problem.eps) in statement
    assert ("unbiased " in statement) == problem.unbiased
    claimed = float(re.search(r"is at least ([0-9.e+-]+) \(", said).group(1))
    assert own.lower_bound <= claimed <= own.value
    words = {
        "Piecewise": "pieces",
        "AffineWindow": "window|densities lie between",
        "Composite": "activation",
        "Additive": "add noise",
    }
    family = type(problem.family).__name__
    for kind, word in words.items():
        assert bool(re.search(word, statement)) == (kind == family), (kind, statement)


@pytest.mark.parametrize("name", list(MAKE))
def test_everything_printed_uses_the_statement(name):
    own = solution(name)
    statement = own.problem.statement()
    assert str(own).startswith(statement) and statement in repr(own)
    import html

    assert statement in html.unescape(own._repr_html_())
    for text in (str(own), str(own.verify())):
        assert "every mechanism with" not in text and "any mechanism" not in text


def test_no_mechanism_contradicts_another_sentence(capsys):
    """Whatever mechanism is feasible for a statement attains at least what the statement says is the least."""
    counted = 0
    for one, two in itertools.permutations(solutions().values(), 2):
        if one.problem.domain != two.problem.domain or not all(c.passed for c in two.mechanism.feasible(one.problem)):
            continue
        try:
            low, high = two.mechanism.enclose(one.problem.objective)
        except (TypeError, ValueError):
            continue
        counted += 1
        assert low <= high and high >= one.lower_bound, (repr(two.mechanism), lower_bound_sentence(one))
    assert counted > 100


def test_kernel_and_piecewise_speak_of_different_families():
    """0.3162 and 0.3775 at eps = 1 are both least: of all mechanisms, and of those whose heights all inputs share."""
    kernel, window = optdp.solve_kernel(1.0, rtol=0.02), optdp.solve_piecewise(1.0)
    assert kernel.value < 0.32 < 0.37 < window.lower_bound
    assert not all(c.passed for c in kernel.mechanism.feasible(window.problem))
    assert all(c.passed for c in window.mechanism.feasible(kernel.problem))
    assert window.problem.statement() != kernel.problem.statement()
    assert "same heights" in window.problem.statement() and "same heights" not in kernel.problem.statement()


RULES = list(itertools.product(("A1", "A3"), ("B1", "B2"), ("uniform", "pointwise")))


def test_composite_rules_do_not_contradict_each_other():
    """Every rule's optimum is beaten only by mechanisms that its sentence leaves out."""
    made = {key: optdp.solve_composite(1.0, key[0], key[1], rule=key[2], inputs=(-1, 1)) for key in RULES}
    made |= {
        ("A1", "own", rule): solution(f"composite own base{'' if rule == 'uniform' else ' pointwise'}")
        for rule in ("uniform", "pointwise")
    }
    for (own_key, own), (other_key, other) in itertools.permutations(made.items(), 2):
        assert own.problem.statement() != other.problem.statement()
        if other.value < own.lower_bound:
            refusals = [c for c in other.mechanism.feasible(own.problem) if not c.passed]
            assert refusals, (own_key, other_key)
    uniform, pointwise = made["A1", "own", "uniform"], made["A1", "own", "pointwise"]
    assert pointwise.value < uniform.lower_bound
    assert not all(c.passed for c in pointwise.mechanism.feasible(uniform.problem))
    free, kind = solution("ptt free"), solution("ptt II")
    assert kind.lower_bound > free.value
    assert not all(c.passed for c in free.mechanism.feasible(kind.problem))


@pytest.mark.parametrize(
    "eps", [0.9999999, 1.0000001, 1 / 3, 0.1 + 0.2, 1e-9, 2.0 ** 0.5, "1/3", "0.1", optdp.log(3), optdp.log("10/3")]
)  # fmt: skip
def test_eps_is_printed_exactly(eps):
    """0.9999999 does not read as 1, and what is printed gives the same number back."""
    problem = optdp.Problem(optdp.LDP(eps), (0, 1), "abs", optdp.Piecewise(3))
    said = re.search(r"over all (\S+)-LDP mechanisms", problem.statement()).group(1)
    again = optdp.LDP(float(said)) if isinstance(eps, float) else optdp.LDP(said)
    assert again == problem.privacy
    solved = optdp.solve(problem, rtol=1e-6)
    for text in (str(solved), str(solved.verify()), repr(solved)):
        assert f"{said}-LDP" in text
    if isinstance(eps, float):
        assert f"e^{said}" in str(solved.verify()) and f"{eps:g}-LDP" not in str(solved).replace(f"{said}-LDP", "")


def test_the_report_of_a_problem_uses_its_sentence():
    kernel = optdp.solve_kernel(1.0, rtol=0.05)
    report = optdp.compare(kernel.problem)
    assert kernel.problem.statement() in str(report) or kernel.problem.statement() in getattr(report, "title", "")


def test_assumptions_are_part_of_the_sentence():
    """What is taken on trust of a user's function is said in the line that states the bound."""
    own = optdp.solve_piecewise(1.0, 3, optdp.CustomLoss(lambda d: d**3, shape="convex"))
    assert own.verify()
    assert "provided that the loss is nondecreasing and convex between the points" in lower_bound_sentence(own)


def test_unknown_problems_are_refused_with_every_reason():
    from optdp.design.registry import designs, table

    problem = optdp.Problem(optdp.ApproxDP(1.0, 0.1), (0, 1), "abs")
    with pytest.raises(ValueError, match="no design solves") as caught:
        optdp.solve(problem)
    text = str(caught.value)
    assert problem.statement() in text
    for design in designs():
        assert f"  {design.name}: {design.accepts(problem)}" in text
    assert table() in text
    assert text.splitlines()[-1].startswith("  pair kernel: privacy must be LDP")  # else one of its kind
    markdown = table(markdown=True)
    assert markdown.count("\n") == len(designs()) + 1 and all(design.name in markdown for design in designs())


def test_the_nearest_reason_is_the_last():
    loss = optdp.CustomLoss(lambda d: np.minimum(d, 3.0))
    with pytest.raises(ValueError, match="no design solves") as caught:
        optdp.solve_additive(1.0, 0.01, loss=loss)
    assert str(caught.value).splitlines()[-1].startswith("  additive: a function must be declared convex")


def test_no_statement_quotes_a_file():
    """A label is anybody's text: a base that is no constant must not be called one, and no text may look like a proof."""
    own = optdp.solve_composite(1.0, "A1", lambda v: 1 - 0.3 * v**4)

    def renamed(label):
        def walk(part):
            if isinstance(part, dict):
                return {k: label if k == "label" else walk(v) for k, v in part.items()}
            return [walk(v) for v in part] if isinstance(part, list) else part

        return walk(own.to_dict())

    forged = optdp.Solution.from_dict(renamed("B1/A1 (constant)"))
    assert forged.problem.statement() == own.problem.statement()
    assert "draw from the base of" in own.problem.statement()
    with pytest.raises(FieldError, match="label"):
        optdp.Solution.from_dict(renamed("x\n  verified"))
    data = solution("kernel abs").to_dict()
    data["program"] = {**data["program"], "solver": "HiGHS\nok   lower bound: 1"}
    with pytest.raises(FieldError, match=r"program\.solver.*printable"):
        optdp.Solution.from_dict(data)


def test_different_alphabets_have_different_statements():
    """Digits in quotes are no numbers, and beyond 8 symbols a digest tells alphabets apart; infinity is no symbol."""
    names = [str(optdp.Alphabet(s)) for s in (("1", "2"), (1, 2), tuple(range(1, 10)), (*range(1, 9), 10))]
    assert len(set(names)) == 4
    with pytest.raises(ValueError, match="strings or numbers"):
        optdp.Alphabet((float("inf"), 1))
    assert optdp.Problem(optdp.LDP(1), (0, 1), "abs", constraints=optdp.Outputs(0, 0.5)).outputs == (0.0, 0.5)


def test_outputs_beyond_a_far_domain_are_refused_before_they_are_rounded():
    """At 2^53 there are floats at the ends alone: what is asked for is judged by the numbers that are sent."""
    far = optdp.Interval(2.0**53, 2.0**53 + 2)
    for ends, inside in (([-0.2, 1.2], True), ([-1.2, 2.2], False)):
        made = KernelMechanism.private(1.0, [1.0, 1.0], ends, ends, 0.5, far)
        checks = made.feasible(optdp.Problem(optdp.LDP(1), far, "abs"))
        assert next(check for check in checks if check.name == "outputs").passed is inside
        sent = made.randomize(np.full(200, far.lower), 0)
        assert ((sent >= far.lower) & (sent <= far.upper)).all() == inside
