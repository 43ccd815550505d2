"""One job for a worker: a question with its price, and who asks it."""

import json
from dataclasses import asdict, dataclass
from decimal import Decimal
from enum import Enum

from discreet import errors

SUGGEST_COLUMNS, SUGGEST_ROWS = "SUGGEST", "SUGGEST ROWS"  # in place of questions
_NUMBERS = ("epsilon", "delta", "confidence", "within")
_LATER = ("within", "group_size", "column", "columns")


class Task(Enum):
    """A worker's task. A look reads the schema of a source, and the first rows of texts; the last
    four read rows and are charged."""

    LOOK = "look"
    FORECAST = "forecast"
    EXPLAIN = "explain"
    ASK = "ask"
    DIAGNOSE = "diagnose"
    SUGGEST = "suggest"
    NULLS = "nulls"

    @property
    def needs_source(self) -> bool:
        """Whether the task looks at the source of the rows."""
        return self.is_paid or self is Task.LOOK

    @property
    def is_paid(self) -> bool:
        """Whether the task reads rows."""
        return self in (Task.ASK, Task.DIAGNOSE, Task.SUGGEST, Task.NULLS)


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A question to a table. ``by`` comes from the caller's token, never from the question.

    A forecast may ask for the least epsilon by which each error is ``within`` this number, in
    groups of ``group_size`` rows, in place of giving an epsilon. A check of a ``column`` has no
    text of SQL, nor have suggestions, which are for some ``columns`` only where these are given.
    """

    task: Task
    table: str
    sql: str
    epsilon: Decimal
    delta: Decimal
    confidence: Decimal
    noise: str | None
    by: str
    request: str | None
    within: Decimal | None = None
    group_size: int | None = None
    column: str | None = None
    columns: tuple[str, ...] | None = None

    def to_json(self) -> bytes:
        """The job as JSON, numbers as their exact decimals."""
        facts = {**asdict(self), "task": self.task.value}
        numbers = {name: str(getattr(self, name)) for name in _NUMBERS if facts[name] is not None}
        # members that came later stay out of the text of a question without them, whose digest
        # is stored
        later = {name for name in _LATER if facts[name] is None}
        return json.dumps({k: v for k, v in (facts | numbers).items() if k not in later}).encode()

    @staticmethod
    def from_json(text: bytes) -> "WorkOrder":
        """The job that `to_json` wrote."""
        facts = json.loads(text)
        numbers = {name: Decimal(facts[name]) for name in _NUMBERS if name in facts}
        names = facts.get("columns")
        columns = None if names is None else tuple(names)
        return WorkOrder(**{**facts, **numbers, "task": Task(facts["task"]), "columns": columns})


def public_name(refusal: errors.DiscreetError) -> str:
    """The name of the first class of an error that `discreet.errors` has, to send it by name."""
    names = (one.__name__ for one in type(refusal).__mro__)
    return next(name for name in names if hasattr(errors, name))
