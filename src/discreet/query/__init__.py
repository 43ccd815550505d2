"""Private questions over tables.

An owner declares what is public of a table. An analyst asks in SQL or Python. The question becomes
a closed value, the value a plan, the plan one statement for the engine, and its sums come out
through `discreet.mechanisms._release`. Read the packages in this order, each with an order of its
own; a package imports only those that stand before it:

1. what is public: `_facts`; where rows come from: `_engines`, `_rows`
2. what can be asked, as values: `_estimates`, `_functions`, `_expressions`, `_outputs`
3. what it means and costs: `_plan`; how it runs: `_bounding`, and over several tables `_relations`
4. from SQL: `_sql`; what comes out: `_answers`; the whole of one question: `_questions`
5. answers of other shapes: `_statistics`
6. what users call: `_table`, `_selection`, `_workload` (several questions), and `discreet.toml` in
   `_toml`
"""

from importlib import import_module
from typing import TYPE_CHECKING

from discreet.query._answers._forecast import Forecast, QuestionExplanation
from discreet.query._expressions._aggregate_functions import (
    aggregate,
    corr,
    count,
    count_distinct,
    count_units,
    covar,
    max,  # noqa: A004  # read as dp.max
    mean,
    median,
    min,  # noqa: A004  # read as dp.min
    mode,
    quantile,
    share,
    stddev,
    sum,  # noqa: A004  # read as dp.sum
    variance,
)
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._frame import col
from discreet.query._expressions._query import Query
from discreet.query._facts._columns import Caps, Column, ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._plan._price import Noise, QuestionPrice

if TYPE_CHECKING:
    from discreet.query._answers._answer import Answer
    from discreet.query._engines._other_dialects import CompiledSql, Dialect
    from discreet.query._questions._diagnosis import CutShare, Diagnosis
    from discreet.query._questions._null_share import NullShare
    from discreet.query._questions._question import Question, release_question
    from discreet.query._rows._public_table import PublicTable
    from discreet.query._selection import Selection
    from discreet.query._statistics._contingency import Contingency
    from discreet.query._statistics._correlations import Correlations
    from discreet.query._statistics._most_frequent import Modes, TopGroups
    from discreet.query._statistics._statistic import Statistic, StatisticForecast
    from discreet.query._statistics._suggestion import Suggestion, suggest
    from discreet.query._table import Table
    from discreet.query._toml._declaration_file import open  # noqa: A004  # read as dp.open
    from discreet.query._workload import PlannedQuestion, Workload, plan_workload

__all__ = [
    "AggregateFunction",
    "Answer",
    "Caps",
    "Column",
    "ColumnType",
    "CompiledSql",
    "Contingency",
    "Correlations",
    "CutShare",
    "Declaration",
    "Diagnosis",
    "Dialect",
    "Forecast",
    "Modes",
    "Noise",
    "NullShare",
    "PlannedQuestion",
    "PublicTable",
    "Query",
    "Question",
    "QuestionExplanation",
    "QuestionPrice",
    "Selection",
    "Statistic",
    "StatisticForecast",
    "Suggestion",
    "Table",
    "TopGroups",
    "Workload",
    "aggregate",
    "col",
    "corr",
    "count",
    "count_distinct",
    "count_units",
    "covar",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "open",
    "plan_workload",
    "quantile",
    "release_question",
    "share",
    "stddev",
    "suggest",
    "sum",
    "variance",
]

_OTHER_FILES = {
    "Answer": "_answers._answer",
    "CompiledSql": "_engines._other_dialects",
    "Contingency": "_statistics._contingency",
    "Correlations": "_statistics._correlations",
    "CutShare": "_questions._diagnosis",
    "Diagnosis": "_questions._diagnosis",
    "Dialect": "_engines._other_dialects",
    "Modes": "_statistics._most_frequent",
    "NullShare": "_questions._null_share",
    "PlannedQuestion": "_workload",
    "PublicTable": "_rows._public_table",
    "Question": "_questions._question",
    "Selection": "_selection",
    "Statistic": "_statistics._statistic",
    "StatisticForecast": "_statistics._statistic",
    "Suggestion": "_statistics._suggestion",
    "TopGroups": "_statistics._most_frequent",
    "Workload": "_workload",
    "open": "_toml._declaration_file",
    "plan_workload": "_workload",
    "release_question": "_questions._question",
    "suggest": "_statistics._suggestion",
}


def __getattr__(name: str) -> object:
    """A name whose file needs an engine or a database, imported when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'discreet.query' has no attribute {name!r}")
    return getattr(import_module(f"discreet.query.{_OTHER_FILES.get(name, '_table')}"), name)
