"""Hostile bodies get one short problem, quickly, and nothing of them comes back."""

import json
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as some

from discreet.service._body import LARGEST, Member, MemberType, check_headers, read_body
from discreet.service._problems import BAD_BODY, TOO_LARGE, UNSUPPORTED, Problem, ProblemKind

MEMBERS = {
    "sql": Member(MemberType.TEXT, is_required=True, longest=20_000),
    "epsilon": Member(MemberType.NUMBER),
    "days": Member(MemberType.WHOLE),
    "allow": Member(MemberType.FACT),
    "noise": Member(MemberType.TEXT, choices=("laplace", "gaussian")),
}
JSON = {"content-type": "application/json"}


def refused(body: bytes) -> ProblemKind:
    start = time.process_time()
    with pytest.raises(Problem) as caught:
        read_body(body, MEMBERS)
    assert time.process_time() - start < 1
    assert len(str(caught.value)) < 150
    assert "canary" not in str(caught.value)
    return caught.value.kind


def test_numbers_are_the_written_decimals() -> None:
    found = read_body(b'{"sql": "x", "epsilon": 0.1, "days": 3, "allow": true}', MEMBERS)
    assert found == {"sql": "x", "epsilon": Decimal("0.1"), "days": 3, "allow": True}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"canary"',
        b"{}",
        b"{",
        b'{"sql": "canary"} {}',
        b'{"sql": "canary", "sql": "other"}',
        b'{"sql": "canary", "s\\u0071l": "other"}',
        b'{"sql": "canary", "by": "owner"}',
        b'{"sql": "canary", "canary": 1}',
        b'{"sql": ""}',
        b'{"sql": 1}',
        b'{"sql": null}',
        b'{"sql": ["canary"]}',
        b'{"sql": {"canary": 1}}',
        b'{"sql": "canary\\u0000"}',
        b'{"sql": "canary\\ud800"}',
        b'{"sql": "canary\\udc00\\ud800"}',
        b'{"sql": "canary\\u001b[2J"}',
        b'{"sql": "canary\xff"}',
        b'{"sql": "canary\xed\xa0\x80"}',
        b'\xef\xbb\xbf{"sql": "canary"}',
        '{"sql": "canary"}'.encode("utf-16"),
        b'{"sql": "canary", "epsilon": "1"}',
        b'{"sql": "canary", "epsilon": true}',
        b'{"sql": "canary", "epsilon": NaN}',
        b'{"sql": "canary", "epsilon": -Infinity}',
        b'{"sql": "canary", "epsilon": 1e999999999}',
        b'{"sql": "canary", "epsilon": 1e-999999999999999999999999999}',
        b'{"sql": "canary", "epsilon": 0.' + b"1" * 60_000 + b"}",
        b'{"sql": "canary", "epsilon": ' + b"9" * 60_000 + b"}",
        b'{"sql": "canary", "epsilon": 0.' + b"1" * 27 + b"}",
        b'{"sql": "canary", "days": 1.0}',
        b'{"sql": "canary", "days": false}',
        b'{"sql": "canary", "allow": 1}',
        b'{"sql": "canary", "noise": "canary"}',
        b"[" * 60_000,
        b'{"sql":' * 9_000,
        b'{"sql": "' + b"\\" * 60_000,
        b'{"sql": "' + b'\\"' * 30_000,
        b'{"sql": "' + b"x" * 20_001 + b'"}',
    ],
)
def test_a_bad_body_is_refused(body: bytes) -> None:
    assert refused(body) is BAD_BODY


def test_a_large_body_is_refused_before_it_is_read() -> None:
    assert refused(b" " * (LARGEST + 1)) is TOO_LARGE
    with pytest.raises(Problem) as caught:
        check_headers({**JSON, "content-length": str(LARGEST + 1)})
    assert caught.value.kind is TOO_LARGE


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({}, UNSUPPORTED),
        ({"content-type": "text/plain"}, UNSUPPORTED),
        ({"content-type": "application/x-www-form-urlencoded"}, UNSUPPORTED),
        ({"content-type": "application/json; charset=utf-16"}, UNSUPPORTED),
        ({**JSON, "content-encoding": "gzip"}, UNSUPPORTED),
        ({**JSON, "content-encoding": "identity, gzip"}, UNSUPPORTED),
        ({**JSON, "content-length": "-1"}, BAD_BODY),
        ({**JSON, "content-length": "٣"}, BAD_BODY),
        ({**JSON, "content-length": "9" * 5000}, BAD_BODY),
    ],
)
def test_headers_of_anything_but_plain_json_are_refused(
    headers: dict[str, str], kind: ProblemKind
) -> None:
    with pytest.raises(Problem) as caught:
        check_headers(headers)
    assert caught.value.kind is kind


def test_headers_of_plain_json_pass() -> None:
    check_headers({"content-type": "application/json; charset=UTF-8", "content-length": "2"})


@given(some.binary(max_size=60) | some.text(max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        found = read_body(body, MEMBERS)
    except Problem:
        return
    assert json.loads(body).keys() == found.keys()
