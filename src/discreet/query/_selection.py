"""Rows of a table, filtered and grouped, and the questions and statistics of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Never, TypeVar

from discreet import _checks, _html
from discreet._exact import Number
from discreet.errors import InvalidArgument, QueryRefused
from discreet.mechanisms import Bounded, IntegerArray, Release, Rows
from discreet.mechanisms.statistics import Moments, Regression
from discreet.query._answers._answer import Answer
from discreet.query._expressions._aggregate_functions import aggregate, corr, count, mean, quantile
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expression_text import condition_text, scalar_text
from discreet.query._expressions._frame import (
    ColumnExpression,
    ConditionExpression,
    UnnamedAggregate,
    all_of,
    col,
    condition_of,
    key_of,
)
from discreet.query._expressions._levels import level_names
from discreet.query._expressions._query import GroupKey, Query
from discreet.query._questions._frame_after import with_outputs
from discreet.query._questions._question import DeclaredTable, Question
from discreet.query._statistics._contingency import (
    Contingency,
    expected_contingency,
    released_contingency,
)
from discreet.query._statistics._correlations import pair_names
from discreet.query._statistics._hand_over import TableRows
from discreet.query._statistics._histogram import (
    USUAL_BINS,
    Bins,
    bin_key,
    check_names,
    edges_of,
    most_bins,
    with_edges,
)
from discreet.query._statistics._most_frequent import (
    Modes,
    TopGroups,
    expected_modes,
    expected_top,
    released_modes,
    top_groups,
)
from discreet.query._statistics._statistic import Asking, Offer, Statistic, StatisticForecast
from discreet.query._statistics._statistics import (
    expected_bounds,
    expected_moments,
    expected_regression,
    released_bounds,
    released_moments,
    released_regression,
)

Found = TypeVar("Found")
Conditions = tuple[ConditionExpression | ColumnExpression, ...]
GroupKeys = tuple[str | GroupKey, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Selection:
    """Rows of a table, filtered and grouped; `agg` turns them into a question."""

    table: DeclaredTable
    filters: Conditions = ()
    keys: GroupKeys = ()

    def __repr__(self) -> str:
        return f"Selection: {'; '.join(' '.join(row) for row in self._in_words)}"

    def _repr_html_(self) -> str:
        return _html.table("rows of a table", [], self._in_words)

    @property
    def _in_words(self) -> list[list[str]]:
        keys = (
            key if isinstance(key, str) else f"{scalar_text(key.value)} AS {key.name}"
            for key in self.keys
        )
        parts = {
            "of": self.table.declaration.name,
            "where": " AND ".join(
                condition_text(condition_of(one), is_flat=True) for one in self.filters
            ),
            "by": ", ".join(keys),
        }
        return [[name, text] for name, text in parts.items() if text]

    def where(self, *conditions: ConditionExpression | ColumnExpression) -> "Selection":
        """The rows for which all of these conditions are known to hold as well."""
        return Selection(self.table, self.filters + checked(conditions), self.keys)

    def group_by(
        self, *keys: str, **expressions: ColumnExpression | ConditionExpression
    ) -> "Selection":
        """The rows, also grouped by the declared keys of these columns, and by the values of
        expressions, which follow from declared facts."""
        return Selection(self.table, self.filters, self.keys + key_columns(keys, expressions))

    def agg(self, *unnamed: Never, **aggregates: UnnamedAggregate | ColumnExpression) -> "Question":
        """The question for these aggregates, each under the name it is given. Arithmetic of them is
        computed from the noisy numbers: ``agg(ratio=dp.sum("pay") / dp.sum("hours"))``."""
        query = Query(self.table.declaration.name, (), self.keys, all_of(self.filters))
        return Question.of(self.table, aggregated(query, unnamed, aggregates))

    def quantiles(self, column: str, levels: Sequence[Number]) -> "Question":
        """The question for the quantiles of a column, under names such as age_50 for a median."""
        return self.agg(**at_levels(column, levels))

    def describe(self, *columns: str) -> "Question":
        """The question for the number of values, mean, standard deviation and quartiles of each of
        these columns."""
        return self.agg(**summaries(columns))

    def histogram(self, column: str, bins: Bins = None) -> "Question":
        """The question for the number of rows in each bin of a numeric column, under the key
        ``age_bin`` for the column age: 1 for the first bin.

        ``bins`` is a number of equal bins between the declared bounds, or a list of edges; without
        it there are about 20 bins with round edges. No row decides on them. `Table.histogram` gives
        the edges beside the counts.
        """
        return self._counted_by(column, edges_of(column, bins, self.table.declaration))

    def _counted_by(self, column: str, edges: Sequence[Fraction]) -> "Question":
        there = self.where(~col(column).is_null())  # LEAST skips NULL
        keys = (*there.keys, bin_key(column, edges))
        return Selection(there.table, there.filters, keys).agg(count=count())

    def released_histogram(
        self,
        column: str,
        bins: Bins = None,
        *,
        group_size: int | None = None,
        epsilon: Number,
        delta: Number = 0,
        by: str = "owner",
        request: str | None = None,
    ) -> Answer:
        """The answer to `histogram`, with the edges of the bins as ``age_from`` and ``age_to``.
        Without ``bins`` there are no more of them than the noise allows for ``group_size`` rows in
        each group."""
        facts, most = self.table.declaration, USUAL_BINS
        if group_size is not None:
            rows = _checks.positive_count(group_size=group_size)
            first = self.histogram(column).forecast(epsilon=epsilon, delta=delta).lines[0]
            most = most_bins(rows, first.half_width)
        edges = edges_of(column, bins, facts, most)
        question = self._counted_by(column, edges)
        check_names(column, question.query.key_names)
        answer = question.release(epsilon=epsilon, delta=delta, by=by, request=request)
        return with_edges(answer, column, edges)

    def correlation(self, *columns: str) -> "Question":
        """The question for the correlations of all pairs of these columns."""
        return self.agg(**correlations_of(columns))

    def contingency(self) -> Statistic[Contingency]:
        """The counts of all pairs of the keys of two columns, with totals: one charge."""
        rows = self._handed_over()
        return self._statistic(
            "contingency", partial(released_contingency, rows), partial(expected_contingency, rows)
        )

    def top_k(self, k: int) -> Statistic[TopGroups]:
        """The k groups with the most rows, without their counts: one charge for all k."""
        rows = self._handed_over()
        released, expected = partial(top_groups, rows, k), partial(expected_top, rows, k)
        return self._statistic("top_k", released, expected, is_pure=True)

    def mode(self, column: str) -> Statistic[Modes]:
        """The most frequent key of a column in each group: one charge for all groups. The values
        are its declared keys, or those that follow from its bounds."""
        grouped = self.group_by(column).agg(rows=count())
        rows = TableRows(grouped.plan, self.table.source)
        released, expected = partial(released_modes, rows), partial(expected_modes, rows)
        return self._statistic("mode", released, expected, is_pure=True)

    def moments(self, *columns: str) -> Statistic[Moments]:
        """The moments of these columns, with the kind of noise that errs less. Means, variances,
        covariances and regressions follow from them at no further cost. They have no confidence:
        what follows from them has."""
        rows = self.rows(*columns)
        released, expected = partial(released_moments, rows), partial(expected_moments, rows)
        return self._statistic("moments", released, expected)

    def regression(self, outcome: str, *, on: Sequence[str]) -> Statistic[Regression]:
        """The least-squares coefficients of a column on others, with intervals that hold
        together."""
        names = () if isinstance(on, str) else tuple(on)
        if not names:
            raise InvalidArgument("regression: give on as a list of names")
        rows = self.rows(outcome, *names)
        return self._statistic(
            "regression",
            partial(released_regression, rows, outcome, names),
            partial(expected_regression, rows, outcome, names),
        )

    def bounds(self, column: str) -> Statistic[Release[tuple[float, float] | None]]:
        """Tighter bounds that hold most of a column's values, round numbers; ``None`` if no bin of
        values seems to hold enough rows."""
        released = partial(released_bounds, self.rows(column))
        return self._statistic("bounds", released, expected_bounds, is_pure=True)

    def _statistic(
        self,
        name: str,
        released: Callable[[Asking], Found],
        expected: Callable[[Offer], StatisticForecast],
        *,
        is_pure: bool = False,
    ) -> Statistic[Found]:
        return Statistic(name, self.table, is_pure, released, expected)

    def rows(self, *columns: str) -> Bounded[Rows]:
        """The rows with these numeric or boolean columns, for any mechanism on rows.

        The engine clamps values and applies the caps, when the rows are first released: it takes
        about equally spaced rows of a unit that has too many. Rows with a NULL are left out.

        >>> from discreet.mechanisms.quantiles import InterQuartileRange
        >>> import discreet as dp
        >>> import pandas as pd
        >>> stays = dp.Table(
        ...     pd.DataFrame({"patient": [1, 1, 2], "days": [3, 4, 1]}),
        ...     unit=dp.Unit("patient"), rows=2, columns={"days": dp.Column.integer(0, 30)},
        ... )
        >>> InterQuartileRange.for_epsilon(1, stays.rows("days"))
        InterQuartileRange(scale=6, grid=Grid(0, 30))
        """
        return self._handed_over().values(columns)

    def counts(self) -> Bounded[IntegerArray]:
        """The number of rows in each group, for any mechanism on counts, in order of the keys. Of
        a table that is reached through keys it is refused: one unit makes some counts rise and
        others fall, which mechanisms that take ``moves`` would have to know."""
        if self.table.declaration.through is not None:
            raise QueryRefused(
                f"counts: the rows of {self.table.declaration.name} are reached through keys, so "
                "one unit makes some counts rise and others fall; ask COUNT(*), top_k or mode"
            )
        return self._handed_over().counts()

    def _handed_over(self) -> TableRows:
        return TableRows(self.agg(rows=count()).plan, self.table.source)


# The parts of a query that need no declaration; a client of a service makes them, too.


def checked(conditions: Conditions) -> Conditions:
    """The conditions; `InvalidArgument` for other values."""
    for condition in conditions:
        condition_of(condition)
    return conditions


def key_columns(
    keys: tuple[str, ...], expressions: Mapping[str, ColumnExpression | ConditionExpression]
) -> GroupKeys:
    """The keys of columns, and of expressions under their names."""
    if not all(isinstance(key, str) for key in keys):
        raise InvalidArgument("group_by: give the names of columns, as in group_by('year')")
    return keys + tuple(key_of(name, given) for name, given in expressions.items())


def aggregated(
    query: Query,
    unnamed: Sequence[object],
    aggregates: Mapping[str, UnnamedAggregate | ColumnExpression],
) -> Query:
    """The query with these aggregates, none of which may be unnamed."""
    if unnamed:
        raise InvalidArgument("agg: name each aggregate, as in agg(people=dp.count())")
    asked = UnnamedAggregate | ColumnExpression
    wrong = [name for name, one in aggregates.items() if not isinstance(one, asked)]
    if wrong:
        raise InvalidArgument(
            f"{wrong[0]} = a {type(aggregates[wrong[0]]).__name__}: give dp.count(...), "
            "dp.sum(...) or dp.mean(...)"
        )
    return with_outputs(query, aggregates)


def at_levels(column: str, levels: Sequence[Number]) -> dict[str, UnnamedAggregate]:
    """The quantiles of a column at these levels, by name."""
    if isinstance(levels, str) or not isinstance(levels, Sequence) or not levels:
        raise InvalidArgument(f"levels = {levels!r}: give at least one, as [0.25, 0.5, 0.75]")
    return {name: quantile(column, level) for name, level in level_names(column, levels).items()}


def summaries(columns: Sequence[str]) -> dict[str, UnnamedAggregate]:
    """The number of values, mean, standard deviation and quartiles of these columns, by name."""
    if not columns:
        raise InvalidArgument("describe: give the names of numeric columns")
    asked: dict[str, UnnamedAggregate] = {}
    for name in columns:
        asked |= {
            f"{name}_count": count(name),
            f"{name}_mean": mean(name),
            f"{name}_stddev": aggregate(AggregateFunction.STDDEV, name),
            **at_levels(name, [0.25, 0.5, 0.75]),
        }
    return asked


def correlations_of(columns: Sequence[str]) -> dict[str, UnnamedAggregate]:
    """The correlations of all pairs of these columns, by name."""
    pairs = pair_names(columns).items()
    return {name: corr(columns[i], columns[j]) for (i, j), name in pairs}
