"""The type of a column of which several files hold values."""

from collections.abc import Sequence

import pyarrow as pa


def common_type(kinds: Sequence[pa.DataType | None]) -> pa.DataType | None:
    """The type that holds all values of these types; None where there is none. A file in which all
    values are missing may have no type of its own."""
    known = {kind for kind in kinds if kind is None or not pa.types.is_null(kind)}
    if len(known) <= 1:
        return next(iter(known), pa.null())
    if None in known:
        return None
    if all(map(_is_int64, known)):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in known):
        return pa.float64()
    if known <= {pa.string(), pa.large_string(), pa.string_view()}:
        return pa.large_string()
    return None


def _is_int64(kind: pa.DataType) -> bool:
    is_small = pa.types.is_unsigned_integer(kind) and kind.bit_width < 64
    return bool(pa.types.is_signed_integer(kind) or is_small)
