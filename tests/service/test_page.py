"""The page of the service names every request, every member and every problem; no more, no less."""

import json
import re
from pathlib import Path
from typing import cast

from discreet.service import _problems
from discreet.service._app import Application
from discreet.service._desk import Desk
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


def test_the_description_for_programs_lists_places_members_and_the_token() -> None:
    app = Application(cast(Desk, None)).build()
    described = json.loads(json.dumps(app.openapi()))
    assert described["components"]["securitySchemes"].keys() == {"bearer"}
    for route in ROUTES:
        one = described["paths"][route.path][route.method.lower()]
        assert one["security"] == [{"bearer": []}]
        assert one["summary"].endswith(".")
        places = re.findall(r"{(\w+)}", route.path)
        assert [place["name"] for place in one["parameters"]] == places
        if route.members:
            schema = one["requestBody"]["content"]["application/json"]["schema"]
            assert schema["properties"].keys() == route.members.keys()
        else:
            assert "requestBody" not in one


def test_every_paid_request_has_an_id() -> None:
    assert all("request" in route.members for route in ROUTES if route.is_paid)
    assert {route.path.rpartition("/")[2] for route in ROUTES if route.is_paid} == {
        "ask",
        "diagnose",
        "nulls",
        "suggest",
    }
