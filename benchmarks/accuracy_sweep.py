"""The sweep of the accuracy benchmark: the same settings, splits and choice for all contestants.

A contestant trains models: logistic regression from zeros, by DP-SGD. The setting with the most
correct predictions on some splits of the data is chosen, and evaluated on five other splits.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import hypot, sqrt
from statistics import fmean, variance

DELTA = 1e-5
EPSILONS = (1, 3, 8)
STEPS, SHARE = 100, 0.5  # number of steps, and expected share of the examples in each

# Seeds of the splits for choosing. For each data set, their tests have about 3500 predictions.
CHOOSING = {"digits": range(100, 110), "breast cancer": range(100, 130)}
SHOWN = range(5)
DRAWS = 10  # of noise, for each split in SHOWN


@dataclass(frozen=True, slots=True)
class Setting:
    """A step has length at most ``length`` if all contributions agree, whatever the ``clip``
    norm."""

    length: float
    clip: float

    @property
    def rate(self) -> float:
        """The learning rate."""
        return self.length / self.clip


SWEEP = tuple(Setting(*each) for each in product((1, 2, 4, 8, 16), (0.1, 0.5)))


@dataclass(frozen=True, slots=True)
class Run:
    """A model to train: the setting, the seed of the split, and the number of the noise draw."""

    setting: Setting
    seed: int
    draw: int = 0


@dataclass(frozen=True, slots=True)
class Accuracies:
    """A model's shares of correct predictions on the test examples: with the weights of the last
    step, and with the mean of the weights of the last half of all steps."""

    last: float
    mean: float


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The mean share of correct predictions of the chosen setting. ``error`` is its standard error
    from noise; all contestants have the same splits."""

    setting: Setting
    is_of_mean: bool
    share: float
    error: float

    def over(self, other: "SweepResult") -> tuple[float, float]:
        """The difference of the two shares, and its standard error."""
        return self.share - other.share, hypot(self.error, other.error)


def batch(records: int) -> int:
    """The expected number of records in a batch."""
    return round(SHARE * records)


Train = Callable[[Sequence[Run]], Iterable[Accuracies]]


def sweep(name: str, train: Train) -> SweepResult:
    """The result of a contestant on the splits for evaluation."""
    setting, is_of_mean = chosen(name, train)
    rights = train([Run(setting, seed, draw) for seed in SHOWN for draw in range(DRAWS)])
    shares = [each.mean if is_of_mean else each.last for each in rights]
    splits = [shares[first : first + DRAWS] for first in range(0, len(shares), DRAWS)]
    squares = sum(variance(split) / DRAWS for split in splits)
    return SweepResult(setting, is_of_mean, fmean(shares), sqrt(squares) / len(splits))


def chosen(name: str, train: Train) -> tuple[Setting, bool]:
    """The first setting with the most correct predictions, and whether it uses the mean of the
    weights."""
    seeds = CHOOSING[name]
    rights = [*train([Run(setting, seed) for setting in SWEEP for seed in seeds])]
    shares = {}
    for place, setting in enumerate(SWEEP):
        here = rights[place * len(seeds) : (place + 1) * len(seeds)]
        shares[setting, False] = fmean(each.last for each in here)
        shares[setting, True] = fmean(each.mean for each in here)
    return max(shares, key=shares.__getitem__)
