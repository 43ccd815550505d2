"""Membership audit: coins choose which candidates take part, and an attacker guesses the coins.

1. A run of the mechanism gets the coins, and the attacker's score sees only its output.
2. With shadow runs, whose coins are known, scores become likelihood ratios (`_calibrated`).
3. The highest scores are guessed to be members, the lowest ones not (`_counted`).
4. The numbers of right guesses bound the privacy loss (`_one_run`).
"""

import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _checks, _html
from discreet._arrays import FloatArray
from discreet._exact import Number
from discreet.accounting import PrivacyLoss, Term
from discreet.accounting._profile import Profile
from discreet.audit._black_box import CONFIDENCE, Progress, claimed_loss
from discreet.audit._code_digest import code_digest
from discreet.audit._one_run import EventFloor, RightGuesses
from discreet.audit._stored_runs import StoredRuns
from discreet.errors import InvalidArgument

Coins = npt.NDArray[np.bool_]  # (candidate,)
Train = Callable[[Coins], Any]  # Any: a model, or another output of the caller's own
Scoring = Callable[[Any], Any]  # Any: the same output; one number for each candidate

_SHARES = 1, 2, 4, 8, 16, 32  # candidates per guess
_FEWEST = 4
_LEAST_SPREAD = 1e-9  # relative
_DIGITS = 4


@dataclass(frozen=True, slots=True, repr=False)
class MembershipResult:
    """A claimed privacy loss, and how well an attacker tells members from other candidates.

    ``counts`` has the right guesses for different numbers of guesses, which were fixed beforehand.
    ``auc`` is the share of pairs of a member and another candidate where the member has the higher
    score. Each measured bound, and the verdict, is wrong with probability at most ``alarm``. Of all
    ``runs``, those that make scores included, ``stored_runs`` were read from a folder.
    """

    claim: PrivacyLoss
    profile: Profile
    counts: tuple[RightGuesses, ...]
    auc: float
    alarm: float
    runs: int
    stored_runs: int

    _repr_html_ = _html.shown

    def epsilon(self, delta: Number = 0) -> float:
        """A lower bound on the epsilon at this delta, rounded down."""
        level = float(_checks.delta(delta=delta))
        return max(one.epsilon(level, self.alarm / len(self.counts)) for one in self.counts)

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is refuted at this confidence."""
        floor = EventFloor(self.profile.epsilons, self.profile.deltas)
        alarm = self.alarm / (2 * len(self.counts))
        claimed = self.claim.epsilon()
        return any(
            one.epsilon(0.0, alarm) > claimed or one.refutes(floor, alarm) for one in self.counts
        )

    def to_json(self) -> str:
        """The claim, the verdict and the evidence as JSON. An infinite number is null."""
        claimed = self.claim.epsilon()
        return json.dumps(
            {
                "is_refuted": self.is_refuted,
                "claim": json.loads(self.claim.to_json()),
                "claimed_epsilon": claimed if math.isfinite(claimed) else None,
                "measured_epsilon": self.epsilon(),
                "auc": self.auc,
                "alarm": self.alarm,
                "runs": self.runs,
                "stored_runs": self.stored_runs,
                "evidence": [
                    {"right": one.right, "guesses": one.guesses, "candidates": one.candidates}
                    for one in self.counts
                ],
            },
            indent=2,
        )

    def __repr__(self) -> str:
        best = max(self.counts, key=lambda one: one.epsilon(0.0, self.alarm))
        claimed, measured = self.claim.epsilon(), self.epsilon()
        lines = [
            f"{'REFUTED' if self.is_refuted else 'not refuted'}: claim {self.claim!s}",
            f"  claimed epsilon at delta 0: {_up(claimed)}; measured, at least: {_down(measured)}",
            f"  right: {best.right} of {best.guesses} guesses about {best.candidates} candidates",
            f"  a member's score is the higher one in {100 * self.auc:.1f} % of pairs",
            f"  a right claim is refuted with probability at most {_up(self.alarm)}",
        ]
        if self.stored_runs:
            lines.append(f"  {self.stored_runs} of {self.runs} runs come from the folder")
        return "\n".join(lines)


def _up(number: float) -> str:
    return _html.up(number, _DIGITS)


def _down(number: float) -> str:
    return _html.down(number, _DIGITS)


def membership(  # noqa: PLR0913  # the game, its size and its claim
    train: Train,
    score: Scoring,
    *,
    candidates: int,
    claim: PrivacyLoss | Term | Number,
    delta: Number = 0,
    runs: int = 1,
    shadows: int = 0,
    guesses: int | None = None,
    confidence: Number = CONFIDENCE,
    progress: Progress | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> MembershipResult:
    """How well an attacker tells who took part in a run, next to the claim.

    ``train`` gets fair coins, an array of booleans with one for each of ``candidates``. It returns
    the output of the mechanism on data that hold the candidates whose coin is true: a model, the
    noisy gradients of all steps, a table. The other rows may be anything, if they don't depend on
    the coins. ``score`` gets this output only, and returns one number for each candidate, which is
    higher for likely members: minus the loss of the candidate, or the product of its gradient
    with the noisy sums. ``claim`` is a privacy loss for adding or removing one candidate, or an
    epsilon at ``delta``.

    The attacker guesses all coins, and 1/2, 1/4 … 1/32 of them, where scores are highest and
    lowest. One number of ``guesses``, fixed beforehand, gives a tighter bound. Each of ``runs`` has
    fresh coins. ``shadows`` further runs serve to learn the scores of each candidate as a member
    and otherwise, if scores of different candidates can't be compared; a score is then the
    likelihood ratio of two normal laws. ``progress`` is called after each run with the number of
    runs that are done, and of all. With a ``folder`` of its own, an audit that was stopped goes on
    after its last complete run: the coins and scores of each run are stored there. Raises
    `InvalidArgument` if ``train`` or ``score``, the file of one of them, or a number or text that
    they read has changed since. A change in another module is not noticed.

    Guarantee: if the claim holds, the audit refutes it with probability at most 1 - ``confidence``.
    One run is enough, because the bounds don't take guesses as independent. With probability delta
    a run may show all coins, so a claim whose delta is not far below 1 - ``confidence`` can't be
    refuted; raises `InvalidArgument` for it, and for scores of a wrong shape or that are NaN.

    Source: Steinke, Nasr and Jagielski 2023 (one run); Mahloujifar, Melis and Chaudhuri 2024
    (claims with a delta); Carlini et al. 2022 (likelihood ratios by shadow models).

    >>> import numpy as np
    >>> random = np.random.default_rng()
    >>> def answers(members):  # randomized response: a lie in every fourth answer
    ...     return members ^ (random.random(members.size) < 0.25)
    >>> found = membership(answers, lambda output: output, candidates=1000, claim=0.3)
    >>> found.is_refuted, 0.5 < found.epsilon() < 1.1  # of log 3
    (True, True)
    """
    size = _checks.positive_count(candidates=candidates)
    targets, learned = _checks.positive_count(runs=runs), _checks.count(shadows=shadows)
    alarm = float(1 - _checks.probability(confidence=confidence))
    if learned == 1:
        raise InvalidArgument("shadows = 1: give 0, or at least 2 to compare members with others")
    if size * targets < _FEWEST:
        raise InvalidArgument(
            f"candidates = {size}, runs = {targets}: give at least {_FEWEST} candidates in all runs"
        )
    each = _guesses(guesses, size * targets)
    loss = claimed_loss(claim, delta)
    profile = loss.profile()
    if profile.deltas[-1] >= alarm / (2 * len(each)):
        raise InvalidArgument(
            f"delta = {profile.deltas[-1]:.2g}: one run may show everything with this probability, "
            f"so no claim is refuted at an alarm of {alarm:.2g}; give a smaller confidence, such "
            "as 0.95, or attack one candidate by black_box"
        )
    settings = {"candidates": size, "runs": targets, "shadows": learned, "guesses": guesses}
    stored = None
    if folder is not None:
        stored = StoredRuns.open(Path(folder), settings, code_digest(train, score))
    # each run has its own coins, and no score sees them
    coins, scores, stored_runs = [], [], 0
    known_runs = _runs(train, score, size, count=learned + targets, stored=stored)
    for done, (flipped, found, is_stored) in enumerate(known_runs, start=1):
        coins.append(flipped)
        scores.append(found)
        stored_runs += is_stored
        if progress is not None:
            progress(done, learned + targets)
    known, judged = np.array(scores[:learned]), np.array(scores[learned:])
    if learned:
        judged = _calibrated(np.array(coins[:learned]), known, judged)
    is_member, ranked = np.concatenate(coins[learned:]), judged.ravel()
    counts = tuple(_counted(is_member, ranked, one) for one in each)
    auc = _auc(is_member, ranked)
    return MembershipResult(loss, profile, counts, auc, alarm, learned + targets, stored_runs)


def _guesses(guesses: int | None, candidates: int) -> list[int]:
    """The numbers of guesses, fixed before any run."""
    if guesses is None:
        most = [candidates // share for share in _SHARES]
        return [each for each in most if each >= _FEWEST]
    given = _checks.positive_count(guesses=guesses)
    if given > candidates:
        raise InvalidArgument(f"guesses = {given}: there are {candidates} candidates in all runs")
    return [given]


def _runs(
    train: Train, score: Scoring, candidates: int, *, count: int, stored: StoredRuns | None
) -> Iterator[tuple[Coins, FloatArray, bool]]:
    """The coins of each run, the scores of its output, and whether both were stored before."""
    generator = np.random.default_rng()
    for place in range(count):
        if stored is not None and (complete := stored.read(place, candidates)) is not None:
            yield *complete, True
            continue
        coins = generator.integers(0, 2, candidates).astype(bool)
        output = train(coins.copy())
        found = np.asarray(score(output), dtype=np.float64)
        if found.shape != (candidates,):
            raise InvalidArgument(
                f"score returned an array of shape {found.shape}: return one number for each of "
                f"{candidates} candidates"
            )
        if np.isnan(found).any():
            raise InvalidArgument("score returned NaN: give 0 where the output says nothing")
        if stored is not None:
            stored.write(place, coins, found)
        yield coins, found, False


def _calibrated(coins: npt.NDArray[np.bool_], known: FloatArray, judged: FloatArray) -> FloatArray:
    """Log likelihood ratios by normal laws of each candidate's scores, with one common spread: few
    runs tell means, and too little of spreads (Carlini et al. 2022, Section VI)."""
    finite = np.nan_to_num(known)
    means = []
    for is_in in (coins, ~coins):
        count = is_in.sum(axis=0)
        total = (finite * is_in).sum(axis=0)
        overall = total.sum() / max(1, count.sum())
        means.append(np.where(count > 0, total / np.maximum(count, 1), overall))
    inside, outside = means
    rest = finite - np.where(coins, inside, outside)
    spread = rest.std() + _LEAST_SPREAD * (1 + np.abs(finite).max())
    center = (inside + outside) / 2
    return np.asarray((np.nan_to_num(judged) - center) * (inside - outside) / spread**2)


def _counted(is_member: Coins, scores: FloatArray, guesses: int) -> RightGuesses:
    """The right guesses if the highest scores are named members, and the lowest ones others."""
    order = np.argsort(scores, kind="stable")
    others = guesses // 2
    if guesses == scores.size:  # coins differ a little from half, and the scores may show it
        far = 3 * math.isqrt(guesses)  # six standard deviations
        near = range(max(1, others - far), min(guesses, others + far + 1))
        gaps = np.diff(np.nan_to_num(scores[order]))
        others = max(near, key=lambda at: (gaps[at - 1], -at))
    members = order[order.size - (guesses - others) :]
    right = int(is_member[members].sum() + (~is_member[order[:others]]).sum())
    return RightGuesses(right, guesses, scores.size)


def _auc(is_member: Coins, scores: FloatArray) -> float:
    """The area under the ROC curve; a tie counts half."""
    members, others = np.sort(scores[is_member]), scores[~is_member]
    if not members.size or not others.size:
        return 0.5
    below = np.searchsorted(members, others, side="left")
    up_to = np.searchsorted(members, others, side="right")
    higher = members.size - (below + up_to) / 2
    return float(higher.mean() / members.size)
