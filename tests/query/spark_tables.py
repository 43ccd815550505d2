"""Rows that a real Spark reads for tests, in a local application of this process."""

import os
import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# most of a small question's time is that of Java's second compiler
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@cache
def check() -> None:
    """Skip the test where there is no Spark or no Java; fail where it must be there."""
    has_java = shutil.which("java") is not None or "JAVA_HOME" in os.environ
    if find_spec("pyspark") is not None and has_java:
        os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK)
        return
    how = "pip install 'discreet[spark]' and apt-get install openjdk-17-jre-headless"
    if "java" in os.environ.get("DISCREET_REQUIRE", ""):
        pytest.fail(f"Spark is required here: {how}")
    pytest.skip(f"Spark needs pyspark and Java 17: {how}")


def stored(rows: pa.Table, folder: Path, name: str = "rows.parquet") -> str:
    """The address of these rows, written to a file in the folder."""
    check()
    pq.write_table(rows, folder / name)
    return f"spark:{folder / name}"
