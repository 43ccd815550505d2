"""A sampler's whole tree of choices, walked word by word; and the laws, said a second time."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet.audit import OutOfWords, ScriptedBits
from discreet.exact import ball, precision
from discreet.noise import Bits, DiscreteLaplaceLaw, RoundedGaussianLaw

Sampler = Callable[[Bits], int]

BITS = 512


@dataclass(frozen=True)
class Walk:
    """The exact mass that was decided for each outcome, and what was undecided at each level."""

    decided: dict[int, Fraction]
    undecided: tuple[Fraction, ...]


def walk(sampler: Sampler, width: int, depth: int) -> Walk:
    """Play every script of ``depth`` words, extending only those that leave the outcome open."""
    decided: dict[int, Fraction] = {}
    undecided = []
    scripts: list[tuple[int, ...]] = [()]
    for level in range(1, depth + 1):
        chance = Fraction(1, 1 << width * level)
        longer = [(*script, word) for script in scripts for word in range(1 << width)]
        scripts = []
        for script in longer:
            try:
                outcome = sampler(ScriptedBits(script, width))
            except OutOfWords:
                scripts.append(script)
            else:
                decided[outcome] = decided.get(outcome, Fraction(0)) + chance
        undecided.append(len(scripts) * chance)
    return Walk(decided, tuple(undecided))


def refutation(found: Walk, chance: Callable[[int], arb]) -> str | None:
    """Why this tree can't be of a sampler with these chances; ``None`` if nothing speaks against.

    A decided mass only grows as undecided words are refined, so none may lie above its outcome's
    chance. As all masses and the sliver add up to 1, none then lies more than the sliver below.
    """
    total = sum(found.decided.values(), found.undecided[-1])
    if total != 1:
        return f"the masses add up to {float(total)}"
    with precision(BITS):
        for outcome, mass in sorted(found.decided.items()):
            if ball(mass) > chance(outcome):
                return f"P({outcome}) is at least {float(mass)}, not {float(chance(outcome))}"
            assert ball(mass) < chance(outcome), "more precision is needed to decide"
    return None


def chance_of(law: DiscreteLaplaceLaw | RoundedGaussianLaw) -> Callable[[int], arb]:
    """The probability of each outcome, from the law's definition and not from its tails."""
    return (
        discrete_laplace(law.scale) if isinstance(law, DiscreteLaplaceLaw) else gaussian(law.sigma)
    )


def discrete_laplace(scale: Fraction) -> Callable[[int], arb]:
    """(1 - p) / (1 + p) p^|x|, which is tanh(1 / (2 scale)) e^(-|x| / scale)."""

    def chance(outcome: int) -> arb:
        return ball(1 / (2 * scale)).tanh() * ball(-abs(outcome) / scale).exp()

    return chance


def gaussian(sigma: Fraction) -> Callable[[int], arb]:
    """The standard normal mass between (|x| - 1/2) / sigma and (|x| + 1/2) / sigma."""

    def beyond(point: Fraction) -> arb:
        return (ball(point / sigma) / arb(2).sqrt()).erfc() / 2

    def chance(outcome: int) -> arb:
        middle, half = Fraction(abs(outcome)), Fraction(1, 2)
        return beyond(middle - half) - beyond(middle + half)

    return chance
