"""A statistic of rows whose answer has a shape of its own; `release` asks for it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Generic, TypeVar

from discreet import _checks, _html
from discreet._announce import announce
from discreet._budget import Payer, has_paid
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, QueryRefused
from discreet.query._questions._question import DeclaredTable
from discreet.query._questions._usefulness import advice_for

Found = TypeVar("Found", covariant=True)

_LARGE = 10_000  # rows: an answer that is useless for a group of this size is announced


@dataclass(frozen=True, slots=True)
class Asking:
    """How a statistic is released: its price and confidence, who pays, who asks, and an id."""

    epsilon: Number
    delta: Number
    confidence: Fraction
    ledger: Payer[PrivacyLoss]
    by: str
    request: str | None


@dataclass(frozen=True, slots=True)
class Offer:
    """A price and a confidence, and the number of rows that a forecast is for."""

    epsilon: Number
    delta: Number
    confidence: Fraction
    rows: int


@dataclass(frozen=True, slots=True, repr=False)
class StatisticForecast:
    """The cost of a `Statistic` and its expected errors, from public facts. It prints in lines.

    ``lines`` say the errors in words; ``errors`` are the same as numbers, by name. ``warnings`` say
    which of it will tell nothing, and the epsilon that would help.
    """

    privacy_loss: PrivacyLoss
    confidence: Fraction
    errors: Mapping[str, float] = field(hash=False)
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "\n".join([self._head, *(f"  {line}" for line in self.lines), *self._warnings])

    def _repr_html_(self) -> str:
        cost = [["privacy loss", _html.plain(str(self.privacy_loss))]]
        made = _html.table(self._head, [], [*([line] for line in self.lines), *cost])
        return made + _html.notes(self._warnings)

    @property
    def _warnings(self) -> list[str]:
        return [f"warning: {text}" for text in self.warnings]

    @property
    def _head(self) -> str:
        return f"expected error at {float(self.confidence):.4g} confidence"


@dataclass(frozen=True, slots=True, repr=False)
class Statistic(Generic[Found]):
    """A statistic that is not yet paid, such as the most frequent groups of a `Selection`.

    ``is_pure`` says that its noise takes an epsilon alone.
    """

    name: str
    table: DeclaredTable
    is_pure: bool
    released: Callable[[Asking], Found]
    expected: Callable[[Offer], StatisticForecast]

    def forecast(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = 0.95,
        group_size: int = 1000,
    ) -> StatisticForecast:
        """The cost and the expected errors, among this many rows where it matters. Nothing is read
        or charged. `QueryRefused` says why, where the rows decide on the error."""
        level = self._level(delta, confidence)
        size = _checks.positive_count(group_size=group_size)
        return self._with_advice(Offer(epsilon, delta, level, size))

    def release(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = 0.95,
        by: str = "owner",
        request: str | None = None,
    ) -> Found:
        """The private answer, charged to the ledger before a row is read. ``by`` says who asks. The
        same ``request`` id gives the same answer again, at no cost. Before the charge, a
        `UselessAnswerWarning` says that an answer will tell nothing, even of 10,000 rows."""
        level = self._level(delta, confidence)
        if not has_paid(self.table.ledger, request, by):
            with suppress(QueryRefused):  # the rows decide on the error
                announce(self._with_advice(Offer(epsilon, delta, level, _LARGE)).warnings)
        return self.released(Asking(epsilon, delta, level, self.table.ledger, by, request))

    def _with_advice(self, offer: Offer) -> StatisticForecast:
        """The forecast; where it tells nothing, with the epsilon that would help."""
        predicted = self.expected(offer)
        if not predicted.warnings:
            return predicted
        advice = advice_for(
            lambda epsilon: not self.expected(replace(offer, epsilon=epsilon)).warnings
        )
        return replace(
            predicted, warnings=tuple(f"{text}; {advice}" for text in predicted.warnings)
        )

    def _level(self, delta: Number, confidence: Number) -> Fraction:
        if self.is_pure and _checks.not_negative(delta=delta):
            raise InvalidArgument(f"{self.name}: its noise has no use for a delta; leave it out")
        return _checks.probability(confidence=confidence)

    def _repr_html_(self) -> str:
        price = "an epsilon" if self.is_pure else "an epsilon, or an epsilon and a delta"
        facts = self.table.declaration
        rows = [["of", facts.name], ["protected", str(facts.unit)], ["its noise takes", price]]
        return _html.table(f"{self.name}, not paid yet", [], rows)

    def __repr__(self) -> str:
        return f"Statistic: {self.name} of {self.table.declaration.name}"
