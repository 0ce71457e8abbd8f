"""What every mechanism can do, and how one is saved and loaded."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from optdp import files
from optdp.problem.domains import Circle, Interval
from optdp.problem.losses import Loss, Squared, as_loss


class Mechanism(ABC):
    """A randomised map from a domain to outputs: a kernel K(y|x) that can be sampled, queried, plotted and saved.

    Arrays: every method that takes `x` (and `y`) is vectorised with numpy broadcasting and keeps the shape.
    """

    domain: Interval | Circle
    _registry: ClassVar[dict[str, type[Mechanism]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        known = Mechanism._registry.get(cls.__name__)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(
                f"there is a mechanism {cls.__name__} in {known.__module__} already: saved files name the class"
            )
        Mechanism._registry[cls.__name__] = cls

    @abstractmethod
    def randomize(self, x: Any, rng: Any = None) -> np.ndarray:
        """One private output for each entry of `x`, in the shape of `x`.

        **Arguments:** `x`: inputs in the domain; `rng`: a `numpy.random.Generator`, a seed, or None for fresh entropy.
        """

    @abstractmethod
    def density(self, y: Any, x: Any) -> np.ndarray:
        """Density of the output's continuous part at `y` for input `x`, per unit of y; 0 outside the support."""

    def probability(self, y: Any, x: Any) -> np.ndarray:
        """Probability of the output being exactly `y` for input `x`: nonzero only at atoms."""
        return np.zeros(np.broadcast(y, x).shape)

    @abstractmethod
    def support(self, x: Any = None) -> tuple[float, float]:
        """(lowest, highest) output that occurs."""

    @abstractmethod
    def mean(self, x: Any) -> np.ndarray:
        """E[Y | x]. On a circle: the mean direction."""

    @abstractmethod
    def expected_loss(self, x: Any, loss: Any = "abs") -> np.ndarray:
        """E[L(distance(x, Y)) | x] for a loss as in `optdp.problem.losses.as_loss`: closed form or exact integration."""

    @abstractmethod
    def privacy(self) -> float:
        """The smallest epsilon for which the mechanism is eps-LDP, rounded up."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON form; `Mechanism.from_dict` gives back an equal mechanism, bit for bit."""

    @classmethod
    @abstractmethod
    def _from_dict(cls, data: dict[str, Any]) -> Mechanism: ...

    def variance(self, x: Any) -> np.ndarray:
        """Var[Y | x]. On a circle: the mean squared distance from the mean direction."""
        bias = 0.0 if isinstance(self.domain, Circle) else self.mean(x) - self.domain.check(x)
        return self.expected_loss(x, Squared) - np.square(bias)

    def worst_case_loss(self, loss: Any = "abs") -> float:
        """The largest expected loss over all inputs."""
        return float(self.expected_loss(self.worst_input(loss), loss))

    def worst_input(self, loss: Any = "abs") -> float:
        """An input at which the expected loss is largest: grid search between kinks, then golden-section refinement."""
        from scipy.optimize import minimize_scalar

        law = self._loss(loss)
        grid = np.unique(np.concatenate([np.linspace(a, b, 257) for a, b in self._smooth_pieces()]))
        losses = self.expected_loss(grid, law)
        best = int(np.argmax(losses))
        around = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
        found = minimize_scalar(lambda x: -float(self.expected_loss(x, law)), bounds=around, method="bounded",
                                options={"xatol": 1e-12 * self.domain.width})  # fmt: skip
        return float(found.x) if -found.fun > losses[best] else float(grid[best])

    def average_loss(self, loss: Any = "abs") -> float:
        """The expected loss averaged over inputs spread uniformly over the domain (Gauss-Legendre between kinks)."""
        law = self._loss(loss)
        nodes, weights = np.polynomial.legendre.leggauss(48)
        total = 0.0
        for a, b in self._smooth_pieces():
            total += (b - a) / 2 * float(weights @ self.expected_loss((a + b) / 2 + (b - a) / 2 * nodes, law))
        return total / self.domain.width

    def plot(self, ax: Any = None, inputs: Any = None) -> Any:
        """Draw the density for a few inputs (atoms as dots). Returns the matplotlib axes."""
        from optdp.report.plots import plot_densities

        return plot_densities(self, ax=ax, inputs=inputs)

    def _kinks(self) -> list[float]:
        """Inputs where the expected loss, as a function of x, is not smooth."""
        return []

    def _smooth_pieces(self) -> list[tuple[float, float]]:
        a, b = self.domain.lower, self.domain.upper
        cuts = [a, *sorted(k for k in self._kinks() if a < k < b), b]
        return list(pairwise(cuts))

    def _loss(self, loss: Any) -> Loss:
        return as_loss(loss, self.domain.exact_reach)

    def save(self, path: str | Path) -> None:
        """Write the mechanism to a JSON file, whole or not at all."""
        files.write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @staticmethod
    def load(path: str | Path) -> Mechanism:
        """Read a mechanism that `save` wrote."""
        return Mechanism.from_dict(json.loads(Path(path).read_text()))

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Mechanism:
        """The inverse of `to_dict`, for any mechanism. **Raises** ValueError if it is not the form of a known mechanism."""

        kind = data.get("mechanism") if isinstance(data, dict) else None
        if kind not in Mechanism._registry:
            known = ", ".join(sorted(Mechanism._registry))
            raise ValueError(f"mechanism = {kind!r} is not allowed: it must be one of {known}")
        try:
            return Mechanism._registry[kind]._from_dict(data)
        except KeyError as missing:
            raise ValueError(f"the saved {kind} is not complete: it has no entry {missing}") from None


def as_rng(rng: Any) -> np.random.Generator:
    """A numpy Generator from a Generator, a seed or None (fresh entropy from the operating system)."""
    return np.random.default_rng(rng)
