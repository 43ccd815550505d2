"""The look of all pages, of the explorer and of the service: frame, styles, scripts, charts.

Pages extend ``templates/frame.html`` and load what they need of ``static/``. Each value in a
template is escaped, and a page may load scripts and styles of its own server only.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.staticfiles import StaticFiles

_HERE = Path(__file__).parent
STATIC = _HERE / "static"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action {forms}"
)
"""No script, style or request but the pages' own files; the server adds ``frame-ancestors``."""


def templates(folder: Path) -> "Environment":
    """The templates of this folder, over those of all pages."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader([folder, _HERE / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def static_files(folder: Path) -> "StaticFiles":
    """The files of this folder, and of all pages, for a server."""
    from starlette.staticfiles import StaticFiles

    return StaticFiles(directory=folder, packages=[(__name__, "static")])
