"""Computes each intermediate value once, in a column of its own.

An engine computes an expression as often as it is written. So a value that is used twice becomes a
column of an inner select, and what is computed from it stands in the next one. The text for the
engine grows in proportion to the question.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ibis.expr.types as ir


@dataclass(frozen=True, slots=True)
class StagedValue:
    """An expression over the columns that exist from a stage on. ``uses`` names these columns."""

    stage: int
    of: Callable[[ir.Table], Any]  # Any: Ibis expressions
    uses: frozenset[str] = frozenset()


def constant_term(
    value: Any,
) -> StagedValue:  # Any: an Ibis literal, or a Python value for `combined`
    """A term without columns."""
    return StagedValue(0, lambda _: value)


def combined(function: Callable[..., Any], *terms: StagedValue) -> StagedValue:
    """The function of the terms' expressions."""
    return StagedValue(
        max((term.stage for term in terms), default=0),
        lambda table: function(*(term.of(table) for term in terms)),
        frozenset().union(*(term.uses for term in terms)),
    )


@dataclass(slots=True)
class Stages:
    """The columns that each stage adds, by their names."""

    columns: list[dict[str, StagedValue]] = field(default_factory=list)
    count: int = 0

    def keep(self, term: StagedValue) -> StagedValue:
        """The term as a column of its own, which the next stage can use any number of times."""
        name = f"value{self.count}"
        self.count += 1
        self.columns += [{} for _ in range(term.stage + 1 - len(self.columns))]
        self.columns[term.stage][name] = term
        return StagedValue(term.stage + 1, lambda table: table[name], frozenset({name}))

    def select(
        self, table: ir.Table, terms: Mapping[str, StagedValue], where: StagedValue | None
    ) -> ir.Table:
        """The terms as columns, for the rows in which ``where`` is true."""
        outputs = [*terms.values(), *([] if where is None else [where])]
        last = max((term.stage for term in outputs), default=0)
        live = set().union(*(term.uses for term in outputs))
        selects: list[dict[str, StagedValue | None]] = []  # None: a column that is there already
        for added in reversed(self.columns[:last]):
            made = {name: term for name, term in added.items() if name in live}
            carried = dict.fromkeys(sorted(live - made.keys()))
            selects.append({**carried, **made})
            live = set(carried).union(*(term.uses for term in made.values()))
        for columns in reversed(selects):
            table = table.select(
                **{n: table[n] if term is None else term.of(table) for n, term in columns.items()}
            )
        if where is not None:
            table = table.filter(where.of(table))
        return table.select(**{name: term.of(table) for name, term in terms.items()})
