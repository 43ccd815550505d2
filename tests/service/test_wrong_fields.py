"""A form that is refused names the field as its page does, and marks it."""

import json
import re
from collections.abc import Iterator
from html import unescape

import pytest
from starlette.testclient import TestClient

from discreet.service import _desk
from discreet.service._pace import RateLimit
from discreet.service._tokens import Role
from tests.service.pages_kit import AT, alone, signed_in

# words of requests and of the declaration's file
_FOR_PROGRAMS = re.compile(r"lower|upper|group_size|a field has no|toml|tables\.|look at|\w+ = ")
_COLUMNS = {"patient": "text", "ward": "text", "age": "integer", "cost": "number", "day": "date"}
_STEP_2 = {
    **{f"column-{n}": name for n, name in enumerate(_COLUMNS)},
    **{f"type-{n}": kind for n, kind in enumerate(_COLUMNS.values())},
    "name": "visits",
    "source": "visits.csv",
    "unit": "0",
    "rows": "3",
    "epsilon": "3",
    "use-2": "yes",
    "lower-2": "0",
    "upper-2": "95",
}


@pytest.fixture(scope="module")
def desk_and_client(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[_desk.Desk, TestClient]]:
    folder = tmp_path_factory.mktemp("alone")
    (folder / "visits.csv").write_text(f"{','.join(_COLUMNS)}\n")
    looked: dict[str, object] = {"name": "hours", "type": "number", "formats": []}
    looked |= {"zone": None, "decimals": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_desk.Desk, "_looked_at", lambda *_: {"columns": [looked]})
        with alone(folder, patch, RateLimit(1e9, 9)) as found:
            yield found


@pytest.fixture(scope="module")
def key(desk_and_client: tuple[_desk.Desk, TestClient]) -> dict[str, str]:
    return signed_in(*desk_and_client, Role.OWNER)


def labels(page: str, id_: str) -> list[str]:
    """The words that name a field on its page."""
    named = re.findall(rf'<label for="{id_}">(.*?)</label>', page)
    named += re.findall(rf'id="{id_}"[^>]* aria-label="(.*?)"', page)
    box = re.findall(rf'id="{id_}" name="[^>]*><span><strong>(.*?)</strong>', page)
    group = re.findall(rf'id="{id_}"><legend>(.*?)[:<]', page)
    return [unescape(one) for one in named + box + group]


@pytest.mark.parametrize(
    ("path", "fields", "id_", "words"),
    [
        ("/desk/declare", {"name": "a b"}, "name", "digits"),
        ("/desk/declare", {"name": "a\0b"}, "name", "digits"),
        ("/desk/declare", {"name": "wages"}, "name", "another one"),
        ("/desk/declare", {"unit": ""}, "unit", "choose who"),
        ("/desk/declare", {"unit": "9" * 5000}, "unit", "choose who"),
        ("/desk/declare", {"rows": "x"}, "rows", "whole number"),
        ("/desk/declare", {"rows": "1.5"}, "rows", "whole number"),
        ("/desk/declare", {"rows": "0"}, "rows", "1 or above"),
        ("/desk/declare", {"rows": "9" * 5000}, "rows", "whole number"),
        ("/desk/declare", {"groups": "0"}, "groups", "1 or above"),
        ("/desk/declare", {"unit": "row"}, "rows", "leave it empty"),
        ("/desk/declare", {"epsilon": "1,5"}, "epsilon", "such as 0.5"),
        ("/desk/declare", {"epsilon": "0"}, "epsilon", "above 0"),
        ("/desk/declare", {"delta": "2"}, "delta", "not including, 1"),
        ("/desk/declare", {"lower-2": "x"}, "lower-2", "x is no number"),
        ("/desk/declare", {"lower-2": "99"}, "lower-2", "“from” must lie below “to”"),
        ("/desk/declare", {"lower-2": ""}, "upper-2", "give both “from” and “to”"),
        ("/desk/declare", {"upper-2": ""}, "lower-2", "give both “from” and “to”"),
        ("/desk/declare", {"lower-2": "0.5"}, "lower-2", "whole numbers"),
        ("/desk/declare", {"keys-2": "9..1"}, "keys-2", "such as 1980..1987"),
        ("/desk/declare", {"keys-2": "1, 1"}, "keys-2", "each once"),
        ("/desk/declare", {"keys-2": "1, x"}, "keys-2", "x is no number"),
        ("/desk/declare", {"use-1": "yes", "keys-1": 'a, "b'}, "keys-1", "close each quote"),
        ("/desk/declare", {"use-1": "yes", "lower-1": "1"}, "lower-1", "takes none: empty"),
        ("/desk/declare", {"use-4": "yes", "lower-4": "1.1.25"}, "lower-4", "such as 1987-05-01"),
        ("/desk/declare", {"use-2": ""}, "use-2", "tick this column"),
        ("/desk/declare", {"keys-1": "a, b"}, "use-1", "empty its field “keys”"),
        ("/tables/wages/columns", {"rows": "0"}, "rows", "1 or above"),
        ("/tables/wages/columns", {"caps": "yes"}, "rows", "give a number"),
        ("/tables/wages/columns", {"column-0": "hours", "type-0": "number", "upper-0": "9"},
         "use-0", "tick this column"),
        ("/tables/wages/columns", {"column-0": "hours", "type-0": "number", "use-0": "yes"},
         "lower-0", "needs “from” and “to”"),
        ("/tables/wages/suggest", {"epsilon": "x", "number-0": "hours"}, "price", "such as 0.5"),
        ("/tables/wages/suggest", {"epsilon": "1"}, "to-find", "choose a column"),
        ("/tables/wages/suggest", {"epsilon": "1,5", "of": "rows"}, "rows-price", "such as 0.5"),
        ("/desk/tokens", {"name": "a/b", "role": "analyst", "days": "1"}, "name", "without /"),
        ("/desk/tokens", {"name": "a", "role": "analyst", "days": "x"}, "days", "whole number"),
        ("/desk/tokens", {"name": "a", "role": "analyst", "days": "0"}, "days", "give 1 to"),
        ("/tables/fewer/shares", {"share": "a/b", "epsilon": "1"}, "share-2", "without /"),
        ("/tables/fewer/shares", {"share": "a", "epsilon": "x"}, "epsilon-2", "such as 0.5"),
        ("/tables/fewer/shares", {"share": "a", "epsilon": "0"}, "epsilon-2", "above 0"),
        ("/tables/wages/shares", {"share": "a", "epsilon": "1", "delta": "9"}, "delta-1", "from 0"),
    ],
)  # fmt: skip
def test_a_refused_form_marks_its_field_by_the_label_of_the_page(
    desk_and_client: tuple[_desk.Desk, TestClient],
    key: dict[str, str],
    path: str,
    fields: dict[str, str],
    id_: str,
    words: str,
) -> None:
    base = _STEP_2 if path == "/desk/declare" else {}
    desk, client = desk_and_client
    before = desk._text
    sent = {**base, **fields, **key, "once": json.dumps(fields)}
    page = client.post(path, data=sent, headers=AT, follow_redirects=False)
    assert (page.status_code, desk._text) == (400, before)
    marked = re.findall(r'id="([\w-]+)"[^>]* aria-invalid="true"', page.text)
    assert marked == ([id_] if id_ != "to-find" else [])
    (alert,) = re.findall(r'role="alert" id="refusal"><p>(.*?)</p>', page.text)
    said = unescape(re.sub(r"<[^>]*>", "", alert))
    assert words in said
    assert not _FOR_PROGRAMS.search(said), said
    assert f'<a href="#{id_}">' in alert
    (beside,) = re.findall(r'class="wrong" id="wrong">(.*?)</span>', page.text)
    assert said.endswith(unescape(beside))
    assert any(label.rstrip(":") in said for label in labels(page.text, id_)), said
    if path == "/desk/declare" and "-" in id_:  # a field of a column
        assert said.startswith([*_COLUMNS][int(id_[-1])])
    for name, text in base.items():  # what was typed stays
        if name in ("lower-2", "upper-2", "name") and name not in fields:
            assert f'name="{name}"' in page.text
            assert f'value="{text}"' in page.text


@pytest.mark.parametrize("path", ["/tables/wages/ask", "/tables/wages/forecast"])
@pytest.mark.parametrize(
    ("fields", "id_", "words"),
    [
        ({"by": "accuracy"}, "within", "above 0, such as 50"),
        ({"noise": "gaussian", "epsilon": "1"}, "delta", "such as 1e-6"),
        ({"noise": "gaussian", "epsilon": "1", "delta": "0"}, "delta", "such as 1e-6"),
    ],
)
def test_a_question_without_a_field_that_it_needs_marks_this_field(
    desk_and_client: tuple[_desk.Desk, TestClient],
    key: dict[str, str],
    path: str,
    fields: dict[str, str],
    id_: str,
    words: str,
) -> None:
    _, client = desk_and_client
    page = client.post(path, data={"sql": "a", **fields, **key}, headers=AT, follow_redirects=False)
    assert page.status_code == (400 if path.endswith("/ask") else 200)  # a forecast may be none
    marked = re.findall(r'id="([\w-]+)"[^>]* aria-invalid="true"', page.text)
    (said,) = re.findall(r'id="refusal">\s*<p>(.*?)</p>', page.text)
    assert marked == [id_]
    assert said.startswith(f'<a href="#{id_}">')
    assert words in said
    assert not _FOR_PROGRAMS.search(said.partition("</a>")[2])
