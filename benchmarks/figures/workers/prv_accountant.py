"""Figures of prv-accountant: its lower bound, estimate and upper bound."""

from typing import Any

from prv_accountant import (
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
)

from benchmarks.figures.workers.answering import Asked, answer

USUAL_ERROR = 0.1  # by its documentation, and a thousandth of delta


def bracket(asked: Asked, delta: float) -> list[float]:
    """The three together; closer where epsilon is small."""
    rough = asked["rough"]
    counts = [count for _, _, _, count, _ in asked["accesses"]]
    accountant = PRVAccountant(
        [variable(law, scale, rate) for law, scale, rate, _, _ in asked["accesses"]],
        max_self_compositions=counts,
        eps_error=USUAL_ERROR if rough is None else min(USUAL_ERROR, rough / 10),
        delta_error=delta / 1000,
    )
    return [float(number) for number in accountant.compute_epsilon(delta, counts)]


def variable(law: str, scale: float, rate: float) -> Any:  # Any: it ships no types
    """The access in its words."""
    match law:
        case "gaussian" if rate == 1:
            return GaussianMechanism(scale)
        case "gaussian":
            return PoissonSubsampledGaussianMechanism(rate, scale)
        case "laplace":
            return LaplaceMechanism(1 / scale)
        case _:
            raise NotImplementedError(law)


answer({"bracket": bracket})
