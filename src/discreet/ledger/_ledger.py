"""The ledger: one budget for one dataset, whose limit is never exceeded."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from discreet import _checks, _html
from discreet._budget import AnyLimit, Receipt, Request
from discreet._unit import Unit
from discreet.accounting import Filter, PrivacyLoss, Spent, Term
from discreet.errors import DiscreetError, InvalidArgument, LedgerError
from discreet.ledger import _appending
from discreet.ledger._addresses import is_taken, make_store, named, open_anchored, refuse_lost
from discreet.ledger._anchor import AnchorPlace
from discreet.ledger._decisions import (
    ChargeOrder,
    CountedCharge,
    PricedCharge,
    Track,
    check_receipt_type,
    loss_of,
    opening_for,
    storable,
)
from discreet.ledger._entries import request_key
from discreet.ledger._export import write_export
from discreet.ledger._facts import (
    Grant,
    LedgerState,
    Link,
    Opening,
    Revoke,
    ShareState,
    Unlock,
)
from discreet.ledger._reader import LedgerReader
from discreet.ledger._shares import Share, ShareBalance
from discreet.ledger._sqlite import as_path
from discreet.ledger._sqlite_store import SqliteStore
from discreet.ledger._store import Store, Transaction, log
from discreet.ledger._views import Balance, Entry
from discreet.ledger._writer import Decision, Writer

_TRIES = 20  # to count a charge before its transaction, while others charge
_LONGEST_ANSWER = 100_000_000  # characters
_LONGEST_NAME = 200  # characters; each subtotal repeats it


class Ledger:
    """A durable budget: it records each privacy loss before data is read, or refuses it.

    Guarantee: the recorded charges together, however adaptively chosen, stay within the limit that
    was fixed when the ledger was made, for its unit. This holds for racing processes and threads,
    ``kill -9``, loss of power and a clock that is set back. Nothing is ever refunded, changed or
    removed. `verify` finds a changed, missing or moved entry, and each charge finds a changed last
    entry. Not covered: an older copy of the file in its place, unless the ledger is opened with an
    anchor that the attacker can't write; an attacker who can write the file and forges the whole
    chain.

    Any number of threads and processes may use one ledger, also across forks. Each transaction
    locks the inode of the file. Between transactions this one file holds everything. Make a ledger
    by `create`, `open`, `open_or_create` or `in_memory`; with an address in place of a path it lies
    in PostgreSQL, and a transaction locks its head row. In containers mount the folder, not the
    file, because the journal beside it is needed after a crash.

    >>> from discreet.accounting import Pure
    >>> from discreet import Limit
    >>> ledger = Ledger.in_memory(unit=Unit("patient_id"), limit=Limit(epsilon=1))
    >>> receipt = ledger.charge(8 * Pure(0.1), purpose="dashboard", by="ana")
    >>> receipt.number
    1
    >>> ledger.charge(Pure(0.3), purpose="one more", by="ana")
    Traceback (most recent call last):
        ...
    discreet.errors.BudgetExceeded: would reach ε = 1.10, the limit is 1 (δ = 0); at most \
ε = 0.2 is left for one more charge without a delta; lower the budget of this query or ask \
the owner
    >>> print(ledger.spent())
    spent ε = 0.8 of 1 (δ = 0), in 1 charge; one more charge without a delta may cost at most \
ε = 0.2
    (ε = 0.8 if all charges had been fixed beforehand)
    """

    __slots__ = ("_last", "_prices", "_reader", "_store", "_writer")

    def __init__(self, store: Store, anchor: AnchorPlace | None = None) -> None:
        """Use this store; `create`, `open` and `in_memory` make ledgers."""
        self._store = store
        self._writer = Writer(store, anchor)
        self._reader = LedgerReader(store, anchor, self._writer.totals)
        self._last: dict[str | None, tuple[Opening, LedgerState, ShareState | None]] = {}
        self._prices: dict[str | None, tuple[PrivacyLoss, PricedCharge]] = {}  # by share

    @staticmethod
    def create(
        path: str | os.PathLike[str],
        *,
        unit: Unit,
        limit: AnyLimit,
        filter: Filter | None = None,  # noqa: A002  # its name in this field
    ) -> "Ledger":
        """A new ledger in a new file that only its owner can read; an existing file is refused.

        In place of a path, ``postgresql://host/database?ledger=NAME`` makes it in PostgreSQL, and
        so it does for `open`.
        The limit is a `Limit`, `RhoLimit`, `MuLimit` or `RenyiLimit`. The filter (by default
        `Filter.for_limit`) decides on all charges and never changes; a ledger mostly for training
        takes `Filter.for_training(limit)`.
        """
        if not make_store(path, opening_for(unit, limit, filter)):
            raise InvalidArgument(
                f"path = {named(path)!r} exists already: open it by Ledger.open, or give a new path"
            )
        log.info("made %s", named(path))
        return Ledger.open(path)

    @staticmethod
    def open(
        path: str | os.PathLike[str], *, anchor: str | os.PathLike[str] | None = None
    ) -> "Ledger":
        """The ledger in this file.

        ``anchor`` is the path of a small file elsewhere, or of a table in another database:
        ``postgresql://role@host/database?anchor=NAME``. The head of the chain is written there
        after each entry, and a ledger that is older than its anchor is refused. The first opening
        makes the anchor. Without an anchor, an older copy in place of the file goes unnoticed, and
        its later charges are forgotten.
        """
        ledger = Ledger(*open_anchored(path, anchor))
        ledger._opening()  # raises if it can't be read
        return ledger

    @staticmethod
    def open_or_create(
        path: str | os.PathLike[str],
        *,
        unit: Unit,
        limit: AnyLimit,
        anchor: str | os.PathLike[str] | None = None,
    ) -> "Ledger":
        """The ledger in this file, created if there is none; it must agree with the declaration.

        The ledger decides: another limit is refused, and so is another unit after the first
        charge. Before that, the new unit is recorded. ``anchor`` is as for `open`; if it is there
        and the ledger is not, the ledger was lost, and no other is made (`LedgerError`).
        """
        opening = opening_for(unit, limit, None)
        refuse_lost(path, anchor)
        if is_taken(path) or not make_store(path, opening):
            ledger = Ledger(*open_anchored(path, anchor))
            name = ledger._store.name
            ledger._writer.write(lambda rows, head: _appending.agree(rows, head, opening, name))
            return ledger
        return Ledger.open(path, anchor=anchor)

    @staticmethod
    def in_memory(
        *,
        unit: Unit,
        limit: AnyLimit,
        filter: Filter | None = None,  # noqa: A002  # its name in this field
    ) -> "Ledger":
        """A ledger for scripts and tests, in memory only: it ends with the process."""
        return Ledger(SqliteStore.in_memory(opening_for(unit, limit, filter)))

    @property
    def unit(self) -> Unit:
        """The protected unit."""
        return self._opening().unit

    @property
    def limit(self) -> AnyLimit:
        """The most that may ever be spent."""
        return self._opening().filter.limit

    @property
    def filter(self) -> Filter:
        """The filter that decides, fixed when the ledger was made."""
        return self._opening().filter

    @property
    def sums(self) -> Spent:
        """The filter's running sums of all charges so far."""
        return self._look()[1].spent

    @property
    def filters(self) -> tuple[tuple[Filter, Spent], ...]:
        """The filters that must each admit a charge, with their running sums: one, its own. A
        reserved amount counts as spent."""
        return self.filters_of(None)

    def filters_of(self, share: str | None) -> tuple[tuple[Filter, Spent], ...]:
        """The same for a charge to this share: the ledger's filter, then the share's. The
        reserves of other shares count as spent."""
        return self._reader.filters(share)

    @property
    def path(self) -> Path | None:
        """The ledger's file; None for a ledger in memory."""
        return self._store.path

    @property
    def is_locked(self) -> bool:
        """Whether a paid computation failed and the owner has not looked yet."""
        return self._reader.look()[1].is_locked

    def charge(
        self,
        loss: PrivacyLoss | Term,
        *,
        purpose: str,
        by: str,
        request: Request | None = None,
        is_insecure: bool = False,
        statement: str | None = None,
        share: str | None = None,
    ) -> Receipt:
        """Record this privacy loss durably and return the receipt, or raise and record nothing.

        A loss without a unit takes the ledger's unit. ``statement`` is JSON that the receipt will
        show; its digest is recorded. A ``request`` that was paid and answered
        before returns its first receipt, with the answer, and costs nothing. A charge to a
        ``share`` must fit both its limit and the ledger's. Raises
        `BudgetExceeded`, `LedgerLocked`, `QuestionFailed`, `WrongUnit`, `NoBound` or
        `RequestReused`. Raises a `LedgerError` if the file or its anchor fails; the charge is then
        recorded whole, or not at all.
        """
        order = ChargeOrder.of(
            loss,
            purpose=purpose,
            by=by,
            request=request,
            is_insecure=is_insecure,
            statement=statement,
            share=share,
        )
        (outcome,) = self.charge_each([order])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def charge_each(self, orders: Sequence[ChargeOrder]) -> list[Receipt | Exception]:
        """For each order its receipt or its error, as `charge` gives them. They share
        transactions, so that many wait for the disk once."""
        outcomes: list[Receipt | Exception | None] = [None] * len(orders)
        for tries in reversed(range(_TRIES)):
            decisions = dict[int, Decision[Receipt | CountedCharge | None]]()
            for number, order in enumerate(orders):
                if outcomes[number] is None:
                    try:  # outside the transaction, since pricing may take long
                        decisions[number] = self._payment(order, may_wait=bool(tries))
                    except DiscreetError as failure:
                        outcomes[number] = failure
            found = self._writer.write_each(
                list(decisions.values()), [orders[number].key for number in decisions]
            )
            for number, one in zip(decisions, found, strict=True):
                outcomes[number] = one.refusal if isinstance(one, CountedCharge) else one
            if None not in outcomes:
                break
        decided = [one for one in outcomes if one is not None]
        assert len(decided) == len(orders), "the last try decides"
        return decided

    def _payment(
        self, order: ChargeOrder, *, may_wait: bool
    ) -> Decision[Receipt | CountedCharge | None]:
        share, fact = order.share, order.fact
        prices = [self._priced(track, fact.loss) for track in self._tracks(share)]

        def decide(rows: Transaction, head: Link) -> Receipt | CountedCharge | None:
            opened = {} if share is None else self._reader.shares_at(rows, head)
            to = None if share is None else (share, opened)
            if share is None or share in opened:
                own = None if share is None else opened[share]
                self._last[share] = rows.opening(head), head.state, own
            return _appending.pay(
                rows, head, fact, prices, to=to, statement=order.statement, may_wait=may_wait
            )

        return decide

    def _priced(self, track: Track, loss: PrivacyLoss) -> PricedCharge:
        """The price on this track; the last one of each track is remembered."""
        asked, price = self._prices.get(track.share, (None, None))
        if price is None or asked is not loss or price.opening != track.opening:
            price = PricedCharge.of(track.opening, loss)
            self._prices[track.share] = loss, price
        return price

    def _tracks(self, share: str | None) -> tuple[Track, ...]:
        """The tracks of a charge to the share, as they were at the last charge; the transaction
        decides on those of its own time."""
        last = self._last.get(share)
        return self._reader.tracks(share) if last is None else _appending.tracks(*last)

    def grant(
        self,
        share: str,
        *,
        limit: AnyLimit,
        by: str,
        reserve: PrivacyLoss | Term | None = None,
    ) -> None:
        """Open a share with a limit of its own, recorded as an entry; `share` charges it.

        Shares may add up to more than the ledger's limit, which holds over all of them together.
        A name has at most 200 characters. A share that is open already is refused
        (`InvalidArgument`); one that was revoked may be granted again, with nothing spent.

        ``reserve`` is a privacy loss, such as that of a training run, for which a part of the
        ledger's limit is set aside. Nobody else can spend it; a charge of this loss to the share
        fits, whatever others spend. A smaller charge draws on the reserve and leaves the rest.
        `revoke` releases it. A reserve that does not fit the share's limit, or what the ledger has
        left beside other reserves, is refused (`BudgetExceeded`).
        """
        opening = self._opening()
        chosen = opening_for(opening.unit, limit, None).filter
        if len(name := _checks.text(share=share)) > _LONGEST_NAME:
            raise InvalidArgument(
                f"share = {_checks.quoted(share)}: give at most {_LONGEST_NAME} characters"
            )
        fact = Grant(name, chosen, _checks.text(by=by))
        whole = None if reserve is None else storable(loss_of(reserve))
        if whole is not None:
            for each in (opening.filter, chosen):
                each.cost(whole.for_unit(opening.unit))  # may take long, and is remembered
        self._writer.write(
            lambda rows, head: _appending.grant(
                rows, head, fact, self._reader.shares_at(rows, head), reserve=whole
            )
        )

    def revoke(self, share: str, *, by: str) -> None:
        """End a share: it takes no further charge. Its entries stay as they are, and the rest of
        its reserve is free for others."""
        fact = Revoke(_checks.text(share=share), _checks.text(by=by))
        self._writer.write(
            lambda rows, head: _appending.revoke(
                rows, head, fact, self._reader.shares_at(rows, head)
            )
        )

    def share(self, share: str) -> Share:
        """The open share of this name, as a payer; `InvalidArgument` if there is none."""
        return Share(self, self._reader.open_share(share).name)

    def shares(self) -> tuple[ShareBalance, ...]:
        """The balance of each open share, by name."""
        return self._reader.shares()

    def keep(self, receipt: Receipt, answer: str) -> None:
        """Store the answer to a paid request durably, before it is shown; it is stored once."""
        if not isinstance(answer, str):
            raise InvalidArgument(f"answer: give the text to store, not a {type(answer).__name__}")
        if len(answer) > _LONGEST_ANSWER:
            raise InvalidArgument(
                f"answer: it has more than {_LONGEST_ANSWER} characters, the most that a ledger "
                "stores: charge without a request"
            )
        check_receipt_type(receipt)
        plain = str.__str__(answer)
        self._writer.write(lambda rows, head: _appending.store_answer(rows, head, receipt, plain))

    def lock(self, receipt: Receipt) -> None:
        """Refuse every further charge until the owner unlocks: this computation failed."""
        check_receipt_type(receipt)
        self._writer.write(lambda rows, head: _appending.lock(rows, head, receipt))

    def reserve(
        self, receipt: Receipt, loss: PrivacyLoss | Term, *, count: int, of: int, plan: str
    ) -> range:
        """Reserve the next ``count`` steps, or all that are left, of the ``of`` steps that this
        receipt paid: durably, before they run, and never twice.

        ``loss`` is the loss that was paid and ``plan`` a digest of the steps: another loss or plan
        than before is refused (`InvalidArgument`). Raises `SessionEnded` if no step is left.
        """
        check_receipt_type(receipt)
        wanted, most = _checks.size(count=count), _checks.size(of=of)
        digest, whole = _checks.text(plan=plan), loss_of(loss)
        return self._writer.write(
            lambda rows, head: _appending.reserve(
                rows, head, receipt, whole, count=wanted, of=most, plan=digest
            )
        )

    def reserved(self, receipt: Receipt) -> int:
        """The number of reserved steps, of those that this receipt paid."""
        return self._reader.reserved(receipt)

    def unlock(
        self,
        reason: str,
        by: str,
        *,
        allow_repeat: bool = False,
        locks: Collection[int] | None = None,
    ) -> tuple[Entry, ...]:
        """Open a locked ledger again, and return the charges whose questions failed.

        ``reason`` says why it is safe to go on, and ``by`` who decided. Questions with the purpose
        of a failed one stay refused for everyone (`QuestionFailed`), because a second failure could
        reveal something about the data. ``allow_repeat=True`` allows all of them again, even if the
        ledger is no longer locked. ``locks`` are the numbers of the entries that locked it, as its
        owner looked at them; if it was locked by others meanwhile, it stays so (`InvalidArgument`).
        An unlocked backup replaces its ledger.
        """
        fact = Unlock(_checks.text(reason=reason), _checks.text(by=by), bool(allow_repeat))
        return self._writer.write(
            lambda rows, head: _appending.unlock(rows, head, fact, self._store.name, locks=locks)
        )

    def failed(self) -> tuple[Entry, ...]:
        """The charges whose questions failed and may not be asked again."""
        return self._reader.failed()

    def locking(self) -> tuple[Entry, ...]:
        """The entries that locked the ledger since it was last unlocked, in order."""
        return self._reader.locking()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a verified copy of the ledger to a new file; an existing file is refused.

        The copy is complete even if others charge meanwhile; it lacks later charges. It is locked,
        because it would be a second budget beside the ledger. If the ledger is lost, put the copy
        in its place and `unlock` it. Charges after the copy are then forgotten; with an anchor, the
        copy is refused.
        """
        place = as_path(path)
        if not self._store.copy_file(place):
            raise InvalidArgument(f"path = {str(place)!r} exists already: give a new path")
        log.info("%s: copied to %s", self._store.name, place)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write every entry to a new text file that `check_export` verifies without the ledger.

        Each line is an entry as canonical JSON, with the stored answers; the last line names the
        last entry. Others charge meanwhile; their later entries are missing. An export takes no
        charge. An existing file is refused (`InvalidArgument`).
        """
        place = as_path(path)
        if not write_export(place, self._reader.links()):
            raise InvalidArgument(f"path = {str(place)!r} exists already: give a new path")
        log.info("%s: exported to %s", self._store.name, place)

    def spent(self) -> Balance:
        """The balance: the spent and the remaining part of the limit, by the filter that decides.

        The first call reads and verifies the entries after the last subtotal; later ones read the
        entries that are new since then. A `Receipt` carries a balance without the total.
        """
        return self._reader.spent()

    def count_left(self, loss: PrivacyLoss | Term) -> int:
        """The number of further charges of this privacy loss that the filter admits."""
        return self._reader.count_left(loss_of(loss))

    def has_request(self, request: str, by: str) -> bool:
        """Whether this analyst charged under this request id before."""
        return self.requested(request, by) is not None

    def requested(self, request: str, by: str) -> Entry | None:
        """The charge that this analyst made under this request id; None if there is none."""
        return self._reader.under(request_key(by, Request(request, "")))

    def history(self, last: int | None = None) -> tuple[Entry, ...]:
        """Every entry from the first, each digest verified; or only the ``last`` ones."""
        most = None if last is None else _checks.positive_count(last=last)
        return tuple(map(Entry.of, self._reader.links(most)))

    def entry(self, number: int) -> Entry | None:
        """The entry of this number; None if there is none."""
        return self._reader.entry(number)

    def receipt(self, number: int, statement: str | None = None) -> Receipt:
        """The receipt of the charge at this number, as it is recorded; without a balance.

        ``statement`` is the text whose digest the charge recorded. Raises `ReceiptDiffers` if this
        entry is no charge, or has another statement.
        """
        return self._reader.receipt(number, statement)

    def verify(self) -> None:
        """Raise `LedgerDamaged` unless everything in the ledger follows by its rules.

        Checks the file, the whole chain from the first entry, and the running sums against the
        stored privacy losses.
        """
        self._reader.verify()

    def _look(self) -> tuple[Opening, LedgerState]:
        """The opening in force and the state, which this object remembers."""
        found = self._reader.look()
        self._last[None] = (*found, None)
        return found

    def _opening(self) -> Opening:
        return self._look()[0]

    def __reduce__(self) -> tuple[object, ...]:
        """Another process opens the same file."""
        if self._store.address is None:
            raise LedgerError("a ledger in memory can't be copied: use a file to share one")
        anchor = self._reader.anchor
        return _reopened, (self._store.address, None if anchor is None else anchor.address)

    def __repr__(self) -> str:
        return self._reader.summary()

    def _repr_html_(self) -> str:
        """The protected unit and the balance as tables in notebooks."""
        try:
            opening, state = self._look()
        except LedgerError:
            return _html.notes([repr(self)])
        locked = ["it is locked, until its owner unlocks it"] if state.is_locked else []
        name = self._store.name
        made = _html.table(name, [], [["protects", str(opening.unit)]])
        return made + self.spent()._repr_html_() + _html.notes(locked)


def _reopened(path: str, anchor: str | None) -> Ledger:
    return Ledger.open(path, anchor=anchor)
