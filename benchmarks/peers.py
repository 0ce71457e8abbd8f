"""What other libraries for frequencies do on the data of `benchmarks/statistics.py`, run by a Python that has them:

    python -m venv peers && peers/bin/pip install multi-freq-ldpy pure-ldp "xxhash<4" scikit-learn statsmodels
    peers/bin/python benchmarks/peers.py          # JSON for `benchmarks/statistics.py --part peers --peers peers/bin/python`

Needs numpy besides, and nothing of optdp. Errors are the mean of the summed squared errors of the frequencies, with each
library's own default post-processing; seconds are CPU seconds of all clients (calls are compiled before).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
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


def main() -> None:
    """Print JSON: for each task rows [name, mean error, clients per second], or [name, what went wrong]."""
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
    print(json.dumps(told))


if __name__ == "__main__":
    main()
