"""Numbers and programs as the pages show them."""

import math

from discreet._html import down, up
from discreet.accounting import Approximate, PrivacyLoss
from discreet.explore._page import power_of_ten, shown

WHETHER_IN = "whether you are in the data"
WHICH_VALUE = "which of two values is yours"
_MOST_DIGITS = 4

# explanations of controls
ABOUT_EPSILON = (
    "Epsilon bounds how much one person’s data change the probability of any outcome. Smaller is "
    "more private and needs more noise."
)
ABOUT_DELTA = (
    "Delta is what the probability of an outcome may change beyond the factor of epsilon. It "
    "should be far below one over the number of people."
)
ABOUT_CLIP = (
    "The longest gradient that one example may have. A longer one is shortened to it, so that no "
    "example moves the model further."
)
ABOUT_NOISE = (
    "The standard deviation of the noise on the sum of gradients, divided by the clip norm. More "
    "noise is more private."
)


def at_most(bound: float, digits: int = 4) -> str:
    """The upper bound to this many digits, rounded up."""
    return "no bound" if math.isinf(bound) else up(bound, digits)


def at_least(bound: float, digits: int = 4) -> str:
    """The lower bound to this many digits, rounded down."""
    return "no bound" if math.isinf(bound) else down(bound, digits)


def about(number: float, digits: int = 3) -> str:
    """The number to this many digits."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.{digits}g}"


def program(template: str, **values: object) -> str:
    """The lines of a program with these values in their places."""
    return template.strip().format(**values) + "\n"


def percent(share: float) -> str:
    """The share in percent, to three digits. No line breaks before the sign."""
    return f"{100 * share:.3g}\N{NO-BREAK SPACE}%"


def at_most_percent(bound: float) -> str:
    """The upper bound of a share in percent, rounded up."""
    return f"{up(100 * bound, 3)}\N{NO-BREAK SPACE}%"


def meaning(loss: PrivacyLoss, delta: float = 0, *, guess: str = WHETHER_IN) -> str:
    """The meaning of this privacy loss's epsilon: a factor of odds, and a bound of any guess.

    A best guess at even odds is right (1 + advantage) / 2 of the time.
    """
    epsilon, right = loss.epsilon(delta), (1 + loss.advantage()) / 2
    more = f", and δ = {shown(delta)} more" if delta else ""
    return (
        f"ε = {at_most(epsilon)} means: your data change the probability of any outcome by at "
        f"most a factor of e^ε, about {_factor(epsilon)}{more}. A guess {guess} is right at most "
        f"{at_most_percent(min(right, 1))} of the time, instead of {percent(0.5)}."
    )


def meaning_of_both(epsilon: float, delta: float, *, guess: str = WHETHER_IN) -> str:
    """The meaning of this epsilon at this delta, for all privacy losses that have them."""
    return meaning(PrivacyLoss.of(Approximate(epsilon, delta)), delta, guess=guess)


def no_meaning(guess: str, published: str) -> str:
    """The meaning of no epsilon, for exact data that are published."""
    return (
        f"{published} have no ε: nothing bounds how much your data change what is published. A "
        f"guess {guess} can be right every time."
    )


def _factor(epsilon: float) -> str:
    power = math.ceil(epsilon / math.log(10))
    return power_of_ten(power) if power > _MOST_DIGITS else about(math.exp(epsilon))
