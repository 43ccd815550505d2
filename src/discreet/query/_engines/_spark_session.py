"""A session of Spark for one question: in the program's own application, or in a local one.

It shares the application's executors and catalog, and nothing else: it has settings of its own, and
its temporary views are seen by nobody. Settings and views of other sessions stay as they are.
"""

import atexit
import contextlib
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.errors import DeclarationError

_SETTINGS = {
    "spark.sql.ansi.enabled": "false",  # NULL, and no error, where a value has no result
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.constraintPropagation.enabled": "false",  # it takes time exponential in the steps
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.ui.explainMode": "simple",  # a plan's text is made for pages and event logs
    "spark.sql.maxPlanStringLength": "1000",
}
_LOGS = """rootLogger.level = off
rootLogger.appenderRef.none.ref = none
appender.none.type = Console
appender.none.name = none
"""
_CATALOGS = "spark.sql.catalog."
_OLD_WAYS = ("spark.sql.legacy.", "spark.sql.optimizer.excludedRules")


@contextmanager
def session(shown: str) -> Iterator[Any]:  # Any: pyspark ships types that mypy doesn't see here
    """A new session with our settings."""
    own = _new_session(shown)
    try:
        yield own
    finally:
        with contextlib.suppress(Exception):  # an application that has ended
            for view in own.catalog.listTables():
                if view.isTemporary:
                    own.catalog.dropTempView(view.name)


def _new_session(shown: str) -> Any:  # Any: as above
    if not _is_running():
        _started(shown)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        application = SparkSession.builder.getOrCreate()
        own = application.newSession()
        _set(own, application)
    except (PySparkException, Py4JError, OSError):
        raise DeclarationError(
            f"{shown}: the application of Spark in this process has ended; start the program anew"
        ) from None
    return own


def _set(own: Any, application: Any) -> None:  # Any: as above
    for name, value in application.conf.getAll.items():
        if name.startswith(_CATALOGS):  # where the program's tables are
            own.conf.set(name, value)
    for name in own.conf.getAll:
        if name.startswith(_OLD_WAYS):  # values were computed in other ways by older versions
            own.conf.unset(name)
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)


def _is_running() -> bool:
    """Whether this process has an application."""
    try:
        from pyspark import SparkContext
    except ModuleNotFoundError:
        raise DeclarationError(
            "rows in Spark need pyspark: pip install 'discreet[spark]', and Java 17"
        ) from None
    return SparkContext._active_spark_context is not None  # noqa: SLF001  # it has no public form


def _started(shown: str) -> Any:  # Any: as above
    """An application that Spark's own settings place, or else in this process: its driver then
    listens on the loopback only, it shows no page, and it writes no log."""
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    if os.environ.get("SPARK_REMOTE"):
        raise DeclarationError(f"{shown}: Spark Connect (SPARK_REMOTE) has no rule; unset it")
    # 1. settings: quiet, and on this machine only, unless others place it
    folder = tempfile.TemporaryDirectory(prefix="discreet-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    logs = Path(folder.name, "log4j2.properties")
    logs.write_text(_LOGS, encoding="ascii")
    settings = {
        "spark.app.name": "discreet",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logs} -Duser.timezone=UTC",
    }
    if not _has_master():
        settings |= {
            "spark.master": "local[*]",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.eventLog.enabled": "false",
            "spark.local.dir": folder.name,
            "spark.sql.warehouse.dir": str(Path(folder.name, "warehouse")),
            "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        }
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(settings.items()))
    # 2. start
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    try:
        with _quiet():
            return SparkSession.builder.config(conf=conf).getOrCreate()
    except Exception as cause:  # noqa: BLE001  # no Java, another one, or a master that isn't there
        raise DeclarationError(
            f"{shown}: Spark can't start ({type(cause).__name__}); install Java 17 "
            "(apt-get install openjdk-17-jre-headless), and see that its master runs"
        ) from None
    finally:
        if is_main:  # Spark sets a handler that cancels the jobs of all sessions
            signal.signal(signal.SIGINT, before)


def _has_master() -> bool:
    """Whether Spark's own settings name a master."""
    if "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        return True
    folder = os.environ.get("SPARK_CONF_DIR") or os.environ.get("SPARK_HOME", "") + "/conf"
    file = Path(folder, "spark-defaults.conf")
    if not file.is_file():
        return False
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.split("=")[0].split()[:1] == ["spark.master"] for line in lines)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the lines that Spark's starter writes to the error stream of this process."""
    with tempfile.TemporaryFile() as aside:
        before = os.dup(2)
        os.dup2(aside.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
