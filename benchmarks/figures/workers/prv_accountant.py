"""Figures of prv-accountant: its lower bound, estimate and upper bound."""

from typing import Any

from prv_accountant import (
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
)

from benchmarks.figures.workers.answering import Request, answer

USUAL_ERROR = 0.1  # from its documentation, as is a thousandth of delta


def bracket(request: Request, delta: float) -> list[float]:
    """The lower bound, estimate and upper bound; tighter where epsilon is small."""
    rough = request["rough"]
    counts = [count for _, _, _, count, _ in request["accesses"]]
    accountant = PRVAccountant(
        [variable(law, scale, rate) for law, scale, rate, _, _ in request["accesses"]],
        max_self_compositions=counts,
        eps_error=USUAL_ERROR if rough is None else min(USUAL_ERROR, rough / 10),
        delta_error=delta / 1000,
    )
    return [float(number) for number in accountant.compute_epsilon(delta, counts)]


def variable(law: str, scale: float, rate: float) -> Any:  # Any: it ships no types
    """The access as a mechanism of prv-accountant."""
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
