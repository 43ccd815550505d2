"""``discreet declare`` and ``discreet tables``: write and list the declarations of tables."""

import re
import shlex
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from discreet.cli._asking_at import list_at
from discreet.cli._options import (
    AtOption,
    FileOption,
    TokenFileOption,
    above_zero,
    from_zero,
    some_text,
    tables_at,
)
from discreet.cli._output import busy, near, say, show, table

if TYPE_CHECKING:
    from discreet.cli._proposal import Proposal
    from discreet.query import Column
    from discreet.query._toml._declaration_edit import Setting
    from discreet.query._toml._declared_files import TableFile
    from discreet.query._toml._located_toml import Keys

_FILE = Path("discreet.toml")
_MOST_COLUMNS = 10  # on lines of their own
_MOST_REASONS = 4
_FEW = 3

Many = list[str] | None

# the options of `declare`, by the panel of its help that lists them
_unit_option = partial(typer.Option, rich_help_panel="The protected unit")
_cap_option = partial(_unit_option, metavar="COUNT", min=1)
_column_option = partial(typer.Option, rich_help_panel="Public facts of columns")
_budget_option = partial(typer.Option, rich_help_panel="The budget")
_source_option = partial(typer.Option, rich_help_panel="The source file")


def declare(  # noqa: PLR0913  # each is an option of the command
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A Parquet, CSV or JSON lines file, a folder of them, or the address of a table.",
            show_default=False,
        ),
    ],
    *,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            parser=some_text,
            help="The table's name; the file's name, unless given.",
        ),
    ] = None,
    unit: Annotated[
        list[str] | None,
        _unit_option(
            metavar="COLUMN",
            help="Protect all rows under one id of this column; texts are compared as texts. Name "
            "several if only together they tell units apart.",
        ),
    ] = None,
    row: Annotated[bool, _unit_option("--row", help="Protect each row by itself.")] = False,
    through: Annotated[
        Many,
        _unit_option(
            metavar="KEY=TABLE.KEY",
            help="The rows have a key in place of an id: this column is that key of a declared "
            "table, which has the ids, as in order_id=orders.id. May be repeated.",
        ),
    ] = None,
    change: Annotated[
        Literal["add_remove", "replace"] | None,
        _unit_option(
            help="Neighbouring tables have one unit more or less (the default), or one replaced."
        ),
    ] = None,
    rows: Annotated[
        int | None,
        _cap_option(
            help="A unit counts for at most this many rows in all; needed with --unit. With "
            "--through, the most rows of one key."
        ),
    ] = None,
    groups: Annotated[
        int | None, _cap_option(help="For less noise: it counts in at most this many groups.")
    ] = None,
    rows_per_group: Annotated[
        int | None,
        _cap_option(help="For less noise: it counts for at most this many rows in each group."),
    ] = None,
    bound: Annotated[
        Many,
        _column_option(
            metavar="COLUMN=LOWER..UPPER", help="Clamp values to this range, as SUM and AVG need."
        ),
    ] = None,
    key: Annotated[
        Many,
        _column_option(
            metavar="COLUMN=A,B,…", help="All values that GROUP BY shows; 1980..1987 is a range."
        ),
    ] = None,
    null: Annotated[
        Many,
        _column_option(
            metavar="COLUMN=VALUE",
            help="The value in place of NULL; NULL is skipped, unless given.",
        ),
    ] = None,
    column_type: Annotated[
        Many,
        _column_option(
            "--type",
            metavar="COLUMN=TYPE",
            help="boolean, date, integer, number or text; by default the type in the file.",
        ),
    ] = None,
    date_format: Annotated[
        Many,
        _column_option(
            metavar="COLUMN=FORMAT",
            help="The format of dates in text, such as %d/%m/%Y; 2013-01-02 needs none.",
        ),
    ] = None,
    zone: Annotated[
        Many,
        _column_option(
            metavar="COLUMN=ZONE",
            help="The time zone whose days timestamps with a zone are in, such as Europe/Berlin.",
        ),
    ] = None,
    decimals: Annotated[
        Many,
        _column_option(
            metavar="COLUMN=DIGITS",
            help="The digits after the point of exact numbers, such as 2 for prices.",
        ),
    ] = None,
    epsilon: Annotated[
        Decimal | None,
        _budget_option(
            metavar="NUMBER", parser=above_zero, help="The limit of all charges together."
        ),
    ] = None,
    delta: Annotated[
        Decimal | None,
        _budget_option(
            metavar="NUMBER", parser=from_zero, help="The limit's delta; Gaussian noise needs one."
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        _budget_option(
            metavar="PATH",
            parser=some_text,
            help="The file of its ledger, or its address in PostgreSQL; NAME.ledger, unless given.",
        ),
    ] = None,
    anchor: Annotated[
        str | None,
        _budget_option(
            metavar="PATH",
            help="A file elsewhere, or postgresql://host/database?anchor=NAME, by which an older "
            "copy of the ledger is noticed.",
        ),
    ] = None,
    suggest: Annotated[
        Decimal | None,
        _budget_option(
            metavar="EPSILON",
            parser=above_zero,
            help="Pay this to find the cap on rows, and bounds that are not given, from the rows.",
        ),
    ] = None,
    suggest_delta: Annotated[
        Decimal | None,
        _budget_option(
            metavar="DELTA",
            parser=from_zero,
            help="Pay this as well, with --suggest, to find keys of texts.",
        ),
    ] = None,
    suggest_column: Annotated[
        list[str] | None,
        _budget_option(
            metavar="COLUMN",
            help="Pay for the bounds or keys of this column; without it, all columns share the "
            "price.",
        ),
    ] = None,
    source_format: Annotated[
        Literal["parquet", "csv"] | None,
        _source_option(
            "--format",
            help="The file's format, if its name ends neither in .parquet nor in .csv.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None, _source_option(metavar="CHARACTER", help="The delimiter of a CSV file.")
    ] = None,
    file: FileOption = _FILE,
) -> None:
    """Declare a table: its public facts, and the limit of its budget.

    The command reads the schema of SOURCE and, to propose types for texts, its first rows; both
    count as public. Check the types that it writes. State bounds and keys from public knowledge,
    not from the data. If the table is declared already, only the given options change.

    Examples:

    discreet declare wages.parquet --unit person --rows 8
    --bound wage=0..60 --key year=1980..1987 --epsilon 2 --delta 1e-6

    discreet declare wages.parquet --bound hours=0..80

    discreet declare wages.parquet --unit person --epsilon 2 --suggest 0.1
    """
    from discreet.cli._proposal import TableOptions, ledger_beside, propose
    from discreet.cli._suggesting import with_suggestions
    from discreet.query._engines._address import address_of, is_address
    from discreet.query._toml._declaration_edit import commented, save

    if suggest is None and suggest_delta is not None:
        raise typer.BadParameter("it needs --suggest too", param_hint="'--suggest-delta'")
    if suggest is None and suggest_column:
        raise typer.BadParameter("it needs --suggest too", param_hint="'--suggest-column'")

    # collect the settings, then make the whole file, which is checked before it is written
    settings: dict[Keys, Setting | None] = {
        ("unit",): _one_or_several(unit),
        ("row",): row or None,
        ("change",): change,
        ("rows",): rows,
        ("groups",): groups,
        ("rows_per_group",): rows_per_group,
        ("ledger", "path"): None if ledger is None else ledger_beside(ledger, file),
        ("ledger", "anchor"): None if anchor is None else ledger_beside(anchor, file),
        ("ledger", "epsilon"): epsilon,
        ("ledger", "delta"): delta,
    }
    place = address_of(source) if is_address(source) else Path(source)
    usual_name = place.stem if isinstance(place, Path) else place.name
    wanted = TableOptions(
        name or re.sub(r"\W+", "_", usual_name),
        place,
        source_format,
        delimiter and delimiter.replace(r"\t", "\t"),
        {keys: setting for keys, setting in settings.items() if setting is not None},
        through or [],
        {
            "--bound": bound or [],
            "--key": key or [],
            "--null": null or [],
            "--type": column_type or [],
            "--date-format": date_format or [],
            "--zone": zone or [],
            "--decimals": decimals or [],
        },
    )
    comments: Mapping[Keys, str] = {}
    if suggest is not None:
        with busy("looking for caps, bounds and keys"):
            wanted, comments, said = with_suggestions(
                file, wanted, suggest, suggest_delta or 0, chosen=suggest_column or None
            )
        for line in said:
            say(line)
    proposal = propose(file, wanted)
    save(file, commented(proposal.text, wanted.name, comments))
    say(f"wrote {file}", "green")
    _report(proposal, file)


def _one_or_several(names: list[str] | None) -> str | list[str] | None:
    return names[0] if names and len(names) == 1 else names or None


def tables(
    *, at: AtOption = None, token_file: TokenFileOption = None, file: FileOption = _FILE
) -> None:
    """List the declared tables with their public facts.

    Example:

    discreet tables
    """
    if (served := tables_at(at, token_file)) is not None:
        list_at(served)
        return
    from discreet.query._toml import _declaration_file

    for declared in _declaration_file.read(file).values():
        _describe(declared)


def _report(proposal: "Proposal", file: Path) -> None:
    """Show what was written, what is missing, and what to do next, on one screen."""
    from discreet.query._expressions._expression_text import quoted

    of_file = "" if file == _FILE else f" --file {shlex.quote(str(file))}"
    _describe(proposal.table, is_short=True, of_file=of_file)
    for names, why in _alike(proposal.left_out):
        say(f"left out {names}: {why}", "yellow")
    facts = proposal.table.declaration
    sql = f"SELECT COUNT(*) FROM {quoted(facts.name)}"  # noqa: S608  # shown, not run
    say(f"next: discreet ask {shlex.join([facts.name, sql])} --epsilon 0.1 --forecast{of_file}")


def _describe(declared: "TableFile", *, is_short: bool = False, of_file: str = "") -> None:
    """Show a table's unit, limit and columns; in the short form, equal columns on one line."""
    facts = declared.declaration
    show(Text(f"{facts.name}: protects {facts.unit}", "bold"))
    show(f"rows in {declared.source}, at most {declared.limit} by {near(declared.ledger)}")
    if facts.unit.column is not None:
        show(f"one {facts.unit.column} counts for {facts.caps.in_words()}")
    for note in facts.notes:
        show(note)
    head = ["column", "type", "values", "use"]
    lines = [[name, *_column(column)] for name, column in facts.columns.items()]
    if is_short and len(lines) > _MOST_COLUMNS:
        found: dict[tuple[str, ...], list[str]] = {}
        for name, *public in lines:
            found.setdefault(tuple(public), []).append(name)
        lines = [[_listed(names), *public] for public, names in found.items()]
        hidden = len(lines) - _MOST_COLUMNS
        lines = lines[:_MOST_COLUMNS]
    else:
        hidden = 0
    show(table(head, lines, left=len(head)))
    if hidden > 0:
        show(f"and {hidden} more kinds of columns: discreet tables{of_file} lists all")


def _alike(left_out: Mapping[str, str]) -> list[tuple[str, str]]:
    """The columns that are left out for one reason, and the reason; few columns one by one."""
    found: dict[str, list[str]] = {}
    for name, why in left_out.items():
        found.setdefault(why.replace(f"{name}=", "COLUMN="), []).append(name)
    if len(left_out) <= _FEW:
        return list(left_out.items())
    reasons = list(found.items())
    shown_reasons = [
        (_listed(names), why if len(names) > 1 else left_out[names[0]]) for why, names in reasons
    ]
    more = len(shown_reasons) - _MOST_REASONS
    if more > 0:
        others = sum(len(names) for _, names in reasons[_MOST_REASONS:])
        last = (f"{others} more columns", "declare each by itself to see why")
        return [*shown_reasons[:_MOST_REASONS], last]
    return shown_reasons


def _listed(names: Sequence[str]) -> str:
    """The names, or the first few and the number of the others."""
    more = len(names) - _FEW
    return ", ".join(names[:_FEW]) + (f", … ({more} more)" if more > 0 else "")


def _column(column: "Column") -> list[str]:
    """A column's type, public values, and the clauses that can use it."""
    from discreet.query import ColumnType

    uses, has_keys = ["WHERE", "COUNT"], column.keys is not None
    if column.range is not None:
        uses += [] if column.type is ColumnType.DATE else ["SUM", "AVG"]
        has_keys |= column.type in (ColumnType.DATE, ColumnType.INTEGER)
    uses += ["GROUP BY"] if has_keys else []
    return [*column.in_words, ", ".join(uses)]
