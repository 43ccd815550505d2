"""Black-box audit: a certified lower bound on epsilon, from outputs on two neighbouring inputs.

1. `draw_of` makes a sampler from the mechanism (`_draws`, `_outputs`).
2. A tenth of the outputs or more serve to learn scores, to choose guesses and to choose the worst
   pair (`_scores`, `_guesses`).
3. The other outputs certify: each comes from one of the two datasets, by a fair coin, and a guess
   names the dataset. The counts of right and wrong guesses bound epsilon (`_certified`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from discreet import _checks
from discreet._exact import Number
from discreet.accounting import Approximate, PrivacyLoss, Pure, Term
from discreet.accounting._profile import Profile
from discreet.audit._canonical import printed
from discreet.audit._certified import GuessCount
from discreet.audit._draws import Draw, OutputList, draw_of, outputs_of_both
from discreet.audit._guesses import GuessRule, choose_guesses
from discreet.audit._neighbours import checked_pairs, pair_in_words
from discreet.audit._outputs import Outputs
from discreet.audit._result import BlackBoxResult
from discreet.errors import InvalidArgument

Neighbours = tuple[Any, Any]  # Any: datasets of the caller's own
Progress = Callable[[int, int], None]

_SAMPLES = 100_000
CONFIDENCE = 1 - Fraction(1, 10**9)
_PILOT = 10  # the pilot takes one output in ten, unless that makes few
_PILOT_OUTPUTS = 6000
_LEAST = 100
_CHUNK = 50_000
_SHOWN = 3


def black_box(
    mechanism: object,
    pairs: Sequence[Neighbours],
    claim: PrivacyLoss | Term | Number | None = None,
    *,
    delta: Number = 0,
    samples: int = _SAMPLES,
    confidence: Number = CONFIDENCE,
    progress: Progress | None = None,
) -> BlackBoxResult:
    """A certified lower bound on the privacy loss of a mechanism, next to its claim.

    ``mechanism`` is a function of a dataset; or of a dataset and a number of outputs, which
    returns a list or an array of them; or a mechanism of this library, whose datasets are
    `Bounded`. An output may be a number, a text, a time, ``None``, an array, or a tuple, list, set,
    mapping or dataclass of these; other types are refused. Digits in a text are numbers, too. The
    first 64 numbers of an output are compared one by one, all of it as a whole. ``pairs`` are pairs
    of neighbouring datasets; the worst one is chosen by a pilot. ``claim`` is a privacy loss, or an
    epsilon at ``delta``; without it a mechanism of this library is compared with its own price for
    the first dataset. About ``samples`` outputs are drawn of each dataset. ``progress`` is called
    now and then with the number of outputs that are drawn, and of all.

    Guarantee: if the claim holds for the pair, the audit refutes it with probability at most
    1 - ``confidence``; with the same confidence all measured bounds hold. This assumes that the
    outputs are independent; one in an array or list must not depend on the others there. An audit
    that refutes nothing proves nothing: another pair or another event may be worse. No ledger is
    charged, so never show these outputs.

    Source: Ding et al. 2018 (events chosen on other samples); Clopper and Pearson 1934; Steinke,
    Nasr and Jagielski 2023 (guesses that abstain).

    >>> import random
    >>> def noisy_count(people):  # Laplace noise of scale 1, which is enough for epsilon 1
    ...     return round(len(people) + random.expovariate(1) - random.expovariate(1))
    >>> audit = black_box(noisy_count, [(["ana", "ben"], ["ana"])], claim=0.5, samples=10_000)
    >>> audit.is_refuted, 0.5 < audit.epsilon() < 1
    (True, True)
    """
    count = 2 * _checks.size(samples=samples)
    alarm = 1 - _checks.probability(confidence=confidence)
    known = checked_pairs(pairs, "[(people, people[1:])]")
    if samples < _LEAST * len(known):
        raise InvalidArgument(
            f"samples = {samples}: give at least {_LEAST} for each of {len(known)} pairs"
        )
    draws = [draw_of(mechanism) for _ in known]
    if claim is None and callable(getattr(mechanism, "privacy_loss", None)):
        claim = mechanism.privacy_loss(known[0][0])  # type: ignore[attr-defined]  # checked above
    claimed = claimed_loss(claim, delta)
    profile = claimed.profile()
    pilot = max(count // _PILOT, min(count // 3, _PILOT_OUTPUTS))
    trials = count - pilot
    worst, guesses = _chosen(draws, known, profile, outputs=pilot, trials=trials)
    evidence = _counted(
        draws[worst],
        known[worst],
        guesses,
        trials=trials,
        alarm=float(alarm) / len(guesses),
        progress=lambda done: None if progress is None else progress(pilot + done, count),
    )
    datasets = pair_in_words(*known[worst])
    return BlackBoxResult(claimed, profile, evidence, worst, datasets, float(alarm), count)


def _chosen(
    draws: list[Draw], pairs: list[Neighbours], profile: Profile, *, outputs: int, trials: int
) -> tuple[int, list[GuessRule]]:
    """The place of the worst pair, and guesses for it. Each pair has a function of its own. With
    several pairs, half of the outputs serve to find the pair."""
    worst = 0
    if len(pairs) > 1:
        outputs //= 2
        each = outputs // len(pairs)
        found = [
            _pilot(draw, pair, profile, outputs=each, trials=trials)
            for draw, pair in zip(draws, pairs, strict=True)
        ]
        reached = [one[0][1] if one else -math.inf for one in found]
        worst = reached.index(max(reached))
    draw = draws[worst]
    guesses = _pilot(draw, pairs[worst], profile, outputs=outputs, trials=trials)
    if not guesses:
        raise InvalidArgument(f"the mechanism raised in each call: {_failure(draw, pairs[worst])}")
    return worst, [guess for guess, _ in guesses]


def _pilot(
    draw: Draw, pair: Neighbours, profile: Profile, *, outputs: int, trials: int
) -> list[tuple[GuessRule, float]]:
    """Guesses for this pair, each with what it is expected to reach; none if the mechanism raised
    in each call for both datasets."""
    learning, has_failed = outputs_of_both(draw, pair, outputs // 4)
    choosing, has_failed_again = outputs_of_both(draw, pair, outputs // 4)
    if has_failed and has_failed_again:
        return []
    claimed = profile.epsilons, profile.deltas
    return choose_guesses(learning, choosing, claimed, trials)


def _failure(draw: Draw, pair: Neighbours) -> str:
    return printed(draw.of(pair[0], 1)[0])


def _counted(
    draw: Draw,
    pair: Neighbours,
    guesses: list[GuessRule],
    *,
    trials: int,
    alarm: float,
    progress: Callable[[int], None],
) -> tuple[GuessCount, ...]:
    """Right and wrong guesses among fresh outputs."""
    right, wrong = np.zeros(len(guesses), int), np.zeros(len(guesses), int)
    examples: list[list[str]] = [[] for _ in guesses]
    done = 0
    for drawn, is_first in _by_coin(draw, pair, trials):
        outputs = Outputs.of(drawn)
        values = {score: score.of(outputs) for score in {guess.score for guess in guesses}}
        for at, guess in enumerate(guesses):
            named = guess.names(values[guess.score])
            for one, truth in zip(named, (is_first, not is_first), strict=True):
                (right if truth else wrong)[at] += np.count_nonzero(one)
            if len(examples[at]) < _SHOWN:
                shown = named[0] if guess.high < math.inf else named[1]
                examples[at] += _examples(drawn, shown, examples[at])
        done += len(outputs)
        progress(done)
    return tuple(
        GuessCount(_in_words(guess, known), int(r), int(w), trials, guess.share, alarm)
        for guess, known, r, w in zip(guesses, examples, right, wrong, strict=True)
    )


def claimed_loss(claim: PrivacyLoss | Term | Number | None, delta: Number) -> PrivacyLoss:
    """The claim as a privacy loss."""
    level = _checks.delta(delta=delta)
    if claim is None:
        raise InvalidArgument("claim: give a privacy loss, or an epsilon and a delta")
    if isinstance(claim, Term | PrivacyLoss):
        if level:
            raise InvalidArgument("delta: it belongs to an epsilon; a privacy loss states its own")
        return PrivacyLoss.of(claim) if isinstance(claim, Term) else claim
    epsilon = _checks.not_negative(claim=claim)
    return PrivacyLoss.of(Approximate(epsilon, level) if level else Pure(epsilon))


def _by_coin(draw: Draw, pair: Neighbours, trials: int) -> Iterator[tuple[OutputList, bool]]:
    """Outputs of the two datasets, and whether they are of the first one. A fair coin chooses the
    dataset of each output."""
    generator = np.random.default_rng()
    left = trials
    while left:
        chunk = min(left, _CHUNK)
        yield from draw.in_turn(pair, generator.integers(0, 2, chunk) == 1)
        left -= chunk


def _examples(drawn: OutputList, named: np.ndarray, known: list[str]) -> list[str]:
    """Up to three different outputs for which the guess names the first dataset, or the second one
    if it never names the first."""
    texts = (printed(drawn[at]) for at in np.flatnonzero(named)[:100].tolist())
    fresh = dict.fromkeys(text for text in texts if text not in known)
    return list(islice(fresh, _SHOWN - len(known)))


def _in_words(guess: GuessRule, examples: list[str]) -> str:
    return f"{guess}" + (f" (as for {', '.join(examples)})" if examples else "")
