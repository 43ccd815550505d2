"""Figures of dp-accounting: by pessimistic and optimistic privacy loss distributions, and by Renyi.

The grid is finer than its default where that is affordable, which makes its figures better.
"""

import math
from functools import lru_cache
from typing import Any

import dp_accounting as dp
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant

from benchmarks.figures.workers.answering import Request, answer

ONE_STEP = 2e5  # approximate number of grid points
ALL_STEPS = 2e6
FAR = 10.5  # standard deviations, as in its own truncation


def rounded_up(request: Request, delta: float) -> float:
    """Epsilon by pessimistic distributions."""
    return by_distribution(request, delta, is_up=True)


def rounded_down(request: Request, delta: float) -> float:
    """Epsilon by optimistic distributions."""
    return by_distribution(request, delta, is_up=False)


def by_distribution(request: Request, delta: float, *, is_up: bool) -> float:
    """Epsilon by the distributions of all accesses together."""
    composed = composition(tuple(map(tuple, request["accesses"])), request["rough"], is_up)
    return float(composed.get_epsilon_for_delta(delta))


@lru_cache(1)
def composition(accesses: tuple[Any, ...], rough: float | None, is_up: bool) -> Any:  # noqa: FBT001  # Any: it ships no types
    """The composed distribution, computed once for all deltas."""
    widest = max(width(law, scale, rate) for law, scale, rate, _, _ in accesses)
    whole = 3 * rough if rough is not None else 1e3 * widest
    grid = max(widest / ONE_STEP, whole / ALL_STEPS)
    parts = [distribution(access, grid, is_up=is_up) for access in accesses]
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return total


def width(law: str, scale: float, rate: float) -> float:
    """The approximate spread of the privacy losses of one access."""
    if law != "gaussian":
        return 2 / scale
    highest = (FAR * scale + 0.5) / scale**2
    return math.log1p(rate * math.expm1(min(highest, 700))) if rate < 1 else 2 * highest


def distribution(access: tuple[Any, ...], grid: float, *, is_up: bool) -> Any:  # Any: as above
    """The distribution of ``count`` accesses of one kind."""
    law, scale, rate, count, sensitivity = access
    same: dict[str, Any] = {
        "pessimistic_estimate": is_up,
        "value_discretization_interval": grid,
        "use_connect_dots": is_up,
    }
    match law:
        case "gaussian" if rate == 1:
            return pld.from_gaussian_mechanism(scale / math.sqrt(count), **same)
        case "gaussian":
            one = pld.from_gaussian_mechanism(scale, sampling_prob=rate, **same)
        case "laplace":
            one = pld.from_laplace_mechanism(scale, **same)
        case _:
            one = pld.from_discrete_laplace_mechanism(1 / scale, sensitivity, **same)
    return one.self_compose(count) if count > 1 else one


def by_renyi(request: Request, delta: float) -> float:
    """Epsilon by its Renyi accountant."""
    accountant = RdpAccountant()
    for law, scale, rate, count, sensitivity in request["accesses"]:
        accountant.compose(event(law, scale, rate, sensitivity), count)
    return float(accountant.get_epsilon(delta))


def event(law: str, scale: float, rate: float, sensitivity: int) -> Any:  # Any: it ships no types
    """The access as an event of dp-accounting."""
    match law:
        case "gaussian":
            noise = dp.GaussianDpEvent(scale)
            return dp.PoissonSampledDpEvent(rate, noise) if rate < 1 else noise
        case "laplace":
            return dp.LaplaceDpEvent(scale)
        case _:
            return dp_event.DiscreteLaplaceDpEvent(1 / scale, sensitivity)


answer({"renyi": by_renyi, "upper": rounded_up, "lower": rounded_down})
