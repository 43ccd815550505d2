"""A ledger in PostgreSQL keeps every promise of one in a file, and survives its server."""

import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, make_url
from sqlalchemy.exc import DBAPIError

from discreet._budget import Limit, Receipt, Request
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss, Pure
from discreet.errors import (
    BudgetExceeded,
    InvalidArgument,
    LedgerDamaged,
    LedgerDiffers,
    LedgerError,
    LedgerLocked,
    RequestReused,
)
from discreet.ledger import Kind, Ledger, _postgres_store
from discreet.ledger._postgres import NAME, guard_body, is_passing, plain_errors, secrets_of
from tests.ledger import postgres
from tests.ledger.kit import PERSON, begun, charges, ended, killed, pay

LOSS = PrivacyLoss.of(Pure(0.01))
HERE = Path()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> str:
    address = postgres.address()
    monkeypatch.setenv("LEDGER", address)  # for the processes that a test starts
    return address


def made(at: str, epsilon: float = 1) -> Ledger:
    return Ledger.create(at, unit=PERSON, limit=Limit(epsilon))


def test_an_address_is_used_like_a_file(at: str, tmp_path: Path) -> None:
    ledger, request = made(at), Request("first", "body")
    first = pay(ledger, Pure(0.25), request)
    with pytest.raises(RequestReused, match="no answer is stored"):
        pay(ledger, Pure(0.25), request)
    ledger.keep(first, "42")
    again = pay(Ledger.open(at), Pure(0.25), request)
    assert (again.digest, again.stored) == (first.digest, "42")
    with pytest.raises(RequestReused, match="another question"):
        pay(ledger, Pure(0.25), Request("first", "other"))
    paid = pay(ledger, LOSS)
    assert [ledger.reserve(paid, LOSS, count=2, of=3, plan="p") for _ in range(2)] == [
        range(2),
        range(2, 3),
    ]
    ledger.lock(paid)
    with pytest.raises(LedgerLocked):
        pay(ledger, LOSS)
    ledger.unlock("looked", "owner", allow_repeat=True)
    with pytest.raises(BudgetExceeded):
        pay(ledger, Pure(0.75))
    assert ledger.spent().total == (Pure(0.25) + LOSS).for_unit(PERSON)
    kinds = [entry.kind for entry in ledger.history()]
    assert kinds == [
        Kind(k) for k in ["open", "charge", "answer", "charge", "steps", "steps", "lock", "unlock"]
    ]
    assert pickle.loads(pickle.dumps(ledger)).history() == ledger.history()
    assert ledger.receipt(paid.number).to_json() == paid.to_json()
    ledger.backup(tmp_path / "copy")
    copy = Ledger.open(tmp_path / "copy")
    assert copy.history()[:-1] == ledger.history()
    assert copy.is_locked
    ledger.verify()
    copy.verify()


def test_a_ledger_is_made_once(at: str) -> None:
    with pytest.raises(LedgerError, match="is not there: make one"):
        Ledger.open(at)
    ledger = Ledger.open_or_create(at, unit=Unit("other"), limit=Limit(1))
    with pytest.raises(InvalidArgument, match="exists already"):
        made(at)
    again = Ledger.open_or_create(at, unit=PERSON, limit=Limit(1))
    assert ledger.unit == again.unit == PERSON
    with pytest.raises(LedgerDiffers):
        Ledger.open_or_create(at, unit=PERSON, limit=Limit(2))


@pytest.mark.parametrize("name", ["", "A", "a-b", 'a"; DROP SCHEMA public', "1", "é", "a" * 52])
def test_a_name_that_sql_could_read_otherwise_is_refused(name: str) -> None:
    """Before any server is asked."""
    url = make_url("postgresql://ana:secret@localhost:1/db").update_query_dict({"ledger": name})
    with pytest.raises(InvalidArgument, match=r"\?ledger=NAME") as caught:
        Ledger.open(url.render_as_string(hide_password=False))
    assert "secret" not in str(caught.value)
    assert not NAME.fullmatch(name)


def test_no_text_shows_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setattr("discreet.ledger._writer._PAUSES", ())
    address = "postgresql://ana:secret@localhost:1/db?ledger=x"
    acts: list[Callable[[], Ledger]] = [
        lambda: Ledger.open(address),
        lambda: Ledger.create(address, unit=PERSON, limit=Limit(1)),
        lambda: Ledger.open_or_create(address, unit=PERSON, limit=Limit(1)),
    ]
    for act in acts:
        with pytest.raises(LedgerError, match="can't be reached now") as caught:
            act()
        assert "secret" not in str(caught.value)


RACE = """
l = Ledger.open(os.environ["LEDGER"])
wait()
accepted = 0
for _ in range(int(arguments[0])):
    try:
        l.charge(Pure(float(arguments[1])), purpose="x", by="ana")
        accepted += 1
    except BudgetExceeded:
        pass
print(accepted)
"""


def raced(count: int, each: int, epsilon: float) -> int:
    """The number of charges that are accepted of processes that race."""
    processes = [begun(RACE, HERE, each, epsilon) for _ in range(count)]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(int(ended(process)) for process in processes)


def test_racing_processes_stay_within_the_limit(at: str) -> None:
    ledger = made(at)
    assert raced(4, 30, 0.02) == 50 == charges(ledger)


CHARGE = """
l = Ledger.open(os.environ["LEDGER"])
{point}
l.charge(Pure(0.6), purpose="x", by="ana", request=Request("first", "body"))
"""
AFTER_COMMIT = """
commit = _store.Connection.commit
_store.Connection.commit = lambda self: (commit(self), die())
"""


@pytest.mark.parametrize(
    ("point", "is_recorded"),
    [
        ("_store.Transaction.append = die", False),
        ("_store.Connection.commit = die", False),
        (AFTER_COMMIT, True),
    ],
)
def test_killed_while_charging(at: str, point: str, is_recorded: bool) -> None:
    made(at)
    killed(CHARGE.format(point=point), HERE)
    ledger = Ledger.open(at)
    assert charges(ledger) == is_recorded
    if not is_recorded:
        pay(ledger, Pure(0.6))
    with pytest.raises(BudgetExceeded):
        pay(ledger, Pure(0.6))


def lose_connections(at: str) -> None:
    """Let the server end all other connections, as it does when it is shut down."""
    postgres.run(
        at,
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
    )


@pytest.mark.parametrize(
    "read",
    [
        lambda ledger: ledger.spent().charges,
        lambda ledger: len(ledger.history()) - 1,
        lambda ledger: 1 - ledger.is_locked,
        lambda ledger: pay(ledger, LOSS).number - 1,
    ],
)
def test_a_connection_that_was_lost_between_two_uses_is_not_noticed(
    at: str, read: Callable[[Ledger], int]
) -> None:
    """As after a restart of the server: the pool has the old connection."""
    ledger = made(at)
    pay(ledger, LOSS)
    lose_connections(at)
    assert read(ledger) == 1


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_commit_of_unknown_outcome_is_looked_up(
    at: str, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    """The connection is lost before it, or before its outcome arrived: one entry either way."""
    ledger, plain = made(at), Connection.commit
    pay(ledger, LOSS)

    def commit(self: Connection) -> None:
        monkeypatch.undo()
        if is_committed:
            plain(self)
        lose_connections(at)
        self.exec_driver_sql("SELECT 1")
        plain(self)

    monkeypatch.setattr(Connection, "commit", commit)
    receipt = pay(ledger, LOSS)
    assert receipt.number == 2
    assert ledger.history()[2].digest == receipt.digest
    assert charges(ledger) == 2
    monkeypatch.setattr(Connection, "commit", commit)
    assert ledger.reserve(receipt, LOSS, count=2, of=5, plan="p") == range(2)
    assert ledger.reserved(receipt) == 2


def test_equal_charges_have_different_digests(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even at one time: so one that was lost is never taken for another."""
    ledger = made(at)
    monkeypatch.setattr("discreet.ledger._store._now", ledger.history()[0].at.replace)
    lost = pay(ledger, LOSS)
    head = ledger.history()[0]
    with ledger._store.reading() as rows:
        fact, state = rows.link(1).fact, rows.link(1).state
    with made(postgres.address())._store.writing() as rows:
        assert rows.head().number == head.number
        again = rows.append(rows.head(), fact, state)
    assert again.fact == fact
    assert pay(ledger, LOSS).digest != lost.digest
    assert len({entry.digest for entry in ledger.history()}) == 3


def test_a_crash_of_the_server_loses_no_receipt(at: str) -> None:
    """Threads charge while it is killed, and continue when it runs again."""
    ledger, receipts, done = made(at, 1000), list[Receipt](), threading.Event()
    failures: list[LedgerError] = []

    def spend() -> None:
        while not done.is_set():
            try:
                receipts.append(pay(ledger, LOSS))
            except LedgerError as failure:
                failures.append(failure)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):
            count, end = len(receipts), time.monotonic() + 60
            while len(receipts) < count + 20:
                assert time.monotonic() < end
                time.sleep(0.01)
            postgres.crash()
        count = len(receipts)
        while len(receipts) < count + 20:
            time.sleep(0.01)
    finally:
        done.set()
        for thread in threads:
            thread.join(60)
    found = {entry.number: entry.digest for entry in ledger.history()}
    assert all(found[receipt.number] == receipt.digest for receipt in receipts)
    assert len({receipt.number for receipt in receipts}) == len(receipts)
    assert len(receipts) <= charges(ledger) <= len(receipts) + len(failures)


FORK = """
l = Ledger.open(os.environ["LEDGER"])
l.charge(Pure(0.01), purpose="x", by="ana")
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        for _ in range(5):
            l.charge(Pure(0.01), purpose="x", by="ana")
        os._exit(0)
    children.append(child)
for _ in range(5):
    l.charge(Pure(0.01), purpose="x", by="ana")
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
print(l.charge(Pure(0.01), purpose="x", by="ana").number)
"""


def test_children_of_a_connected_process_connect_anew(at: str) -> None:
    ledger = made(at)
    assert ended(begun(FORK, HERE)) == "22\n"
    assert charges(ledger) == 22


CHANGES = [
    "UPDATE {0}.entries SET body = body",
    "DELETE FROM {0}.entries",
    "TRUNCATE {0}.entries",
    "UPDATE {0}.head SET turn = 0",
    "DELETE FROM {0}.head",
    "TRUNCATE {0}.head",
    "INSERT INTO {0}.entries SELECT number + 2, kind, at, 'k', body, digest FROM {0}.entries",
    "INSERT INTO {0}.entries SELECT number + 1, kind, at, key, body, digest FROM {0}.entries",
    "INSERT INTO {0}.head VALUES (1, 2)",
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_database_refuses_changes_by_its_owner(at: str, change: str) -> None:
    made(at)
    with pytest.raises(DBAPIError, match=r"append-only|next entry|unique|check constraint"):
        postgres.run(
            at, "SET session_replication_role = replica", change.format(postgres.schema(at))
        )


def test_few_rights_suffice(at: str) -> None:
    """Those that the page names; and they allow no changes."""
    made(at)
    name = postgres.schema(at)
    role = f"r{name}"
    postgres.run(
        at,
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {name} TO {role}",
        f"GRANT SELECT, INSERT ON {name}.entries TO {role}",
        f"GRANT SELECT, UPDATE (turn) ON {name}.head TO {role}",
    )
    url = make_url(at).set(username=role).render_as_string(hide_password=False)
    ledger = Ledger.open(url)
    pay(ledger, LOSS)
    assert charges(ledger) == 1
    assert pay(Ledger.open_or_create(url, unit=PERSON, limit=Limit(1)), LOSS).number == 2
    for change in CHANGES:
        with pytest.raises(DBAPIError):
            postgres.run(at, change.format(name), role=role)


def test_missing_rights_are_named(at: str) -> None:
    made(at)
    role = f"r{postgres.schema(at)}"
    postgres.run(
        at, f"CREATE ROLE {role} LOGIN", f"GRANT USAGE ON SCHEMA {postgres.schema(at)} TO {role}"
    )
    with pytest.raises(LedgerError, match="permission denied: ask its owner"):
        Ledger.open(make_url(at).set(username=role).render_as_string(hide_password=False))


ALTERED = {
    "a trigger is gone": "DROP TRIGGER entries_stay ON {0}.entries",
    "a trigger is off": "ALTER TABLE {0}.entries DISABLE TRIGGER entries_follow",
    "a trigger is off for replicas": "ALTER TABLE {0}.entries ENABLE TRIGGER entries_stay",
    "a function does nothing": "CREATE OR REPLACE FUNCTION {0}.stay() RETURNS trigger "
    "LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
}


@pytest.mark.parametrize("way", sorted(ALTERED))
def test_altered_guards_are_noticed(at: str, way: str, tmp_path: Path) -> None:
    ledger = made(at)
    postgres.run(at, ALTERED[way].format(postgres.schema(at)))
    for act in (lambda: Ledger.open(at), ledger.verify, lambda: ledger.backup(tmp_path / "copy")):
        with pytest.raises(LedgerDamaged, match="guard"):
            act()


DAMAGE: dict[str, tuple[str, str]] = {
    "the last body": (
        "UPDATE {0}.entries SET body = replace(body, '1', '2') WHERE number = 2",
        "digest",
    ),
    "the last digest": (
        "UPDATE {0}.entries SET digest = repeat('0', 64) WHERE number = 2",
        "digest",
    ),
    "the one before": (
        "UPDATE {0}.entries SET digest = repeat('0', 64) WHERE number = 1",
        "digest",
    ),
    "the limit": (
        "UPDATE {0}.entries SET body = replace(body, '\"1\"', '\"9\"') WHERE number = 0",
        "digest",
    ),
    "a missing entry": ("DELETE FROM {0}.entries WHERE number = 1", "missing"),
    "all entries": ("DELETE FROM {0}.entries", "no entries"),
    "the head row": ("DELETE FROM {0}.head", "head row"),
}


@pytest.mark.parametrize("way", sorted(DAMAGE))
def test_damage_is_noticed_by_the_next_charge(at: str, way: str) -> None:
    ledger = made(at)
    for _ in range(2):
        pay(ledger, LOSS)
    name, (change, said) = postgres.schema(at), DAMAGE[way]
    tables = [f"{name}.entries", f"{name}.head"]
    postgres.run(
        at,
        *(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in tables),
        change.format(name),
        f"ALTER TABLE {name}.entries ENABLE ALWAYS TRIGGER entries_follow",
        f"ALTER TABLE {name}.entries ENABLE ALWAYS TRIGGER entries_stay",
        f"ALTER TABLE {name}.head ENABLE ALWAYS TRIGGER head_stays",
    )
    with pytest.raises(LedgerDamaged, match=said):
        pay(ledger, LOSS)


def test_an_older_copy_is_refused_by_its_anchor(at: str, tmp_path: Path) -> None:
    made(at)
    ledger, name = Ledger.open(at, anchor=tmp_path / "anchor"), postgres.schema(at)
    pay(ledger, LOSS)
    off = f"ALTER TABLE {name}.entries DISABLE TRIGGER entries_stay"
    on = f"ALTER TABLE {name}.entries ENABLE ALWAYS TRIGGER entries_stay"
    postgres.run(at, off, f"DELETE FROM {name}.entries WHERE number = 1", on)
    with pytest.raises(LedgerDamaged, match="older than its anchor"):
        pay(ledger, LOSS)


@pytest.mark.parametrize("setting", ["full_page_writes"])
def test_a_server_that_could_lose_charges_is_refused(at: str, setting: str) -> None:
    made(at)
    url = make_url(at).set(drivername="postgresql+psycopg")
    engine = _postgres_store.engine_of(url.difference_update_query(["ledger"]))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:

        def reload(wanted: str) -> None:
            connection.exec_driver_sql("SELECT pg_reload_conf()")
            while connection.exec_driver_sql(f"SHOW {setting}").scalar() != wanted:
                time.sleep(0.01)

        try:
            connection.exec_driver_sql(f"ALTER SYSTEM SET {setting} = off")
            reload("off")
            with pytest.raises(LedgerError, match=f"{setting} = off.*set it to on"):
                Ledger.open(at)
        finally:
            connection.exec_driver_sql(f"ALTER SYSTEM RESET {setting}")
            reload("on")
    engine.dispose()
    Ledger.open(at)


def test_commits_are_durable_whatever_the_role_says(at: str) -> None:
    ledger, user = made(at), make_url(at).username
    postgres.run(at, f"ALTER ROLE {user} SET synchronous_commit = off")
    try:
        with Ledger.open(at)._store.writing() as rows:
            shown = rows.connection.exec_driver_sql("SHOW synchronous_commit").scalar()
        assert shown == "on"
    finally:
        postgres.run(at, f"ALTER ROLE {user} RESET synchronous_commit")
    assert charges(ledger) == 0


def test_threads_share_a_commit(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, commits, plain = made(at), list[int](), Connection.commit
    pay(ledger, LOSS)

    def commit(self: Connection) -> None:
        plain(self)
        commits.append(1)

    monkeypatch.setattr(Connection, "commit", commit)
    threads = [threading.Thread(target=pay, args=(ledger, LOSS)) for _ in range(8)]
    with ledger._store.turns:
        for thread in threads:
            thread.start()
        while len(ledger._writer._waiting) < 8:
            time.sleep(0.001)
    for thread in threads:
        thread.join(60)
    assert len(commits) == 1
    assert charges(ledger) == 9


STATES = [
    (None, "can't be reached now", True),
    ("08006", "can't be reached now", True),
    ("40001", "try again", True),
    ("40P01", "try again", True),
    ("57P01", "can't be reached now", True),
    ("25P03", "try again", True),
    ("53300", "no connection left", True),
    ("55P03", "others used it for too long", False),
    ("25006", "only reads", False),
    ("53100", "disk of its server is full", False),
    ("42501", "permission denied", False),
    ("58030", "disk of its server failed", False),
    ("XX001", "damaged", False),
    ("22001", "refused", False),
]


@pytest.mark.parametrize(("state", "said", "passes"), STATES)
def test_the_servers_errors_become_plain_errors(state: str | None, said: str, passes: bool) -> None:
    class Error(Exception):
        sqlstate = state

    kind = LedgerDamaged if state == "XX001" else LedgerError
    expected = f"the ledger x.*{said}.*some words"
    with pytest.raises(kind, match=expected) as caught, plain_errors("the ledger x"):
        raise DBAPIError("INSERT", None, Error("some words\nmore"))
    assert caught.type is kind
    assert "more" not in str(caught.value).split("some words")[1]
    assert is_passing(caught.value) is passes
    assert not is_passing(LedgerError("another one"))


@pytest.mark.parametrize("secret", ["of-ana", "of-tls", "of-file"])
def test_no_error_of_the_server_shows_any_secret(secret: str) -> None:
    url = make_url("postgresql://ana:of-ana@h/db?sslpassword=of-tls&PassWord=of-file&sslmode=x")
    with pytest.raises(LedgerError) as caught, plain_errors("the ledger x", secrets_of(url)):
        raise DBAPIError("INSERT", None, ValueError(f"no connection by {secret}"))
    error: BaseException | None = caught.value
    while error is not None:
        assert secret not in str(error)
        error = error.__cause__


ADDRESSES = [
    "postgresql+psycopg://ana:s3cret@localhost:1/db?ledger=x",
    "PostgreSQL://ana:s3cret@localhost:1/db?ledger=x",
    " postgresql://ana:s3cret@localhost:1/db?ledger=x",
    "postgres://ana:s3cret@localhost:1x/db?ledger=x",
    "postgresql://ana:p@s3cret@localhost:1/db?ledger=x",
    "postgresql://ana/x:s3cret@localhost:1/db?ledger=x",
    "postgresql://localhost:1/db?user=ana&password=s3cret&ledger=x",
    "postgresql://localhost:1/db?sslpassword=s3cret&ledger=x",
    "postgresql://ana:s3cret@localhost:1/db?ledger=X",
    "postgresql://ana:s3cret@localhost:1/db?ledger=x&foo=s3cret",
    "postgresql://localhost:1/db?password=s3cret&port=s3cret&ledger=x",
    "mysql://ana:s3cret@localhost/db?ledger=x",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_spelling_of_an_address_shows_its_password(address: str, tmp_path: Path) -> None:
    """It is never taken for a path either."""
    pytest.importorskip("psycopg")
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1))
    made_here = Ledger.create(tmp_path / "x", unit=PERSON, limit=Limit(1)).path
    assert made_here is not None
    acts: list[Callable[[], object]] = [
        lambda: Ledger.open(address),
        lambda: Ledger.open(Path(address)),
        lambda: Ledger.open(address.encode()),  # type: ignore[arg-type]  # as a user may
        lambda: Ledger.create(address, unit=PERSON, limit=Limit(1)),
        lambda: Ledger.open_or_create(address, unit=PERSON, limit=Limit(1)),
        lambda: Ledger.open(made_here, anchor=address),
        lambda: ledger.backup(address),
    ]
    for act in acts:
        with pytest.raises((LedgerError, InvalidArgument)) as caught:
            act()
        error: BaseException | None = caught.value
        while error is not None:
            assert "s3cret" not in str(error)
            error = error.__cause__


def test_a_ledger_is_shown_by_its_place_only(at: str) -> None:
    url = make_url(at).update_query_dict({"password": "s3cret"})
    ledger = made(url.render_as_string(hide_password=False))
    assert "s3cret" not in repr(ledger)
    assert f"{postgres.schema(at)} in postgresql://" in repr(ledger)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_default_isolation_of_the_server_refuses_no_charge(at: str, level: str) -> None:
    """A writer that waited for its turn reads what was committed meanwhile."""
    ledger, name = made(at), make_url(at).username
    postgres.run(at, f"ALTER ROLE {name} SET default_transaction_isolation = '{level}'")
    try:
        with ledger._store.writing() as rows:
            found = rows.connection.exec_driver_sql("SHOW transaction_isolation").scalar()
        assert found == "read committed"
        assert raced(3, 10, 0.01) == 30 == charges(ledger)
    finally:
        postgres.run(at, f"ALTER ROLE {name} RESET default_transaction_isolation")


FORK_OF_THREADS = """
l = Ledger.open(os.environ["LEDGER"])
inside, done = threading.Event(), threading.Event()

def hold():
    with l._store.turns, l._store.use.begun("x"):
        inside.set()
        done.wait()

holder = threading.Thread(target=hold)
holder.start()
inside.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    l.charge(Pure(0.01), purpose="x", by="ana")
    l.spent()
    os._exit(0)
ended = os.waitpid(child, 0)[1]
done.set()
holder.join()
print(ended, l.charge(Pure(0.01), purpose="x", by="ana").number)
"""


def test_a_child_waits_for_no_thread_of_its_parent(at: str) -> None:
    ledger = made(at)
    assert ended(begun(FORK_OF_THREADS, HERE)) == "0 2\n"
    assert charges(ledger) == 2


LOSING = {
    "a rule": "CREATE RULE quiet AS ON INSERT TO {0}.entries DO INSTEAD NOTHING",
    "a rule for one": "CREATE RULE quiet AS ON INSERT TO {0}.entries WHERE NEW.number = 1 "
    "DO INSTEAD NOTHING",
    "a trigger": "CREATE FUNCTION {0}.lose() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN RETURN NULL; END'; CREATE TRIGGER a BEFORE INSERT ON {0}.entries "
    "FOR EACH ROW EXECUTE FUNCTION {0}.lose(); ALTER TABLE {0}.entries ENABLE ALWAYS TRIGGER a",
}


@pytest.mark.parametrize("way", sorted(LOSING))
def test_an_entry_that_is_not_stored_gives_no_receipt(at: str, way: str) -> None:
    ledger = made(at)
    postgres.run(at, LOSING[way].format(postgres.schema(at)))
    with pytest.raises(LedgerError):
        pay(ledger, LOSS)
    assert postgres.run(at, f"SELECT count(*) FROM {postgres.schema(at)}.entries") == [(1,)]


def test_a_guard_with_the_body_of_another_is_noticed(at: str) -> None:
    ledger, name = made(at), postgres.schema(at)
    for this, that in (("stay", "follow"), ("follow", "stay"), ("stay", "")):
        body = guard_body(that, name) or "BEGIN"
        text = guard_body(this, name)
        if not that:
            body = "\nBEGIN\n    RETURN NEW;\nEND "
        change = f"CREATE OR REPLACE FUNCTION {name}.{this}() RETURNS trigger "
        change += "LANGUAGE plpgsql AS $$"
        postgres.run(at, f"{change}{body}$$")
        with pytest.raises(LedgerDamaged, match="guard"):
            ledger.verify()
        postgres.run(at, f"{change}{text}$$")
        ledger.verify()


def test_a_schema_that_was_made_anew_is_refused(at: str) -> None:
    ledger = made(at)
    pay(ledger, LOSS)
    postgres.run(at, f"DROP SCHEMA {postgres.schema(at)} CASCADE")
    made(at)
    for act in (lambda: pay(ledger, LOSS), ledger.spent, ledger.verify, ledger.history):
        with pytest.raises(LedgerError, match="was replaced by another"):
            act()
    assert pay(Ledger.open(at), LOSS).number == 1
