"""The result of a black-box audit: claimed and measured, and in words."""

import json
import math
from dataclasses import dataclass
from itertools import combinations

from discreet import _checks, _html
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.accounting._profile import Profile
from discreet.audit._certified import GuessCount
from discreet.errors import InvalidArgument

_DIGITS = 4
_LARGEST_POWER = 700.0


@dataclass(frozen=True, slots=True, repr=False)
class BlackBoxResult:
    """A claimed privacy loss, and lower bounds on the true one that outputs certify.

    ``claim`` is the claimed privacy loss and ``profile`` its deltas. ``evidence`` holds one entry
    for each guess that was counted, ``pair`` is the index of the worst pair, ``datasets`` its two
    datasets in words, and ``samples`` the number of all outputs. All measured bounds hold together
    with probability 1 - ``alarm``.
    """

    claim: PrivacyLoss
    profile: Profile
    evidence: tuple[GuessCount, ...]
    pair: int
    datasets: str
    alarm: float
    samples: int

    def epsilon(self, delta: Number = 0) -> float:
        """A lower bound on the epsilon at this delta, rounded down."""
        level = float(_checks.delta(delta=delta))
        return max(one.epsilon(level) for one in self.evidence)

    def delta(self, epsilon: Number) -> float:
        """A lower bound on the delta at this epsilon, rounded down."""
        given = float(_checks.not_negative(epsilon=epsilon))
        return max(one.delta(given) for one in self.evidence)

    def type_two(self, type_one: Number) -> float:
        """The largest type II error that a claim can still promise at this type I error.

        The `trade_off` of every true privacy loss is at or below it. At each point the curve takes
        the better order of the two datasets, as a `TradeOff` does, so that no single test need
        reach it.
        """
        given = float(_checks.not_negative(type_one=type_one))
        if given > 1:
            raise InvalidArgument(f"type_one = {type_one}: give a probability, from 0 to 1")
        return max(
            0.0,
            *(
                max(1 - delta - math.exp(epsilon) * given, math.exp(-epsilon) * (1 - delta - given))
                for epsilon, delta in self._corners()
            ),
        )

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is refuted at this confidence."""
        return self.exceeded_at is not None

    @property
    def exceeded_at(self) -> tuple[float, float, float] | None:
        """An epsilon, the delta claimed for it and the larger delta measured; or ``None``.

        If only a pure epsilon is exceeded, both deltas are 0 and epsilon is the measured one.
        """
        # The claimed profile is made of chords, and a measured delta is one line, as functions
        # of e^epsilon. So the largest excess is at the end of a chord.
        worst = max(
            (
                (self.delta(epsilon) - delta, epsilon, delta)
                for epsilon, delta in zip(self.profile.epsilons, self.profile.deltas, strict=True)
            ),
        )
        if worst[0] > 0:
            return worst[1], worst[2], worst[0] + worst[2]
        if self.epsilon() > self.claim.epsilon():
            return self.epsilon(), 0.0, 0.0
        return None

    def to_json(self) -> str:
        """The claim, the verdict and the evidence as JSON. An infinite number is null."""
        claimed = self.claim.epsilon()
        return json.dumps(
            {
                "is_refuted": self.is_refuted,
                "claim": json.loads(self.claim.to_json()),
                "claimed_epsilon": claimed if math.isfinite(claimed) else None,
                "measured_epsilon": self.epsilon(),
                "exceeded_at": self.exceeded_at,
                "pair": self.pair,
                "datasets": self.datasets,
                "samples": self.samples,
                "alarm": self.alarm,
                "evidence": [
                    {
                        "guess": one.guess,
                        "right": one.right,
                        "wrong": one.wrong,
                        "trials": one.trials,
                        "epsilon": one.epsilon(),
                    }
                    for one in self.evidence
                ],
            },
            indent=2,
        )

    def _corners(self) -> list[tuple[float, float]]:
        """The epsilons at which the largest of the measured lines bends, with the deltas there."""
        lines = [
            (one.least_right / float(one.share), one.most_wrong / float(one.share))
            for one in self.evidence
        ]
        factors = {1.0, *(up / down for up, down in lines if down)}
        for (up, down), (other_up, other_down) in combinations(lines, 2):
            if down != other_down:
                factors.add((up - other_up) / (down - other_down))
        epsilons = [
            math.log(factor) for factor in factors if 1 <= factor < math.exp(_LARGEST_POWER)
        ]
        return [(epsilon, max(one.delta(epsilon) for one in self.evidence)) for epsilon in epsilons]

    def __repr__(self) -> str:
        measured, claimed = self.epsilon(), self.claim.epsilon()
        lines = [
            f"{'REFUTED' if self.is_refuted else 'not refuted'}: claim {self.claim!s}",
            f"  claimed epsilon at delta 0: {_up(claimed)}; measured, at least: {_down(measured)}",
        ]
        if (exceeded := self.exceeded_at) and exceeded[2]:
            shown = _down(exceeded[0])  # both deltas are those at the epsilon as it is printed
            at = float(shown)
            lines.append(
                f"  at epsilon {shown} delta is at least {_down(self.delta(at))}, "
                f"claimed {_up(self.profile.delta(at))}"
            )
        best = max(self.evidence, key=lambda one: one.epsilon())
        lines += [
            f"  the best guess names {best.guess}",
            f"  and was right {best.right} times, wrong {best.wrong} times, of {best.trials}",
            f"  pair {self.pair}: {self.datasets}",
            (
                f"  {self.samples} outputs; a right claim is refuted with probability at most "
                f"{_up(self.alarm)}"
            ),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            ("claim", _html.plain(str(self.claim))),
            ("claimed epsilon", _up(self.claim.epsilon())),
            ("measured, at least", _down(self.epsilon())),
            ("datasets", _html.plain(self.datasets)),
            ("outputs", str(self.samples)),
        ]
        verdict = "The claim is refuted" if self.is_refuted else "The claim is not refuted"
        return _html.table(verdict, (), rows)


def _up(number: float) -> str:
    return _html.up(number, _DIGITS)


def _down(number: float) -> str:
    return _html.down(number, _DIGITS)
