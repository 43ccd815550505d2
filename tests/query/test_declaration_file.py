"""The facts of ``discreet.toml`` are read as written, and each error names its line."""

import datetime
import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._budget import AnyLimit, Limit, MuLimit, RhoLimit
from discreet._unit import Change, Unit
from discreet.errors import DeclarationError, InvalidArgument
from discreet.ledger._place import LedgerPlace
from discreet.query._facts._columns import Caps, Column, ColumnType
from discreet.query._rows._file_format import FileFormat
from discreet.query._rows._files import CsvFile, ParquetFile
from discreet.query._toml import _declaration_file, _declared_columns, _located_toml
from discreet.query._toml._declaration_edit import Setting, added, save
from discreet.query._toml._declaration_file import (
    SERVICE,
    ServiceFacts,
    read_text,
    service_facts,
)

ROOT = Path(__file__).parents[2]
PLACE = Path("folder/discreet.toml")

GOOD = """\
# a hand-written file
[tables.wages]
source = "wages.parquet"   # the panel
unit = "person"
change = "replace"
groups = 9
rows_per_group = 8
rows = 20

[tables.wages.ledger]
path = "wages.ledger"
epsilon = 2
delta = 1e-6

[tables.wages.columns.wage]
type = "number"
lower = 0
upper = 60.1
null = 0.1

[tables.wages.columns]
year = { type = "integer", keys = "1980..1982", null = 1981 }
in_union = { type = "boolean", null = false }
occupation = { type = "text", keys = ["cook", "clerk"] }
day = { type = "date", keys = [1980-01-02, 1980-01-01] }
hours = { type = "integer", lower = 0, upper = 80 }
"""


def test_a_file_says_what_it_says() -> None:
    (table,) = read_text(GOOD, PLACE).values()
    assert table.declaration.name == "wages"
    assert table.declaration.unit == Unit("person", Change.REPLACE)
    assert table.declaration.caps == Caps(20, groups=9, rows_per_group=8)
    assert table.declaration.columns == {
        "wage": Column.number(0, Fraction("60.1"), null=Fraction("0.1")),
        "year": Column.integer(keys=range(1980, 1983), null=1981),
        "in_union": Column.boolean(null=False),
        "occupation": Column.text(keys=["clerk", "cook"]),
        "day": Column.date(keys=[datetime.date(1980, 1, 1), datetime.date(1980, 1, 2)]),
        "hours": Column.integer(0, 80),
    }
    assert table.limit == Limit(2, Fraction(1, 10**6))
    assert table.ledger == LedgerPlace(Path("folder/wages.ledger"), None, Path("folder"))
    assert table.rows == ParquetFile(Path("folder/wages.parquet"))


def test_optional_entries_have_defaults() -> None:
    text = """
tables.visits.source = "visits.csv"
tables.visits.row = true
tables.visits.ledger = { path = "/var/visits.ledger", epsilon = 0.1 }
tables.visits.columns.ward.type = "text"
"""
    (table,) = read_text(text, PLACE).values()
    assert table.declaration.unit == Unit.ROW
    assert table.declaration.caps == Caps(1)
    assert table.limit == Limit(Fraction(1, 10), 0)
    assert table.ledger == LedgerPlace(Path("/var/visits.ledger"), None, Path("folder"))
    assert table.rows == CsvFile(Path("folder/visits.csv"), ",")


@pytest.mark.parametrize(
    ("source", "extra", "rows"),
    [
        ("a.PQ", "", ParquetFile(Path("folder/a.PQ"))),
        ("a.tsv", "", CsvFile(Path("folder/a.tsv"), "\t")),
        ("a.csv", 'delimiter = ";"', CsvFile(Path("folder/a.csv"), ";")),
        ("a.dat", 'format = "csv"', CsvFile(Path("folder/a.dat"), ",")),
        ("a.csv", 'format = "parquet"', ParquetFile(Path("folder/a.csv"))),
    ],
)
def test_where_the_rows_are(source: str, extra: str, rows: object) -> None:
    text = GOOD.replace('"wages.parquet"', f'"{source}"\n{extra}')
    assert read_text(text, PLACE)["wages"].rows == rows


MISTAKES = [
    # what stands in the file, what stands there instead, the line, and what is told
    ("# a hand", "? a hand", 1, "not TOML"),
    ("[tables.wages]\n", "[tables.wages\n", 2, "not TOML"),
    ('unit = "person"', "unit = person", 4, "unit = person"),
    ('unit = "person"', 'unit = "person', 4, "not TOML"),
    ('unit = "person"', "unit =", 4, "not TOML"),
    ("\nrows = 20", "\nrows = 20\nrows = 21", 9, "not TOML"),
    ("[tables.wages.columns]", "[tables.wages]", 21, "not TOML"),
    ("upper = 80 }", "upper = 80", 26, "not TOML"),
    ("[tables.wages]\n", "[table.wages]\n", 2, 'no setting "table" (did you mean tables?)'),
    ("groups = 9", "group = 9", 6, "did you mean groups?); it may"),
    ("groups = 9", "GROUPS = 9", 6, "did you mean groups?"),
    ("epsilon = 2", "epsillon = 2", 12, "did you mean epsilon?"),
    ("lower = 0\nupper", "minimum = 0\nupper", 17, "it may have type, "),
    ('source = "wages.parquet" ', "source = 3 ", 3, "source = 3: give the path"),
    ('source = "wages.parquet" ', 'source = "" ', 3, 'source = "": give the path'),
    ('source = "wages.parquet" ', "", 2, "tables.wages needs source"),
    ("wages.parquet", "wages.xlsx", 3, 'add format = "parquet", "csv" or "jsonl"'),
    ("wages.parquet", "wages", 3, 'add format = "parquet", "csv" or "jsonl"'),
    ("groups = 9", 'format = "xlsx"', 6, 'give "parquet" or "csv"'),
    ("groups = 9", 'format = "Parquet"', 6, "did you mean parquet?"),
    ("groups = 9", 'delimiter = ";"', 6, "only a CSV file has a delimiter"),
    ('unit = "person"', "", 2, "needs unit or row"),
    ('unit = "person"', "unit = 1", 4, "give the name of the id column"),
    ('unit = "person"', 'unit = ""', 4, "give the name of the id column"),
    ('unit = "person"', 'unit = "person"\nrow = true', 5, "row = true: leave out either"),
    ('unit = "person"', "row = false", 4, "give true, or"),
    ('unit = "person"', "row = 1", 4, "give true, or"),
    ('unit = "person"', "row = true", 8, "rows = 20: each row counts once"),
    ("\nrows = 20", "", 2, "tables.wages needs rows: the most rows that one person may"),
    ('change = "replace"', 'change = "swap"', 5, 'give "add_remove" or "replace"'),
    ('change = "replace"', 'change = "REPLACE"', 5, "did you mean replace?"),
    ('change = "replace"', "change = true", 5, "change = true: give"),
    ("groups = 9", "groups = 0", 6, "groups = 0: give a whole number, 1 or"),
    ("groups = 9", "groups = -1", 6, "give a whole number, 1 or above"),
    ("groups = 9", "groups = 9.0", 6, "give a whole number, 1 or above"),
    ("groups = 9", "groups = true", 6, "groups = true: give a whole"),
    ("groups = 9", 'groups = "9"', 6, 'groups = "9": give a whole'),
    ("rows_per_group = 8", "rows_per_group = nan", 7, "= nan: give a whole number"),
    ("\nrows = 20", "\nrows = []", 8, ".rows = []: give a whole"),
    ('path = "wages.ledger"', "", 10, "tables.wages.ledger needs path"),
    ('path = "wages.ledger"', "path = 1979-05-27", 11, "path = 1979-05-27: give"),
    ("epsilon = 2", "", 10, "tables.wages.ledger needs epsilon"),
    ("epsilon = 2", "epsilon = 0", 12, "epsilon = 0: give a finite number above 0"),
    ("epsilon = 2", "epsilon = -0.5", 12, "epsilon = -0.5: give"),
    ("epsilon = 2", "epsilon = inf", 12, "epsilon = inf"),
    ("epsilon = 2", "epsilon = -nan", 12, "epsilon = "),
    ("epsilon = 2", "epsilon = true", 12, "epsilon = true"),
    ("epsilon = 2", 'epsilon = "2"', 12, 'epsilon = "2"'),
    ("epsilon = 2", "epsilon = 1e999999999", 12, "give a finite number above 0"),
    ("delta = 1e-6", "delta = 1", 13, "delta = 1: give a number from 0 up to"),
    ("delta = 1e-6", "delta = -0.1", 13, "give a number from 0 up to"),
    ("delta = 1e-6", "delta = nan", 13, "give a number from 0 up to"),
    ("delta = 1e-6", "delta = 1e-999999999", 13, "give a number from 0 up to"),
    ("delta = 1e-6", "rho = 0.5", 13, "rho and epsilon exclude each other"),
    ("delta = 1e-6", "mu = 0.5", 13, "mu and epsilon exclude each other"),
    ("epsilon = 2", "rho = 0.5", 13, "delta and rho exclude each other"),
    ("epsilon = 2", "mu = 0.5", 13, "delta and mu exclude each other"),
    ("epsilon = 2", "mu = 0", 13, "delta and mu exclude each other"),
    ("epsilon = 2\ndelta = 1e-6", "rho = 0", 12, "rho = 0: give a finite number above 0"),
    ("epsilon = 2\ndelta = 1e-6", "mu = nan", 12, "mu = nan: give a finite number above 0"),
    ("epsilon = 2\ndelta = 1e-6", "rho = 1\nmu = 1", 13, "mu and rho exclude each other"),
    ('type = "number"', "", 15, "columns.wage needs type: one of boolean, date"),
    ('type = "number"', 'type = "numeric"', 16, "did you mean number?"),
    ('type = "number"', "type = 1", 16, "type = 1: give"),
    ('type = "number"', 'type = "text"', 17, "a column of type text has no lower"),
    ("lower = 0\nupper", "upper", 17, "give both lower and upper"),
    ("lower = 0\nupper = 60.1\nnull = 0.1", "", 15, "needs lower and upper"),
    ("lower = 0\nupper", "lower = nan\nupper", 17, "lower = nan: give a finite number"),
    ("lower = 0\nupper", "lower = false\nupper", 17, "lower = false: give a finite"),
    ("lower = 0\nupper", "lower = 60.1\nupper", 17, "lower must lie below upper"),
    ("upper = 60.1", "upper = 1e200", 17, "beyond 1e100"),
    ("null = 0.1", "null = 61", 19, "must lie within the bounds"),
    ("null = 0.1", "null = inf", 19, "null = inf: give a finite number"),
    ("null = 0.1", "keys = [1]", 19, "a column of type number has no keys"),
    ("upper = 80", "upper = 80.5", 26, "whole numbers"),
    ("upper = 80", "upper = 9223372036854775808", 26, "64 bits"),
    ('"1980..1982"', '"1982..1980"', 22, 'such as "1980..1987"'),
    ('"1980..1982"', '"1980-1982"', 22, 'such as "1980..1987"'),
    ('"1980..1982"', '"0..9999999999"', 22, "1,000,000 keys at most"),
    ('"1980..1982"', "1980", 22, "give a list"),
    ('"1980..1982"', "[1980, 1981.0]", 22, "whole number"),
    ('"1980..1982"', "[1980, true]", 22, "each must be a whole number"),
    ('"1980..1982"', '[1980, "1981"]', 22, "each must be a whole number"),
    ('"1980..1982"', "[1981, 1981]", 22, "each once"),
    ('"1980..1982"', "[]", 22, "at least one"),
    ("null = 1981", "null = 1", 22, "must be one of the keys"),
    ("null = 1981", "null = 1981.0", 22, "null = 1981.0: give a whole number"),
    ("null = false", "null = 0", 23, "null = 0: give true or false"),
    ("null = false", "keys = [true]", 23, "a column of type boolean has no keys"),
    ('["cook", "clerk"]', '["cook", 3]', 24, "each must be a text"),
    ('["cook", "clerk"]', '"cook"', 24, 'keys = "cook": give a list'),
    ("1980-01-02,", '"1980-01-02",', 25, "each must be a day without quotes"),
    ("1980-01-02,", "1980-01-02T10:00:00,", 25, "each must be a day"),
    ("[tables.wages.columns.wage]", "[[tables.wages.columns.wage]]", 15, "as a table"),
    ('day = { type = "date",', "day = 3 #", 25, "day = 3: write it as a table"),
]


@pytest.mark.parametrize(("there", "instead", "line", "told"), MISTAKES)
def test_an_error_names_the_line_of_a_mistake(
    there: str, instead: str, line: int, told: str
) -> None:
    assert GOOD.count(there) >= 1
    text = GOOD.replace(there, instead, 1)
    with pytest.raises(DeclarationError) as error:
        read_text(text, PLACE)
    assert str(error.value).startswith(f"{PLACE}, line {line}: ")
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1", "the file has no setting"),
        ("[service]\nrate = 1", "line 2: service has no setting"),
        ("x = " + "[" * 2000, "nested too deeply"),
        ("x = " + "1" * 5_000, "not TOML"),
    ],
)
def test_a_mistake_of_the_whole_file(text: str, told: str) -> None:
    with pytest.raises(DeclarationError, match=told):
        read_text(text, PLACE)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("", ServiceFacts()),
        ("requests_per_second = 7", ServiceFacts(requests_per_second=7)),
        ("worker_memory = 512", ServiceFacts(worker_memory=512)),
    ],
)
def test_an_owner_sets_up_a_service(written: str, found: ServiceFacts) -> None:
    text = f"{GOOD}\n[service]\n{written}\n"
    assert read_text(text, PLACE)
    assert service_facts(text, PLACE) == found
    assert service_facts(GOOD, PLACE) == ServiceFacts()


@pytest.mark.parametrize("value", ["0", '"7"', "true", "{ a = 1 }"])
def test_databases_of_a_service_are_a_list(value: str) -> None:
    with pytest.raises(DeclarationError, match=r"line 2: .*give a list of addresses of databases"):
        service_facts(f"[service]\ndatabases = {value}\n{GOOD}", PLACE)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", '"7"', "true", "[7]", "inf"])
@pytest.mark.parametrize("name", sorted({*SERVICE} - {"databases"}))
def test_numbers_of_a_service_are_whole(name: str, value: str) -> None:
    text = f"[service]\n{name} = {value}\n{GOOD}"
    for read in (read_text, service_facts):
        with pytest.raises(DeclarationError, match=r"line 2: .*give a whole number, 1 or above"):
            read(text, PLACE)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "no such file"),
        (b"[tables]", "it declares no table"),
        (b"\xff\xfe", "UTF-8"),
        ("folder", "can't be read"),
    ],
)
def test_a_file_that_cannot_be_read(content: bytes | str | None, told: str, tmp_path: Path) -> None:
    file = tmp_path / "discreet.toml"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content:
        file.mkdir()
    with pytest.raises(DeclarationError, match=told):
        _declaration_file.read(file)


def test_a_byte_order_mark_and_other_line_ends_are_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "discreet.toml"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert list(_declaration_file.read(file)) == ["wages"]


@pytest.mark.parametrize(
    ("text", "limit"), [("rho = 0.1", RhoLimit(0.1)), ("mu = 2", MuLimit(2))], ids=repr
)
def test_limits_of_other_kinds(text: str, limit: AnyLimit) -> None:
    read = read_text(GOOD.replace("epsilon = 2\ndelta = 1e-6", text), PLACE)
    assert read["wages"].limit == limit


def test_one_source_has_one_ledger() -> None:
    again = GOOD.replace("tables.wages", "tables.pay").replace("wages.parquet", "./wages.parquet")
    assert list(read_text(GOOD + again, PLACE)) == ["wages", "pay"]
    with pytest.raises(DeclarationError, match=r"line 36: tables\.pay and tables\.wages have the"):
        read_text(GOOD + again.replace("wages.ledger", "pay.ledger"), PLACE)


LAYOUTS = """\

# [not.a.table]
top = 1
"quoted key" = '''
several
lines ] = 3
'''
'single = quoted' = "]"
dotted.key = 2
dotted . "other key" = [ # ]
  1, # ]
  [2,
   3],
  "]", '''
]''',
]
inline = { one = 1, two = { three = [
  1 ] } }
[ spaced . header ] # comment
inside = \"\"\"\\
   continued ]
   \"\"\"
  indented = true
["a.b".c]
day = 1979-05-27
[a]
b.c.d = 1
b.c.e = 1
[a.f]
g = [[]]
h = 1
[[many]]
first = 1
[[many]]
second = 2
[many.under]
third = 3
"""


def test_each_entry_stands_where_it_begins() -> None:
    lines = _located_toml.lines(LAYOUTS)
    shown = LAYOUTS.split("\n")
    for keys, line in lines.items():
        assert keys[-1] in shown[line - 1], keys
    found = {".".join(keys): line for keys, line in lines.items()}
    for name in ("top", "quoted key", "single = quoted", "inside", "indented", "g", "h", "third"):
        ((_, line),) = [item for item in found.items() if item[0].endswith(name)]
        assert shown[line - 1].lstrip(" \"'").startswith(name)
    assert found["inline.two.three"] == found["inline"]
    assert found["a.b.c.e"] == found["a.b.c.d"] + 1


def test_a_long_list_of_keys_takes_little_time() -> None:
    keys = "\n".join(f'    "key {number} #",' for number in range(5_000))
    text = GOOD.replace('["cook", "clerk"]', f"[\n{keys}\n]").replace("upper = 80", "upper = true")
    with pytest.raises(DeclarationError, match="line 5027: "):
        read_text(text, PLACE)


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs" / "declaration.md").read_text(encoding="utf-8")
    settings = {
        *_declaration_file.TABLE,
        *_declaration_file.LEDGER,
        *_declaration_file.SERVICE,
        *(key for keys in _declared_columns.COLUMN.values() for key in keys),
    }
    words = settings | {kind.value for kind in ColumnType} | {form.value for form in FileFormat}
    assert [word for word in sorted(words) if f"`{word}`" not in page] == []


# opening


def test_tables_are_opened_when_they_are_needed(tmp_path: Path) -> None:
    file = tmp_path / "discreet.toml"
    file.write_text(GOOD)
    tables = _declaration_file.open(file)
    assert list(tables) == ["wages"]
    assert "wages" in tables
    assert tables["wages"].declaration == tables.file("wages").declaration
    tables["wages"].question("SELECT COUNT(*) FROM wages").forecast(epsilon=1)
    assert [path.name for path in tmp_path.iterdir()] == ["discreet.toml"]
    assert tables["wages"].ledger is not None
    assert (tmp_path / "wages.ledger").exists()


def test_the_error_for_an_unknown_table_lists_the_tables(tmp_path: Path) -> None:
    file = tmp_path / "discreet.toml"
    file.write_text(GOOD)
    tables = _declaration_file.open(file)
    with pytest.raises(InvalidArgument, match=r"no table 'wage' \(did you mean wages\?\)") as error:
        tables["wage"]
    assert isinstance(error.value, KeyError)
    assert "it declares wages" in str(error.value)
    assert tables.get("wage") is None
    assert "wage" not in tables


# writing

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1)
decimals = st.decimals(min_value=-1000, max_value=1000, allow_nan=False, allow_infinity=False)
deltas = st.sampled_from(["0", "1e-6", "0.50", "1E-12"]).map(Decimal)


@st.composite
def columns(draw: st.DrawFn) -> dict[str, Setting]:
    kind = draw(st.sampled_from(ColumnType))
    column: dict[str, Setting] = {"type": kind.value}
    if kind is ColumnType.NUMBER:
        lower = draw(decimals)
        column |= {"lower": lower, "upper": lower + draw(st.integers(1, 10)), "null": lower}
    if kind is ColumnType.TEXT and draw(st.booleans()):
        column["keys"] = draw(st.lists(names, min_size=1, max_size=20, unique=True))
    if kind is ColumnType.INTEGER and draw(st.booleans()):
        column["keys"] = "-1..7"
    if kind is ColumnType.DATE:
        column["keys"] = draw(st.lists(st.dates(), min_size=1, max_size=5, unique=True))
    return column


@st.composite
def tables(draw: st.DrawFn) -> dict[tuple[str, ...], Setting]:
    table: dict[tuple[str, ...], Setting] = {
        ("source",): draw(st.sampled_from(["a.csv", 'odd "name".parquet', "sub/ü.parquet"])),
        ("unit",): draw(names.filter(str.strip)),
        ("rows",): draw(st.integers(1, 10**6)),
        ("ledger", "path"): "one.ledger",
        ("ledger", "epsilon"): draw(decimals.filter(lambda number: number > 0)),
        ("ledger", "delta"): draw(deltas),
    }
    for name, column in draw(st.dictionaries(names, columns(), min_size=1, max_size=4)).items():
        table |= {("columns", name, key): setting for key, setting in column.items()}
    return table


@settings(max_examples=40)
@given(names.filter(str.strip), tables())
def test_written_tables_are_read_back(name: str, table: dict[tuple[str, ...], Setting]) -> None:
    text = added("", name, table, PLACE)
    read = read_text(text, PLACE)[name]
    assert read.source == PLACE.parent / str(table["source",])
    assert read.declaration.unit == Unit(str(table["unit",]))
    assert read.declaration.caps == Caps(int(str(table["rows",])))
    assert read.limit == Limit(table["ledger", "epsilon"], table["ledger", "delta"])  # type: ignore[arg-type]
    assert set(read.declaration.columns) == {keys[1] for keys in table if keys[0] == "columns"}
    for keys, setting in table.items():
        if keys[-1] in ("lower", "upper", "null"):
            assert getattr(read.declaration.columns[keys[1]], keys[-1]) == Fraction(str(setting))
        if keys[-1] == "keys" and isinstance(setting, list):
            assert read.declaration.columns[keys[1]].keys == tuple(sorted(setting))
    assert added(text, name, table, PLACE) == text  # once more changes nothing


@settings(max_examples=30)
@given(tables())
def test_everything_else_stays(table: dict[tuple[str, ...], Setting]) -> None:
    text = added(GOOD, "other", table, PLACE)
    assert text.startswith(GOOD)
    assert read_text(text, PLACE)["wages"] == read_text(GOOD, PLACE)["wages"]


HAND = [
    """\
# one
[tables.b] # two
source = "b.csv" # three

unit = "id"
rows = 9

# four
[tables.b.ledger] # five
path = "b.ledger" # six
# seven
epsilon = 0.10 # eight
# nine
[tables.b.columns.wage] # ten
type = "number" # eleven
lower = 0
upper = 1_000.0 # twelve
# thirteen
""",
    """\
# one
tables.b.source = 'b.csv' # two
tables.b.unit = "id" # three
tables.b.rows = 9
tables.b.ledger = { path = "b.ledger", epsilon = 0.10 } # four
# five
tables.b.columns.wage = { type = "number", lower = 0, upper = 1_000.0 } # six
# seven
""",
    """\
[tables.b] # one
source = "b.csv" # two
unit = "id" # three
rows = 9
columns.wage.type = "number" # four
columns.wage.lower = 0 # five
columns.wage.upper = 1e3 # six
[tables.b.ledger] # seven
path = "b.ledger" # eight
epsilon = 0.10 # nine
""",
]


@pytest.mark.parametrize("text", HAND)
def test_comments_and_order_stay(text: str) -> None:
    new = added(
        text,
        "b",
        {
            ("ledger", "delta"): Decimal("1e-6"),
            ("columns", "wage", "upper"): Decimal(80),
            ("columns", "year", "type"): "integer",
            ("columns", "year", "keys"): "1980..1987",
        },
        PLACE,
    )
    assert list(comments(new)) == list(comments(text))
    table = read_text(new, PLACE)["b"]
    assert table.limit == Limit(Fraction(1, 10), Fraction(1, 10**6))
    assert list(table.declaration.columns) == ["wage", "year"]
    assert table.declaration.columns["wage"] == Column.number(0, 80)
    kept = [line for line in new.split("\n") if line in text.split("\n")]
    changed = [line for line in text.split("\n") if line not in kept]
    assert len(changed) <= 2


def test_a_layout_that_cannot_be_extended_is_refused_and_unchanged() -> None:
    with pytest.raises(DeclarationError):
        added("[[tables]]\nx = 1\n", "b", {("groups",): 3}, PLACE)


def test_a_mistake_is_not_written() -> None:
    with pytest.raises(DeclarationError, match="groups = 0"):
        added(GOOD, "wages", {("groups",): 0}, PLACE)


def test_a_file_is_replaced_at_once(tmp_path: Path) -> None:
    file = tmp_path / "discreet.toml"
    save(file, "one")
    assert file.stat().st_mode & 0o777 == 0o644
    file.chmod(0o600)
    save(file, "zwei: ü\r\n")
    assert file.read_bytes() == "zwei: ü\r\n".encode()
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["discreet.toml"]


def test_the_error_names_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="can't be written"):
        save(tmp_path / "gone" / "discreet.toml", "one")


def comments(text: str) -> Iterator[str]:
    return iter(re.findall(r"# \w+", text))
