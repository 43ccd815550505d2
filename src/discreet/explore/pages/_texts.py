"""Numbers and programs as the pages show them."""

import math

from discreet._html import up


def at_most(bound: float, digits: int = 4) -> str:
    """The upper bound to this many digits, rounded up."""
    return "no bound" if math.isinf(bound) else up(bound, digits)


def about(number: float, digits: int = 3) -> str:
    """The number to this many digits."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.{digits}g}"


def program(template: str, **values: object) -> str:
    """The lines of a program with these values in their places."""
    return template.strip().format(**values) + "\n"


def percent(share: float) -> str:
    """The share in percent, to three digits."""
    return f"{100 * share:.3g} %"


def at_most_percent(bound: float) -> str:
    """The upper bound of a share in percent, rounded up."""
    return f"{up(100 * bound, 3)} %"
