"""``discreet serve``: analysts ask over HTTP, each with a token and a share of the budget."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._output import say, show


def serve(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The declaration of the tables.")
    ] = Path("discreet.toml"),
    *,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="The port; 0: a free one.")
    ] = 8765,
    certificate: Annotated[
        Path | None,
        typer.Option("--tls-certificate", metavar="PATH", help="A certificate for TLS, as PEM."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="PATH", help="The key of the certificate.")
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=64, help="Questions answered at a time.")
    ] = 2,
    deadline: Annotated[
        float, typer.Option("--deadline", help="Seconds after which paid answers leave.")
    ] = 2,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Print another owner's token, for a lost one.")
    ] = False,
) -> None:
    r"""Serve the tables of a declaration over HTTP, until Ctrl-C.

    The first start prints an owner's token, which is shown once. Without a certificate it listens
    on this machine only, for a proxy with TLS in front of it. It needs more libraries: pip install
    'discreet\[service]'

    Example:

    discreet serve discreet.toml --port 8765
    """
    from discreet import service

    service.serve(
        file,
        service.ListenAddress(host, port, certificate, key),
        workers=workers,
        deadline=deadline,
        is_new_token_wanted=new_token,
        on_token=lambda token: show(f"owner's token: {token}"),
        on_ready=_announce,
    )


def _announce(address: str) -> None:
    show(f"listening on {address}")
    say("Open it in a browser, and sign in with a token. Press Ctrl-C to stop.")
