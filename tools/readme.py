"""Compares the commands in the README with the commands that ran.

``python -m tools.readme "make demo" "make test"`` fails unless these are all commands of the
README, in this order. The README has them in its shell blocks, one a line; comments don't count.
"""

import re
import shlex
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"

_BLOCK = re.compile(
    r"^[ ]*(```+|~~~+) *(?:sh|bash|shell|zsh)\b[^\n]*\n(.*?)^[ ]*\1", re.MULTILINE | re.DOTALL
)


def commands(text: str) -> list[str]:
    """The commands in the shell blocks of a page, with single spaces between their words."""
    lines = "\n".join(block[2] for block in _BLOCK.finditer(text)).replace("\\\n", " ").split("\n")
    words = (shlex.split(line, comments=True) for line in lines)
    return [shlex.join(each) for each in words if each]


def difference(text: str, ran: list[str]) -> str | None:
    """The error message if a page with this text shows other commands than those that ran, or
    None."""
    shown = commands(text)
    return None if shown == ran else f"README.md says {shown}, and {ran} ran: make them the same"


def main() -> int:
    """Print the difference, and return the exit code."""
    if wrong := difference(README.read_text(encoding="utf-8"), sys.argv[1:]):
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
