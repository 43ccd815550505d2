"""The arguments of every release: payer, source of random bits, trace."""

from typing import ClassVar, Protocol

from discreet import _checks
from discreet._budget import Payer, Receipt, Request
from discreet._ownership import Owned
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, Refused
from discreet.noise import Bits, SecureBits

_FRAMES = 200  # more than the steps between a charge and its answer need


class Trace(Protocol):
    """Records a run for `discreet.audit`. It gets private values, so production code has none."""

    def note(self, event: str, fact: object) -> None:
        """Record an event, by its name, with its value."""


class Door(Owned):
    """A payer, a source of bits and, in audits only, a trace. It belongs to one process.

    Public functions make theirs by `secure`. Only `discreet.audit` and tests make others; releases
    through those are marked insecure, in their receipt and in print.
    """

    __slots__ = ("_bits", "_payer", "_trace")

    described: ClassVar[str] = "a door"

    def __init__(self, payer: Payer[PrivacyLoss], bits: Bits, trace: Trace | None) -> None:
        """Refuse a payer that can't pay."""
        if not callable(getattr(payer, "charge", None)) or isinstance(payer, type):
            raise InvalidArgument(
                f"payer is of type {type(payer).__name__}: give a Ledger; in scripts, "
                "Ledger.in_memory(...)"
            )
        try:
            _descend(_FRAMES)
        except RecursionError:
            raise Refused(
                "called from too deep in a program: Python might run out of frames between the "
                "charge and the answer; call it from further up, or raise sys.setrecursionlimit"
            ) from None
        self._payer, self._bits, self._trace = payer, bits, trace

    @staticmethod
    def secure(payer: Payer[PrivacyLoss]) -> "Door":
        """The only door of production code: secure bits and no trace."""
        return Door(payer, SecureBits(), None)

    @property
    def payer(self) -> Payer[PrivacyLoss]:
        """The payer."""
        self.check_process()
        return self._payer

    @property
    def bits(self) -> Bits:
        """The source of the noise."""
        self.check_process()
        return self._bits

    @property
    def trace(self) -> Trace | None:
        """The trace of an audit, if there is one."""
        return self._trace

    @property
    def is_secure(self) -> bool:
        """Whether the bits are secret and there is no trace."""
        return type(self.bits) is SecureBits and self.trace is None

    def charge(
        self,
        loss: PrivacyLoss,
        *,
        purpose: str,
        by: str,
        request: Request | None = None,
        statement: str | None = None,
    ) -> Receipt:
        """Charge the payer. The only call by which releases, sessions and training runs pay."""
        receipt = self.payer.charge(
            loss,
            purpose=_checks.text(purpose=purpose),
            by=_checks.text(by=by),
            request=request,
            is_insecure=not self.is_secure,
            statement=statement,
        )
        self.note("charged", loss.to_json())
        return receipt

    def note(self, event: str, fact: object) -> None:
        """Record an event in the trace, if there is one."""
        if self.trace is not None:
            self.trace.note(event, fact)


def _descend(frames: int) -> None:
    if frames:
        _descend(frames - 1)
