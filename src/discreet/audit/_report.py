"""The report of a black-box audit for people who are not specialists, as one page of HTML."""

import math
from html import escape

from discreet import _html
from discreet.audit._result import BlackBoxResult
from discreet.errors import NoBound

_STYLE = "font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em"
_DELTAS = (0.0, 1e-6, 1e-3, 0.01, 0.1)
_DIGITS = 4
_NOT_TRIED = (
    "Pairs of datasets that were not given: another pair may be worse.",
    "Events that the search did not choose, or that are too rare for this number of outputs.",
    "The time that an answer takes, and everything else that is not part of an output.",
    "State that lasts from one output to the next: outputs are taken as independent.",
)


def report(result: BlackBoxResult) -> str:
    """The page: the claim, the trial, the finding, its meaning for one person, and the limits."""
    verdict = "The claim is refuted" if result.is_refuted else "The claim is not refuted"
    parts = [
        _section("Claimed", [_html.plain(str(result.claim))]),
        _section("Tried", _tried(result)),
        _section("Found", [_finding(result)], _table(result)),
        _section("Meaning for one person", _meaning(result)),
        _section("Not tried", list(_NOT_TRIED)),
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{verdict}</title>'
        f'<body style="{_STYLE}"><h1>{verdict}</h1>{"".join(parts)}</body></html>\n'
    )


def _tried(result: BlackBoxResult) -> list[str]:
    best = max(result.evidence, key=lambda one: one.epsilon())
    return [
        (
            f"The mechanism ran {result.samples} times on two datasets that differ in one person "
            f"(pair {result.pair})."
        ),
        (
            f"A part of the outputs served to choose {len(result.evidence)} ways to guess the "
            "dataset, and the others to count right and wrong guesses."
        ),
        (
            f"The best of them names {best.guess}. It was right {best.right} times and wrong "
            f"{best.wrong} times, of {best.trials}."
        ),
    ]


def _finding(result: BlackBoxResult) -> str:
    wrong = f"with probability at most {_html.up(result.alarm, _DIGITS)} this is an error"
    if not result.is_refuted:
        return f"The measured loss stays within the claim. Measured bounds hold together; {wrong}."
    return f"The mechanism loses more privacy than claimed; {wrong}."


def _table(result: BlackBoxResult) -> str:
    rows = []
    for delta in _DELTAS:
        try:
            claimed = result.claim.epsilon(delta)
        except NoBound:
            claimed = math.inf
        least = result.epsilon(delta)
        rows.append((f"{delta:g}", _html.up(claimed, _DIGITS), _html.down(least, _DIGITS)))
    return _html.table("Epsilon", ("at delta", "claimed", "measured, at least"), rows)


def _meaning(result: BlackBoxResult) -> list[str]:
    measured = result.epsilon()
    lines = [
        (
            "Suppose that somebody knows all others in the data, thinks it as likely as not that "
            "you are in them, and sees one output."
        ),
        (
            "For the outputs where the best guess speaks, this person then guesses rightly "
            f"whether you are there in at least {_percent(measured)} of cases."
        ),
    ]
    claimed = result.claim.epsilon()
    if math.isfinite(claimed):
        lines.append(f"The claim promises that it is at most {_percent(claimed, up=True)}.")
    return lines


def _percent(epsilon: float, *, up: bool = False) -> str:
    """The probability of a right guess at odds of e^epsilon to 1."""
    rounded = math.ceil if up else math.floor
    return f"{rounded(1000 / (1 + math.exp(-epsilon))) / 10:g} %"


def _section(title: str, lines: list[str], more: str = "") -> str:
    texts = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return f"<h2>{escape(title)}</h2>{texts}{more}"
