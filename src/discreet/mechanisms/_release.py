"""The one door: charge, then compute, then add noise; nothing else calls `sample`."""

import hashlib
import json
import logging
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar, cast

from discreet import _checks, _html
from discreet._budget import Payer, Receipt, Request, has_paid
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import ComputationFailed, InvalidArgument
from discreet.mechanisms._bounded import Bounded, stated
from discreet.mechanisms._computation import StagedComputation
from discreet.mechanisms._door import Door
from discreet.mechanisms._mechanism import Mechanism, checked_mechanism
from discreet.mechanisms._serialize import deserialize, serialize, written
from discreet.mechanisms._silence import silent
from discreet.mechanisms._statement import statement_of
from discreet.noise import SecureBits

V = TypeVar("V")
W = TypeVar("W")
U = TypeVar("U")

owners_log = logging.getLogger("discreet.owner")
"""Causes of failed computations, which may hold private values. It is silent and separate from all
other loggers until the owner gives it a handler."""
owners_log.addHandler(logging.NullHandler())
owners_log.propagate = False

_MOST_NUMBERS = 1_000_000  # in an answer that a ledger stores
_FAILED = (
    "the computation failed after it was paid: the charge stands, nothing is released and the "
    "ledger is locked; its owner finds the cause in the log 'discreet.owner' and unlocks it"
)


@dataclass(frozen=True, slots=True, repr=False)
class Release(Generic[W]):
    """A released value, its privacy loss and its receipt.

    It holds nothing private; its printed form states all of it in words. ``basis`` says who asserts
    the sensitivity. ``processing`` names the functions that were applied to the value afterwards.
    """

    name: str
    value: W
    privacy_loss: PrivacyLoss
    mechanism: Mechanism[Any, Any]  # Any: whatever it was made from
    receipt: Receipt
    basis: str
    processing: tuple[str, ...] = ()

    def error(self, confidence: Number = 0.95) -> int | Fraction:
        """The error of the mechanism at this confidence.

        For additive noise, it is the half-width of an interval around each number of the value that
        holds the number without noise at this confidence, each number by itself, by the exact law
        of the noise; it is whole for integers. For other mechanisms it is the result of their own
        ``error``, for example the number of rows by which a quantile misses. Raises
        `InvalidArgument` if the value was processed, or if the mechanism states no error.
        """
        error = getattr(self.mechanism, "error", None)
        if self.processing:
            raise InvalidArgument(
                f"the value was processed ({', '.join(self.processing)}), so the error of the "
                "noise no longer applies; ask the release before processing"
            )
        if error is None:
            raise InvalidArgument(f"{self.mechanism!r} states no error for the value as a whole")
        return cast("int | Fraction", error(confidence))

    def processed(self, function: Callable[[W], U], by: str) -> "Release[U]":
        """The same release, with ``function(value)`` as its value.

        Guarantee: a function of a release costs nothing more (Dwork and Roth 2014, Proposition
        2.1), if it uses no other private data. ``by`` names it in the printed form.
        """
        value, done = function(self.value), (*self.processing, _checks.text(by=by))
        return cast("Release[U]", replace(self, value=value, processing=done))  # type: ignore[arg-type]  # the value's type changes

    def _repr_html_(self) -> str:
        """The release as a table in notebooks."""
        insecure = [("INSECURE", "bits were not secret; for tests only")]
        rows = [
            *(insecure if self.receipt.is_insecure else []),
            ("value", written(self.value)),
            *([("after", ", ".join(self.processing))] if self.processing else []),
            ("mechanism", repr(self.mechanism)),
            ("unit", str(self.privacy_loss.unit)),
            ("sensitivity", self.basis),
            ("privacy loss", _html.plain(str(self.privacy_loss))),
            ("receipt", f"{self.receipt.number} ({self.receipt.digest[:12]})"),
        ]
        return _html.table(self.name, (), rows)

    def __repr__(self) -> str:
        receipt = self.receipt
        insecure = "INSECURE (bits were not secret; for tests only) " if receipt.is_insecure else ""
        processing = f"  after {', '.join(self.processing)}\n" if self.processing else ""
        return (
            f"{insecure}{self.name}: {written(self.value)}\n"
            f"{processing}"
            f"  by {self.mechanism!r}, for {self.privacy_loss.unit}; sensitivity {self.basis}\n"
            f"  privacy loss {self.privacy_loss}, receipt {receipt.number} ({receipt.digest[:12]})"
        )


def release(
    bounded: Bounded[V],
    mechanism: Mechanism[V, W],
    payer: Payer[PrivacyLoss],
    *,
    purpose: str | None = None,
    by: str = "owner",
    request: str | None = None,
) -> Release[W]:
    """Charge the payer, run the computation, add noise, and return the result.

    Guarantee: the release costs the unit of ``bounded`` at most
    ``mechanism.privacy_loss(bounded)``, which the payer recorded durably before the computation
    ran. This holds if the stated sensitivity is right.

    A ``request`` id identifies one draw: the same id with the same question returns the same value
    and costs nothing. If the computation or the mechanism raises, or the result differs from the
    declaration, the charge stands, the payer is locked and `ComputationFailed` is raised, without
    the cause. An interrupt (Ctrl-C) passes through: the charge stands, and nothing is locked. An
    error of the payer, for example `BudgetExceeded`, is raised before the computation runs.

    >>> from discreet import Ledger, Limit, Unit
    >>> from discreet.mechanisms import DiscreteLaplace
    >>> unit = Unit("patient_id")
    >>> patients = Bounded(lambda: 41, sensitivity=1, unit=unit, name="patients in May")
    >>> ledger = Ledger.in_memory(unit=unit, limit=Limit(epsilon=1))
    >>> answer = release(patients, DiscreteLaplace.for_epsilon(0.5, patients), ledger)
    >>> answer.error(0.95)
    6
    """
    door = Door.secure(payer)
    return release_through(door, bounded, mechanism, purpose=purpose, by=by, request=request)


def release_through(
    door: Door,
    bounded: Bounded[V],
    mechanism: Mechanism[V, W],
    *,
    purpose: str | None = None,
    by: str = "owner",
    request: str | None = None,
) -> Release[W]:
    """`release`, through the given door."""
    # 1. privacy loss and checks, without data
    checked_mechanism(mechanism, "mechanism")
    loss = mechanism.privacy_loss(stated(bounded)).for_unit(bounded.unit)
    if request is not None:
        _check_size(bounded)
    door.note("bounded", (bounded.parts, bounded.is_joint))
    with _computation_ready(door, bounded, request, by) as compute:
        # 2. charge
        receipt = door.charge(
            loss,
            purpose=bounded.name if purpose is None else purpose,
            by=by,
            request=None if request is None else Request(request, _body(bounded, mechanism)),
            statement=statement_of(bounded, mechanism),
        )
        # 3. compute and add noise, unless this request has an answer already
        if receipt.stored is not None:
            value = cast(W, deserialize(receipt.stored))
        else:
            result = computed(door, bounded, compute, receipt)
            value = guarded(lambda: mechanism.sample(result, door.bits), door, receipt)
            door.note("released", value)
            if request is not None:
                door.payer.keep(receipt, guarded(lambda: serialize(value), door, receipt))
    return Release(bounded.name, value, loss, mechanism, receipt, bounded.basis)


def _computation_ready(
    door: Door, bounded: Bounded[V], request: str | None, by: str
) -> AbstractContextManager[Callable[[], V]]:
    """The computation, made ready before the charge. A repeated request needs no rows."""
    compute = bounded.compute
    if not isinstance(compute, StagedComputation) or has_paid(door.payer, request, by):
        return nullcontext(compute)
    return compute.opened()


def rehearse(mechanism: Mechanism[V, W], made_up: V) -> W:
    """The mechanism's answer for a made-up public value, with bits that are not used again.

    Call it before a charge: a parameter that the sampler refuses fails here, at no cost.
    """
    return mechanism.sample(made_up, SecureBits())


def computed(door: Door, bounded: Bounded[V], compute: Callable[[], V], receipt: Receipt) -> V:
    """The result of the computation, which is ready, checked against its declaration."""
    value = guarded(lambda: bounded.checked(compute()), door, receipt)
    door.note("computed", value)
    return value


def guarded(step: Callable[[], V], door: Door, receipt: Receipt) -> V:
    """The step's result.

    Any exception may reveal data, panics of engines and exits too. So a new exception without a
    cause replaces it. Warnings may reveal as much, and are not shown.
    """
    cause: BaseException | None = None
    try:
        with silent():
            return step()
    except KeyboardInterrupt:
        pass
    except BaseException as error:  # noqa: BLE001  # see above
        cause = error
    if cause is None:
        raise KeyboardInterrupt  # comes from the user, not from data: paid, but nothing is locked
    _fail(cause, door, receipt)
    del cause
    raise ComputationFailed(_FAILED)


def _fail(cause: BaseException, door: Door, receipt: Receipt) -> None:
    """Lock the payer, and log the cause for the owner only. `logging.config` may have reset the
    log, so each call closes it again to other logs and to standard error."""
    owners_log.propagate = False
    if not owners_log.handlers:
        owners_log.addHandler(logging.NullHandler())
    try:
        door.payer.lock(receipt)
    finally:
        owners_log.error("the computation of charge %d failed", receipt.number, exc_info=cause)


def _check_size(bounded: Bounded[V]) -> None:
    """Refuse a stored answer of too many numbers, before the charge; their number is public."""
    numbers = sum(math.prod(getattr(part, "shape", ())) for part in bounded.parts)
    if numbers > _MOST_NUMBERS:
        raise InvalidArgument(
            f"{bounded.name!r} has {numbers} numbers, and a request id stores at most "
            f"{_MOST_NUMBERS}: release it without a request id"
        )


def _body(bounded: Bounded[V], mechanism: Mechanism[V, W]) -> str:
    asked = (bounded.name, repr(bounded.unit), repr(bounded.parts), repr(mechanism), bounded.facts)
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()
