"""``discreet ask``, ``explain`` and ``check``: answer a question, explain it, check a column."""

import json
import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from discreet.cli._answers import (
    answer_json,
    cost_json,
    forecast_json,
    say_cost,
    show_answer,
    show_forecast,
    write_file,
)
from discreet.cli._asking_at import AnswerOutput, RemotePrice, ask_at, check_at, explain_at
from discreet.cli._before_paying import asked_price, is_repeated, warn
from discreet.cli._diagnosing import check_both, diagnosed, write_both
from discreet.cli._exit_codes import log_to
from discreet.cli._failures import Stopped
from discreet.cli._options import (
    AtOption,
    ByOption,
    ConfidenceOption,
    DeltaOption,
    EpsilonOption,
    FileOption,
    JsonOption,
    NoiseName,
    NoiseOption,
    OptionalEpsilonOption,
    RequestOption,
    SqlArgument,
    TableArgument,
    TokenFileOption,
    WeightsOption,
    WithinOption,
    above_zero,
    login,
    tables_at,
    weights,
    within_of,
)
from discreet.cli._output import busy, near, say, show, write_json
from discreet.errors import UselessAnswerWarning

if TYPE_CHECKING:
    from discreet.query import Noise
    from discreet.query._toml._declared_files import TableFile

_FILE = Path("discreet.toml")
_NO_DELTA = Decimal(0)
_CONFIDENCE = Decimal("0.95")
_FREE = "request {0}: repeat it with --request {0} for the same answer, free of charge"
_LOST = "request {0} was paid, but stopped before its answer was stored: ask again and pay again"


def ask(  # noqa: PLR0913  # each is an option of the command
    name: TableArgument,
    sql: SqlArgument,
    *,
    epsilon: OptionalEpsilonOption = None,
    within: WithinOption = None,
    delta: DeltaOption = _NO_DELTA,
    confidence: ConfidenceOption = _CONFIDENCE,
    forecast: Annotated[
        bool,
        typer.Option(
            "--forecast",
            help="Only show cost and expected errors; spends nothing and reads no data.",
        ),
    ] = False,
    group_size: Annotated[
        int | None,
        typer.Option(
            metavar="ROWS",
            min=1,
            help="The number of rows in a group, for the errors of --forecast and --within.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Pay even if the answer will tell nothing; don't ask.")
    ] = False,
    diagnose: Annotated[
        Decimal | None,
        typer.Option(
            metavar="EPSILON",
            parser=above_zero,
            help="Pay this as well, to learn how much the caps and bounds cut.",
        ),
    ] = None,
    noise: NoiseOption = None,
    weight: WeightsOption = None,
    request: RequestOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    parquet: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write the answer to a Parquet file.")
    ] = None,
    receipt: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write the receipt, for `discreet verify`."),
    ] = None,
    at: AtOption = None,
    token_file: TokenFileOption = None,
    file: FileOption = _FILE,
) -> None:
    """Ask a question and pay for it; each number of the answer has an interval.

    Examples:

    discreet ask wages "SELECT AVG(wage), COUNT(*) FROM wages" --epsilon 0.5 --forecast

    discreet ask wages "SELECT year, AVG(wage) FROM wages GROUP BY year" --epsilon 0.5
    """
    from discreet import query

    # 1. check everything that can be checked before the charge
    _check_output(as_json=as_json, as_csv=as_csv, parquet=parquet, forecast=forecast)
    _check_path(receipt, "--receipt")
    none = {"within": within, "group_size": group_size, "weight": weight}
    tables = tables_at(at, token_file, **none, by=by)
    if tables is not None:
        price = RemotePrice.of(epsilon, delta, confidence, _noise(noise, delta))
        output = AnswerOutput(as_json, as_csv, parquet, receipt, is_forecast=forecast)
        asked, is_asked = tables[name].question(sql), not (yes or as_json)
        ask_at(asked, price, output, request=request, is_asked=is_asked, diagnose=diagnose)
        return
    declared = query.open(file).file(name)
    question = declared.table().question(sql)
    named = asked_price(
        question,
        epsilon,
        within_of(within, question),
        query.QuestionPrice(
            1, delta, noise=_noise(noise, delta), weights=weights(weight, question)
        ),
        group_size=group_size,
        confidence=confidence,
    )
    predicted = question.forecast(named, confidence=confidence, group_size=group_size)
    # 2. forecast, or pay and ask
    if forecast:
        show_forecast(predicted, delta, as_json=as_json)
        return
    log_to(declared.ledger.log)
    by = by or login()
    check_both(declared, question, named, diagnose, confidence=confidence, by=by, request=request)
    if predicted.warnings and not is_repeated(declared, by, request):
        warn(predicted, is_asked=not (yes or as_json))
    is_repeat, request = request is not None, request or secrets.token_hex(8)
    is_new_ledger = not declared.ledger.exists()
    with (
        _stopped(declared, by, request),
        busy(f"asking {declared.engine}"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", UselessAnswerWarning)  # it was shown above
        answer = question.release(named, confidence=confidence, by=by, request=request)
    say(_FREE.format(request))
    # 3. the answer on stdout, its cost on stderr
    if not as_json:
        show_answer(answer, as_csv=as_csv, parquet=parquet)
    for note in answer.notes:
        say(note)
    if receipt is not None:
        write_file(receipt, lambda: receipt.write_text(f"{answer.receipt.to_json()}\n", "utf-8"))
    _say_news(
        created=declared.ledger if is_new_ledger else None,
        missed=request if is_repeat and answer.receipt.stored is None else None,
        by=by,
    )
    say_cost("question", answer.receipt, answer.privacy_loss, delta)

    # 4. the diagnosis, for a charge of its own
    def cuts() -> dict[str, object]:
        return diagnosed(
            question, diagnose, confidence=confidence, by=by, request=request, is_shown=not as_json
        )

    if as_json:
        write_both(answer_json(answer, delta), cuts)
    else:
        cuts()


def _say_news(*, created: object | None, missed: str | None, by: str) -> None:
    """Say that a ledger was created, or that a request had no earlier answer."""
    if created is not None:
        say(f"created the ledger {near(created)}")
    if missed is not None:
        say(f"request {missed} is new for {by}: no earlier answer was found")


def explain(  # noqa: PLR0913  # each is an option of the command
    name: TableArgument,
    sql: SqlArgument,
    *,
    epsilon: EpsilonOption,
    delta: DeltaOption = _NO_DELTA,
    confidence: ConfidenceOption = _CONFIDENCE,
    noise: NoiseOption = None,
    weight: WeightsOption = None,
    as_json: JsonOption = False,
    at: AtOption = None,
    token_file: TokenFileOption = None,
    file: FileOption = _FILE,
) -> None:
    """Explain a question: its assumptions, cost and expected errors; reads no data.

    Example:

    discreet explain wages "SELECT year, AVG(wage) FROM wages GROUP BY year" --epsilon 0.5
    """
    from discreet import query

    tables = tables_at(at, token_file, weight=weight)
    if tables is not None:
        price = RemotePrice.of(epsilon, delta, confidence, _noise(noise, delta))
        explain_at(tables[name].question(sql), price, as_json=as_json)
        return
    question = query.open(file)[name].question(sql)
    explanation = question.explain(
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        noise=_noise(noise, delta),
        weights=weights(weight, question),
    )
    if as_json:
        sections = {title: list(lines) for title, lines in explanation.sections}
        write_json({"explanation": sections, **forecast_json(explanation.forecast, delta)})
        return
    for title, lines in explanation.sections:
        show(Text(title, "bold"))
        for line in lines:
            show(f"  - {line}")
    show(Text("Expected errors", "bold"))
    show(str(explanation.forecast))


def check(  # noqa: PLR0913  # each is an option of the command
    name: TableArgument,
    column: Annotated[
        str, typer.Argument(metavar="COLUMN", help="A declared column.", show_default=False)
    ],
    *,
    epsilon: EpsilonOption,
    confidence: ConfidenceOption = _CONFIDENCE,
    request: RequestOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
    at: AtOption = None,
    token_file: TokenFileOption = None,
    file: FileOption = _FILE,
) -> None:
    """Check a column's declaration: the share of its values that became NULL; costs one count.

    Values that the declared type can't hold become NULL, and every answer skips them.

    Example:

    discreet check wages wage --epsilon 0.1
    """
    from discreet import query

    tables = tables_at(at, token_file, by=by)
    if tables is not None:
        price = {"epsilon": epsilon, "confidence": confidence}
        check_at(tables[name], column, **price, request=request, as_json=as_json)
        return
    declared = query.open(file).file(name)
    log_to(declared.ledger.log)
    by, request = by or login(), request or secrets.token_hex(8)
    with _stopped(declared, by, request), busy("checking"):
        share = declared.table().share_of_null(
            column, epsilon=epsilon, confidence=confidence, by=by, request=request
        )
    if not as_json:
        show(str(share))
    say_cost("check", share.receipt, share.privacy_loss, _NO_DELTA)
    if as_json:
        shown = {
            "column": share.column,
            "type": share.type,
            "share": share.share,
            "share_low": share.low,
            "share_high": share.high,
            "confidence": float(share.confidence),
            **cost_json(share.privacy_loss, _NO_DELTA),
            "receipt": json.loads(share.receipt.to_json()),
        }
        write_json(shown)


@contextmanager
def _stopped(declared: "TableFile", by: str, request: str) -> Iterator[None]:
    """Within, a stop by Ctrl-C says whether the request was paid, and whether its answer is
    stored."""
    from discreet.ledger import Kind

    try:
        yield
    except KeyboardInterrupt:
        if not declared.ledger.exists():
            raise
        history = declared.open_ledger().history()
        asked = (by, request)
        paid = {e.number for e in history if e.kind is Kind.CHARGE and (e.by, e.request) == asked}
        if not paid:
            raise
        is_stored = any(e.kind is Kind.ANSWER and e.about in paid for e in history)
        raise Stopped((_FREE if is_stored else _LOST).format(request), request) from None


def _check_output(*, as_json: bool, as_csv: bool, parquet: Path | None, forecast: bool) -> None:
    """Check the output options before anything is paid."""
    if as_json + as_csv + (parquet is not None) > 1:
        raise typer.BadParameter("give one of them", param_hint="'--json' / '--csv' / '--parquet'")
    if forecast and (as_csv or parquet is not None):
        raise typer.BadParameter("use it without --csv and --parquet", param_hint="'--forecast'")
    _check_path(parquet, "--parquet")


def _check_path(path: Path | None, option: str) -> None:
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise typer.BadParameter(
            f"{str(path)!r}: give the path of a file in an existing folder",
            param_hint=f"'{option}'",
        )


def _noise(name: NoiseName | None, delta: Decimal) -> "Noise | None":
    from discreet.query import Noise

    if name == "gaussian" and not delta:
        raise typer.BadParameter(
            "gaussian needs a delta: name one too, such as --delta 1e-6", param_hint="'--noise'"
        )
    return None if name is None else Noise(name)
