"""Answers as text: for print, and as JSON in a ledger, which can be read back."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np

_LARGE = 10**4000  # beyond it Python writes no integer as a decimal
Serializable = Any  # Any: numbers, texts, truth values, None; arrays, tuples and mappings of these


def serialize(answer: Serializable) -> str:
    """The answer as JSON; a ``TypeError`` for a value that could not be read back unchanged.

    >>> deserialize(serialize({"mean": np.array([1.5, 2]), "best": ("red", 3)}))
    {'mean': array([1.5, 2. ]), 'best': ('red', 3)}
    """
    return json.dumps(_plain(answer), separators=(",", ":"))


def deserialize(text: str) -> Serializable:
    """The answer whose JSON this is."""
    return _built(json.loads(text))


def written(answer: Serializable) -> str:
    """The answer as Python writes it, and integers of any size as decimals.

    >>> len(written({"people": 10**5000}))
    5013
    """
    try:
        return str(answer)
    except ValueError:  # Python limits the digits of an integer
        return _written(answer)


def _written(answer: Serializable) -> str:
    if type(answer) is int:
        return str(Decimal(answer))
    if isinstance(answer, np.ndarray):
        return np.array2string(answer, formatter={"object": _written})
    if isinstance(answer, Mapping):
        return f"{{{', '.join(f'{_written(k)}: {_written(v)}' for k, v in answer.items())}}}"
    if type(answer) is tuple:
        return f"({', '.join(map(_written, answer))}{',' * (len(answer) == 1)})"
    return repr(answer)


def _plain(answer: Serializable) -> object:
    if type(answer) is int and abs(answer) >= _LARGE:
        return {"whole": hex(answer)}
    if answer is None or type(answer) in (bool, int, float, str):
        return answer
    if isinstance(answer, np.ndarray):
        numbers = [_plain(number) for number in answer.ravel().tolist()]
        return {"array": [answer.dtype.name, list(answer.shape), numbers]}
    if isinstance(answer, Mapping):
        return {"mapping": [[_plain(key), _plain(item)] for key, item in answer.items()]}
    if type(answer) is tuple:
        return {"tuple": [_plain(item) for item in answer]}
    raise TypeError(f"an answer of type {type(answer).__name__} can't be stored")


def _built(stored: Any) -> Serializable:  # Any: JSON
    if not isinstance(stored, dict):
        return stored
    ((kind, content),) = stored.items()
    if kind == "array":
        dtype, shape, numbers = content
        return np.array([_built(number) for number in numbers], dtype=dtype).reshape(shape)
    if kind == "whole":
        return int(content, 16)
    if kind == "mapping":
        return {_built(key): _built(item) for key, item in content}
    return tuple(_built(item) for item in content)
