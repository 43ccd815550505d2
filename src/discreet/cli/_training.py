"""``discreet train``: the shipped examples of private training."""

from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli._options import above_zero, small
from discreet.cli._output import show
from discreet.errors import Refused

if TYPE_CHECKING:
    from types import ModuleType

_DELTA = Decimal("1e-5")

EXAMPLES = Path(__file__).parents[1] / "train" / "examples"  # known by their files: no import


def names() -> list[str]:
    """The names of all examples."""
    return sorted(path.stem for path in EXAMPLES.glob("[a-z]*.py"))


def begun(text: str) -> list[str]:
    """The names that start with this text, for a shell's completion."""
    return [name for name in names() if name.startswith(text)]


def train(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"One of {', '.join(names())}.",
            autocompletion=begun,
            show_default=False,
        ),
    ],
    *,
    epsilon: Annotated[
        Decimal | None,
        typer.Option(
            "--epsilon",
            metavar="NUMBER",
            parser=above_zero,
            help="The cost of the whole run; by default the example's own.",
        ),
    ] = None,
    delta: Annotated[
        Decimal,
        typer.Option("--delta", metavar="NUMBER", parser=small, help="Epsilon is at this delta."),
    ] = _DELTA,
) -> None:
    r"""Run a shipped example of private training, on made-up or public data.

    On a terminal, a run of over two seconds shows a bar: step, loss (not private), epsilon so far
    and time left. It needs PyTorch: pip install 'discreet\[torch]'

    Example:

    discreet train line --epsilon 1 --delta 1e-6
    """
    if name not in names():
        raise typer.BadParameter(f"{name!r}: there are {', '.join(names())}", param_hint="'NAME'")
    asked = {"delta": delta} | ({} if epsilon is None else {"epsilon": epsilon})
    show(repr(_example(name).main(**asked)))


def _example(name: str) -> "ModuleType":
    try:
        return import_module(f"discreet.train.examples.{name}")
    except ImportError as error:
        if "discreet[torch]" not in str(error):
            raise
        raise Refused("private training needs PyTorch: pip install 'discreet[torch]'") from None
