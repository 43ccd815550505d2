"""``discreet audit``: measure the privacy of functions of the user's own, on made-up data.

Each command is one audit. Without the name of an audit, ``discreet audit`` means ``black-box``.
"""

from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from discreet._exact import fraction
from discreet.cli._audited import (
    NO_DELTA,
    ClaimedDeltaOption,
    ClaimedEpsilonOption,
    ClaimOption,
    HtmlOption,
    claimed,
    end,
    imported,
    needed,
    users_code,
)
from discreet.cli._options import JsonOption, above_zero, between
from discreet.cli._output import progress, say

_BLACK_BOX = "black-box"
_SAMPLES = 100_000
_TRIES, _OUTPUTS = 400, 400
_CONFIDENCE = Decimal("0.999999999")


class _AuditGroup(TyperGroup):
    """The audits; a function in place of an audit's name is a black box."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # Typer's own class of contexts
        first = args[0] if args else ""
        is_command = ":" not in first and bool(get_close_matches(first, self.commands))
        if not is_command and any(":" in one for one in args):
            args = [_BLACK_BOX, *args]
        return super().parse_args(ctx, args)


audits = typer.Typer(cls=_AuditGroup, no_args_is_help=True)

PairsArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:PAIRS", help="A list of pairs of neighbouring datasets.", show_default=False
    ),
]

SamplesOption = Annotated[
    int,
    typer.Option("--samples", metavar="NUMBER", min=1, help="Outputs drawn of each dataset."),
]


def _function(metavar: str, help_text: str) -> typer.models.ArgumentInfo:
    """An argument that names a function of the user's."""
    found: typer.models.ArgumentInfo = typer.Argument(
        metavar=f"MODULE:{metavar}", help=help_text, show_default=False
    )
    return found


@audits.command(_BLACK_BOX)
def black_box(
    mechanism: Annotated[
        str,
        _function("FUNCTION", "A function of a dataset, or of a dataset and a number of outputs."),
    ],
    pairs: PairsArgument,
    *,
    epsilon: ClaimedEpsilonOption = None,
    delta: ClaimedDeltaOption = NO_DELTA,
    claim: ClaimOption = None,
    samples: SamplesOption = _SAMPLES,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the privacy of a function from its outputs; refute a claim or not.

    The exit code is 3 if the claim is refuted. No ledger is charged: use made-up data.

    Example:

    discreet audit black-box release:noisy_count release:pairs --epsilon 1
    """
    stated = needed(claimed(epsilon, delta, claim))
    from discreet.audit import black_box as audit

    with users_code(), progress("drawing outputs") as advance:
        found = audit(
            imported(mechanism),
            imported(pairs),
            stated,
            delta=delta,
            samples=samples,
            progress=advance,
        )
    end(found, html, as_json=as_json)


@audits.command()
def search(  # noqa: PLR0913  # options of a command
    mechanism: Annotated[
        str,
        _function("FUNCTION", "A function of a list of rows, or of it and a number of outputs."),
    ],
    rows: Annotated[str, _function("ROWS", "A list of a few rows, as examples of their form.")],
    *,
    epsilon: ClaimedEpsilonOption = None,
    delta: ClaimedDeltaOption = NO_DELTA,
    claim: ClaimOption = None,
    tries: Annotated[
        int, typer.Option("--tries", metavar="NUMBER", min=1, help="Pairs that are compared.")
    ] = _TRIES,
    outputs: Annotated[
        int,
        typer.Option("--outputs", metavar="NUMBER", min=1, help="Outputs that compare a pair."),
    ] = _OUTPUTS,
    samples: SamplesOption = _SAMPLES,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search for the worst pair of datasets, and audit it as a black box.

    The exit code is 3 if the claim is refuted. No ledger is charged: use made-up rows.

    Example:

    discreet audit search release:noisy_count release:rows --epsilon 1
    """
    stated = needed(claimed(epsilon, delta, claim))
    from discreet.audit import black_box as audit
    from discreet.audit import search_pairs

    with users_code():
        function = imported(mechanism)
        with progress("comparing pairs") as advance:
            pairs = search_pairs(
                function, imported(rows), tries=tries, outputs=outputs, progress=advance
            )
        with progress("drawing outputs") as advance:
            found = audit(function, pairs, stated, delta=delta, samples=samples, progress=advance)
    end(found, html, as_json=as_json)


@audits.command()
def membership(  # noqa: PLR0913  # options of a command
    train: Annotated[
        str, _function("TRAIN", "A function of coins, one for each candidate; a run of a training.")
    ],
    score: Annotated[
        str, _function("SCORE", "A function of the run's output; one number for each candidate.")
    ],
    *,
    candidates: Annotated[
        int, typer.Option("--candidates", metavar="NUMBER", min=1, help="Coins of each run.")
    ],
    epsilon: ClaimedEpsilonOption = None,
    delta: ClaimedDeltaOption = NO_DELTA,
    claim: ClaimOption = None,
    runs: Annotated[
        int, typer.Option("--runs", metavar="NUMBER", min=1, help="Runs that are attacked.")
    ] = 1,
    shadows: Annotated[
        int, typer.Option("--shadows", metavar="NUMBER", min=0, help="Runs to learn scores from.")
    ] = 0,
    guesses: Annotated[
        int | None,
        typer.Option("--guesses", metavar="NUMBER", min=1, help="Guesses, fixed beforehand."),
    ] = None,
    confidence: Annotated[
        Decimal,
        typer.Option(
            "--confidence", metavar="NUMBER", parser=between, help="Confidence of the bound."
        ),
    ] = _CONFIDENCE,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="PATH",
            help="Store complete runs here, and go on after them. They tell who took part.",
        ),
    ] = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Guess who took part in a run, such as a training; refute a claim or not.

    The exit code is 3 if the claim is refuted. No ledger is charged: use made-up data.

    Example:

    discreet audit membership release:train release:score --candidates 500 --claim "Gaussian(1)"
    """
    stated = needed(claimed(epsilon, delta, claim))
    from discreet.audit import membership as audit

    with users_code(), progress("running") as advance:
        found = audit(
            imported(train),
            imported(score),
            candidates=candidates,
            claim=stated,
            delta=delta,
            runs=runs,
            shadows=shadows,
            guesses=guesses,
            confidence=confidence,
            progress=advance,
            folder=folder,
        )
    end(found, html, as_json=as_json)


@audits.command()
def replay(
    pipeline: Annotated[str, _function("FUNCTION", "A function of a table.")],
    pairs: PairsArgument,
    *,
    sensitivity: Annotated[
        Decimal | None,
        typer.Option(
            "--sensitivity",
            metavar="NUMBER",
            parser=above_zero,
            help="The numbers of the output move by this much at most, in sum.",
        ),
    ] = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a function on pairs of tables with the same noise; compare all but the noisy numbers.

    The exit code is 3 if a pair differs. No ledger is charged: use made-up data.

    Example:

    discreet audit replay release:mean_age release:pairs --sensitivity 1
    """
    from discreet.audit import replay_pairs

    with users_code(), progress("running") as advance:
        found = replay_pairs(
            imported(pipeline), imported(pairs), sensitivity=sensitivity, progress=advance
        )
    end(found, html, as_json=as_json)


@audits.command()
def misuse(
    make: Annotated[str, _function("MAKE", "A function that returns a fresh object.")],
    use: Annotated[str, _function("USE", "A function of the object; one noisy answer.")],
    *,
    charges: Annotated[
        str | None,
        typer.Option(
            "--charges",
            metavar="MODULE:FUNCTION",
            help="A function of the object; the number of answers that were charged.",
        ),
    ] = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy, fork, pickle, interrupt and seed objects; find noise that repeats and unpaid answers.

    The exit code is 3 if a mistake shows a fault. Use objects with made-up data.

    Example:

    discreet audit misuse release:Counter release:Counter.answer
    """
    from discreet.audit import misuse as audit

    with users_code():
        count = None if charges is None else imported(charges)
        found = audit(imported(make), imported(use), charges=count)
    end(found, html, as_json=as_json)


@audits.command()
def exact(
    laws: Annotated[
        str,
        _function("LAWS", "A list of pairs of mappings from outcomes to their probabilities."),
    ],
    *,
    epsilon: ClaimedEpsilonOption = None,
    delta: ClaimedDeltaOption = NO_DELTA,
    claim: ClaimOption = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the privacy of a mechanism with few outcomes exactly, from their probabilities.

    The exit code is 3 if a claim is refuted.

    Example:

    discreet audit exact release:laws --epsilon 1
    """
    stated = claimed(epsilon, delta, claim)
    from discreet.audit import exact as audit

    with users_code():
        found = audit(imported(laws), stated, delta=delta)
    end(found, html, as_json=as_json)


@audits.command()
def reconstruct(
    groups: Annotated[
        str, _function("GROUPS", "A matrix of 0 and 1: a row for each count, a column a person.")
    ],
    secret: Annotated[str, _function("SECRET", "The made-up secret bit of each person.")],
    *,
    epsilon: Annotated[
        Decimal | None,
        typer.Option(
            "--epsilon",
            metavar="NUMBER",
            parser=above_zero,
            help="The epsilon of discrete Laplace noise on all counts together.",
        ),
    ] = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild secret bits from many counts, without noise and with noise.

    With --epsilon, JSON and the report are about the counts with noise.

    Example:

    discreet audit reconstruct release:groups release:secret --epsilon 1
    """
    from discreet.audit import reconstruct as audit
    from discreet.mechanisms import DiscreteLaplace

    with users_code():
        matrix, bits = imported(groups), imported(secret)
        found = audit(matrix, bits)
        if epsilon is not None:
            say(repr(found))
            most = max(sum(map(int, column)) for column in zip(*matrix, strict=True))
            found = audit(matrix, bits, DiscreteLaplace(most / fraction(epsilon)))
    end(found, html, as_json=as_json)
