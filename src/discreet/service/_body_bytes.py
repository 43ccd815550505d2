"""Reads the bytes of a body, within limits of its size and time."""

import asyncio

from starlette.requests import ClientDisconnect, Request

from discreet.service._body import LARGEST, too_large
from discreet.service._problems import TOO_SLOW, Problem

_SECONDS = 10.0


async def read_bytes(request: Request, largest: int = LARGEST) -> bytes:
    """The bytes of the body; they must be few, and come in time."""
    found = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            async for part in request.stream():
                found += part
                if len(found) > largest:
                    raise too_large(largest)
    except (TimeoutError, ClientDisconnect):
        raise Problem(TOO_SLOW) from None
    return bytes(found)
