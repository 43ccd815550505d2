"""One job for a worker: a question with its price, and who asks it."""

import json
from dataclasses import asdict, dataclass
from decimal import Decimal
from enum import Enum

from discreet import errors


class Task(Enum):
    """A question's task; the last two read rows and are charged."""

    FORECAST = "forecast"
    EXPLAIN = "explain"
    ASK = "ask"
    DIAGNOSE = "diagnose"

    @property
    def is_paid(self) -> bool:
        """Whether the task reads rows."""
        return self in (Task.ASK, Task.DIAGNOSE)


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A question to a table. ``by`` comes from the caller's token, never from the question."""

    task: Task
    table: str
    sql: str
    epsilon: Decimal
    delta: Decimal
    confidence: Decimal
    noise: str | None
    by: str
    request: str | None

    def to_json(self) -> bytes:
        """The job as JSON, numbers as their exact decimals."""
        numbers = {name: str(getattr(self, name)) for name in ("epsilon", "delta", "confidence")}
        return json.dumps({**asdict(self), "task": self.task.value, **numbers}).encode()

    @staticmethod
    def from_json(text: bytes) -> "WorkOrder":
        """The job that `to_json` wrote."""
        facts = json.loads(text)
        numbers = {name: Decimal(facts[name]) for name in ("epsilon", "delta", "confidence")}
        return WorkOrder(**{**facts, **numbers, "task": Task(facts["task"])})


def public_name(refusal: errors.DiscreetError) -> str:
    """The name of the first class of an error that `discreet.errors` has, to send it by name."""
    names = (one.__name__ for one in type(refusal).__mro__)
    return next(name for name in names if hasattr(errors, name))
