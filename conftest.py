"""In CI a test fails if it is skipped for something not installed: `make test` installs it all.

Modules and collected tests live until the end, so no garbage collection looks at them.
"""

import gc
import os
import re
from collections.abc import Generator
from typing import TypeVar

import pytest

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

MISSING = re.compile(
    r"could not import|no module|n[o']t (installed|here|there|found|available)|make (torch|peers)",
    re.IGNORECASE,
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The collected tests; they are taken out of later collections of garbage."""
    gc.disable()  # with millions of objects, one collection takes half a second
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_unconfigure() -> None:
    """At the end they are collected; else DuckDB reports all that is left as leaks."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test's report."""
    return _strict((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module's report, which may be skipped as a whole."""
    return _strict((yield))


def _strict(report: Report) -> Report:
    """The report; in CI it is a failure if it was a skip for a missing module."""
    is_in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    if is_in_ci and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if MISSING.search(reason):
            report.outcome = "failed"
            report.longrepr = f"in CI nothing may be missing, and this was skipped: {reason}"
    return report
