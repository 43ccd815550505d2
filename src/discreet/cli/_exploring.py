"""``discreet explore``: pages that show how differential privacy works."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._failures import INTERRUPTED, FailureExit
from discreet.cli._output import progress, say, show
from discreet.errors import Refused


def explore(
    *,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65_535, help="The port on this machine; 0: a free one."),
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the pages in a browser.")
    ] = True,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export", metavar="DIR", help="Write the pages into a new folder, and serve nothing."
        ),
    ] = None,
) -> None:
    r"""Show what privacy costs, on pages with controls to drag.

    The data are made up, and no request leaves this machine. With --export the pages become files
    for any web server, with every view computed in advance; that takes minutes. It needs more
    libraries: pip install 'discreet\[explore]'

    Example:

    discreet explore --port 8000 --no-browser
    """
    from discreet import explore as explorer

    try:
        if export is not None:
            with progress("computing all views") as advance:
                explorer.export(export, progress=advance)
            show(f"{export / 'index.html'}")
            return
        explorer.serve(port, opens_browser=browser, ready=_announce)
    except KeyboardInterrupt:
        say("stopped" if export is None else "stopped; no file was kept", "yellow")
        raise FailureExit(INTERRUPTED) from None
    except ImportError as error:
        if "discreet[explore]" not in str(error):
            raise
        raise Refused(str(error)) from None


def _announce(address: str) -> None:
    show(address)
    say("Press Ctrl-C to stop.")
