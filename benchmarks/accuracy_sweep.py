"""What accuracies are compared over, and how: the same settings, splits and choice for all.

A contestant trains models: logistic regression from zeros, by DP-SGD. Of all settings, the one
with the most right answers on some splits of the data is shown on five others.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import hypot, sqrt
from statistics import fmean, variance

DELTA = 1e-5
EPSILONS = (1, 3, 8)
STEPS, SHARE = 100, 0.5  # how many, and of all examples in each of them, on average

# Seeds of splits: so many to choose by that about 3500 answers count, whatever the data set.
CHOOSING = {"digits": range(100, 110), "breast cancer": range(100, 130)}
SHOWN = range(5)
DRAWS = 10  # of noise, for each split that is shown


@dataclass(frozen=True, slots=True)
class Setting:
    """A step goes at most ``length`` far if all contributions agree, whatever the ``clip`` norm."""

    length: float
    clip: float

    @property
    def rate(self) -> float:
        """The learning rate."""
        return self.length / self.clip


SWEEP = tuple(Setting(*each) for each in product((1, 2, 4, 8, 16), (0.1, 0.5)))


@dataclass(frozen=True, slots=True)
class Run:
    """A model to train: how, on the split of which seed, and which of its draws of noise."""

    setting: Setting
    seed: int
    draw: int = 0


@dataclass(frozen=True, slots=True)
class Rights:
    """A model's shares of right answers in the test: of the last step's weights, and of the mean
    of those of the last half of all steps."""

    last: float
    mean: float


@dataclass(frozen=True, slots=True)
class Found:
    """The mean share of right answers of the setting that was chosen; ``error`` is the standard
    error that noise leaves in it, the splits being the same for all contestants."""

    setting: Setting
    is_of_mean: bool
    share: float
    error: float

    def over(self, other: "Found") -> tuple[float, float]:
        """How much more often it is right, and the standard error of that."""
        return self.share - other.share, hypot(self.error, other.error)


def batch(records: int) -> int:
    """How many of so many records are in a batch, on average."""
    return round(SHARE * records)


Train = Callable[[Sequence[Run]], Iterable[Rights]]


def swept(name: str, train: Train) -> Found:
    """What a contestant comes to."""
    setting, is_of_mean = chosen(name, train)
    rights = train([Run(setting, seed, draw) for seed in SHOWN for draw in range(DRAWS)])
    shares = [each.mean if is_of_mean else each.last for each in rights]
    splits = [shares[first : first + DRAWS] for first in range(0, len(shares), DRAWS)]
    squares = sum(variance(split) / DRAWS for split in splits)
    return Found(setting, is_of_mean, fmean(shares), sqrt(squares) / len(splits))


def chosen(name: str, train: Train) -> tuple[Setting, bool]:
    """The first of all settings that has the most right answers, and whether that is by the mean
    of weights."""
    seeds = CHOOSING[name]
    rights = [*train([Run(setting, seed) for setting in SWEEP for seed in seeds])]
    shares = {}
    for place, setting in enumerate(SWEEP):
        here = rights[place * len(seeds) : (place + 1) * len(seeds)]
        shares[setting, False] = fmean(each.last for each in here)
        shares[setting, True] = fmean(each.mean for each in here)
    return max(shares, key=shares.__getitem__)
