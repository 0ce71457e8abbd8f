"""What other libraries do on the problems and data of these benchmarks, run by a Python that has them:

    python -m venv peers && peers/bin/pip install -r benchmarks/requirements.txt
    peers/bin/python benchmarks/peers.py                        # JSON for `benchmarks/page.py --peers FILE or peers/bin/python`
    peers/bin/python benchmarks/peers.py --part frequencies     # for `benchmarks/surveys.py --part peers`, too

Needs numpy besides, and nothing of optdp. Errors of frequencies are the mean of the summed squared errors, with each library's
own default post-processing; seconds are CPU seconds (of all clients, of one call), after a call that loads and compiles.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

PEOPLE, RUNS = 10_000, 5
#: (categories, eps) of one attribute; the categories of several, and their total eps.
ONE = [(10, 1.0), (10, 3.0), (200, 1.0), (200, 3.0)]
MANY, TOTAL = (2, 5, 10, 20, 50), 3.0


def zipf(d: int) -> np.ndarray:
    """Probabilities in proportion to 1/rank."""
    return 1 / np.arange(1, d + 1) / (1 / np.arange(1, d + 1)).sum()


def people(run: int, *sizes: int) -> np.ndarray:
    """A row of categories for each person."""
    rng = np.random.default_rng([run, *sizes])
    return np.stack([rng.choice(d, PEOPLE, p=zipf(d)) for d in sizes], axis=1)


def shares(column: np.ndarray, d: int) -> np.ndarray:
    """The true frequencies."""
    return np.bincount(column, minlength=d) / column.size


def project(values: np.ndarray) -> np.ndarray:
    """The nearest probabilities that sum to 1."""
    ordered = np.sort(values)[::-1]
    shift = (np.cumsum(ordered) - 1) / np.arange(1, values.size + 1)
    return np.maximum(values - shift[np.flatnonzero(ordered > shift)[-1]], 0.0)


def measured(client: Callable[[Any], Any], server: Callable[[list[Any]], Any], rows: list[Any]) -> tuple[float, Any]:
    """(CPU seconds of the clients, what the server estimates)."""
    client(rows[0])
    began = time.process_time()
    sent = [client(row) for row in rows]
    return time.process_time() - began, server(sent)


def one_attribute(d: int, eps: float) -> Iterator[tuple[str, Callable[[Any], Any], Callable[[list[Any]], np.ndarray]]]:
    """(name, client, server) of each oracle."""
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    theirs = "multi-freq-ldpy"
    yield f"{theirs} GRR", partial(GRR.GRR_Client, k=d, epsilon=eps), partial(GRR.GRR_Aggregator_MI, k=d, epsilon=eps)
    yield f"{theirs} OUE", partial(UE.UE_Client, k=d, epsilon=eps), partial(UE.UE_Aggregator_MI, epsilon=eps)
    yield f"{theirs} OLH", partial(LH.LH_Client, k=d, epsilon=eps), partial(LH.LH_Aggregator_MI, k=d, epsilon=eps)
    yield f"{theirs} SS", partial(SS.SS_Client, k=d, epsilon=eps), partial(SS.SS_Aggregator_MI, k=d, epsilon=eps)

    def pure(client: Any, server: Any) -> tuple[Callable[[Any], Any], Callable[[list[Any]], np.ndarray]]:
        def told(sent: list[Any]) -> np.ndarray:
            server.reset()
            server.aggregate_all(sent)
            return project(np.asarray(server.estimate_all(range(d), suppress_warnings=True)) / len(sent))

        return client.privatise, told

    index = {"index_mapper": lambda x: x}
    yield "pure-ldp DE", *pure(DEClient(eps, d, **index), DEServer(eps, d, **index))
    yield "pure-ldp OUE", *pure(UEClient(eps, d, use_oue=True, **index), UEServer(eps, d, use_oue=True, **index))
    yield "pure-ldp OLH", *pure(LHClient(eps, d, use_olh=True, **index), LHServer(eps, d, use_olh=True, **index))
    server = HadamardResponseServer(eps, d, **index)
    yield "pure-ldp HR", *pure(HadamardResponseClient(eps, d, server.get_hash_funcs(), **index), server)


def several(
    sizes: tuple[int, ...], eps: float
) -> Iterator[tuple[str, Callable[[Any], Any], Callable[[list[Any]], Any]]]:
    """The same for several attributes."""
    from multi_freq_ldpy.mdim_freq_est import RSpFD_solution as fake
    from multi_freq_ldpy.mdim_freq_est import SMP_solution as sampled
    from multi_freq_ldpy.mdim_freq_est import SPL_solution as split

    k = len(sizes)
    given = {"lst_k": list(sizes), "d": k, "epsilon": eps}
    yield (
        "multi-freq-ldpy SPL[ADP]",
        partial(split.SPL_ADP_Client, **given),
        partial(split.SPL_ADP_Aggregator_MI, **given),
    )
    yield (
        "multi-freq-ldpy SMP[ADP]", partial(sampled.SMP_ADP_Client, **given), partial(sampled.SMP_ADP_Aggregator_MI, **given),
    )  # fmt: skip
    yield (
        "multi-freq-ldpy SMP[SS]", partial(sampled.SMP_SS_Client, **given), partial(sampled.SMP_SS_Aggregator_MI, **given),
    )  # fmt: skip
    yield (
        "multi-freq-ldpy RS+FD[ADP]", partial(fake.RSpFD_ADP_Client, **given),
        partial(fake.RSpFD_ADP_Aggregator_MI, **given),
    )  # fmt: skip


def frequencies() -> dict[str, list[list[Any]]]:
    """For each task rows [name, mean error, clients per second], or [name, what went wrong]."""
    told: dict[str, list[list[Any]]] = {}
    for sizes, eps in [*(((d,), eps) for d, eps in ONE), (MANY, TOTAL)]:
        rows = told[f"{'x'.join(map(str, sizes))} {eps}"] = []
        for name, client, server in one_attribute(sizes[0], eps) if len(sizes) == 1 else several(sizes, eps):
            errors, seconds = [], 0.0
            try:
                for run in range(RUNS):
                    np.random.seed(run)  # noqa: NPY002
                    table = people(run, *sizes)
                    spent, found = measured(client, server, table[:, 0].tolist() if len(sizes) == 1 else list(table))
                    found = [found] if len(sizes) == 1 else found
                    truth = [shares(table[:, j], d) for j, d in enumerate(sizes)]
                    errors.append(
                        sum(
                            float(((np.asarray(f, dtype=float) - t) ** 2).sum())
                            for f, t in zip(found, truth, strict=True)
                        )
                    )
                    seconds += spent
                rows.append([name, float(np.mean(errors)), RUNS * PEOPLE / seconds])
            except Exception as error:  # what their code raises is told
                rows.append([name, f"{type(error).__name__}: {error}"])
    return told


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Result and CPU seconds of one call."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def least_loss(prior: np.ndarray, far: np.ndarray, loss: np.ndarray) -> list[float]:
    """[average loss of the mechanism that qif finds by its own linear program, CPU seconds]; `far`: eps times distances."""
    import qif.mechanism

    find = qif.mechanism.d_privacy.min_loss_given_d
    channel, seconds = timed(lambda: find(prior, len(prior), lambda i, j: far[i, j], lambda i, j: loss[i, j]))
    return [float(prior @ (np.array(channel) * loss).sum(axis=1)), seconds]


def alphabet(d: int, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(prior, eps times distances, losses): d numbers in order, |y - x|, under a prior that was drawn."""
    x = np.linspace(0, 1, d)
    return np.random.default_rng(1).dirichlet(np.ones(d)), eps * (1 - np.eye(d)), abs(x[:, None] - x)


def places(n: int, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for points of the unit square: eps for each unit of distance, loss the distance."""
    points = np.random.default_rng(n).random((n, 2))
    far = np.linalg.norm(points[:, None] - points, axis=2)
    return np.random.default_rng(n + 1).dirichlet(np.full(n, 0.5)), eps * far, far


#: (what it is, how it is made, size, eps) of the linear programs that qif solves too.
LINEAR = [("LDP", alphabet, d, 1.0) for d in (5, 10, 20)] + [("metric", places, n, 2.0) for n in (9, 16, 25)]


def linear() -> list[list[float]]:
    """[value, seconds] of each of LINEAR by qif."""
    least_loss(*alphabet(3, 1.0))
    return [least_loss(*make(size, eps)) for _, make, size, eps in LINEAR]


#: Answers drawn at once where speed is measured.
ANSWERS = 200_000


def noise() -> dict[str, list[float]]:
    """OpenDP's additive noise and randomised response: name -> [mean |Y - x|, its standard error, answers per second]."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    floats = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    whole = dp.vector_domain(dp.atom_domain(T=int))
    made = {
        "Laplace": (dp.m.make_laplace(floats, dp.l1_distance(T=float), scale=1.0), 0.5),
        "discrete Laplace": (dp.m.make_laplace(whole, dp.l1_distance(T=int), scale=1.0), 5),
        "Gaussian": (dp.m.make_gaussian(floats, dp.l2_distance(T=float), scale=gaussian_scale(1.0, 1e-2)), 0.5),
    }
    told = {}
    for name, (mechanism, x) in made.items():
        mechanism([x] * 100)
        inputs = [x] * ANSWERS
        y, seconds = timed(partial(mechanism, inputs))
        error = abs(np.array(y) - x)
        told[name] = [float(error.mean()), float(error.std() / math.sqrt(ANSWERS)), ANSWERS / seconds]
    response = dp.m.make_randomized_response(list(range(10)), prob=math.e / (math.e + 9))  # eps = 1
    y, seconds = timed(lambda: [response(3) for _ in range(ANSWERS // 10)])
    wrong = np.array(y) != 3
    told["randomised response, 10 categories"] = [
        float(wrong.mean()), float(wrong.std() / math.sqrt(wrong.size)), wrong.size / seconds,
    ]  # fmt: skip
    return told


def gaussian_scale(eps: float, delta: float) -> float:
    """The least standard deviation of Gaussian noise that is (eps, delta)-private for sensitivity 1 (Balle and Wang 2018)."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def excess(s: float) -> float:
        return norm.cdf(0.5 / s - eps * s) - math.exp(eps) * norm.cdf(-0.5 / s - eps * s) - delta

    return brentq(excess, 0.05, 100.0)


#: The total budget of RELEASES releases.
BUDGET, RELEASES = (1.0, 1e-6), (1, 10, 100)


def accounting() -> dict[str, list[list[float]]]:
    """[standard deviation of each release's Gaussian noise, CPU seconds] for each of RELEASES by dp-accounting."""
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent, calibrate_dp_mechanism
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    def found(accountant: Any, k: int) -> float:
        return calibrate_dp_mechanism(accountant, lambda s: SelfComposedDpEvent(GaussianDpEvent(s), k), *BUDGET)

    kinds = {"dp-accounting PLD": PLDAccountant, "dp-accounting RDP": RdpAccountant}
    return {name: [list(timed(partial(found, kind, k))) for k in RELEASES] for name, kind in kinds.items()}


def federated() -> dict[str, Any]:
    """The same by pfl's accountants, and whether PrivUnit occurs in its files."""
    import pfl
    from pfl.privacy.privacy_accountant import PLDPrivacyAccountant, PRVPrivacyAccountant

    folder = Path(pfl.__file__).parent
    has = any("privunit" in path.read_text(encoding="utf-8").lower() for path in folder.rglob("*.py"))
    told: dict[str, Any] = {"PrivUnit": has}
    kinds = {"pfl PLD": PLDPrivacyAccountant, "pfl PRV": PRVPrivacyAccountant}
    for name, kind in kinds.items():
        rows = told[name] = []
        for k in RELEASES:
            given = {"num_compositions": k, "sampling_probability": 1.0, "mechanism": "gaussian"}
            try:
                made, seconds = timed(partial(lambda kind, given: kind(
                    **given, epsilon=BUDGET[0], delta=BUDGET[1]).cohort_noise_parameter, kind, given))  # fmt: skip
                rows.append([float(made), seconds])
            except Exception as error:  # what their code raises is told
                rows.append([f"{type(error).__name__}: {error}"[:100]])
    return told


#: Part -> the packages that it needs, and what runs it.
PARTS: dict[str, tuple[tuple[str, ...], Callable[[], Any]]] = {
    "frequencies": (("multi-freq-ldpy", "pure-ldp"), frequencies), "qif": (("qif",), linear), "opendp": (("opendp",), noise),
    "dp-accounting": (("dp-accounting",), accounting), "pfl": (("pfl",), federated),
}  # fmt: skip


def version(package: str) -> str | None:
    """That of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> None:
    """Print JSON: what each part found (or what went wrong), the versions of all packages, and the Python."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=tuple(PARTS), default=tuple(PARTS), help="only these")
    args = parser.parse_args()
    versions = {package: version(package) for packages, _ in PARTS.values() for package in packages}
    told: dict[str, Any] = {"versions": versions, "python": platform.python_version()}
    for part in args.part:
        packages, run = PARTS[part]
        if all(versions[package] for package in packages):
            began = time.process_time()
            try:
                told[part] = run()
            except Exception as error:  # a library that fails is shown as such, and does not stop the others
                told[part] = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
            print(f"{part}: {time.process_time() - began:.1f} CPU s", file=sys.stderr, flush=True)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
