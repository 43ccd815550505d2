"""Takes a file of rows from the owner's browser, into the folder of the declaration."""

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path

from anyio import to_thread
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from discreet.service._problems import BAD_BODY, TOO_LARGE, TOO_SLOW, UNSUPPORTED, Problem
from discreet.service.pages._forms import FILE
from discreet.service.pages._visit import HEADERS, Visit

_LARGEST = 1 << 30  # bytes
_SECONDS = 600.0
_NAME = re.compile(r"[A-Za-z0-9_][\w-]{0,99}\.(?:parquet|pq|csv|tsv)", re.ASCII)


def remove_parts(folder: Path) -> None:
    """Remove what is left of uploads in whose midst the service ended."""
    for part in folder.glob(".*.part"):
        if _NAME.fullmatch(part.name[1:].removesuffix(".part")):
            part.unlink(missing_ok=True)


def is_uploaded(folder: Path, name: str) -> bool:
    """Whether this very file came by an upload, and was not replaced since."""
    try:
        return _mark(folder, name).read_text(encoding="ascii") == _identity(folder / name)
    except (OSError, ValueError):
        return False


def removed(folder: Path, name: str) -> bool:
    """Whether a file of this name came by an upload, and is removed now."""
    if not _NAME.fullmatch(name) or not is_uploaded(folder, name):
        return False
    (folder / name).unlink(missing_ok=True)
    _mark(folder, name).unlink(missing_ok=True)
    return True


def _mark(folder: Path, name: str) -> Path:
    return folder / f".{name}.uploaded"


def _identity(file: Path) -> str:
    """Changes whenever the file is replaced or written."""
    facts = file.stat()
    return f"{facts.st_dev} {facts.st_ino} {facts.st_size} {facts.st_mtime_ns}"


async def upload(visit: Visit) -> Response:
    """Store the body of a request under its name; a file that is there is never replaced."""
    visit.check_owner()
    name = visit.place("name")
    if not _NAME.fullmatch(name):
        allowed = "name the file by letters, digits, _ and -, with .parquet or .csv at the end"
        raise Problem(BAD_BODY, f"{BAD_BODY.text}: {allowed}")
    if visit.request.headers.get("content-type") != FILE:
        raise Problem(UNSUPPORTED)
    folder = visit.folder
    part = folder / f".{name}.part"
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Problem(BAD_BODY, f"{BAD_BODY.text}: {name} is being uploaded") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            async with asyncio.timeout(_SECONDS):
                size = 0
                async for chunk in visit.request.stream():
                    size += len(chunk)
                    if size > _LARGEST:
                        raise Problem(TOO_LARGE)
                    await to_thread.run_sync(file.write, chunk)
        await to_thread.run_sync(_put, part, folder / name)
    except (TimeoutError, ClientDisconnect):
        raise Problem(TOO_SLOW) from None
    finally:
        part.unlink(missing_ok=True)
    return Response(status_code=201, headers=HEADERS)


def _put(part: Path, place: Path) -> None:
    """Give the file its name, unless another one has it."""
    try:
        os.link(part, place)
    except FileExistsError:
        raise Problem(
            BAD_BODY, f"{BAD_BODY.text}: {place.name} is there already: take another name"
        ) from None
    with suppress(OSError):  # then it can be removed by hand only
        _mark(place.parent, place.name).write_text(_identity(place), encoding="ascii")
