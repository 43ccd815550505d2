"""Reads the form of a page: sent by a page of this service, small, in time, each field once."""

import json
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from discreet.service._body import LARGEST, Member, MemberType, number_in, read_body
from discreet.service._body_bytes import read_bytes
from discreet.service._problems import BAD_BODY, FOREIGN, UNSUPPORTED, Problem
from discreet.service._safe_headers import is_by_tls

FormFields = Mapping[str, str]
_MOST_FIELDS = 2000  # of a form of the usual size; larger ones may have more
OF_COLUMNS = 1 << 19  # bytes of a form that has fields for each column
FILE = "application/octet-stream"
_FORM = "application/x-www-form-urlencoded"


def check_origin(request: Request) -> None:
    """Refuse what another site's page made the browser send."""
    site, origin = (request.headers.get(name) for name in ("sec-fetch-site", "origin"))
    host = request.headers.get("host")
    schemes = ("https",) if is_by_tls(request) else ("http", "https")  # a proxy may not say it
    own = [f"{scheme}://{host}" for scheme in schemes]
    if site not in (None, "same-origin") or not host or origin not in own:
        raise Problem(FOREIGN)


def key_of_file(request: Request) -> FormFields:
    """The key of a file that a script of this service's page sent; its bytes are not read yet."""
    check_origin(request)
    return {"key": request.headers.get("x-form-key", "")}


async def read_form(request: Request, largest: int = LARGEST) -> FormFields:
    """The fields of a form that a page of this service sent; those that are empty are left out."""
    check_origin(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM or "content-encoding" in request.headers:
        raise Problem(UNSUPPORTED)
    try:
        pairs = parse_qsl(
            (await read_bytes(request, largest)).decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=_MOST_FIELDS * largest // LARGEST,
        )
    except ValueError:
        raise Problem(BAD_BODY) from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Problem(BAD_BODY)
    # browsers send the ends of lines as CR LF
    return {name: text.replace("\r\n", "\n") for name, text in found.items() if text.strip()}


def members_of(form: FormFields, members: Mapping[str, Member]) -> dict[str, object]:
    """The fields that a request takes, read as its body: the same limits, and exact decimals."""
    parts = [
        f"{json.dumps(name)}: {_value(form[name], member)}"
        for name, member in members.items()
        if name in form
    ]
    return read_body(f"{{{', '.join(parts)}}}".encode("utf-8", "surrogatepass"), members)


def _value(text: str, member: Member) -> str:
    """The field as JSON, to be read by the parser of bodies."""
    match member.type:
        case MemberType.TEXT:
            return json.dumps(text)
        case MemberType.FACT:
            return "true"  # a box that isn't ticked is not sent
        case MemberType.NUMBER | MemberType.WHOLE:
            number = number_in(text.strip())
            return json.dumps(text) if number is None else str(number)
