"""The number of training runs that a ledger admits: ``python -m benchmarks.admitted``.

Each run is charged as a whole, and may be chosen after the results of the earlier runs. The table
compares the default filter, the filter for training, and the number that would fit if all runs were
fixed beforehand. A second table is about small charges.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.tables import show, table
from discreet._budget import Limit
from discreet.accounting import (
    Approximate,
    Filter,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    Zcdp,
    calibrate_count,
)
from discreet.accounting._analytic import gaussian_multiplier


@dataclass(frozen=True, slots=True)
class Run:
    """Steps of DP-SGD under a limit, and goals: the numbers of runs that should fit by default, in
    a ledger for training, and if they were fixed beforehand."""

    rate: str
    multiplier: str
    steps: int
    limit: Limit
    usual: int
    training: int
    fixed: int

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of one run."""
        step = PoissonSampled(Gaussian(Fraction(self.multiplier)), Fraction(self.rate))
        return self.steps * step

    @property
    def filters(self) -> tuple[Filter, Filter]:
        """The default filter, and the one for training."""
        return Filter.for_limit(self.limit), Filter.for_training(self.limit)

    def __repr__(self) -> str:
        """The run in a few words."""
        steps = f"{self.steps} steps of rate {self.rate}, multiplier {self.multiplier}"
        return f"{steps}, at {self.limit}"


SMALL, LARGE = Limit(1, 1e-6), Limit(3, 1e-5)
RUNS = (
    Run("0.01", "1", 1000, LARGE, usual=2, training=2, fixed=2),
    Run("0.01", "2", 1000, SMALL, usual=1, training=1, fixed=1),
    Run("0.01", "2", 1000, LARGE, usual=15, training=16, fixed=17),
    Run("0.004", "1.1", 1000, SMALL, usual=1, training=2, fixed=2),
    Run("0.004", "1.1", 1000, LARGE, usual=18, training=19, fixed=24),
    Run("0.001", "0.8", 10_000, SMALL, usual=0, training=1, fixed=1),
    Run("0.001", "0.8", 10_000, LARGE, usual=8, training=9, fixed=13),
    Run("0.02", "1", 500, Limit(8, 1e-6), usual=4, training=4, fixed=6),
    Run("0.02", "4", 100, SMALL, usual=17, training=19, fixed=21),
)
LIMITS = (SMALL, Limit(1, 1e-3), Limit(1, 1e-30))


def admitted(chosen: Filter, loss: PrivacyLoss) -> int:
    """The number of charges of this loss that an empty ledger admits."""
    return chosen.count_left(chosen.start, loss)


def parts(limit: Limit) -> Iterator[tuple[str, float, float]]:
    """The parts of the best possible number of small equal charges that fit by default and in a
    ledger for training."""
    alone = gaussian_multiplier(limit.epsilon, limit.delta)
    small = 1000 * alone
    for name, loss in (
        ("Gaussian", PrivacyLoss.of(Gaussian(small))),
        ("zCDP", PrivacyLoss.of(Zcdp(1 / (2 * small**2)))),
    ):
        usual, training = Filter.for_limit(limit), Filter.for_training(limit)
        yield name, admitted(usual, loss) / 1e6, admitted(training, loss) / 1e6


def most_if_fixed(run: Run) -> int:
    """The number of runs that would fit the limit if all were fixed beforehand."""

    def cost(count: int) -> PrivacyLoss:
        return count * run.loss

    return calibrate_count(cost, epsilon=run.limit.epsilon, delta=run.limit.delta).value


def main() -> None:
    """Print both tables, and on the last line the least lead over the goals."""
    runs = table("runs", "by default", "for training", "fixed beforehand")
    leads = []
    for run in RUNS:
        usual, training = (admitted(chosen, run.loss) for chosen in run.filters)
        leads.append(min(usual - run.usual, training - run.training))
        runs.add_row(repr(run), str(usual), str(training), str(most_if_fixed(run)))
    show(runs)
    small = table("small charges", "by default", "for training")
    for limit in LIMITS:
        for name, usual_part, training_part in parts(limit):
            small.add_row(f"{name} at {limit}", f"{usual_part:.1%}", f"{training_part:.1%}")
    for term, limit in ((Approximate(0.02, 1e-9), Limit(8, 1e-6)), (Pure(0.01), SMALL)):
        filters = (Filter.for_limit(limit), Filter.for_training(limit))
        counts = (str(admitted(chosen, PrivacyLoss.of(term))) for chosen in filters)
        small.add_row(f"{term} at {limit}", *counts)
    show(small)
    print(f"admitted: least lead over a goal = {min(leads)}")


if __name__ == "__main__":
    main()
