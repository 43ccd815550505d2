"""The service without HTTP: who may do what with which table, and the JSON that comes back."""

import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet._budget import Limit
from discreet._exact import float_down, float_up
from discreet.accounting import PrivacyLoss
from discreet.errors import (
    DeclarationError,
    DiscreetError,
    InvalidArgument,
    LedgerDiffers,
    NoBound,
    ReceiptDiffers,
)
from discreet.ledger import Entry, Ledger, Share, check_receipt
from discreet.mechanisms import stated_loss
from discreet.query import Declaration, Noise
from discreet.query._toml._declaration_edit import HEAD, save
from discreet.query._toml._declaration_file import read_text, service_facts
from discreet.query._toml._declared_files import TableFile
from discreet.query._toml._located_toml import text_of
from discreet.service._answers import AnswerStore
from discreet.service._confinement import Barrier
from discreet.service._databases import check_listed, files_of, has_databases
from discreet.service._memory import usual_limit
from discreet.service._new_declarations import (
    LOOKED_AT,
    files_beside,
    names_in,
    text_of_source,
    text_with,
)
from discreet.service._outside_charges import (
    Body,
    OutsideCharge,
    OutsideCharges,
    loss_in,
    own,
)
from discreet.service._pace import padded
from discreet.service._payment import Payment
from discreet.service._problems import NO_SHARE, NOT_FOUND, Problem
from discreet.service._sessions import SessionStore
from discreet.service._storage import held_storage, place_of
from discreet.service._tokens import Role, TokenFacts, TokenStore
from discreet.service._transport import stands_in_address
from discreet.service._work_order import SUGGEST_COLUMNS, SUGGEST_ROWS, Task, WorkOrder
from discreet.service._worker_process import WaitingProcess, WorkerSettings
from discreet.service._workers import Retired, Worker, WorkerPool

_LAST_ENTRIES = 1000
_MOST_PRICED, _LONGEST_PRICED = 500, 2000  # losses whose prices are known, and their characters
_MIB = 1 << 20
_CONFIDENCE = Decimal("0.95")
_MOST_RETIRED = 20  # pools of earlier declarations


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """The declaration's file, the number of workers, and the seconds that a question may wait and
    may take."""

    file: Path
    workers: int = 2
    seconds: float = 60

    @property
    def storage(self) -> Path:
        """The file of tokens and answers, and of the lock beside them."""
        return self.file.with_suffix(".service")

    @property
    def log(self) -> Path:
        """The owner's log, with the causes of failed computations."""
        return self.file.with_suffix(".owner.log")


class Desk:
    """Every request of the service as a method; each returns JSON, or raises its refusal."""

    def __init__(self, settings: DeskSettings) -> None:
        """Open the ledgers and start the workers; `DiscreetError` if one of them can't."""
        file = settings.file.absolute()
        if not file.exists() and file.parent.is_dir():  # tables may be declared later
            save(file, HEAD)
        self._settings, self._file = settings, file
        self._text = text = text_of(file)
        self._redeclaring = threading.Lock()
        self._waiting = WaitingProcess()
        self._retired: list[WorkerPool] = []
        declared = read_text(text, file)
        facts = service_facts(text, file)
        self.requests_per_second = facts.requests_per_second
        self._databases = facts.databases
        self._most_memory = usual_limit(settings.workers)
        if facts.worker_memory is not None:
            self._most_memory = facts.worker_memory * _MIB
        self._files: Mapping[str, TableFile] = declared
        self._ledgers = {name: one.open_ledger() for name, one in declared.items()}
        place = place_of(settings.storage, (one.ledger.address for one in declared.values()))
        self._held = ExitStack()
        try:
            engine = self._held.enter_context(held_storage(settings.storage, place))
            self.tokens = TokenStore(engine)
            self.sessions = SessionStore(engine, self.tokens)
            self._answers = AnswerStore(engine)
            self._charges = OutsideCharges(self._answers)
            self._priced = set[tuple[str, str, str]]()  # table, caller's name, loss
            self._pool = WorkerPool(self._worker_settings(text), settings.workers)
        except BaseException:
            self._held.close()
            raise

    def _worker_settings(self, text: str) -> WorkerSettings:
        declared, settings = read_text(text, self._file), self._settings
        check_listed(declared, self._databases)
        return WorkerSettings(
            *(self._file, text, files_of(declared), settings.log),
            *(settings.seconds, self._most_memory, has_databases(declared)),
        )

    @property
    def folder(self) -> Path:
        """The folder of the declaration, where files of rows may be put."""
        return self._file.parent

    @property
    def _declared(self) -> Mapping[str, Declaration]:
        return {name: one.declaration for name, one in self._files.items()}

    @property
    def barriers(self) -> tuple[Barrier, ...]:
        """The barriers around the workers."""
        return self._pool.barriers

    def close(self) -> None:
        """End the workers, and let another service begin."""
        self._waiting.end()
        for pool in (self._pool, *self._retired):
            pool.close()
        self._held.close()

    # questions

    def ask(self, caller: TokenFacts, table: str, body: Body, task: Task = Task.ASK) -> bytes:
        """The paid answer; the same bytes, free, for a repetition of the request."""
        order = self._order(task, caller, table, body)
        request = order.request
        assert request is not None  # the description requires it
        digest = hashlib.sha256(order.to_json()).hexdigest()
        with self._answers.claimed(caller.name, request, digest) as stored:
            if stored is not None:
                return stored
            payment = Payment(self._payer(caller, table), order)
            try:
                facts = self._result(order, payment)
            except DiscreetError:
                if not payment.is_paid:  # a refused question leaves its request id free
                    self._answers.forget(caller.name, request)
                raise
            receipt = json.loads(payment.receipt.to_json())
            known = {"request": request, "by": caller.name, "receipt": receipt}
            known["privacy_loss"] = receipt["privacy_loss"]  # a worker's word decides nothing here
            answer = padded(json.dumps({**known, **facts, **known}, allow_nan=False).encode())
            self._answers.store(caller.name, request, answer)
        return answer

    def diagnose(self, caller: TokenFacts, table: str, body: Body) -> bytes:
        """A paid diagnosis of what caps and bounds cut, as `ask`."""
        return self.ask(caller, table, body, Task.DIAGNOSE)

    def nulls(self, caller: TokenFacts, table: str, body: Body) -> bytes:
        """The share of a column's values that its declared type can't hold, for the price of one
        count, as `ask`."""
        return self.ask(caller, table, {**body, "sql": ""}, Task.NULLS)

    def forecast(self, caller: TokenFacts, table: str, body: Body) -> object:
        """The cost and the expected errors of a question, at an epsilon or at the least one for
        which each error is within a number; it reads no rows and costs nothing. ``is_admitted``
        says whether the caller's budget admits this cost now."""
        found = self._free(caller, table, body, Task.FORECAST)
        loss = PrivacyLoss.from_json(json.dumps(found["privacy_loss"]))
        return {**found, "is_admitted": self._admits(caller, table, loss)}

    def explain(self, caller: TokenFacts, table: str, body: Body) -> object:
        """The assumptions, the cost and the errors of a question in words, as `forecast`."""
        return self._free(caller, table, body, Task.EXPLAIN)

    def receipt(self, caller: TokenFacts, request: str) -> object:
        """The receipt of the caller's own paid request."""
        return self._charges.receipt(caller.name, request, self._ledgers.values())

    def answer(self, caller: TokenFacts, request: str) -> bytes:
        """The stored answer to the caller's own paid request, again."""
        stored = self._answers.answer(caller.name, request)
        if stored is None:
            raise Problem(NOT_FOUND)
        return stored

    def _admits(self, caller: TokenFacts, table: str, loss: PrivacyLoss) -> bool:
        """Whether the ledger, and the share of an analyst, would admit this charge now."""
        try:
            payer = self._payer(caller, table)
            of_unit = loss.for_unit(payer.unit)
            return all(
                one.admits(one.charged(spent, one.cost(of_unit))) for one, spent in payer.filters
            )
        except (Problem, NoBound, InvalidArgument):  # no share, or one that was ended meanwhile
            return False

    def _free(
        self, caller: TokenFacts, table: str, body: Body, task: Task
    ) -> dict[str, Any]:  # Any: JSON
        return self._result(self._order(task, caller, table, body), None)

    def _result(self, order: WorkOrder, payment: Payment | None) -> dict[str, Any]:  # Any: JSON
        """The result of a job, by the workers of the newest declaration when it begins."""
        while True:
            with suppress(Retired):
                return self._pool.result(order, payment, wait=self._settings.seconds)

    def _order(self, task: Task, caller: TokenFacts, table: str, body: Body) -> WorkOrder:
        self._ledger(table)
        return self._order_of(task, caller, table, body)

    @staticmethod
    def _order_of(task: Task, caller: TokenFacts, table: str, body: Body) -> WorkOrder:
        numbers = {
            name: Decimal(body.get(name, usual)).normalize() + 0  # -0 is 0
            for name, usual in (("epsilon", 0), ("delta", 0), ("confidence", _CONFIDENCE))
        }
        noise = body.get("noise")
        if noise == Noise.LAPLACE.value and numbers["delta"] == 0:
            noise = None  # without a delta there is no other, so it is the same question
        return WorkOrder(
            task,
            table,
            body["sql"],
            **numbers,
            noise=noise,
            by=caller.name,
            request=body.get("request"),
            within=None if (within := body.get("within")) is None else Decimal(within),
            group_size=body.get("group_size"),
            column=body.get("column"),
            columns=names_in(body["columns"]) if "columns" in body else None,
        )

    def _payer(self, caller: TokenFacts, table: str) -> Ledger | Share:
        """The whole ledger for an owner, and for an analyst the share of his name."""
        ledger = self._ledger(table)
        if caller.role is Role.OWNER:
            return ledger
        try:
            return ledger.share(caller.name)
        except InvalidArgument:
            raise Problem(NO_SHARE) from None

    # charges for computations elsewhere

    def charge(self, caller: TokenFacts, table: str, body: Body) -> bytes:
        """Charge a privacy loss for a computation elsewhere, such as a training run; the receipt.
        A repetition of the request is free."""
        (found,) = self.charge_each(table, [(caller, body)])
        if isinstance(found, Exception):
            raise found
        return found

    def charge_each(
        self, table: str, wanted: Sequence[tuple[TokenFacts, Body]]
    ) -> list[bytes | Exception]:
        """The receipts, or the errors, of charges to one table; they share transactions."""
        ledger = self._ledger(table)
        charges = [
            OutsideCharge(
                caller.name,
                None if caller.role is Role.OWNER else caller.name,
                {**body, "table": table},
            )
            for caller, body in wanted
        ]
        found = self._charges.charge_each(ledger, charges)
        for number, (caller, body) in enumerate(wanted):
            if isinstance(found[number], bytes):
                self._note_priced(caller, table, body)
            elif isinstance(found[number], InvalidArgument):
                try:
                    self._payer(caller, table)
                except Problem as no_share:
                    found[number] = no_share
        return found

    def is_priced(self, caller: TokenFacts, table: str, body: Body) -> bool:
        """Whether the caller charged this loss to the table before, so that it takes no time to
        price it again, and nothing is stored beside the ledger: others may wait for it."""
        return (
            "statement" not in body and (table, caller.name, body["privacy_loss"]) in self._priced
        )

    def _note_priced(self, caller: TokenFacts, table: str, body: Body) -> None:
        if len(self._priced) >= _MOST_PRICED:
            self._priced.clear()
        if len(body["privacy_loss"]) <= _LONGEST_PRICED:
            self._priced.add((table, caller.name, body["privacy_loss"]))

    def reserve(self, caller: TokenFacts, table: str, body: Body) -> object:
        """Reserve the next steps of a plan that the caller's own charge paid; none runs twice."""
        ledger = self._ledger(table)
        receipt = own(caller.name, ledger, body)
        counts = {name: body[name] for name in ("count", "of", "plan")}
        taken = ledger.reserve(receipt, loss_in(body), **counts)
        return {"first": taken.start, "end": taken.stop}

    def reserved(self, caller: TokenFacts, table: str, body: Body) -> object:
        """The number of reserved steps of the caller's own charge."""
        ledger = self._ledger(table)
        return {"reserved": ledger.reserved(own(caller.name, ledger, body))}

    def lock(self, caller: TokenFacts, table: str, body: Body) -> object:
        """Refuse further charges after a computation elsewhere failed: lock the table for an owner,
        and end the share of an analyst, who can't stop the others by it."""
        ledger = self._ledger(table)
        receipt = own(caller.name, ledger, body)
        if caller.role is Role.OWNER:
            ledger.lock(receipt)
        else:
            ledger.revoke(caller.name, by=caller.name)
        return {}

    # reading

    def tables(self, _: TokenFacts) -> object:
        """The names of the tables, with the columns that are declared."""
        return {"tables": [_facts(one) for one in self._declared.values()]}

    def table(self, _: TokenFacts, table: str) -> object:
        """The declared facts of a table."""
        self._ledger(table)
        return _facts(self._declared[table])

    def budget(self, caller: TokenFacts, table: str) -> object:
        """The limit, the spent and the remaining part, and the share of the caller; for owners and
        viewers all shares."""
        ledger = self._ledger(table)
        spent, shares = ledger.spent(), ledger.shares()
        return {
            "limit": str(spent.limit),
            "spent": float_up(spent.reached),
            "reserved": float_up(spent.reached_with_reserved - spent.reached),
            "left": float_down(spent.left),
            "charges": spent.charges,
            "is_locked": ledger.is_locked,
            "shares": [
                {
                    "share": one.share,
                    "limit": str(one.limit),
                    "spent": float_up(one.reached),
                    "reserved": float_up(one.reserved),
                    "left": float_down(one.left),
                }
                for one in shares
                if caller.role is not Role.ANALYST or one.share == caller.name
            ],
        }

    def check(self, _: TokenFacts, table: str, body: Body) -> object:
        """Check that a receipt is the table's: compare each of its members with the ledger."""
        found = check_receipt(body["receipt"], self._ledger(table), is_chain_verified=False)
        stated = found.facts["statement"]
        loss = None if stated is None else stated_loss(stated)
        if loss is not None and loss != found.privacy_loss:
            raise ReceiptDiffers("its privacy loss doesn't follow from its sensitivities and noise")
        checked = [
            "its text is complete and agrees with its checksum",
            f"the ledger of {table} recorded this charge, with this privacy loss and statement",
            *([] if loss is None else ["the loss follows from the stated sensitivities and noise"]),
        ]
        not_checked = [
            *found.not_checked,
            *(["that the noise was secret"] if found.facts["is_insecure"] else []),
        ]
        return {"receipt": found.facts, "checked": checked, "not_checked": not_checked}

    def verify(self, _: TokenFacts, table: str) -> object:
        """Verify the whole ledger of a table: each entry, the chain and the sums."""
        ledger = self._ledger(table)
        ledger.verify()
        return {"entries": ledger.history(1)[-1].number}

    def history(self, caller: TokenFacts, table: str) -> object:
        """The last entries of the ledger; for analysts those that are their own. The
        caller's own charges with a stored answer are marked."""
        entries = self._ledger(table).history(_LAST_ENTRIES)
        if caller.role is Role.ANALYST:
            own = {entry.number for entry in entries if entry.by == caller.name}
            entries = tuple(e for e in entries if e.number in own or e.about in own)
        own_requests = [e.request for e in entries if e.request and e.by == caller.name]
        answered = self._answers.answered(caller.name, own_requests)
        return {
            "entries": [
                {**_entry(e), "has_answer": e.by == caller.name and e.request in answered}
                for e in entries
            ]
        }

    def locks(self, caller: TokenFacts, table: str) -> object:
        """The numbers of the entries that lock the table, and the questions that failed and may not
        be asked again; for analysts those that are their own."""
        ledger = self._ledger(table)
        return {
            "locks": [entry.number for entry in ledger.locking()],
            "failed": [
                _entry(entry)
                for entry in ledger.failed()
                if caller.role is not Role.ANALYST or entry.by == caller.name
            ],
        }

    def status(self, _: TokenFacts) -> object:
        """The barriers around the workers, the memory in MiB that they have and may have, and which
        tables are locked."""
        return {
            "barriers": [
                {"name": one.name, "is_up": one.is_up, "note": one.note} for one in self.barriers
            ],
            "memory": [one // _MIB for one in self._pool.memory],
            "most_memory": self._most_memory // _MIB,
            "locked": [name for name, ledger in self._ledgers.items() if ledger.is_locked],
        }

    # the owner's

    def issue(self, _: TokenFacts, body: Body) -> object:
        """A new token; its text is shown once."""
        text = self.tokens.issue(body["name"], Role(body["role"]), days=body["days"])
        return {"token": text}

    def listed_tokens(self, _: TokenFacts) -> object:
        """The facts of all tokens, without their texts."""
        return {
            "tokens": [
                {
                    "id": one.id,
                    "name": one.name,
                    "role": one.role.value,
                    "expires": one.expires.isoformat(),
                    "is_revoked": one.is_revoked,
                }
                for one in self.tokens.tokens()
            ]
        }

    def revoke_token(self, _: TokenFacts, token: str) -> object:
        """Refuse a token from now on."""
        if not self.tokens.revoke(token):
            raise Problem(NOT_FOUND)
        return {}

    def grant(self, caller: TokenFacts, table: str, share: str, body: Body) -> object:
        """Open a share with a limit of its own for the analyst of this name. A privacy loss to
        reserve is set aside for it in the ledger, such as that of a training run."""
        if not stands_in_address(share):
            raise InvalidArgument(f"share = {share!r}: give a name that is not . or ..")
        limit = Limit(body["epsilon"], body.get("delta", 0))
        reserve = PrivacyLoss.from_json(body["reserve"]) if "reserve" in body else None
        self._ledger(table).grant(share, limit=limit, by=caller.name, reserve=reserve)
        return {}

    def revoke_share(self, caller: TokenFacts, table: str, share: str) -> object:
        """End a share: it takes no further charge."""
        self._ledger(table).revoke(share, by=caller.name)
        return {}

    # declarations

    def sources(self, _: TokenFacts) -> object:
        """The files of rows in the folder of the declaration, with the tables that have them, and
        the databases that the service may reach."""
        declared = {
            one.source.name: name
            for name, one in self._files.items()
            if isinstance(one.source, Path)
        }
        names = files_beside(self._file)
        self._waiting.prepare(self._worker_settings(self._text))  # for the look that comes next
        return {
            "sources": [{"name": one, "table": declared.get(one)} for one in names],
            "databases": list(self._databases),
        }

    def look(self, caller: TokenFacts, body: Body) -> object:
        """The columns of a file, or of a declared table, with proposed types. Its schema and the
        first values of its texts count as public."""
        table = body.get("table")
        if table is not None:
            self._ledger(table)
            self._waiting.prepare(self._worker_settings(self._text))  # for what is declared next
            return self._looked_at(caller, table, lambda order: self._result(order, None))
        text = text_of_source(self._file, body.get("source", ""), self._databases)
        of_look = self._worker_settings(text)
        worker = Worker(of_look, self._waiting.take(of_look))  # it may read nothing else
        try:
            return self._looked_at(caller, LOOKED_AT, lambda order: worker.result(order, None))
        finally:
            worker.end()
            self._waiting.prepare(of_look)

    def _looked_at(
        self, caller: TokenFacts, table: str, result: Callable[[WorkOrder], object]
    ) -> object:
        """The columns of a table, as a worker reads them."""
        try:
            return result(self._order_of(Task.LOOK, caller, table, {"sql": ""}))
        except DeclarationError as error:
            folder = f"{self.folder}{os.sep}"  # a file is shown as it is declared
            raise InvalidArgument(str(error).replace(folder, "")) from None

    def declare(self, caller: TokenFacts, table: str, body: Body) -> object:
        """Declare a table, or further columns or another cap of it, in its file. Questions in
        progress are answered by the declaration before."""
        with self._redeclaring:
            if text_of(self._file) != self._text:
                raise InvalidArgument(
                    "the declaration's file was changed by hand: start the service again first"
                )
            text = text_with(
                self._text, self._file, table, body["facts"], databases=self._databases
            )
            files = read_text(text, self._file)
            ledger = self._ledgers.get(table) or _existing_ledger(table, files[table])
            of_workers = self._worker_settings(text)
            pool = WorkerPool(of_workers, self._settings.workers, self._waiting)
            try:
                # refused unless the columns are there
                wait = self._settings.seconds
                self._looked_at(caller, table, lambda order: pool.result(order, None, wait=wait))
                # the file comes first: where it names a ledger that is missing, a start makes it
                save(self._file, text)
                ledger = ledger or files[table].open_ledger()
            except BaseException:
                pool.close()
                if text_of(self._file) != self._text:
                    save(self._file, self._text)
                raise
            before, self._pool = self._pool, pool
            self._text, self._files = text, files
            self._ledgers = {**self._ledgers, table: ledger}
            self._retired = [*self._retired, before][-_MOST_RETIRED:]
        threading.Thread(target=before.retire, daemon=True).start()
        return {}

    def suggest(self, caller: TokenFacts, table: str, body: Body) -> bytes:
        """Suggested bounds and keys of columns that are not declared yet, or of some of these, or
        how many rows of a unit should count, from the rows, for a price."""
        asked = {"columns": SUGGEST_COLUMNS, "rows": SUGGEST_ROWS}[body.get("of", "columns")]
        return self.ask(caller, table, {**body, "sql": asked}, Task.SUGGEST)

    def unlock(self, caller: TokenFacts, table: str, body: Body) -> object:
        """Open a locked table again, if it is still locked by the entries with these numbers; the
        entries of the questions that failed."""
        ledger, may_repeat = self._ledger(table), body.get("allow_repeat", False)
        if not ledger.is_locked and not (may_repeat and ledger.failed()):
            raise InvalidArgument("the table isn't locked")
        locks = _numbers(body["locks"]) if "locks" in body else None
        failed = ledger.unlock(body["reason"], caller.name, allow_repeat=may_repeat, locks=locks)
        return {"failed": [_entry(entry) for entry in failed]}

    def _ledger(self, table: str) -> Ledger:
        if table not in self._ledgers:
            raise Problem(NOT_FOUND)
        return self._ledgers[table]


def _existing_ledger(table: str, one: TableFile) -> Ledger | None:
    """The ledger, if it is there already and agrees with the declaration."""
    if not one.ledger.exists():
        return None
    try:
        return one.open_ledger()
    except LedgerDiffers:
        address = one.ledger.address
        name = address.name if isinstance(address, Path) else str(one.ledger)
        raise InvalidArgument(
            f"the ledger of {table}, {name}, is there already, with another limit or unit: declare "
            "these, or take another name for the table; if the ledger has no charge, you may also "
            "remove it by hand"
        ) from None


def _numbers(text: str) -> list[int]:
    """Numbers of entries, which spaces part; 0, the first of all, locks nothing."""
    parts = text.split()
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise InvalidArgument("locks: give numbers of entries, with spaces between them")
    return [number for number in map(int, parts) if number]


def _facts(one: Declaration) -> dict[str, object]:
    return {
        "name": one.name,
        "unit": str(one.unit),
        "unit_columns": list(one.unit.columns),
        "change": one.unit.change.value,
        "caps": {name: getattr(one.caps, name) for name in ("rows", "groups", "rows_per_group")},
        "columns": [
            {
                "name": name,
                "type": column.type.value,
                "lower": _written(column.lower),
                "upper": _written(column.upper),
                "keys": None if column.keys is None else [_written(key) for key in column.keys],
            }
            for name, column in one.columns.items()
        ],
    }


def _written(value: object) -> object:
    """A declared value as JSON."""
    if value is None or isinstance(value, bool | int | str):
        return value
    return float(value) if isinstance(value, Fraction | Decimal | float) else str(value)


def _entry(entry: Entry) -> dict[str, object]:
    loss: PrivacyLoss | None = entry.loss
    return {
        "number": entry.number,
        "at": entry.at.isoformat(),
        "kind": entry.kind.value,
        "purpose": entry.purpose,
        "by": entry.by,
        "share": entry.share,
        "request": entry.request,
        "about": entry.about,
        "privacy_loss": None if loss is None else json.loads(loss.to_json()),
        "reserve": None if entry.reserve is None else str(entry.reserve),
        "is_insecure": entry.is_insecure,
        "digest": entry.digest,
    }
