"""Canonical JSON, in which each value has exactly one text, and digests of such texts."""

import hashlib
import json


def canonical(value: object) -> str:
    """The canonical JSON text of a value: sorted, without blanks, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256(value: object) -> str:
    """The digest of a value's canonical text."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def text_digest(text: str) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
