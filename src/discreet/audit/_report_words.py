"""The sentences of the report about each kind of audit, for people who are not specialists."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import singledispatch

from discreet import _html
from discreet.accounting import PrivacyLoss
from discreet.audit._exact_privacy import ExactPrivacy
from discreet.audit._membership import MembershipResult
from discreet.audit._misuse import MisuseResult
from discreet.audit._pipeline import MOST_SEEDS, SEEDS, PairDifference, PipelineResult
from discreet.audit._reconstruction import Reconstruction
from discreet.audit._report import AuditReport, FigureTable, Sentences
from discreet.audit._result import BlackBoxResult
from discreet.errors import InvalidArgument, NoBound

_DELTAS = (0.0, 1e-6, 1e-3, 0.01, 0.1)
_DELTAS_OF_ONE_RUN = (0.0, 1e-6)  # each takes a recursion over all guesses
_DIGITS = 4
_SHOWN = 5
_ONLOOKER = (
    "Suppose that somebody knows all others in the data, thinks it as likely as not that you are "
    "in them, and sees one output."
)
_FAIR_BIT = "If your bit is as likely 0 as 1, the noise promises that a guess is right in at most"
_OTHER_PAIRS = "Pairs of datasets that were not given: another pair may be worse."
_OTHER_CHANNELS = "The time that an answer takes, and everything else that is not part of an output"


@singledispatch
def report(result: object) -> AuditReport:
    """The report of an audit, with ``html()`` and ``json()``: the claim, the trials, the finding,
    its meaning for one person, and everything that was not tried.

    ``result`` is the result of `black_box`, `membership`, `replay_pairs`, `misuse`, `exact` or
    `reconstruct`. Raises `InvalidArgument` for anything else.
    """
    raise InvalidArgument(
        f"result: of type {type(result).__name__}; give the result of black_box, membership, "
        "replay_pairs, misuse, exact or reconstruct"
    )


@report.register
def _black_box(result: BlackBoxResult) -> AuditReport:
    best = max(result.evidence, key=lambda one: one.epsilon())
    return AuditReport(
        verdict=_verdict(is_refuted=result.is_refuted),
        has_fault=result.is_refuted,
        claimed=(_html.plain(str(result.claim)),),
        tried=(
            (
                f"The mechanism ran {result.samples} times, in all. The outputs that count are of "
                "two datasets that differ in one person "
                f"(pair {result.pair}: {result.datasets})."
            ),
            (
                "A part of the outputs served to choose how to guess the dataset (guesses chosen: "
                f"{len(result.evidence)}), and the others to count right and wrong guesses."
            ),
            (
                f"The best of them names {best.guess}. It was right {best.right} times and wrong "
                f"{best.wrong} times, of {best.trials}."
            ),
        ),
        found=(_measured(result, "The mechanism"),),
        meaning=(
            _ONLOOKER,
            (
                "For the outputs where the best guess speaks, this person then guesses rightly "
                f"whether you are there in at least {_percent(result.epsilon())} of cases."
            ),
            *_promise(result.claim),
        ),
        not_tried=(
            _OTHER_PAIRS,
            (
                "Events that the search did not choose, or that are too rare for this number of "
                "outputs."
            ),
            f"{_OTHER_CHANNELS}.",
            "State that lasts from one output to the next: outputs are taken as independent.",
        ),
        evidence=result.to_json(),
        figures=_by_delta(result),
    )


@report.register
def _membership(result: MembershipResult) -> AuditReport:
    best = max(result.counts, key=lambda one: one.epsilon(0.0, result.alarm))
    return AuditReport(
        verdict=_verdict(is_refuted=result.is_refuted),
        has_fault=result.is_refuted,
        claimed=(_html.plain(str(result.claim)),),
        tried=(
            (
                f"A coin chose for each of {best.candidates} candidates whether it took part in "
                "the run. An attacker saw only the output, and guessed the coins."
            ),
            (
                f"The most telling number of guesses is {best.guesses}: {best.right} of them were "
                "right. Without the output, about half would be."
            ),
            *(
                (f"Of {result.runs} runs, {result.stored_runs} were stored before this audit.",)
                if result.stored_runs
                else ()
            ),
        ),
        found=(
            _measured(result, "The run"),
            (
                "A candidate that took part has the higher score in "
                f"{100 * result.auc:.1f} % of pairs with one that did not; 50 % shows nothing."
            ),
        ),
        meaning=(
            "Suppose that you are one of the candidates, and a coin decided whether you took part.",
            (
                f"If this attacker makes one of these {best.guesses} guesses about you, it is "
                f"right in {_share(best.right, best.guesses)} of cases. The measured loss makes a "
                f"right guess possible in at least {_percent(result.epsilon())} of cases."
            ),
            *_promise(result.claim),
        ),
        not_tried=(
            "Other scores, and other candidates: a stronger attacker may guess better.",
            (
                "Outputs that the attacker did not get, such as the steps of a training of which "
                "only the model was scored."
            ),
            f"{_OTHER_CHANNELS}.",
        ),
        evidence=result.to_json(),
        figures=_by_delta(result, _DELTAS_OF_ONE_RUN),
    )


@report.register
def _pipeline(result: PipelineResult) -> AuditReport:
    moved = result.sensitivity
    certain = sum(one.is_certain for one in result.differences)
    too_far = len(result.differences) - certain
    verdicts = [
        *([f"{certain} of {result.pairs} pairs of tables differ for certain"] if certain else []),
        *(
            [f"on {_pairs(too_far)} the numbers move by more than the sensitivity"]
            if too_far
            else []
        ),
    ]
    return AuditReport(
        verdict=_sentence(verdicts or ["No certain difference was found"]),
        has_fault=bool(result.differences),
        claimed=(
            "Two tables that differ in one person differ in noisy numbers and texts only.",
            *(
                (f"With the same noise, these numbers move by {moved:g} at most, in sum.",)
                if moved is not None
                else ()
            ),
        ),
        tried=(
            (
                f"The pipeline ran on {result.pairs} pairs of tables that differ in one row, with "
                "the same random numbers for both tables."
            ),
            (
                "Compared were the count of random numbers, seeds, charges, files, connections, "
                "log lines, printed text, warnings, errors, the environment, and the form and the "
                "values of the output."
            ),
            (
                f"A difference is certain if it stayed with {SEEDS} other draws of the noise for "
                f"each table, or with most of {MOST_SEEDS} draws."
            ),
        ),
        found=(
            *_pairs_in_words(result.differences, "Pair"),
            *_pairs_in_words(result.undecided, "Undecided, pair"),
        )
        or ("No difference was found.",),
        meaning=tuple(_meanings(result, certain, too_far)),
        not_tried=(
            "Tables that were not given: a row with another value may show a difference.",
            "Running time, memory, other threads and processes, and what other programs write.",
            "What is sent over a connection or into a database.",
            "Values beyond the first 100 000 of an output, one by one; they are compared as one.",
            (
                "Whether the noise in numbers and texts is large enough: an audit of the outputs "
                "measures that."
            ),
            *(
                ("How far a row moves the numbers, because no sensitivity was given.",)
                if moved is None
                else ()
            ),
        ),
        evidence=result.to_json(),
    )


def _pairs_in_words(found: Sequence[PairDifference], start: str) -> Sentences:
    first = tuple(f"{start} {one.pair}, {one.datasets}: {one.text}" for one in found[:_SHOWN])
    more = len(found) - _SHOWN
    return (*first, f"{start}s, further ones: {more}.") if more > 0 else first


def _meanings(result: PipelineResult, certain: int, too_far: int) -> Iterator[str]:
    if certain:
        yield (
            "Somebody who sees such a difference can tell whether your row is there: none of the "
            "noise that was tried hid it."
        )
    if too_far:
        yield (
            "Your row moves the numbers by more than their noise is made for, so they may tell "
            "more about you than claimed. An audit of the outputs by black_box measures how much."
        )
    if result.undecided:
        yield (
            "Where a pair is undecided, your row and the noise decide together what somebody sees. "
            "This may be right. An audit of the outputs by black_box measures how much it tells."
        )
    if not result.differences:
        yield (
            "On these tables, whatever your row changed among the compared facts, the noise "
            "changed, too. This does not prove that the noise is enough."
        )


def _pairs(count: int) -> str:
    return "1 pair" if count == 1 else f"{count} pairs"


def _sentence(clauses: Sequence[str]) -> str:
    joined = ", and ".join(clauses)
    return joined[:1].upper() + joined[1:]


@report.register
def _misuse(result: MisuseResult) -> AuditReport:
    count = len(result.faults)
    rows = [(one.mistake, one.ending) for one in result.attempts]
    return AuditReport(
        verdict=(
            f"{count} of {len(rows)} mistakes break the privacy of the object"
            if count
            else f"None of {len(rows)} mistakes breaks the privacy of the object"
        ),
        has_fault=bool(count),
        claimed=("Each answer has noise of its own, and is charged.",),
        tried=(
            (
                "Fresh objects were used by mistake: copied, forked, pickled, seeded, interrupted, "
                "used twice, or used by several threads at once."
            ),
            (
                "A mistake shows a fault if the noise of two answers is equal each time, or if an "
                "answer is not charged."
            ),
        ),
        found=(f"{count} of {len(rows)} mistakes show a fault.",),
        meaning=(
            (
                "Two answers with equal noise differ by their true values: somebody subtracts "
                "them, and sees what your row changes, without any noise. An answer that is not "
                "charged takes more of your privacy than the ledger says."
                if count
                else "None of these mistakes takes more of your privacy than the ledger says."
            ),
        ),
        not_tried=(
            "Mistakes that are not in the table, and combinations of them.",
            "Whether the noise is large enough: an audit of the outputs measures that.",
        ),
        evidence=result.to_json(),
        figures=FigureTable("Mistakes", ("mistake", "result"), rows),
    )


@report.register
def _exact(result: ExactPrivacy) -> AuditReport:
    event = result.worst_event()
    names = ", ".join(repr(one) for one in event.outcomes[:_SHOWN])
    names += ", …" if len(event.outcomes) > _SHOWN else ""
    needed = _html.up(result.epsilon(), _DIGITS)
    without = f"Epsilon at delta 0 is {needed}"
    return AuditReport(
        verdict=without if result.claim is None else _verdict(is_refuted=result.is_refuted),
        has_fault=result.is_refuted,
        claimed=(
            "Nothing: the privacy loss was computed."
            if result.claim is None
            else _html.plain(str(result.claim)),
        ),
        tried=(
            (
                "The probabilities of all outcomes were compared, in exact fractions, for "
                f"{len(result.directions) // 2} pairs of datasets that differ in one person."
            ),
        ),
        found=(
            f"{without}. The worst outcomes are {names}.",
            (
                f"Their probability is {event.likely} on one dataset, and {event.unlikely} on the "
                f"other one (pair {event.pair})."
            ),
        ),
        meaning=(
            _ONLOOKER,
            (
                "If it is one of the worst outcomes, this person guesses rightly whether you are "
                f"there in {_odds(event.likely, event.unlikely)} of cases."
            ),
            *(() if result.claim is None else _promise(result.claim)),
        ),
        not_tried=(
            _OTHER_PAIRS,
            (
                "Whether the program draws with these probabilities: an audit of the outputs "
                "measures that."
            ),
            f"{_OTHER_CHANNELS}.",
        ),
        evidence=result.to_json(),
        figures=FigureTable(
            "Epsilon",
            ("at delta", "exact"),
            [(f"{delta:g}", _html.up(result.epsilon(delta), _DIGITS)) for delta in _DELTAS],
        ),
    )


@report.register
def _reconstruction(result: Reconstruction) -> AuditReport:
    loss = result.privacy_loss
    return AuditReport(
        verdict=f"{result.right} of {result.people} secret bits are rebuilt",
        has_fault=False,
        claimed=(
            "Nothing: the counts have no noise."
            if loss is None
            else f"The counts have noise of {_html.plain(str(loss))}.",
        ),
        tried=(
            (
                "An attacker knew who is in which group, and the released count of each group. "
                "Linear programming looked for the bits whose counts are nearest to these."
            ),
        ),
        found=(
            (
                f"{result.right} of {result.people} bits are right. If everybody gets the more "
                f"frequent bit, {result.common} are."
            ),
            f"Without noise, the counts determine the bits of {result.certain} people.",
        ),
        meaning=(
            (
                f"The bit that this attacker names for you is right in "
                f"{_share(result.right, result.people)} of cases. Without an attack, the total "
                f"alone makes a guess right in {_share(result.common, result.people)}."
            ),
            *(() if loss is None else _promise(loss, _FAIR_BIT)),
        ),
        not_tried=(
            "Other attackers, who may know more about people than their groups.",
            "Other draws of the noise: another run gives another number.",
            "Other releases about the same people.",
        ),
        evidence=result.to_json(),
    )


def _verdict(*, is_refuted: bool) -> str:
    return "The claim is refuted" if is_refuted else "The claim is not refuted"


def _measured(result: BlackBoxResult | MembershipResult, subject: str) -> str:
    if not result.is_refuted:
        return (
            "The measured loss stays within the claim. This does not prove the claim: datasets, "
            "outputs and attacks that were not tried may lose more."
        )
    wrong = _html.up(result.alarm, _DIGITS)
    return (
        f"{subject} loses more privacy than claimed. A right claim is refuted with probability at "
        f"most {wrong}."
    )


def _by_delta(
    result: BlackBoxResult | MembershipResult, deltas: tuple[float, ...] = _DELTAS
) -> FigureTable:
    rows = []
    for delta in deltas:
        try:
            claimed = result.claim.epsilon(delta)
        except NoBound:
            claimed = math.inf
        least = result.epsilon(delta)
        rows.append((f"{delta:g}", _html.up(claimed, _DIGITS), _html.down(least, _DIGITS)))
    return FigureTable("Epsilon", ("at delta", "claimed", "measured, at least"), rows)


def _promise(
    claim: PrivacyLoss, promise: str = "The claim promises that it is at most"
) -> Sentences:
    epsilon = claim.epsilon()
    return (f"{promise} {_percent(epsilon, up=True)}.",) if math.isfinite(epsilon) else ()


def _percent(epsilon: float, *, up: bool = False) -> str:
    """The probability of a right guess at odds of e^epsilon to 1."""
    rounded = math.ceil if up else math.floor
    return f"{rounded(1000 / (1 + math.exp(-epsilon))) / 10:g} %"


def _odds(likely: Fraction, unlikely: Fraction) -> str:
    share = likely / (likely + unlikely)
    return f"{math.ceil(1000 * share) / 10:g} %"


def _share(right: int, count: int) -> str:
    return f"{math.floor(1000 * right / count) / 10:g} %"
