"""What all mechanisms of this folder share: how reports are made, and what they cost."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from discreet import _checks, accounting
from discreet._exact import Number, shown
from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, WrongUnit
from discreet.local import _forecast
from discreet.local._estimate import Estimate, Rates, SupportCounts
from discreet.local._odds import odds_below
from discreet.local.client._bits import Integers

ONE_REPORT = Unit.ROW.with_change(Change.REPLACE)
"""Who is protected: each client with one report, whose value is exchanged for any other."""

MOST_CATEGORIES = 1 << 24

V = TypeVar("V")
R = TypeVar("R")

Reports = npt.NDArray[Any]  # Any: places or truths, as the mechanism says


class Client(Protocol):
    """The part of a mechanism that runs on a person's device."""

    def randomize(self, values: object) -> Reports:
        """Reports."""
        ...


class LocalMechanism(Protocol):
    """A mechanism: what it promises, and what its client does."""

    @property
    def epsilon(self) -> Fraction:
        """What a report costs."""
        ...

    @property
    def client(self) -> Client:
        """The client."""
        ...

    def spent(self) -> PrivacyLoss:
        """What a report costs, as terms."""
        ...


class FrequencyOracle(Protocol):
    """One that counts how many reports support each category."""

    @property
    def rates(self) -> Rates:
        """With which chances."""
        ...

    def supports(self, reports: Reports) -> Integers:
        """For each category the number of reports that support it."""
        ...

    def well_formed(self, reports: Reports) -> Reports:
        """Those that a client can have sent."""
        ...


class ReportingMechanism:
    """How every mechanism reports and what that costs."""

    __slots__ = ()

    def randomize(self: LocalMechanism, values: object) -> Reports:
        """A report for one value, or one for each of several, as an array; from the operating
        system's generator. What runs is `client`, which needs no more than NumPy."""
        return asked(self.client.randomize, values)

    def privacy_loss(self: LocalMechanism, unit: Unit = ONE_REPORT) -> PrivacyLoss:
        """What one report costs its client, whoever sees it."""
        return self.spent().for_unit(replaced(unit))

    def shuffled(self: LocalMechanism, reports: int, unit: Unit = ONE_REPORT) -> PrivacyLoss:
        """What one report costs if it is only seen among so many others, one for each client, in
        random order; the shuffler is trusted and shows nothing else (Feldman, McMillan and Talwar
        2021)."""
        return shuffled(self.epsilon, reports, unit)


class FrequencyEstimator:
    """How a mechanism whose reports support categories estimates their shares."""

    __slots__ = ()

    def estimate(self: FrequencyOracle, reports: Reports) -> Estimate:
        """The share of each category among all clients, from the reports of all of them.

        Unbiased. The intervals hold at least their confidence for the clients' shares, and for
        those of a population of which the clients are independent draws. Reports that no client
        makes are left out; ``malformed`` counts them.
        """
        good = self.well_formed(reports)
        evidence = SupportCounts(self.supports(good), len(good), self.rates)
        return Estimate.of(evidence, len(good), len(reports) - len(good))

    def stddev(self: FrequencyOracle, reports: int, share: Number | None = None) -> float:
        """The standard deviation that the estimate of a category of this share will have, or that
        of any share at most."""
        return _forecast.share_stddev(self.rates, reports, share)

    def error(
        self: FrequencyOracle, confidence: Number, reports: int, share: Number | None = None
    ) -> float:
        """What the estimate of a category of this share will be off by at most, with this
        probability, by the exact law of its count. Without a share it is the larger one of shares
        0 and 1, between which all variances lie. It is for one category by itself."""
        return _forecast.share_error(self.rates, confidence, reports, share)


def asked(ask: Callable[[V], R], values: V) -> R:
    """What a client answers; what it refuses is refused by our own error."""
    try:
        return ask(values)
    except ValueError as wrong:
        raise InvalidArgument(str(wrong)) from None


def shuffled(epsilon: Fraction, reports: int, unit: Unit) -> PrivacyLoss:
    """One report among so many, by a mechanism of this epsilon."""
    term = accounting.ShuffledReports(epsilon, _checks.positive_count(reports=reports))
    return PrivacyLoss.of(term, unit=replaced(unit))


def half_told(epsilon: Fraction) -> PrivacyLoss:
    """Of a report that tells two values apart with probability 1/2, then with odds e^epsilon.

    Randomized response over k categories tells them apart with probability (o + 1) / (o + k - 1),
    which is 1/2 at k = o + 3; fewer categories cost more, and so cover this.
    """
    categories = int(odds_below(epsilon)) + 3
    return PrivacyLoss.of(accounting.RandomizedResponse(epsilon, categories))


def replaced(unit: Unit) -> Unit:
    """A unit whose value is exchanged: clients don't come or go, their number is public."""
    if isinstance(unit, Unit) and unit.change is Change.REPLACE:
        return unit
    raise WrongUnit(
        f"unit = {unit!r}: the number of reports is public, so neighbours replace a value: give "
        "a unit with Change.REPLACE"
    )


def several(categories: int) -> int:
    """A number of categories for each of which there is a count: 2 to 2^24."""
    found = _checks.positive_count(categories=categories)
    if 2 <= found <= MOST_CATEGORIES:
        return found
    raise InvalidArgument(
        f"categories = {found}: give 2 to 2^24; for more, CountMeanSketch estimates those asked for"
    )


def places_below(size: int, reports: Reports) -> Reports:
    """Those of the reports that are whole numbers from 0 and below the size."""
    allowed = f"an array of whole numbers from 0 to {size - 1}"
    if _one_by_one(reports, dimensions=1):
        found = [own for own in reports if is_whole(own) and 0 <= own < size]
        return in_a_row(np.array(found, np.int64), "iu", allowed)
    array = in_a_row(reports, "iu", allowed)
    return in_a_row(array[(array >= 0) & (array < size)], "iu", allowed)


def truths(reports: Reports) -> Reports:
    """Those of the reports that are truth values."""
    if _one_by_one(reports, dimensions=1):
        reports = np.array([own for own in reports if isinstance(own, bool | np.bool_)], bool)
    return in_a_row(reports, "b", "an array of truth values")


def rows_of_truths(length: int, reports: Reports) -> Reports:
    """The reports that are rows of truth values of this length; the others are left out."""
    if _one_by_one(reports, dimensions=2):
        rows = [own for own in reports if is_row_of_truths(own, length)]
        reports = np.array(rows, bool).reshape(-1, length)
    return in_a_row(reports, "b", f"an array of rows of {length} truth values", dimensions=2)


def is_row_of_truths(report: Any, length: int) -> bool:  # Any: what anyone sends
    """Whether the report is so many truth values."""
    if isinstance(report, np.ndarray):
        report = report.tolist()
    is_list = isinstance(report, list | tuple) and len(report) == length
    return is_list and all(isinstance(own, bool | np.bool_) for own in report)


def _one_by_one(reports: Reports, dimensions: int) -> bool:
    """Whether these are Python's own objects, or arrays in a list: each may be of another kind."""
    if isinstance(reports, np.ndarray):
        return reports.dtype.kind == "O" and reports.ndim in (1, dimensions)
    return isinstance(reports, list | tuple)


def is_whole(report: object) -> bool:
    """Whether the report is a whole number."""
    return type(report) is int or (
        isinstance(report, np.integer) and not isinstance(report, np.timedelta64)
    )


def counted(reports: Reports, size: int) -> Integers:
    """How often each place below the size was reported."""
    array = in_a_row(reports, "iu", f"an array of whole numbers from 0 to {size - 1}")
    if int(array.min()) < 0 or int(array.max()) >= size:
        raise InvalidArgument(
            f"reports: one lies outside 0 to {size - 1}; were they made by another mechanism?"
        )
    return np.bincount(array.astype(np.int64), minlength=size)


def added_up(reports: Reports, length: int) -> Integers:
    """How often each of so many truths was reported."""
    allowed = f"an array of rows of {length} truth values"
    found = in_a_row(reports, "b", allowed, dimensions=2)
    if found.shape[1] != length:
        raise InvalidArgument(f"reports of shape {found.shape}: give {allowed}")
    total: Integers = found.sum(axis=0, dtype=np.int64)
    return total


def in_a_row(reports: Reports, kinds: str, allowed: str, dimensions: int = 1) -> Reports:
    """The reports, which are at least one, of this kind."""
    array = reports if isinstance(reports, np.ndarray) else np.asarray(reports)
    if array.dtype.kind in kinds and array.ndim == dimensions and array.size:
        return array
    raise InvalidArgument(
        f"reports of {array.dtype.name}, shape {array.shape}: give {allowed}, at least one"
    )


def written(mechanism: LocalMechanism, **facts: object) -> str:
    """The mechanism as it is written in code."""
    said = "".join(f", {name}={value!r}" for name, value in facts.items())
    return f"{type(mechanism).__name__}(epsilon={shown(mechanism.epsilon)}{said})"
