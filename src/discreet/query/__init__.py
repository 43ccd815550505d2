"""Private questions over tables.

An owner declares what is public of a table. An analyst asks in SQL or Python. The question becomes
a closed value, the value a plan, the plan one statement for the engine, and its sums come out
through `discreet.mechanisms._release`. Read the files in this order:

1. what is public: `_columns`, `_declaration`, and discreet.toml: `_declaration_file`,
   `_declared_files`, `_declared_columns`
2. what can be asked: `_aggregates`, `_expressions`, `_expression_text`, `_query`; from Python
   `_frame`, `_frame_after`; from SQL `_sql_tokens`, `_sql_text`, `_sql`, `_sql_from`,
   `_sql_per_unit`, `_sql_grouping`, `_sql_aggregates`, `_sql_after`, `_sql_values`, `_sql_leaves`;
   of several tables: `_relation` (joins and unions as values), `_derived` (their declaration, and
   why they are private), `_per_unit`, `_public_table`, `_beside`
3. what it means and costs: `_inference` (types and bounds), `_keys` and
   `_integer_images` (the groups that can occur), `_plan`, `_sums` (with their sensitivity),
   `_sum_grids`, `_price`, and `_public_facts` for receipts
4. how it runs: `_source` (rows), `_related` (those of several tables), `_linked` (those under keys
   of units), `_conversion`, `_compiling`, `_bounding`; `_compiled_plan` is the whole, `_engine` the
   role of an engine, `_duckdb` and `_postgres` (with `_postgres_compiler`) its two forms;
   `_private_keys` for groups that come from the rows
5. what comes out: `_question` (price, pay, release), `_assembly`, `_answer`, `_answer_in_words`,
   `_estimates`, `_intervals`, `_quantile_order`, `_second_moments`, `_correlation`, `_forecast`;
   what is computed from noisy numbers: `_post_processing` and `_output_types` (what may be),
   `_totals`, `_outputs` and `_evaluation` (with intervals), `_output_functions`, `_chosen_rows`
6. what to pay: `_accuracy` (the epsilon for an error), `_usefulness` and `_ranges` (warnings),
   `_workload` (several questions)
7. `_table`, `_selection`: what users call; `_histogram`, `_correlations` and `_contingency` shape
   their answers; `_hand_over`, `_statistics`, `_most_frequent` reach other mechanisms;
   `_diagnosis` and `_null_share` show what a declaration cuts off; `_suggestion` and
   `_suggestion_search` find caps, bounds and keys for one
"""

from importlib import import_module
from typing import TYPE_CHECKING

from discreet.query._aggregate_functions import (
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
from discreet.query._aggregates import AggregateFunction
from discreet.query._columns import Caps, Column, ColumnType
from discreet.query._declaration import Declaration
from discreet.query._forecast import Forecast, QuestionExplanation
from discreet.query._frame import col
from discreet.query._price import Noise, QuestionPrice
from discreet.query._query import Query

if TYPE_CHECKING:
    from discreet.query._answer import Answer
    from discreet.query._contingency import Contingency
    from discreet.query._correlations import Correlations
    from discreet.query._declaration_file import open  # noqa: A004  # read as dp.open
    from discreet.query._diagnosis import CutShare, Diagnosis
    from discreet.query._most_frequent import Modes, TopGroups
    from discreet.query._null_share import NullShare
    from discreet.query._public_table import PublicTable
    from discreet.query._question import Question, release_question
    from discreet.query._selection import Selection
    from discreet.query._statistic import Statistic, StatisticForecast
    from discreet.query._suggestion import Suggestion, suggest
    from discreet.query._table import Table
    from discreet.query._workload import PlannedQuestion, Workload, plan_workload

__all__ = [
    "AggregateFunction",
    "Answer",
    "Caps",
    "Column",
    "ColumnType",
    "Contingency",
    "Correlations",
    "CutShare",
    "Declaration",
    "Diagnosis",
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
    "Answer": "_answer",
    "Contingency": "_contingency",
    "Correlations": "_correlations",
    "CutShare": "_diagnosis",
    "Diagnosis": "_diagnosis",
    "Modes": "_most_frequent",
    "NullShare": "_null_share",
    "PlannedQuestion": "_workload",
    "PublicTable": "_public_table",
    "Question": "_question",
    "Selection": "_selection",
    "Statistic": "_statistic",
    "StatisticForecast": "_statistic",
    "Suggestion": "_suggestion",
    "TopGroups": "_most_frequent",
    "Workload": "_workload",
    "open": "_declaration_file",
    "plan_workload": "_workload",
    "release_question": "_question",
    "suggest": "_suggestion",
}


def __getattr__(name: str) -> object:
    """A name whose file needs an engine or a database, imported when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'discreet.query' has no attribute {name!r}")
    return getattr(import_module(f"discreet.query.{_OTHER_FILES.get(name, '_table')}"), name)
