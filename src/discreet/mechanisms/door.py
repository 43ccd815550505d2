"""What every path to the one door carries: who pays, where the bits come from, who watches."""

from dataclasses import dataclass
from typing import Protocol

from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, Refused
from discreet.noise import Bits, SecureBits
from discreet.payment import Payer

_FRAMES = 200  # more than anything between a charge and its answer needs


class Trace(Protocol):
    """Watches a run for `discreet.audit`; sees private values, so no production path has one."""

    def note(self, event: str, fact: object) -> None:
        """Something happened: an event's name, and what belongs to it."""
        ...


@dataclass(frozen=True, slots=True)
class Door:
    """A payer with a source of bits and, in audits only, a trace.

    Public functions make theirs by `secure`; only `discreet.audit` and tests make others, and
    whatever comes through those is marked insecure in its receipt and in print.
    """

    payer: Payer[PrivacyLoss]
    bits: Bits
    trace: Trace | None

    def __post_init__(self) -> None:
        """Refuse a payer that can't pay."""
        if not callable(getattr(self.payer, "charge", None)) or isinstance(self.payer, type):
            raise InvalidArgument(
                f"payer is of type {type(self.payer).__name__}: give a Ledger, be it in memory"
            )
        try:
            _descend(_FRAMES)
        except RecursionError:
            raise Refused(
                "called from too deep in a program: Python might run out of frames between the "
                "charge and the answer; call it from further up, or raise sys.setrecursionlimit"
            ) from None

    @staticmethod
    def secure(payer: Payer[PrivacyLoss]) -> "Door":
        """The only door of production code: secure bits, nobody watching."""
        return Door(payer, SecureBits(), None)

    @property
    def is_secure(self) -> bool:
        """Whether the bits are secret and nobody watches."""
        return type(self.bits) is SecureBits and self.trace is None

    def note(self, event: str, fact: object) -> None:
        """Tell the trace, if there is one."""
        if self.trace is not None:
            self.trace.note(event, fact)


def _descend(frames: int) -> None:
    if frames:
        _descend(frames - 1)
