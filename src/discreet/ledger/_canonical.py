"""Canonical JSON, in which each value has exactly one text, and digests of such texts."""

import hashlib
import json

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: object) -> str:
    """The canonical JSON text of a value: sorted, without blanks, ASCII only."""
    return _ENCODER.encode(value)


def sha256(value: object) -> str:
    """The digest of a value's canonical text."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def text_digest(text: str) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
