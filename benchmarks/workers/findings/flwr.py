"""One round of Flower, whose server clips and adds noise, on two neighbouring sets of clients.

One client of both sets differs: in the first set its update is near zero, as if it were absent.
Flower states a noise multiplier. The audit compares with the delta that Gaussian noise of this
multiplier has at epsilon 1.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.common import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAvg,
)
from flwr.supercore.privacy_accounting import (
    NeighboringRelation,
    PrivacyConfig,
    SamplingMethod,
)
from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant
from flwr.supercore.task_identity import TaskIdentity

from benchmarks.draws import Mechanism, serve_draws

EPSILON, NOISE, CLIP, CLIENTS = 1.0, 1.1, 1.0, 12
GRID = 2**-20  # the low bits of floats are another fault
ABSENT = 1e-9  # not 0: see the case zero-update
MODEL = ArrayRecord({"weight": Array(np.zeros(1))})

# Flower makes messages only in a process that has these
TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1

Client = tuple[float, float]  # the update, and the number of examples that the client names


def normal(value: float) -> float:
    """The distribution function of the standard normal law."""
    return math.erfc(-value / math.sqrt(2)) / 2


DELTA = normal(0.5 / NOISE - EPSILON * NOISE) - math.exp(EPSILON) * normal(
    -0.5 / NOISE - EPSILON * NOISE
)


def accountant() -> RdpAccountant:
    """Flower's accountant for clients that are not sampled."""
    return RdpAccountant(
        PrivacyConfig(
            target_delta=1e-5,
            population_size=CLIENTS,
            neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
            sampling_method=SamplingMethod.NO_AMPLIFICATION,
        )
    )


def replies(clients: list[Client]) -> list[Message]:
    """A message of each client."""
    return [
        Message(
            RecordDict(
                {
                    "arrays": ArrayRecord({"weight": Array(np.array([update]))}),
                    "metrics": MetricRecord({"num-examples": examples}),
                }
            ),
            dst_node_id=1,
            message_type="train",
        )
        for update, examples in clients
    ]


def round_of(make: Callable[[], Any], *last: Client) -> Mechanism:
    """The new weight, and the clipping norm for the next round; or the error."""

    def draw(place: int) -> Any:
        strategy = make()
        strategy.current_arrays = MODEL
        if getattr(strategy, "accountant", None) is not None:
            strategy._prepare_accounting(1, [None] * CLIENTS)  # noqa: SLF001  # asks no clients
        clients = [(ABSENT, 1.0)] * (CLIENTS - 1) + [last[place]]
        try:
            arrays, _ = strategy.aggregate_train(1, replies(clients))
        except ZeroDivisionError as error:
            return str(error)
        weight = arrays.to_numpy_ndarrays()[0][0]
        return [float(np.round(each / GRID) * GRID) for each in (weight, strategy.clipping_norm)]

    return Mechanism(draw, EPSILON, DELTA)


def fixed() -> DifferentialPrivacyServerSideFixedClipping:
    """Clips to a fixed norm, without an accountant, which is the default."""
    return DifferentialPrivacyServerSideFixedClipping(FedAvg(), NOISE, CLIP, CLIENTS)


def accounted() -> DifferentialPrivacyServerSideFixedClipping:
    """The same with an accountant, which refuses unequal weights."""
    return DifferentialPrivacyServerSideFixedClipping(
        FedAvg(), NOISE, CLIP, CLIENTS, accountant=accountant()
    )


def adaptive() -> DifferentialPrivacyServerSideAdaptiveClipping:
    """Clips to a norm that follows a noisy count of clipped updates."""
    return DifferentialPrivacyServerSideAdaptiveClipping(
        FedAvg(), NOISE, CLIENTS, initial_clipping_norm=CLIP
    )


NEAR_ZERO, WHOLE = (ABSENT, 1.0), (1.5 * CLIP, 1.0)

serve_draws(
    {
        "client-weight": round_of(fixed, NEAR_ZERO, (1.5 * CLIP, 1e6)),
        "zero-update": round_of(accounted, NEAR_ZERO, (0.0, 1.0)),
        "NaN-update": round_of(accounted, NEAR_ZERO, (float("nan"), 1.0)),
        "adaptive-count": round_of(adaptive, NEAR_ZERO, WHOLE),
        "equal-weights": round_of(accounted, NEAR_ZERO, WHOLE),
    }
)
