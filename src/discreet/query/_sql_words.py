"""The words of SQL: those of a query, and those that are refused, with what to do instead.

Every other word is a name, whatever it means elsewhere. A name that is one of these words must be
in double quotes.
"""

from discreet.query._aggregates import LISTED

FORM = "a query reads: SELECT keys, aggregates FROM table [WHERE conditions] [GROUP BY keys]"

# the words of a query
KEYWORDS = frozenset(
    "AND AS BETWEEN FALSE FROM GROUP IN IS NOT NULL OR SELECT TRUE WHERE".split()  # noqa: SIM905
)

READ_ONLY = "a query only asks, and begins with SELECT"
ONE_QUESTION = "a text asks one question; ask others by themselves"
ONE_TABLE = "one declared table is asked at a time, by its name"
NO_SUBQUERY = "there are no subqueries; ask the declared table itself"
USE_IS_NULL = "nothing equals NULL, not even NULL; write IS NULL or IS NOT NULL"
NO_FUNCTION = f"there is no such function; there are {LISTED}, and + - * / of columns"
_JOINED = f"{ONE_TABLE}; its owner can join before it is declared"
_SORTED = "the answer is sorted by its keys; sort the released numbers as you like"
_ALL_ROWS = "the answer has a row for each combination of keys; take from it what you need"
_AFTERWARDS = "choose among the released numbers; that costs nothing"
_TOTAL = "values are columns, literals, and + - * / of them"
_TYPES = "columns have their declared types; a day is written DATE '2020-01-31'"
_PATTERNS = "texts are compared by = <> < <= > >= and IN"
_CLOCK = "an answer does not depend on when or by whom it is asked; write DATE '2020-01-31'"
_LISTS = "a value is compared with literals: IN (1, 2, 3)"
_WINDOWS = "there are no windows; an aggregate is over the rows of a group"
_GROUPS = "GROUP BY takes declared columns with keys and answers for each combination of them"
_WHOLE = "the whole table is asked; WHERE restricts it by conditions on columns"
_LITERALS = "there are no parameters; write the value itself"


def _table(*rows: tuple[str, str]) -> dict[str, str]:
    return {word: advice for words, advice in rows for word in words.split()}


# words that are refused wherever they stand
REFUSED_WORDS = _table(
    ("ANTI ASOF CROSS FULL INNER JOIN LATERAL LEFT NATURAL ON OUTER RIGHT SEMI USING", _JOINED),
    ("EXCEPT INTERSECT UNION", ONE_QUESTION),
    ("WITH", NO_SUBQUERY),
    ("ASC DESC ORDER", _SORTED),
    ("FETCH LIMIT OFFSET", _ALL_ROWS),
    ("HAVING QUALIFY", _AFTERWARDS),
    ("DISTINCT", "distinct values are not counted; COUNT(*) counts rows, GROUP BY shows keys"),
    ("CASE ELSE END THEN WHEN", f"{_TOTAL}; ask each case with a WHERE of its own"),
    ("CAST COLLATE TRY_CAST", _TYPES),
    ("GLOB ILIKE LIKE SIMILAR", _PATTERNS),
    ("ISNULL NOTNULL", "write IS NULL or IS NOT NULL"),
    ("ALL", f"name the keys or values; {_LISTS}"),
    ("ANY SOME", _LISTS),
    ("CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER SESSION_USER", _CLOCK),
    ("TABLESAMPLE", _WHOLE),
    ("WINDOW", _WINDOWS),
    ("PIVOT PIVOT_LONGER PIVOT_WIDER UNPIVOT", _GROUPS),
    ("ASYMMETRIC SYMMETRIC", "write BETWEEN lower AND upper"),
    ("INTO RETURNING", READ_ONLY),
    ("BY", f"BY stands after GROUP; {FORM}"),
    ("GROUP", "write GROUP BY and keys"),
)

# names before a parenthesis that get their own advice
REFUSED_CALLS = _table(
    ("OVER", _WINDOWS),
    ("FILTER", "an aggregate is of all rows that meet WHERE; ask this one by itself"),
    ("CUBE ROLLUP SETS", _GROUPS),
    ("EXISTS", NO_SUBQUERY),
    ("COLUMNS EXCLUDE REPLACE", "name each column"),
    ("LEFT RIGHT", f"{NO_FUNCTION}; {_PATTERNS}"),
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
    "[": f"there are no lists; {_LISTS}",
    "{": _LITERALS,
    "->": "there are no lambdas and no JSON",
    "=>": "arguments have no names",
    "||": f"texts are not joined; {_PATTERNS}",
    "//": "write /, which divides exactly",
    "%": _TOTAL,
    "^": _TOTAL,
    "**": _TOTAL,
    "~": _PATTERNS,
}

# names that mean something else to SQL unless they are quoted
RESERVED = KEYWORDS | REFUSED_WORDS.keys()
