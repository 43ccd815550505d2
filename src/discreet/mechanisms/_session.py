"""Sessions: charge for the whole session first, then compute and answer question by question."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Generic, TypeVar

from discreet import _checks
from discreet._budget import Payer, Receipt
from discreet._ownership import Owned
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, SessionEnded, WrongUnit
from discreet.mechanisms._bounded import Bounded, change_of, stated
from discreet.mechanisms._computation import opened
from discreet.mechanisms._door import Door
from discreet.mechanisms._mechanism import Interactive
from discreet.mechanisms._release import computed, guarded
from discreet.mechanisms._statement import statement_of_plan

V = TypeVar("V")
W = TypeVar("W")


class Session(Owned, Generic[V, W]):
    """A paid interactive mechanism that answers questions.

    It belongs to the process that opened it; a forked process can't use it. Its secret state is
    never written to disk, so an abandoned session can't be resumed.
    """

    __slots__ = ("_door", "_mechanism", "_turns", "receipt", "unit")

    described: ClassVar[str] = "a session"

    def __init__(
        self, door: Door, mechanism: Interactive[V, W], unit: Unit, receipt: Receipt
    ) -> None:
        """Begin. Only `session` makes these, after the charge."""
        self.receipt, self.unit = receipt, unit
        self._door, self._mechanism = door, mechanism
        # holds the answering function while a question may be asked; pop is atomic
        self._turns: list[Callable[[V], tuple[W, bool]]] = [
            guarded(lambda: mechanism.begin(door.bits), door, receipt)
        ]

    def ask(self, bounded: Bounded[V]) -> W:
        """Run this computation and return the mechanism's answer.

        Raises `SessionEnded` if the mechanism has given all paid answers, `WrongUnit` if the
        computation has another unit, `InvalidArgument` if its sensitivity is larger than the
        session allows, and `Refused` in a process that did not open the session. In these cases no
        data is read, and the session continues. It answers one question at a time: a question
        from another thread meanwhile raises `SessionEnded`.
        """
        self.check_process()
        if stated(bounded).unit != self.unit:
            raise WrongUnit(f"{bounded.name!r} is for {bounded.unit}; this session, {self.unit}")
        self._mechanism.check(bounded)
        turns = self._turns
        with opened(bounded.compute) as compute:
            try:
                answer = turns.pop()  # if a step below fails, the session has ended
            except IndexError:
                raise SessionEnded(
                    "the session has given all paid answers: open another session"
                ) from None
            self._door.note("bounded", (bounded.parts, bounded.is_joint))
            value = computed(self._door, bounded, compute, self.receipt)
            given, goes_on = guarded(lambda: answer(value), self._door, self.receipt)
        if goes_on:
            turns.append(answer)
        self._door.note("released", given)
        return given

    def close(self) -> None:
        """End the session; its secrets are dropped."""
        self._turns = []

    def __repr__(self) -> str:
        """The public fields."""
        return f"Session({self._mechanism!r}, receipt {self.receipt.number})"


@contextmanager
def session(
    mechanism: Interactive[V, W],
    payer: Payer[PrivacyLoss],
    *,
    unit: Unit,
    name: str,
    by: str = "owner",
) -> Iterator[Session[V, W]]:
    """Charge for a whole interactive mechanism, and open it for one question after another.

    Guarantee: all answers together cost the unit at most ``mechanism.privacy_loss(unit)``, even if
    questions depend on earlier answers. The payer records the charge durably before the first
    question. If a computation raises, the payer is locked and the session ends, as in `release`.
    ``name`` is the purpose on the receipt.
    """
    with session_through(Door.secure(payer), mechanism, unit=unit, name=name, by=by) as opened:
        yield opened


@contextmanager
def session_through(
    door: Door, mechanism: Interactive[V, W], *, unit: Unit, name: str, by: str = "owner"
) -> Iterator[Session[V, W]]:
    """`session`, through the given door."""
    change_of(unit)
    if isinstance(mechanism, type) or not callable(getattr(mechanism, "begin", None)):
        raise InvalidArgument(
            f"mechanism is of type {type(mechanism).__name__}: give an interactive one, as a "
            "SparseVector"
        )
    loss = mechanism.privacy_loss(unit).for_unit(unit)
    purpose = _checks.text(name=name)
    statement = statement_of_plan(mechanism, unit=unit, name=purpose)
    receipt = door.charge(loss, purpose=purpose, by=by, statement=statement)
    opened = Session(door, mechanism, unit, receipt)
    try:
        yield opened
    finally:
        opened.close()
