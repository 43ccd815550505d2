"""The words of SQL: those of a query, and those that are refused, with what to do instead.

Every other word is a name, whatever it means elsewhere. A name that is one of these words must be
in double quotes.
"""

from discreet.query._functions._functions import CASTS

FORM = (
    "a query reads: SELECT keys, aggregates FROM table [WHERE conditions] [GROUP BY keys] "
    "[HAVING conditions] [ORDER BY values] [LIMIT number] [OFFSET number]"
)

MAX_NESTING = 24  # of parentheses; sqlglot uses 24 of Python's 1000 frames for each

# the words of a query
KEYWORDS = (
    frozenset(
        "AND AS BETWEEN DISTINCT FALSE FROM GROUP IN IS LIKE NOT NULL OR SELECT TRUE WHERE".split()  # noqa: SIM905
    )
    | {"CASE", "ELSE", "END", "THEN", "WHEN"}
    | {"ASC", "DESC", "HAVING", "LIMIT", "OFFSET", "ORDER"}
    | {"ALL", "INNER", "JOIN", "LEFT", "ON", "OUTER", "UNION", "USING", "WITH"}
)

# two words that are one, each pair under the name of a kind of token
PAIRS = {
    ("GROUP", "BY"): "GROUP_BY",
    ("GROUPING", "SETS"): "GROUPING_SETS",
    ("NULLS", "FIRST"): "FIRST",
    ("NULLS", "LAST"): "FINAL",
    ("ORDER", "BY"): "ORDER_BY",
    ("PARTITION", "BY"): "PARTITION_BY",
    ("WITHIN", "GROUP"): "ORDERED",
}

# words that have a meaning before a parenthesis
OPENERS = frozenset({"CUBE", "OVER", "ROLLUP"})

# calls that are written in other words than a function of the table
SPECIAL_CALLS = (
    frozenset({"CAST", "CONCAT", "EXTRACT", "NULLIF", "SHARE", "TRY_CAST"})
    | {"DATEDIFF", "DATE_DIFF", "DATEPART", "DATE_PART"}
    | {"GROUPING", "GROUPING_ID"}
)

READ_ONLY = "only SELECT is allowed, and a query begins with SELECT"
ONE_QUESTION = "a text asks one question; ask others by themselves"
A_TABLE = "FROM takes declared tables, and queries in parentheses with a name"
NO_SUBQUERY = (
    "a query stands in FROM only: FROM (SELECT ...) AS name, or before it by WITH; the part in all "
    "rows is SHARE(COUNT(*))"
)
USE_IS_NULL = "nothing equals NULL, not even NULL; write IS NULL or IS NOT NULL"
NO_FUNCTION = (
    "there is no such function; “What else can be asked” in the documentation lists all, such as "
    "COUNT, SUM, AVG, MEDIAN and ROUND"
)
JOINED = "tables are joined by JOIN or LEFT JOIN, with USING (columns) or ON a.x = b.x AND ..."
_ROWS = "write LIMIT 10, or LIMIT 10 OFFSET 20"
_AFTERWARDS = "write HAVING, which chooses among the released numbers"
_TYPES = (
    f"columns have their declared types; write CAST(x AS {' | '.join(CASTS)}); a day is written "
    "DATE '2020-01-31'"
)
_PATTERNS = "texts are compared by = <> < <= > >=, IN and LIKE"
_LIKE = f"{_PATTERNS}; write x LIKE 'a%', where % stands for any characters"
_ILIKE = f"{_PATTERNS}; write LOWER(x) LIKE '...'"
_WEEKDAY = "write ISODOW(day), which is 1 on Monday and 7 on Sunday"
_CLOCK = "an answer does not depend on when or by whom it is asked; write DATE '2020-01-31'"
_LISTS = "a value is compared with literals: IN (1, 2, 3)"
NO_LIST = f"there are no lists but the levels of QUANTILE(x, [0.25, 0.5]); {_LISTS}"
WINDOWS = "the only window function is a share: COUNT(*) / SUM(COUNT(*)) OVER ()"
_GROUPS = "GROUP BY takes declared columns with keys and answers for each combination of them"
_NO_TIME = "a date has no time of day; declare a column that holds it as a number"
DAY_ITSELF = "write the day itself, such as DATE '2020-01-31', or a number of days: e - d <= 7"
_WHOLE = "the whole table is asked; WHERE restricts it by conditions on columns"
_BINS = (
    "group by bins: SELECT WIDTH_BUCKET(x, 0, 60, 12) AS bin, COUNT(*) FROM t GROUP BY bin; in "
    'Python table.histogram("x", epsilon=1) chooses them'
)
_LARGEST = (
    "write GROUP BY x ORDER BY COUNT(*) DESC LIMIT 3; or in Python, without the counts, "
    'table.top_k("x", 3, epsilon=1)'
)
_ONE_ROW = "one row's value is private; MEDIAN(x), MIN(x) and MODE(x) say something of all of them"
_LIST_OF_ROWS = "no answer lists rows; GROUP BY x and COUNT(*) count each value"
_LITERALS = "there are no parameters; write the value itself"


def _table(*rows: tuple[str, str]) -> dict[str, str]:
    return {word: advice for words, advice in rows for word in words.split()}


# words that are refused wherever they stand
REFUSED_WORDS = _table(
    ("ANTI ASOF CROSS FULL LATERAL NATURAL RIGHT SEMI", JOINED),
    ("EXCEPT INTERSECT", ONE_QUESTION),
    ("RECURSIVE", "a query by WITH names tables and queries before it: recursion is refused"),
    ("FETCH", _ROWS),
    ("QUALIFY", _AFTERWARDS),
    ("COLLATE", "texts are compared by their code points"),
    ("ILIKE", _ILIKE),
    ("GLOB SIMILAR", _PATTERNS),
    (
        "ESCAPE",
        "ESCAPE is refused: in a pattern % and _ are wildcards, and \\ is a plain character",
    ),
    ("ISNULL NOTNULL", "write IS NULL or IS NOT NULL"),
    ("ANY SOME", _LISTS),
    ("CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER SESSION_USER", _CLOCK),
    ("TABLESAMPLE", _WHOLE),
    ("WINDOW", WINDOWS),
    ("PIVOT PIVOT_LONGER PIVOT_WIDER UNPIVOT", _GROUPS),
    ("ASYMMETRIC SYMMETRIC", "write BETWEEN lower AND upper"),
    ("INTO RETURNING", READ_ONLY),
    ("BY", f"BY stands after GROUP or ORDER; {FORM}"),
    ("GROUP", "write GROUP BY and keys; a percentile is QUANTILE(x, 0.9)"),
    ("ORDER", "write ORDER BY and keys or numbers"),
)

# names before a parenthesis that get their own advice
REFUSED_CALLS = _table(
    ("FILTER", "write SUM(CASE WHEN x > 1 THEN y END), or COUNT(CASE WHEN x > 1 THEN 1 END)"),
    ("COUNTIF COUNT_IF", "write COUNT(CASE WHEN x > 1 THEN 1 END)"),
    ("HISTOGRAM", _BINS),
    ("CUME_DIST DENSE_RANK LAG LEAD NTILE PERCENT_RANK RANK ROW_NUMBER", WINDOWS),
    ("APPROX_PERCENTILE APPROX_QUANTILE PERCENTILE", "write QUANTILE(x, 0.9)"),
    ("APPROX_QUANTILES", "write QUANTILE(x, [0.25, 0.5, 0.75])"),
    ("APPROX_COUNT_DISTINCT APPROX_DISTINCT NDV", "write COUNT(DISTINCT x)"),
    ("ANY_VALUE ARG_MAX ARG_MIN FIRST FIRST_VALUE LAST LAST_VALUE MAX_BY MIN_BY", _ONE_ROW),
    ("BOOL_AND BOOL_OR EVERY LOGICAL_AND LOGICAL_OR", _ONE_ROW),
    ("ARRAY_AGG GROUP_CONCAT LIST LISTAGG STRING_AGG", _LIST_OF_ROWS),
    ("AVERAGE", "write AVG"),
    ("STD STDEV", "write STDDEV"),
    ("VAR", "write VARIANCE"),
    ("APPROX_TOP_K TOPK TOP_K", _LARGEST),
    ("CORRELATION COVAR COVARIANCE", "write CORR(x, y), COVAR_SAMP(x, y) or COVAR_POP(x, y)"),
    ("REGR_INTERCEPT REGR_SLOPE", 'there is table.regression("y", on=["x"], epsilon=1) in Python'),
    ("SETS", "write GROUPING SETS ((a, b), (a), ())"),
    ("EXISTS", NO_SUBQUERY),
    ("COLUMNS EXCLUDE REPLACE", "name each column"),
    ("LEFT RIGHT", "write SUBSTR(x, 1, 3)"),
    ("ILIKE", _ILIKE),
    (
        "IF IFF IFNULL IIF NVL NVL2 ZEROIFNULL",
        "write CASE WHEN x > 1 THEN x ELSE 0 END, or COALESCE(x, 0)",
    ),
    ("LOG LOG10 LOG2", "write LN(x), or LN(x) / 2.302585092994046 for the base 10"),
    ("TRUNC TRUNCATE", "write FLOOR(x), CEIL(x) or ROUND(x)"),
    ("DAYOFWEEK DOW WEEKDAY", _WEEKDAY),
    ("STRFTIME TO_CHAR DATE_FORMAT", "write YEAR(day), MONTH(day) or DATE_TRUNC('month', day)"),
    ("WEEK WEEKOFYEAR ISOWEEK", "write DATE_TRUNC('week', day)"),
    ("DAYNAME", _WEEKDAY),
    ("MONTHNAME", "write MONTH(day)"),
    ("HOUR MINUTE SECOND", _NO_TIME),
    ("ADD_MONTHS DATEADD DATE_ADD DATE_SUB", DAY_ITSELF),
    ("CONTAINS ENDS_WITH ENDSWITH INSTR POSITION STARTS_WITH STARTSWITH STRPOS", _LIKE),
    ("REGEXP_CONTAINS REGEXP_EXTRACT REGEXP_LIKE REGEXP_MATCHES RLIKE", _LIKE),
    ("DIV0 SAFE_DIVIDE", "write SUM(x) / NULLIF(SUM(y), 0)"),
    ("KURTOSIS SKEWNESS", "compute it from AVG(x), AVG(POWER(x, 2)), AVG(POWER(x, 3)), ..."),
    ("DATE", _TYPES),
    ("NOW TODAY", _CLOCK),
)

# signs that are refused wherever they stand
REFUSED_SIGNS = {
    "==": "write =",
    "<=>": "write =, or IS NULL",
    "!": "write NOT",
    "::": _TYPES,
    "/*": "this comment has no end, or holds another one",
    "'": "this text has no end; a quote inside a text is doubled: 'o''clock'",
    '"': "this name is empty or has no end",
    "`": 'a name that needs quotes stands in double ones: "name"',
    "?": _LITERALS,
    "$": _LITERALS,
    "@": _LITERALS,
    ":": _LITERALS,
    ":=": _LITERALS,
    "{": _LITERALS,
    "->": "there are no lambdas and no JSON",
    "=>": "arguments have no names",
    "//": "write FLOOR(x / 2), or x / 2, which divides exactly",
    "^": "write POWER(x, 2)",
    "**": "write POWER(x, 2)",
    "~": _PATTERNS,
    "&": "write AND",
    "|": "write OR",
}

# names that mean something else to SQL unless they are quoted
RESERVED = KEYWORDS | REFUSED_WORDS.keys()
