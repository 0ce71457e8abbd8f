"""`optdp.plan`: a table of several columns made private under one total epsilon, and what is learned from it.

**Strategies.** With k columns and one eps, "split" gives column j a share eps_j, sum eps_j = eps: every column of every person is
reported. "sample" reports a random m of the k columns with eps/m each (m = 1: one column with the whole eps): every column of
n m/k people. Which columns are reported does not depend on the data, so that both are eps-LDP for the whole row, by composition.

**Which is better** is computed: with u_j(eps) the error of column j's estimate times the square root of n (`optdp.recommend`),
and s_j^2 the variance of the column's share in it (that of evenly spread entries), the squared error about the people asked is

    split:   u_j(eps_j)^2 / n,            sample:   (u_j(eps/m)^2 + (1 - m/k) s_j^2) / (n m/k),

"joint" answers some categories together: with probability c all of them are true, else all are uniform and independent. Each
column is then a randomised response by itself, and a pair of columns one on the pairs of their values. The ratio of the whole
group is 1 + D c/(1 - c), D the number of its combinations. For the other strategies it is one column: the budget is split, or one
is sampled. For two flags that is better than sampling one of them from eps = log(1 + 2 sqrt 2) = 1.34 on.

The plan takes the strategy with the least sum of the squared errors in units of the columns' widths (probabilities as they are),
times their weights. Shares are eps_j in proportion to (weight_j error_j^2)^(1/3), the best for errors that fall like 1/eps. Of
"answers" the error is that of one, whatever n is; one that is not sent counts as a guess in the middle.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from optdp import files
from optdp.design.frequency import solve_frequency
from optdp.design.kernel import FAINTEST, solve_kernel
from optdp.design.progress import Progress, ProgressLike
from optdp.exact import Fields, Log, Number, Seed, Within, as_rng, coin, enclosures, require, show, work, written
from optdp.exact.enclosures import rounded_up
from optdp.exact.fields import FieldError, load
from optdp.exact.numbers import above
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.frequency import COINS
from optdp.mechanisms.piecewise import PiecewiseMechanism
from optdp.problem import LDP, Interval, OneHot
from optdp.statistics import tables
from optdp.statistics.answers import Answers, added, check_level, outputs_of, tallies_of
from optdp.statistics.channel import FLOATS, refuse_few_floats, refuse_width
from optdp.statistics.part import Part, as_column, kind_of, together, truth, unit_ratio, width_of, words_of
from optdp.statistics.recommend import BINS, GOALS, RTOL, candidates, least_eps, unit_error
from optdp.statistics.result import NotIdentified
from optdp.statistics.schema import Category, Column

REPEATS = ("once", "memoised")
STRATEGIES = ("auto", "split", "sample", "joint")
#: Numbers of columns that are answered together.
TOGETHER = (2, 3, 4, 6)
#: Mechanisms for numbers that are compared for a goal: all that send what they are proven for and are ever best.
CONTENDERS = {
    "quantile": ("piecewise, abs", "moved SW"),
    "distribution": ("piecewise, abs", "piecewise, abs, linear placement", "moved SW"),
    "answers": ("piecewise, abs", "kernel, abs"),
}
#: What strategies are called.
STRATEGY = re.compile("split|split evenly|all|sample [0-9]+ of [0-9]+|joint [0-9]+, [0-9]+ of [0-9]+")
#: People and columns of a plan.
MOST = 10**12, 10_000
#: Shares of eps are multiples of this part of it.
GRAIN = 2**20
#: What is predicted for a goal: of what, and which error about the people asked.
PREDICTED = {
    "mean": ("mean", "one standard error, at most: that of the worst entries"),
    "quantile": ("median", "root mean square error if entries are spread evenly, simulated"),
    "distribution": (
        "distribution",
        f"root mean square standard error of the probabilities of {BINS} bins if entries are spread evenly",
    ),
    "frequencies": ("frequencies", "root mean square standard error of a frequency"),
    "answers": ("answers", "mean absolute error of one answer, for the worst entry"),
}
#: The same where not everybody reports the column: how much those who do differ from the others depends on the entries.
CHOSEN = {
    "mean": ("mean", "one standard error: the noise of the worst entries, the sampling of evenly spread ones"),
    "frequencies": (
        "frequencies",
        "root mean square standard error of a frequency, at most: that of evenly spread entries",
    ),
}


class TooLittle(ValueError):
    """A share of eps that is too small for the goal of a column; the message says so."""


@dataclass(frozen=True, repr=False)
class Plan(tables.Printed):
    """How a table is made private, column by column; `optdp.plan` makes one.

    - `parts`: what happens to each column; `reported`: how many of the `units` each person reports (all, or a random choice).
    - `eps`: of a whole row; `n`: the number of people for whom errors are predicted; `compared`: predicted errors by strategy.
    - `repeat`: "once": a person answers a single time; "memoised": as often as asked, with the same private entry for the same
      true one (of columns answered together: the same ones for all), which `optdp client` keeps on the person's device.
      `randomize` here draws afresh at every call.
    """

    parts: tuple[Part, ...]
    reported: int
    eps: Number
    n: int
    compared: tuple[tuple[str, float], ...] = ()
    repeat: str = "once"

    def __post_init__(self) -> None:
        require.choice("repeat", self.repeat, REPEATS)

    @property
    def digest(self) -> str:
        """Which plan this is: the sha256 of its JSON form."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(part.name for part in self.parts)

    @property
    def units(self) -> tuple[tuple[Part, ...], ...]:
        """The columns, those together that are answered together."""
        found: dict[int, list[Part]] = {}
        for i, part in enumerate(self.parts):
            found.setdefault(part.group or -1 - i, []).append(part)
        return tuple(map(tuple, found.values()))

    @property
    def errors(self) -> dict[str, float]:
        """The predicted error of each column's estimate, as `summary` tells it."""
        return {part.name: predicted(part, self.n, self.reported / len(self.units)) for part in self.parts}

    @property
    def counted(self) -> str:
        """What the units are."""
        return "columns" if len(self.units) == len(self.parts) else "groups of columns"

    def __getitem__(self, name: str) -> Part:
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(f"{name!r} is not a column of the plan: {', '.join(map(repr, self.names))}")

    def guarantee(self) -> LDP:
        """Of a whole row, exactly: the product of the likelihood ratios of the columns that one reports, the worst ones."""
        return LDP(enclosures.log_of(self.ratio(self.names)))

    def ratio(self, names: Collection[str]) -> Fraction:
        """The largest likelihood ratio, exactly, of rows that differ in these columns alone: that of the worst ones reported."""
        ratios = [unit_ratio(unit) for unit in self.units if any(part.name in names for part in unit)]
        return math.prod(sorted(ratios)[-self.reported :], start=Fraction(1))

    # --- making private

    def randomize(
        self, table: Any, rng: Seed = None, *, target: str | Path | None = None, progress: bool = False
    ) -> Any:
        """The private table, of the same kind, with the same index and names.

        Whoever sees the private rows of two calls sees two answers of everybody: call it once. A dask DataFrame is evaluated
        here, on its cluster, for that reason.

        **Arguments:** `table`: a pandas or polars frame, a pyarrow table, a dict of arrays, a dask DataFrame, or a path of a CSV
        file ("-": standard input; read strictly, as `optdp.exact.table` says) or a Parquet file, which is streamed in constant
        memory to `target`, written whole or not at all; `rng` as in `Mechanism.randomize`; `progress`: a bar on stderr for files.

        Numbers become numbers; a category becomes the name of one, or the integers of its message as a text. What a person does
        not report is missing. **Returns** the table (for files the number of rows).

        **Raises** ValueError for columns that the plan does not know or that are not there, and naming column and row for entries
        that the schema refuses, without their values.
        """
        given, rng = rng, as_rng(rng)
        if isinstance(table, str | Path):
            if target is None:
                raise ValueError("target = None is not allowed for a file: it must be the path of the private one")
            if files.same(table, target):
                raise ValueError("target is not allowed to be the table itself")
            return tables.map_file(table, target, lambda part: self._columns(part, rng), progress)
        if hasattr(table, "to_delayed"):
            return self._on_cluster(table, None if given is None else rng)
        return tables.like(table, self._columns(table, rng))

    def _on_cluster(self, table: Any, rng: np.random.Generator | None) -> Any:
        """A dask DataFrame, partition by partition where they are; evaluated once, for a second evaluation would be a second
        answer of everybody.
        """
        import dask  # what dask DataFrames need: optdp[dask]
        from dask import dataframe

        parts = table.to_delayed()
        seeds = [None] * len(parts) if rng is None else rng.integers(2**63, size=len(parts)).tolist()
        empty: dict[str, np.ndarray] = {name: np.array([], dtype=kind_of(self[name])) for name in self._known(table)}
        private = [dask.delayed(self.randomize)(part, seed) for part, seed in zip(parts, seeds, strict=True)]
        meta = tables.like(table._meta, empty)
        return dataframe.from_delayed(private, meta=meta, divisions=table.divisions, verify_meta=False).persist()

    def _known(self, table: Any) -> list[str]:
        """The names of the columns of a table. **Raises** ValueError unless they are those of the plan."""
        found = tables.names(table)
        unknown, gone = [c for c in found if c not in self.names], [c for c in self.names if c not in found]
        if unknown or gone:  # by its place: in a file without a header, names are private values
            told = f"no column {gone[0]!r}, which the plan needs" if gone else ""
            if unknown:
                place = f"number {found.index(unknown[0]) + 1} of {len(found)}"
                do = f"it has {told} (capitals and spaces in names count)" if gone else "leave it out"
                if len(found) == 1 < len(self.names) and not str(found[0]).isidentifier():
                    do = "separate the fields by commas"
                told = f"a column ({place}) that the plan does not know, which is not allowed: {do}"
            raise ValueError(f"the table has {told}; the plan is for {', '.join(map(repr, self.names))} alone")
        return found

    def _columns(self, table: Any, rng: np.random.Generator) -> dict[str, np.ndarray]:
        found = self._known(table)
        inputs = {part.name: part.column.encode(tables.column(table, part.name), part.name) for part in self.parts}
        rows = {values.size for values in inputs.values()}
        if len(rows) > 1:
            raise ValueError("the table is not allowed: its columns have different lengths")
        count = rows.pop()
        chosen, out = self._chosen(count, rng), {}
        for j, unit in enumerate(self.units):
            true = coin(truth(unit), COINS, (count,), rng) if len(unit) > 1 else None
            for part in unit:
                if true is None:
                    private = part.mechanism.randomize(words_of(part, inputs[part.name]), rng)
                else:
                    private = np.where(true, inputs[part.name], rng.integers(0, part.mechanism.domain.d, size=count))
                out[part.name] = as_column(part, private[chosen[:, j]], chosen[:, j])
        return {name: out[name] for name in found}

    def _chosen(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """Which columns each person reports: uniform sets of `reported`, one column after the other, in integers."""
        k = len(self.units)
        chosen, left = np.zeros((rows, k), dtype=bool), np.full(rows, self.reported)
        for j in range(k):
            chosen[:, j] = rng.integers(0, k - j, size=rows) < left
            left = left - chosen[:, j]
        return chosen

    # --- learning

    def estimate(self, private: Any, *, level: float = 0.95) -> Answers:
        """What the private table says: `plan.estimate(private)["age"]` is an `optdp.Estimate` of what the goal asks.

        **Arguments:** `private`: what `randomize` gave, or the path of the file; files and dask DataFrames are tallied part by
        part, in constant memory or on the cluster; `level`: of the intervals.

        **Returns** a mapping from columns to estimates, which prints as a table. `about("age", "quantile", q=0.9)` asks another
        question, as `optdp.estimate` does; `pair("city", "job")` gives the table of two categories; `to_frame()` all numbers.
        """
        check_level(level)  # before anything is read
        if isinstance(private, str | Path):
            refuse_another(self, Path(private))
        look = partial(tallies_of if tables.streamed(private) else outputs_of, self.parts)
        parts = list(tables.each(private, look))
        told = parts[0] if len(parts) == 1 else {name: (None, added(p[name][1] for p in parts)) for name in self.names}
        return Answers(self, told, level, private)

    # --- telling

    def statement(self) -> str:
        """What the plan promises to a person who is asked, in words that can be shown to this person."""
        ratio: Any = self.guarantee().eps
        factor = math.ceil(ratio.argument * 100) / 100
        k, m = len(self.units), self.reported
        whole = ", all of them together" if len(self.parts) > 1 else ""
        groups = "; ".join(", ".join(part.name for part in unit) for unit in self.units if len(unit) > 1)
        others = f", and so do those that are answered together with it ({groups})" if groups else ""
        told = [
            "What you enter stays on this device; what is sent is drawn at random. Whatever is sent, your entries make it at "
            f"most {factor:.2f} times as likely as any other entries would{whole} "
            f"(local differential privacy, epsilon = {rounded_up(ratio)})."
        ]
        if m < k:
            what = "entries" if k == len(self.parts) else "groups of entries"
            told.append(f"Only {m} of the {k} {what} {'is' if m == 1 else 'are'} sent, chosen at random.")
        told.append(
            "You answer once, because two answers together would tell more than one."
            if self.repeat == "once"
            else "If you are asked again, the same entries get the same random answers, so that asking often tells no more. An "
            f"entry that you change gets a new one{others}: the promise then holds for each of the two, and that it changed can "
            "be seen."
        )
        return " ".join(told)

    def summary(self) -> str:
        """What is sent, how private it is, and how accurate with n people, in words."""
        units = self.units
        k, what = len(units), self.counted
        how = f"reports {self.reported} of the {k} {what}, chosen at random"
        shares = [unit[0].eps for unit in units]
        spent = f" ({self.reported} times {show(shares[0])})" if self.reported > 1 else ""
        if self.reported == k:
            how, spent = "reports all columns", f" (about {' + '.join(map(rounded_up, shares))})"
        elif len(set(shares)) > 1:  # as in a file that was written by hand
            most = sorted(shares, key=float)[-self.reported :]
            spent = f" (at most about {' + '.join(map(rounded_up, most))})"
        ratio: Any = self.guarantee().eps
        factor = above(enclosures.round_up(ratio.argument), 4)
        lines = [
            f"Each person {how}. A person's whole private row, all columns together, is {show(self.eps)}-LDP{spent}: it is at "
            f"most {factor} times as likely as it would be from any other row.",
            *(
                f"{', '.join(part.name for part in unit)} are answered together: one coin decides if all are true, or all random."
                for unit in units
                if len(unit) > 1
            ),
            f"Predicted errors with {self.n} {'person' if self.n == 1 else 'people'}, about those asked (the standard errors of "
            "estimates count how these were drawn from a population, too):",
        ]
        for part, error in zip(self.parts, self.errors.values(), strict=True):
            unit = "" if part.goal == "distribution" else getattr(part.column, "unit", "")
            what, kind = (PREDICTED | (CHOSEN if self.reported < k else {}))[part.goal]
            lines.append(
                f"  {part.name}: {what} within about {error:.3g} {unit}".rstrip()
                + f" ({kind}), by {type(part.mechanism).__name__} with eps = {rounded_up(part.eps)}"
            )
        if self.compared:
            lines.append(
                "Strategies (root mean square of the columns' errors; means, medians and answers in units of their widths):"
            )
            lines += [f"  {name}: {error:.4g}" for name, error in self.compared]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        counted = f"{self.reported} of {len(self.units)} {self.counted}"
        return f"<Plan for {tables.few(self.names)}: {show(self.eps)}-LDP, {counted} reported>"

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        compared = [{"strategy": name, "error": error} for name, error in self.compared]
        return {"plan": 1} | written(self) | {"compared": compared}

    @classmethod
    def from_dict(cls, data: object, where: str = "plan") -> Plan:
        """The inverse of `to_dict`, every field checked. **Raises** FieldError."""
        return cls.read(Fields(data, where))

    @classmethod
    def read(cls, fields: Fields) -> Plan:
        """The same, from entries checked one by one. **Raises** FieldError, also if rows would not be eps-LDP."""
        fields.integer("plan", 1, 1)
        parts = fields.typed("parts", tuple[Part, ...], Within(least=1, most=MOST[1]))
        compared = []
        for i, entry in enumerate(fields.entries("compared", 0, 100)):
            row = Fields(entry, f"{fields.where}.compared[{i}]")
            compared.append((row.text("strategy", 100), row.real("error", 0.0)))
            if not STRATEGY.fullmatch(compared[-1][0]):
                must = "it must be one, such as 'split' or 'sample 1 of 3'"
                raise FieldError(f"{row.where}.strategy = {compared[-1][0]!r} is not allowed: {must}")
            row.done()
        made = cls(
            parts,
            fields.integer("reported", 1, len(parts)),
            fields.number("eps"),
            fields.integer("n", 1, MOST[0]),
            tuple(compared),
            fields.choice("repeat", REPEATS) if "repeat" in fields.data else "once",  # older files do not say
        )
        fields.done()
        made._checked(fields.where)
        return made

    def _checked(self, where: str) -> None:
        """**Raises** FieldError unless the parts fit the columns and one another, and spend what they say; proofs come last."""
        names = self.names
        for i, part in enumerate(self.parts):
            own, category = f"{where}.parts[{i}]", isinstance(part.column, Category)
            if not part.name or names.index(part.name) < i:
                raise FieldError(
                    f"{own}.name is not allowed: it must be a text that is not empty, another for each column"
                )
            if (part.goal == "frequencies") != category:
                must = "'frequencies', of categories" if category else "another than 'frequencies', of numbers"
                raise FieldError(f"{own}.goal = {part.goal!r} is not allowed: it must be {must}")
            if part.mechanism.domain != part.column.domain or _labels(part.mechanism) != _labels(part.column):
                raise FieldError(f"{own}.mechanism is not allowed: its inputs must be those of column {part.name!r}")
            for name in ("unit", "weight"):
                if not getattr(part, name):
                    raise FieldError(f"{own}.{name} = 0 is not allowed: it must be above 0")
            people = max(round(self.n * (self.reported / len(self.units))), 1)
            if part.goal == "quantile":  # simulated, which is not done again: no error is larger than the domain
                known, holds = width_of(part) * math.sqrt(people), part.unit <= width_of(part) * math.sqrt(people)
            else:
                try:
                    known = _unit(part, people)
                except (TypeError, ValueError) as error:  # not identified, or not computed
                    raise FieldError(f"{own}.mechanism is not allowed with goal = {part.goal!r}: {error}") from None
                holds = math.isclose(part.unit, known, rel_tol=RTOL)
            if not holds:
                must = "at most" if part.goal == "quantile" else "about"
                raise FieldError(
                    f"{own}.unit = {part.unit:g} is not allowed: of this mechanism it must be {must} {known:.6g}"
                )
        told = [(where, self.eps), *((f"{where}.parts[{i}]", part.eps) for i, part in enumerate(self.parts))]
        for place, eps in told:
            try:
                require.exact_epsilon(eps)
            except ValueError:
                raise FieldError(f"{place}.eps is not allowed: it must be in (0, {require.MAX_EPS:g}]") from None
        units = self.units
        if self.reported > len(units):
            raise FieldError(
                f"{where}.reported = {self.reported} is not allowed: there are only {len(units)} {self.counted}"
            )
        if any(part.eps != unit[0].eps for unit in units for part in unit):
            raise FieldError(f"{where}.parts are not allowed: those of one group must have the same eps")
        if not LDP(self.eps).implied_by(
            LDP(_total(sorted((unit[0].eps for unit in units), key=float)[-self.reported :]))
        ):
            raise FieldError(
                f"{where}.parts are not allowed: the eps of what one reports add up to more than {show(self.eps)}"
            )
        for unit in units:
            try:
                kept = LDP(unit[0].eps).implied_by(LDP(enclosures.log_of(unit_ratio(unit))))
            except ValueError as error:
                raise FieldError(f"{where}: {error}") from None
            if not kept:
                shown = ", ".join(repr(part.name) for part in unit)
                raise FieldError(
                    f"{where}: what is sent of {shown} does not keep {show(unit[0].eps)}-LDP, the eps of its part"
                )
        if not LDP(self.eps).implied_by(self.guarantee()):
            raise FieldError(f"{where}: its mechanisms do not keep {show(self.eps)}-LDP together")

    def save(self, path: str | Path) -> None:
        """Write the plan to a JSON file, whole or not at all."""
        files.write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan that `save` wrote. **Raises** OSError or FieldError (a ValueError) in one sentence."""
        return load(path, cls.read, kind="a plan")


def predicted(part: Part, n: int, share: float) -> float:
    """The error of the estimate if this share of n people reports the column; of answers that of one that is sent."""
    return part.unit if part.goal == "answers" else part.errors(n, share)


def refuse_another(plan: Plan, folder: Path) -> None:
    """**Raises** ValueError for a folder of `optdp.collect` with the answers to another plan, as its notes say."""
    for note in folder.glob("read-*.json"):
        if load(note, lambda fields: fields.text("plan", 64)) != plan.digest:
            raise ValueError(f"{folder.name} is not allowed: it holds the answers to another plan")


def _labels(of: Any) -> list[str]:
    """The names of the categories of a column or mechanism, which are no part of its domain; none of numbers."""
    return list(map(str, of.domain.labels)) if isinstance(of.domain, OneHot) else []


def _total(shares: list[Number]) -> Number:
    """Their sum, or where logarithms are among several a rational above it."""
    exact = (Fraction(enclosures.log_above(e.argument) if isinstance(e, Log) else e) for e in shares)
    return shares[0] if len(shares) == 1 else sum(exact, Fraction(0))


def plan(
    schema: Mapping[str, Column], eps: Number | str | None = None, goal: str | Mapping[str, str] = "mean",
    n: int | None = None, *, error: float | Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None, strategy: str = "auto", repeat: str = "once", progress: ProgressLike = None,
) -> Plan:  # fmt: skip
    """How to make a table private under one total epsilon, with the mechanisms and the budget that are best for a goal.

    **Arguments:**

    - `schema`: column name -> `optdp.Number(lower, upper)`, `Integer`, `Date`, `Category(values)` or `Flag()`. A table with other
      columns is refused.
    - `eps`: the privacy parameter of a whole row, in (0, 30]; means need 1e-6 for each number that a person reports. None: one
      with which all predicted errors are at most `error`: of the strategies the least up to 2 % and 0.001 for each column (for
      quantiles: up to the simulation's noise).
    - `goal`: "mean", "quantile", "distribution" or "answers" for numbers (categories always have "frequencies"), or one for each
      column by name.
    - `n`: the number of people, for the predicted errors (1,000 if None).
    - `error`: in place of `eps`, with `n`: the largest error that is wanted, in the column's units as `summary` tells it (of an
      answer: sent, or guessed in the middle); one for all columns, or one for each by name.
    - `weights`: of columns that matter more than others (1 each); not with `error`.
    - `strategy`: "split" the budget, "sample" the columns, answer categories "joint"ly, or "auto": what is predicted to be best.
      For the tables of pairs of categories, "joint" is the better one at every eps.
    - `repeat`: what a person is protected against who is asked again: "once" or "memoised" (see `Plan`).
    - `progress`: see `optdp.solve`.

    **Returns** a `Plan`: `randomize`, `estimate`, `summary`, `save`. **Raises** TypeError or ValueError naming the argument.

        >>> import numpy as np, optdp
        >>> rng = np.random.default_rng(0)
        >>> people = {"smoker": rng.random(50_000) < 0.2, "job": rng.choice(["a", "b", "c"], 50_000)}
        >>> survey = optdp.plan({"smoker": optdp.Flag(), "job": optdp.Category(["a", "b", "c"])}, 2.0, n=50_000)
        >>> private = survey.randomize(people, 1)
        >>> low, high = survey.estimate(private)["smoker"].interval
        >>> bool(low[1] < 0.2 < high[1])
        True
    """
    if not isinstance(schema, Mapping) or not 0 < len(schema) <= MOST[1]:
        raise TypeError(
            f"schema is not allowed: it must map 1 to {MOST[1]} names to optdp.Number, Integer, Date, Category or Flag"
        )
    for name, column in schema.items():
        if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
            raise ValueError(f"schema[{name!r}] is not allowed: names must be texts of 1 to 200 printable characters")
        if not isinstance(column, Column):
            raise TypeError(
                f"schema[{name!r}] is not allowed: it must be optdp.Number, Integer, Date, Category or Flag"
            )
    if (eps is None) == (error is None):
        raise ValueError("eps or error is needed, and only one of them is allowed")
    if error is not None and (n is None or weights is not None):
        raise ValueError("error is not allowed without n, the number of people, or with weights")
    total = require.exact_epsilon(require.MAX_EPS if eps is None else eps)
    require.choice("strategy", strategy, STRATEGIES)
    require.choice("repeat", repeat, REPEATS)
    n = 1000 if n is None else require.integer("n", n, low=1, high=MOST[0])
    if weights is not None and not isinstance(weights, Mapping):
        raise TypeError("weights is not allowed: it must map columns to numbers above 0")
    for given, what in ((goal, "goal"), (weights or {}, "weights")):
        if isinstance(given, Mapping):
            for name in given:
                if name not in schema:
                    raise ValueError(f"{what}[{name!r}] is not allowed: the schema has no such column")
    if not isinstance(goal, Mapping):
        require.choice("goal", goal, GOALS)
    goals: dict[str, str] = {}
    for name, column in schema.items():
        own = "frequencies" if isinstance(column, Category) else "mean" if isinstance(goal, Mapping) else goal
        asked = goal.get(name, own) if isinstance(goal, Mapping) else own
        if own == "frequencies" != asked:
            raise ValueError(f"goal[{name!r}] = {asked!r} is not allowed: categories have 'frequencies'")
        goals[name] = require.choice("goal", asked, GOALS)
        if isinstance(column.domain, Interval):
            if asked == "frequencies":
                raise ValueError("goal = 'frequencies' is not allowed for numbers: use 'distribution'")
            if asked in ("mean", "answers"):  # whose squares count
                refuse_width(f"schema[{name!r}]", column.domain)
            if asked != "answers":
                refuse_few_floats(f"schema[{name!r}]", column.domain, FLOATS)
    weight = {name: require.real("weights", (weights or {}).get(name, 1.0), low=0.0, open_low=True) for name in schema}
    heaviest = max(weight.values())  # by which they are divided: sums of the largest floats are none
    tell, made = Progress(progress), dict[Any, tuple[Mechanism, float]]()

    def part(name: str, share: Number, reported: float) -> Part:
        column, people = schema[name], max(round(n * reported), 1)
        key = (column, goals[name], share, people)
        if key not in made:
            tell(f"{name}: eps = {rounded_up(share)}")
            try:
                made[key] = _mechanism(column, goals[name], share, people)
            except TooLittle as why:
                told = (
                    f"eps = {show(total)} is not allowed with strategy = {strategy!r}: {name!r} has a share of it, and "
                )
                short[float(share)] = f"{'' if share == total else told}{why}"
                raise
        mechanism, unit = made[key]
        return Part(name, column, goals[name], share, mechanism, unit, weight[name])

    k, tried = len(schema), list[tuple[float, str, tuple[Part, ...], int]]()
    short = dict[float, str]()  # why there is no mechanism for a share of eps, by its size

    def square(p: Part, share: float) -> float:
        return p.weight / heaviest * (p.errors(n, share) / width_of(p)) ** 2

    def attempt(label: str, parts: tuple[Part, ...], reported: int, units: int = k) -> None:
        mean = sum(square(p, reported / units) for p in parts) / sum(p.weight / heaviest for p in parts)
        tried.append((math.sqrt(mean), label, parts, reported))

    #: What is reported of what, by units of columns: label, how many units of all, which categories are answered together.
    shapes = list[tuple[str, int, int, list[list[str]]]]()
    if strategy in ("auto", "sample") and k > 1:
        shapes += [(f"sample {m} of {k}", m, k, []) for m in sorted({1, 2, math.isqrt(k), k // 2} & set(range(1, k)))]
    if strategy == "sample" and k == 1:
        shapes.append(("all", 1, 1, []))
    sizes = {name: len(c.names) for name, c in schema.items() if isinstance(c, Category)}
    categories = sorted(sizes, key=lambda name: sizes[name])
    if strategy == "joint" and len(categories) < 2:
        raise ValueError("strategy = 'joint' is not allowed here: it is for two categories or more")
    for size in TOGETHER if strategy in ("auto", "joint") else ():
        chunks = [categories[i : i + size] for i in range(0, len(categories), size)]
        if size > len(categories):
            break
        several = [chunk for chunk in chunks if len(chunk) > 1]
        units = len(schema) - sum(len(chunk) - 1 for chunk in several)
        shapes += [(f"joint {size}, {m} of {units}", m, units, several) for m in sorted({1, units})]

    def shaped(share: Number, m: int, units: int, chunks: list[list[str]]) -> tuple[Part, ...]:
        groups = [together({n: schema[n] for n in chunk}, share, weight, g) for g, chunk in enumerate(chunks, 1)]
        joint = {p.name: p for group in groups for p in group}
        ordered = tuple(joint.get(name) or part(name, share, m / units) for name in schema)
        if not all(groups):
            raise TooLittle("strategy = 'joint' is not allowed here: eps is too small for so many values")
        return ordered

    if error is not None:
        each = error if isinstance(error, Mapping) else dict.fromkeys(schema, error)
        if set(each) != set(schema):
            raise ValueError(
                "error is not allowed: it must be one number, or one for each column of the schema by name"
            )
        wanted = {name: require.real(f"error[{name!r}]", each[name], low=0.0, open_low=True) for name in schema}
        split = [partial(lambda share, name: (part(name, share, 1.0),), name=name) for name in schema]
        ways = [(m, units, partial(shaped, m=m, units=units, chunks=several)) for _, m, units, several in shapes]
        return Plan(*_cheapest(n, wanted, split if strategy in ("auto", "split") else [], ways), n, (), repeat)
    if strategy in ("auto", "split"):
        with suppress(TooLittle):  # of all this, and sampling may do
            even = [part(name, _share(total, Fraction(1, k)), 1.0) for name in schema]
            pulls = np.cbrt([square(p, 1.0) for p in even])
            fractions = [Fraction(int(f * GRAIN), GRAIN) for f in pulls / pulls.sum()]
            if all(fractions):
                with suppress(TooLittle):
                    shares = [_share(total, f) for f in fractions]
                    attempt("split", tuple(part(name, s, 1.0) for name, s in zip(schema, shares, strict=True)), k)
            attempt("split evenly", tuple(even), k)
    for label, m, units, several in shapes:
        with suppress(TooLittle):
            attempt(label, shaped(_share(total, Fraction(1, m)), m, units, several), m, units)
    if short and not tried:  # the largest share of it
        raise ValueError(short[max(short)])
    if not tried:
        raise ValueError("strategy = 'joint' is not allowed here: eps is too small for so many values")
    best = min(tried, key=lambda row: row[0])
    return Plan(best[2], best[3], total, n, tuple((label, error) for error, label, _, _ in tried), repeat)


def _cheapest(
    n: int, wanted: dict[str, float], split: Sequence[Callable[[Number], tuple[Part, ...]]],
    ways: Sequence[tuple[int, int, Callable[[Number], tuple[Part, ...]]]],
) -> tuple[tuple[Part, ...], int, float]:  # fmt: skip
    """(parts, how many units are reported, eps) of the least eps with which predicted errors are as wanted.

    **Arguments:** `split`: columns by themselves, each with an eps of its own; `ways`: (how many units are reported, of how many,
    the parts for an eps of each).
    """

    def least(
        make: Callable[[Number], tuple[Part, ...]], share: float, most: float
    ) -> tuple[Fraction, tuple[Part, ...]] | None:
        def made(eps: float) -> tuple[Part, ...]:
            return make(Fraction(eps) * (1 - Fraction(1, 2**50)))  # sums of which are below the float of the sum

        def enough(eps: float) -> bool:
            with suppress(TooLittle):
                return all(part.errors(n, share) <= wanted[part.name] for part in made(eps))
            return False

        eps = least_eps(enough, most)
        return None if eps is None else (Fraction(str(eps)), made(eps))

    best: tuple[Fraction, tuple[Part, ...], int] | None = None
    each = list[tuple[Fraction, tuple[Part, ...]]]()
    for name, make in zip(wanted, split, strict=False):
        found = least(make, 1.0, require.MAX_EPS)
        if found is None:  # and of fewer people even less
            raise ValueError(f"error[{name!r}] is not allowed with n = {n}: no eps up to {require.MAX_EPS:g} gives it")
        each.append(found)
    if each and sum(eps for eps, _ in each) <= require.MAX_EPS:
        best = sum((eps for eps, _ in each), Fraction(0)), tuple(part for _, (part,) in each), len(each)
    for m, units, make in ways:
        most = float(best[0] if best else require.MAX_EPS) / m
        if (found := least(make, m / units, most)) and (best is None or m * found[0] < best[0]):
            best = m * found[0], found[1], m
    if best is None:
        raise ValueError(f"error is not allowed with n = {n}: no eps up to {require.MAX_EPS:g} gives it")
    return best[1], best[2], float(best[0])


def _share(total: Number, fraction: Fraction) -> Number:
    """A part of the budget; exactly, where the total is rational, else a rational below it."""
    if fraction == 1:
        return total
    below = Fraction(math.nextafter(float(total), 0.0)) * (1 - Fraction(1, 2**50))
    return fraction * (below if isinstance(total, Log) else Fraction(total))


def _unit(part: Part, people: int) -> float:
    """The `unit` of a part that so many people report, from its mechanism. **Raises** `NotIdentified`."""
    mechanism: Any = part.mechanism
    if part.goal == "mean" and mechanism.check_unbiased().passed:
        return math.sqrt(mechanism.worst_case_loss("squared"))
    if part.goal == "distribution" and isinstance(mechanism, PiecewiseMechanism):  # as `_best` has it
        return _unit_error(replace(mechanism, domain=Interval(0, 1)), part.goal, people) * width_of(part)
    return _unit_error(mechanism, part.goal, people)


@lru_cache(maxsize=256)
def _unit_error(mechanism: Mechanism, goal: str, people: int) -> float:
    """`unit_error`, of distributions for evenly spread entries."""
    work.count({"mean": 5e5, "distribution": 5e4}.get(goal, 0.0))
    return unit_error(mechanism, goal, mechanism.domain, "uniform" if goal == "distribution" else None, n=people)


def _mechanism(column: Column, goal: str, eps: Number, people: int) -> tuple[Mechanism, float]:
    """(the best mechanism for the column that so many people report, its error times the square root of their number).

    **Raises** `TooLittle`.
    """
    domain = column.domain
    if isinstance(domain, OneHot):
        oracle = solve_frequency(eps, list(domain.names)).mechanism
        return oracle, unit_error(oracle, goal, domain)
    if goal == "mean":  # the best of all unbiased mechanisms, and so of all estimates that are averages
        if float(eps) < FAINTEST:
            told = f"eps = {rounded_up(eps)} is not allowed for goal = {goal!r}: it must be at least {FAINTEST:g}"
            raise TooLittle(told)
        found = solve_kernel(eps, unbiased=True, domain=domain, rtol=RTOL)
        return found.mechanism, math.sqrt(found.value)
    name, unit = _best(goal, eps, people if goal == "quantile" else 1)
    made = dict(_makers(domain, eps, goal))[name]()
    if goal == "answers":  # of floats that are far apart it is another one than on [0, 1]
        return made, unit_error(made, goal, domain)
    return made, unit * (1.0 if goal == "distribution" else domain.width)


def _makers(domain: Any, eps: Number, goal: str) -> list[tuple[str, Callable[[], Any]]]:
    return [(name, make) for name, _, make in candidates(domain, eps, goal) if name in CONTENDERS[goal]]


@lru_cache(maxsize=256)
def _best(goal: str, eps: Number, people: int) -> tuple[str, float]:
    """(name, unit error) of the best mechanism on [0, 1]: on other intervals the same one is, in their units."""
    errors = []
    for name, make in _makers(Interval(0, 1), eps, goal):
        with suppress(NotIdentified):
            errors.append((_unit_error(make(), goal, people), name))
    if not errors:
        raise TooLittle(
            f"eps = {rounded_up(eps)} is not allowed for goal = {goal!r}: the outputs of no mechanism tell enough"
        )
    error, name = min(errors)
    return name, error
