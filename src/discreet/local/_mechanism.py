"""The methods that all local mechanisms share, and the checks of reports."""

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from discreet import _checks, accounting
from discreet._exact import Number
from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, WrongUnit
from discreet.local import _forecast
from discreet.local._estimate import Estimate, Rates, SupportCounts
from discreet.local._odds import odds_below
from discreet.local.client._bits import Integers

ONE_REPORT = Unit.ROW.with_change(Change.REPLACE)
"""The protected unit: a client with one report, whose value is replaced by any other."""

MOST_CATEGORIES = 1 << 24

V = TypeVar("V")
R = TypeVar("R")

Reports = npt.NDArray[Any]  # Any: integers or booleans, as the mechanism says


class Client(Protocol):
    """The part of a mechanism that runs on a device."""

    def randomize(self, values: object) -> Reports: ...


class LocalMechanism(Protocol):
    """A mechanism with the epsilon and the privacy loss of one report, and its client."""

    @property
    def epsilon(self) -> Fraction: ...
    @property
    def client(self) -> Client: ...
    def spent(self) -> PrivacyLoss: ...


class FrequencyOracle(Protocol):
    """A mechanism that counts the reports that support each category."""

    @property
    def rates(self) -> Rates: ...
    def supports(self, reports: Reports) -> Integers: ...
    def well_formed(self, reports: Reports) -> Reports: ...


class ReportingMechanism:
    """Reports, and the privacy loss of a report."""

    __slots__ = ()

    def randomize(self: LocalMechanism, values: object) -> Reports:
        """A report for one value, or one for each of several, as an array; from the operating
        system's generator. It runs `client`, which needs no more than NumPy."""
        return with_our_error(self.client.randomize, values)

    def privacy_loss(self: LocalMechanism, unit: Unit = ONE_REPORT) -> PrivacyLoss:
        """The privacy loss of one report for its client, whoever sees the report."""
        return self.spent().for_unit(replaced(unit))

    def shuffled(self: LocalMechanism, reports: int, unit: Unit = ONE_REPORT) -> PrivacyLoss:
        """The privacy loss of one report that is seen only among this many, one from each client,
        in random order; the shuffler is trusted and shows nothing else (Feldman, McMillan and
        Talwar 2021)."""
        return shuffled(self.epsilon, reports, unit)


class FrequencyEstimator:
    """Estimates of the shares of categories, from reports that support them."""

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
        """The standard deviation of the estimate for a category of this share; without a share,
        an upper bound over all shares."""
        return _forecast.share_stddev(self.rates, reports, share)

    def error(
        self: FrequencyOracle, confidence: Number, reports: int, share: Number | None = None
    ) -> float:
        """The error of the estimate for one category of this share at this confidence, by the exact
        law of its count. Without a share it is the larger error of the shares 0 and 1, between
        which all variances lie."""
        return _forecast.share_error(self.rates, confidence, reports, share)


def with_our_error(make: Callable[[V], R], values: V) -> R:
    """The client's result; its ``ValueError`` becomes an `InvalidArgument`."""
    try:
        return make(values)
    except ValueError as wrong:
        raise InvalidArgument(str(wrong)) from None


def shuffled(epsilon: Fraction, reports: int, unit: Unit) -> PrivacyLoss:
    """The privacy loss of one report of this epsilon among ``reports`` shuffled ones."""
    term = accounting.ShuffledReports(epsilon, _checks.positive_count(reports=reports))
    return PrivacyLoss.of(term, unit=replaced(unit))


def half_informative(epsilon: Fraction) -> PrivacyLoss:
    """The privacy loss of a report that is independent of the value with probability 1/2, and
    otherwise distinguishes two values with odds o = e^epsilon.

    Randomized response over k categories distinguishes two values with probability
    (o + 1) / (o + k - 1), which is 1/2 at k = o + 3. Fewer categories cost more, so rounding k down
    is safe.
    """
    categories = int(odds_below(epsilon)) + 3
    return PrivacyLoss.of(accounting.RandomizedResponse(epsilon, categories))


def replaced(unit: Unit) -> Unit:
    """The unit, if its value is replaced: the number of reports is public."""
    if isinstance(unit, Unit) and unit.change is Change.REPLACE:
        return unit
    raise WrongUnit(
        f"unit = {unit!r}: the number of reports is public, so neighbours replace a value: give "
        "a unit with Change.REPLACE"
    )


def category_count(**named: object) -> int:
    """One named number of categories, 2 to 2^24, so that each can have a count."""
    found = _checks.positive_count(**named)
    if 2 <= found <= MOST_CATEGORIES:
        return found
    (name,) = named
    raise InvalidArgument(
        f"{name} = {found}: give 2 to 2^24; for more, CountMeanSketch estimates those asked for"
    )


Categories = Annotated[int, category_count]


# --- reports, as anyone may send them ---


def integers_below(size: int, reports: Reports) -> Reports:
    """The reports that are integers from 0 to ``size`` - 1; the others are left out."""
    allowed = f"an array of whole numbers from 0 to {size - 1}"
    if _is_list(reports, dimensions=1):
        found = [one for one in reports if is_integer(one) and 0 <= one < size]
        return checked_array(np.array(found, np.int64), "iu", allowed)
    array = checked_array(reports, "iu", allowed)
    return checked_array(array[(array >= 0) & (array < size)], "iu", allowed)


def booleans(reports: Reports) -> Reports:
    """The reports that are booleans; the others are left out."""
    if _is_list(reports, dimensions=1):
        reports = np.array([one for one in reports if isinstance(one, bool | np.bool_)], bool)
    return checked_array(reports, "b", "an array of truth values")


def boolean_rows(length: int, reports: Reports) -> Reports:
    """The reports that are rows of ``length`` booleans; the others are left out."""
    if _is_list(reports, dimensions=2):
        rows = [one for one in reports if is_boolean_row(one, length)]
        reports = np.array(rows, bool).reshape(-1, length)
    return checked_array(reports, "b", f"an array of rows of {length} truth values", dimensions=2)


def is_boolean_row(report: Any, length: int) -> bool:  # Any: whatever is sent
    """Whether the report is a row of ``length`` booleans."""
    if isinstance(report, np.ndarray):
        report = report.tolist()
    is_list = isinstance(report, list | tuple) and len(report) == length
    return is_list and all(isinstance(one, bool | np.bool_) for one in report)


def is_integer(report: object) -> bool:
    """Whether the report is an integer, and no boolean."""
    return type(report) is int or (
        isinstance(report, np.integer) and not isinstance(report, np.timedelta64)
    )


def histogram(reports: Reports, size: int) -> Integers:
    """The number of reports of each integer below ``size``."""
    array = checked_array(reports, "iu", f"an array of whole numbers from 0 to {size - 1}")
    if int(array.min()) < 0 or int(array.max()) >= size:
        raise InvalidArgument(
            f"reports: one lies outside 0 to {size - 1}; were they made by another mechanism?"
        )
    return np.bincount(array.astype(np.int64), minlength=size)


def column_sums(reports: Reports, length: int) -> Integers:
    """The number of rows that have each of ``length`` columns set."""
    allowed = f"an array of rows of {length} truth values"
    found = checked_array(reports, "b", allowed, dimensions=2)
    if found.shape[1] != length:
        raise InvalidArgument(f"reports of shape {found.shape}: give {allowed}")
    total: Integers = found.sum(axis=0, dtype=np.int64)
    return total


def checked_array(reports: Reports, kinds: str, allowed: str, dimensions: int = 1) -> Reports:
    """The reports as an array, if it has one of these dtype kinds and is not empty."""
    array = reports if isinstance(reports, np.ndarray) else np.asarray(reports)
    if array.dtype.kind in kinds and array.ndim == dimensions and array.size:
        return array
    raise InvalidArgument(
        f"reports of {array.dtype.name}, shape {array.shape}: give {allowed}, at least one"
    )


def _is_list(reports: Reports, dimensions: int) -> bool:
    """Whether each report may be an object of its own type, to be looked at one by one."""
    if isinstance(reports, np.ndarray):
        return reports.dtype.kind == "O" and reports.ndim in (1, dimensions)
    return isinstance(reports, list | tuple)
