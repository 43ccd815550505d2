"""The page of the service names every request, every member and every problem; no more, no less."""

import re
from pathlib import Path

from discreet.service import _problems
from discreet.service._problems import KINDS, ProblemKind
from discreet.service._routes import ROUTES

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
SECTIONS = {one.partition("\n")[0]: one for one in re.split(r"^## ", PAGE, flags=re.MULTILINE)}


def test_every_request_is_on_the_page() -> None:
    listed = re.findall(r"^\| `((?:GET|POST|PUT|DELETE) /\S+)`", SECTIONS["Requests"], re.MULTILINE)
    assert sorted(listed) == sorted(f"{route.method} {route.path}" for route in ROUTES)
    members = {name for route in ROUTES for name in route.members}
    assert [name for name in members if f"`{name}`" not in SECTIONS["Requests"]] == []


def test_every_problem_is_on_the_page_with_its_status() -> None:
    rows = re.findall(r"^\| (`.+?) \| ([\d, ]+) \|", SECTIONS["Problems"], re.MULTILINE)
    listed = {name: statuses for names, statuses in rows for name in re.findall(r"`(\w+)`", names)}
    kinds = {one for one in vars(_problems).values() if isinstance(one, ProblemKind)}
    kinds |= {kind for _, kind in KINDS}
    assert listed.keys() - {"error"} == {kind.name for kind in kinds}
    assert [one.name for one in kinds if str(one.status) not in listed[one.name]] == []


def test_every_paid_request_has_an_id() -> None:
    assert all("request" in route.members for route in ROUTES if route.is_paid)
    assert {route.path.rpartition("/")[2] for route in ROUTES if route.is_paid} == {
        "ask",
        "diagnose",
    }
