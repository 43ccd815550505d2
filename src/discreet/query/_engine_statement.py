"""A statement of an engine, with the small public tables that it reads beside the rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class EngineStatement:
    """The engine's text, and public tables by their names in it, such as many declared keys."""

    text: str
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
