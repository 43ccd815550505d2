"""Translates an SQL text to our `Query` and plans it: the statement, SELECT and GROUP BY.

The closed list of what a text may contain is `RULES` in `_rules`: a kind of node without a
rule is refused, and so is a part of a node that its rule doesn't name, since sqlglot's nodes have
parts that are easy to overlook. Types, bounds and keys are checked as for any other query.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from sqlglot import exp

from discreet.errors import QueryRefused
from discreet.query._expressions._aggregates import LISTED
from discreet.query._expressions._expression_text import quoted, scalar_text
from discreet.query._expressions._expressions import (
    Aggregate,
    Both,
    Case,
    ColumnRef,
    FunctionCall,
    Measure,
    Scalar,
    columns_in,
)
from discreet.query._expressions._inference import infer
from discreet.query._expressions._query import (
    FromText,
    GroupKey,
    Output,
    PostProcessing,
    Query,
    column_names,
)
from discreet.query._expressions._relation import NamedRows, tables_of
from discreet.query._expressions._sql_words import FORM, KEYWORDS, RESERVED
from discreet.query._facts._columns import ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._functions._functions import FUNCTIONS
from discreet.query._functions._scalar_rules import Form
from discreet.query._outputs._post_processing import completed, has_key, measure, with_sets
from discreet.query._plan._plan import Plan, plan
from discreet.query._relations._derived import Catalog
from discreet.query._sql._after import measuring, read_clauses
from discreet.query._sql._aggregates import names_of_levels, read_aggregate, read_columns
from discreet.query._sql._calls import GROUPING_CALLS, OF_ANSWERS
from discreet.query._sql._from import FromReader
from discreet.query._sql._grouping import Grouping, read_grouping
from discreet.query._sql._leaves import bare, is_aggregate, matching_columns, own_name
from discreet.query._sql._rules import ADVICE, RULES
from discreet.query._sql._text import read
from discreet.query._sql._tokens import check_size
from discreet.query._sql._tree_reader import TreeReader

_NO_ITEM = f"SELECT takes keys and aggregates: {LISTED} of values; a key stands in GROUP BY too"


def read_question(text: str, declaration: Declaration, catalog: Catalog) -> tuple[Plan, NamedRows]:
    """The plan of the question that an SQL text asks of a table and of others in the catalog, and
    the rows that it names.

    Guarantee: whatever the text is, nothing but a `DiscreetError` is raised, and it names the part
    that has no rule. Texts that differ in case, blanks, comments, parentheses or spellings of one
    thing give equal queries; the text of a query (``str``) gives the same query again. A name
    without quotes matches in any case, one in double quotes exactly.

    >>> import discreet as dp
    >>> from discreet.query import Caps
    >>> columns = {"year": dp.Column.integer(keys=[1980, 1981]), "wage": dp.Column.number(0, 60)}
    >>> wages = Declaration("wages", dp.Unit("person"), Caps(1), columns)
    >>> catalog = Catalog({"wages": wages})
    >>> text = "select avg(Wage), count(*) from wages w where (w.year) != 1980"
    >>> print(read_question(text, wages, catalog)[0].query)
    SELECT AVG(wage) AS avg_wage, COUNT(*) AS count FROM wages WHERE year <> 1980
    >>> read_question("select kurt(wage) from wages", wages, catalog)
    Traceback (most recent call last):
    discreet.errors.QueryRefused: `kurt(` (line 1, column 8): there is no such function; “Wha...
    """
    try:
        query, relation, facts = _query(text, declaration, catalog)
        found = plan(query, facts)
        check_size(str(found.query))  # its own text is within the limits too
    except QueryRefused as refusal:
        raise QueryRefused(_with_quoting(f"{refusal}", text, declaration)) from None
    except RecursionError:  # called from deep in another program
        raise QueryRefused(
            "the query nests too deeply for this program; write it flatter"
        ) from None
    return found, relation


def _with_quoting(refusal: str, text: str, declaration: Declaration) -> str:
    """The refusal, with advice for declared names that are words of SQL, or no words, and stand
    without quotes. The advice comes last for words that have a place in every query, as SELECT,
    unless the refusal is of such a word."""
    names = sorted({declaration.name, *declaration.columns})
    needing = [name for name in names if name.upper() in RESERVED or not name.isidentifier()]
    bare = [name for name in needing if _stands_bare(name, text)]

    def is_usual(name: str) -> bool:
        return name.upper() in KEYWORDS and not refusal.lower().startswith(f"`{name.lower()}`")

    likely, others = (
        ", ".join(quoted(name) for name in bare if is_usual(name) is each) for each in (False, True)
    )
    first = f"write {likely} in double quotes, if the name is meant; else " * bool(likely)
    last = f"; if the name is meant, write {others} in double quotes" * bool(others)
    return f"{first}{refusal}{last}"


def _stands_bare(name: str, text: str) -> bool:
    return re.search(rf'(?<!["\w]){re.escape(name)}(?!["\w])', text, re.IGNORECASE) is not None


def _query(text: str, main: Declaration, catalog: Catalog) -> tuple[Query, NamedRows, Declaration]:
    """The query, what it names after FROM, and the declaration of that."""
    # 1. parse; each part has a rule
    found = read(text)
    for node in found.select.walk():
        for part in unlisted(node):
            raise found.refused(part, ADVICE.get(type(part), f"this has no rule; {FORM}"))
        if isinstance(node, exp.Identifier) and not node.args.get("quoted"):  # a keyword
            raise found.refused(node, "a name that is a word of SQL stands in double quotes")
    found.check_nothing_is_lost()
    # 2. FROM
    select = found.select
    scope = FromReader(found, catalog, RULES).scope()
    names = list(dict.fromkeys(tables_of(scope.relation)))
    if main.name not in names and not isinstance(main.name, FromText):
        if catalog.is_public(scope.relation):
            raise QueryRefused(f"FROM {names[0]}: a public table is read, not asked")
        named = " and ".join(names)
        raise QueryRefused(f"FROM {named}: this is the table {main.name!r}; ask that one")
    # 3. keys and aggregates
    reader = TreeReader(found, scope, RULES)
    where = select.args.get("where")
    items = [_item(node) for node in select.expressions]
    grouping = read_grouping(select.args.get("group"), reader)
    sets = _sets(grouping, items, reader)
    values = sets[0] if len(sets) == 1 else list(dict.fromkeys(chain(*sets)))
    items = [_with_kind(item, values, reader) for item in items]
    keys = _keys(values, _own_names(grouping, items, reader), items, reader)
    aggregates = _aggregates(items, keys, reader)
    # 4. WHERE
    condition = scope.where
    if where is not None:
        own = reader.condition(where.this)
        condition = own if condition is None else Both(condition, own)
    # 5. the question
    every = tuple(chain.from_iterable(aggregates))
    query = Query(scope.declaration.name, every, keys, condition)
    if len(sets) > 1:
        by_value = {key.value: key.name for key in query.named_keys}
        query = with_sets(query, ([by_value[value] for value in one] for one in sets))
    return _with_clauses(query, items, aggregates, reader), scope.relation, scope.declaration


def unlisted(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node, if it has no rule, or its parts that the rule doesn't name.

    A part that is False is there: sqlglot means GROUP BY DISTINCT by ``all=False``.
    """
    rule = RULES.get(type(node))
    if rule is None:
        yield node
        return
    for name, part in node.args.items():
        is_absent = part is None or part == []
        if not is_absent and not isinstance(part, rule.parts.get(name, ())):
            first = part[0] if isinstance(part, list) else part
            yield first if isinstance(first, exp.Expr) and type(node) not in ADVICE else node


# --- SELECT and GROUP BY ---


@dataclass(frozen=True, slots=True)
class _SelectItem:
    """One item of SELECT, its alias, if it has one, and whether it is computed from keys alone."""

    node: exp.Expr
    alias: exp.Identifier | None
    is_of_keys: bool = False

    @property
    def is_aggregate(self) -> bool:
        return is_aggregate(self.node)

    @property
    def is_computed(self) -> bool:
        """Whether it is computed from noisy numbers or keys."""
        return self.is_of_keys or (
            not self.is_aggregate and any(map(_is_measured, self.node.walk()))
        )


def _is_measured(node: exp.Expr) -> bool:
    of_answer = isinstance(node, exp.Anonymous) and node.name.upper() in OF_ANSWERS
    return is_aggregate(node) or of_answer or isinstance(node, exp.Window)


def _item(node: exp.Expr) -> _SelectItem:
    if isinstance(node, exp.Alias):
        return _SelectItem(bare(node.this), node.args["alias"])
    return _SelectItem(bare(node), None)


def _with_kind(item: _SelectItem, values: Sequence[Scalar], reader: TreeReader) -> _SelectItem:
    if item.is_aggregate or item.is_computed or isinstance(item.node, exp.Star):
        return item
    value = reader.scalar(item.node)
    return replace(item, is_of_keys=value not in values and has_key(value, values))


def _sets(
    grouping: Grouping, items: Sequence[_SelectItem], reader: TreeReader
) -> list[list[Scalar]]:
    """The values of each grouping set."""
    values = {id(node): _grouped(bare(node), items, reader) for node in grouping.nodes}
    return [[values[id(node)] for node in one] for one in grouping.sets]


def _own_names(
    grouping: Grouping, items: Sequence[_SelectItem], reader: TreeReader
) -> Mapping[Scalar, str]:
    """The names that columns of GROUP BY have where they stand, by their values."""
    named = (bare(node) for node in grouping.nodes)
    return {
        _grouped(node, items, reader): name
        for node in named
        if (name := _name_of_key(node, items, reader)) is not None
    }


def _keys(
    values: Sequence[Scalar],
    own_names: Mapping[Scalar, str],
    items: Sequence[_SelectItem],
    reader: TreeReader,
) -> tuple[str | GroupKey, ...]:
    """The keys in the order of GROUP BY, under their names in SELECT."""
    names: dict[int, str] = {}
    for item in items:
        if not (item.is_aggregate or item.is_computed):
            _name_key(item, values, names, reader)
    numbers = (item for item in items if item.is_aggregate or item.is_computed)
    given = [reader.name(item.alias) for item in numbers if item.alias]
    taken = {*names.values(), *(column for name in given for column in column_names(name))}
    keys: list[str | GroupKey] = []
    for place, value in enumerate(values):
        plain = value.name if isinstance(value, ColumnRef) else None
        own = own_names.get(value, plain)
        name = names.get(place) or own or _unused(_plain_name(value), taken)
        taken.add(name)
        keys.append(name if name == plain else GroupKey(value, name))
    return tuple(keys)


def _no_key(value: Scalar, keys: Sequence[Scalar], reader: TreeReader) -> str:
    """Why a column can't be in SELECT by itself, and what to write."""
    name, fact = scalar_text(value), infer(value, reader.declaration)
    way = f"add {name} to GROUP BY" if keys else f"add GROUP BY {name}"
    if fact.type is ColumnType.NUMBER:
        way = f"write an aggregate, such as AVG({name})"
    return f"a column in SELECT stands in GROUP BY too, or in an aggregate: {way}"


def _name_key(
    item: _SelectItem, values: Sequence[Scalar], names: dict[int, str], reader: TreeReader
) -> None:
    """Give the key that an item of SELECT shows the item's name."""
    if isinstance(item.node, exp.Star):
        raise reader.refused(item.node, _NO_ITEM)
    value = reader.scalar(item.node)
    if value not in values:
        is_column = isinstance(value, ColumnRef)
        raise reader.refused(item.node, _no_key(value, values, reader) if is_column else _NO_ITEM)
    place = values.index(value)
    if item.alias is None:
        return
    name = reader.name(item.alias)
    if names.setdefault(place, name) != name:
        raise reader.refused(item.alias, f"this key is called {names[place]!r} already")


def _grouped(node: exp.Expr, items: Sequence[_SelectItem], reader: TreeReader) -> Scalar:
    """A value of GROUP BY: an expression, or the place or the alias of one in SELECT."""
    item = _named_item(node, items, reader)
    if item is None:
        return reader.scalar(node)
    if item.is_aggregate or item.is_computed:
        raise reader.refused(node, "GROUP BY takes columns and expressions, not aggregates")
    return reader.scalar(item.node)


def _name_of_key(node: exp.Expr, items: Sequence[_SelectItem], reader: TreeReader) -> str | None:
    """The name that a column of GROUP BY has where it stands."""
    item = _named_item(node, items, reader)
    column = node if item is None else item.node
    return own_name(column, reader) if isinstance(column, exp.Column) else None


def _named_item(
    node: exp.Expr, items: Sequence[_SelectItem], reader: TreeReader
) -> _SelectItem | None:
    if isinstance(node, exp.Literal) and not node.is_string:
        places = dict(enumerate(items, start=1))
        if not (node.this.isdigit() and int(node.this) in places):
            raise reader.refused(node, f"GROUP BY takes the places 1 to {len(items)} of SELECT")
        return places[int(node.this)]
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return None
    if matching_columns(node, reader):
        return None  # a column's name comes before an alias
    name = reader.name(node.this)
    return next((item for item in items if item.alias and reader.name(item.alias) == name), None)


def _plain_name(value: Scalar) -> str:
    columns = [name.lower() for name in dict.fromkeys(columns_in(value))]
    if isinstance(value, FunctionCall) and FUNCTIONS[value.function].form is Form.CALL:
        return "_".join([value.function.value.lower(), *columns[:1]])
    return "case" if isinstance(value, Case) else "key"


def _aggregates(
    items: Sequence[_SelectItem], keys: tuple[str | GroupKey, ...], reader: TreeReader
) -> list[tuple[Aggregate, ...]]:
    """The aggregates that each item is; several for several levels."""
    numbers = (item for item in items if item.is_aggregate or item.is_computed)
    given = [reader.name(item.alias) for item in numbers if item.alias]
    names = [key if isinstance(key, str) else key.name for key in keys]
    taken = {*names, *(column for name in given for column in column_names(name))}
    aggregates = []
    for item in items:
        made = _named_aggregates(item, taken, reader) if item.is_aggregate else ()
        taken.update(column for one in made for column in column_names(one.name))
        aggregates.append(made)
    return aggregates


def _named_aggregates(
    item: _SelectItem, taken: set[str], reader: TreeReader
) -> tuple[Aggregate, ...]:
    found = read_columns(item.node, reader)
    if item.alias is None:
        free: list[Aggregate] = []
        for asked, name in found:
            others = (column for one in free for column in column_names(one.name))
            free.append(asked.named(_unused(name, {*taken, *others})))
        return tuple(free)
    alias, several = reader.name(item.alias), [asked for asked, _ in found]
    if len(several) == 1:
        return (several[0].named(alias),)
    names = names_of_levels(item.node, alias, several, reader)
    return tuple(asked.named(name) for asked, name in zip(several, names, strict=True))


# --- after the noise ---


def _with_clauses(
    query: Query,
    items: Sequence[_SelectItem],
    aggregates: Sequence[tuple[Aggregate, ...]],
    reader: TreeReader,
) -> Query:
    """The query with its computed columns, HAVING, ORDER BY and LIMIT."""

    def asked(node: exp.Expr) -> Aggregate:
        return read_aggregate(node, reader).named("")

    # 1. names that are in use
    inner = measuring(reader, asked)
    taken = {*query.key_names, *(n for one in query.aggregates for n in column_names(one.name))}
    named = (item.alias for item in items if item.is_computed and item.alias)
    taken.update(column for alias in named for column in column_names(reader.name(alias)))
    # 2. the columns in their order
    outputs = []
    columns: list[tuple[str | None, Scalar]] = []  # those of keys have no name here
    for item, made in zip(items, aggregates, strict=True):
        if item.is_aggregate:
            columns += [(one.name, measure(one)) for one in made]
        elif item.is_computed:
            value = inner.scalar(item.node)
            name = (
                reader.name(item.alias)
                if item.alias
                else _unused(_computed_name(item.node, value), taken)
            )
            taken.update(column_names(name))
            outputs.append(Output(value, name))
            columns.append((name, value))
        else:
            columns.append((None, reader.scalar(item.node)))
    # 3. the other clauses, which may name them
    known = replace(query, after=PostProcessing(tuple(outputs)))
    shown = tuple(name for name, _ in columns if name is not None)
    after = read_clauses(
        reader.sql.select,
        [value for _, value in columns],
        outputs,
        measuring(reader, asked, known),
    )
    after = replace(after, shown=shown, sets=query.after.sets)
    return completed(replace(query, after=after))


def _computed_name(node: exp.Expr, value: Scalar) -> str:
    if isinstance(node, exp.Anonymous) and node.name.upper() in GROUPING_CALLS:
        return "grouping"
    return "share" if isinstance(value, Measure) else "computed"


def _unused(name: str, taken: set[str]) -> str:
    numbered = (name if number == 1 else f"{name}_{number}" for number in count(1))
    return next(free for free in numbered if taken.isdisjoint(column_names(free)))
