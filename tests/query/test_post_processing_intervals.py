"""The intervals of computed columns, totals and shares hold."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import discreet as dp
from discreet.query import (
    AggregateFunction,
    Noise,
    Question,
    QuestionPrice,
    Table,
    aggregate,
)
from discreet.query._answers._assembly import columns
from discreet.query._expressions._frame import ColumnExpression, UnnamedAggregate
from tests.query.kit import without_noise

FALSE_ALARM = 1e-9
GROUPS = 1_500
OUTPUTS: dict[str, ColumnExpression] = {
    "ratio": dp.sum("x") / dp.count(),
    "rate": dp.count("y") / dp.count(),
    "gap": dp.count() - dp.count("y"),
    "mixed": dp.sum("x") - 10 * dp.count(),
    "net": dp.sum("x") - dp.count() - dp.count("y"),
    "product": dp.mean("x") * dp.count("y"),
    "risky": dp.count() / (dp.count() - dp.count("y")),
    "spread": dp.median("x") - dp.mean("x"),
    "root": (dp.count() - dp.count("y")).sqrt(),
    "near": (dp.count() - dp.count("y")).abs(),
    "logarithm": dp.sum("x").ln(),
    "whole": dp.mean("x").round(),
    "filled": dp.mean(dp.col("y")).coalesce(-1),
    "chosen": (dp.count("y") > 7).then(dp.mean("x"), otherwise=0 - dp.count()),
    "extreme": dp.mean("x").greatest(dp.count(), 3),
}
TIGHT = {"gap", "mixed"}  # of which the law is known: at most 97 % where noise is large


def _many_groups(places: int) -> Table:
    rows = np.arange(GROUPS * 12)
    x = (rows * 7919) % 51
    frame = pd.DataFrame(
        {
            "g": rows % GROUPS,
            "h": rows // GROUPS % places,
            "x": x,
            "y": np.where(x < 30, 1.0, np.nan),
        }
    )
    known = {"g": dp.Column.integer(keys=range(GROUPS)), "h": dp.Column.integer(keys=range(places))}
    known |= {"x": dp.Column.integer(0, 50), "y": dp.Column.integer(0, 1)}
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=10**6, delta=1e-6))
    return Table(frame, name="t", unit=dp.Unit.ROW, columns=known, ledger=ledger)


def _held(question: Question, noise: Noise, epsilon: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The numbers without noise, and a release."""
    truth = without_noise(question, epsilon=10_000.0).to_pandas()
    delta = 0 if noise is Noise.LAPLACE else 1e-6
    return truth, question.release(epsilon=epsilon, delta=delta, noise=noise).to_pandas()


def _count_held(truth: pd.Series, found: pd.DataFrame, name: str) -> int:
    low = found[f"{name}_low"].astype(float).fillna(-math.inf)
    high = found[f"{name}_high"].astype(float).fillna(math.inf)
    return int(((low <= truth) & (truth <= high)).sum())


@pytest.mark.parametrize(
    ("noise", "epsilon"),
    [
        (Noise.LAPLACE, 0.3),
        (Noise.GAUSSIAN, 30),
        pytest.param(Noise.GAUSSIAN, 0.3, marks=pytest.mark.long),
        pytest.param(Noise.LAPLACE, 30, marks=pytest.mark.long),
    ],
)
def test_thousands_of_computed_columns_hold(noise: Noise, epsilon: float) -> None:
    """False alarm: at most 1e-9 for each column and both bounds."""
    question = _many_groups(1).group_by("g").agg(**OUTPUTS)
    truth, found = _held(question, noise, epsilon)
    for name in OUTPUTS:
        known = truth[name].astype(float)  # of a quotient by 0 there is no truth
        held = _count_held(known, found, name) + int(known.isna().sum())
        assert binom.cdf(held, GROUPS, 0.95) > FALSE_ALARM, f"{name}: held {held}"
        if name in TIGHT and epsilon < 1:
            assert binom.sf(held - 1, GROUPS, 0.97) > FALSE_ALARM, f"{name}: held {held}"


@pytest.mark.parametrize(
    "noise", [Noise.LAPLACE, pytest.param(Noise.GAUSSIAN, marks=pytest.mark.long)]
)
def test_thousands_of_totals_hold(noise: Noise) -> None:
    asked: dict[str, UnnamedAggregate | ColumnExpression] = {
        "n": dp.count(),
        "s": dp.sum("x"),
        "m": dp.mean("x"),
        "v": aggregate(AggregateFunction.VAR_POP, "x"),
        "r": dp.count("y") / dp.count(),
        "d": dp.count() - dp.count("y"),
    }
    question = _many_groups(4).group_by("g", "h").agg(**asked).grouping_sets(("g", "h"), ("g",))
    totals = question.having(dp.col("h").is_null())
    truth, found = _held(totals, noise, 2)
    assert len(truth) == len(found) == GROUPS
    for name in asked:
        held = _count_held(truth[name], found, name)
        assert binom.cdf(held, GROUPS, 0.95) > FALSE_ALARM, f"{name}: held {held}"
        if name in ("n", "s", "d"):
            assert binom.sf(held - 1, GROUPS, 0.97) > FALSE_ALARM, f"{name}: held {held}"


SHARES = 300  # releases


@pytest.mark.parametrize(
    ("groups", "noise"),
    [
        (2, Noise.GAUSSIAN),
        (9, Noise.LAPLACE),
        pytest.param(2, Noise.LAPLACE, marks=pytest.mark.long),
        pytest.param(9, Noise.GAUSSIAN, marks=pytest.mark.long),
    ],
)
def test_hundreds_of_shares_hold(groups: int, noise: Noise) -> None:
    """The first group of each release by itself: groups share the sum's noise."""
    rows = np.arange(40 * groups)
    frame = pd.DataFrame({"g": rows % groups, "x": rows % 3})
    known = {"g": dp.Column.integer(keys=range(groups)), "x": dp.Column.integer(0, 2)}
    table = Table(frame, name="t", unit=dp.Unit.ROW, columns=known)
    question = table.group_by("g").agg(n=dp.share(dp.count()), s=50 * dp.share(dp.sum("x")))
    truth = without_noise(question, epsilon=10_000.0).to_pandas()
    price = QuestionPrice(0.4, 0 if noise is Noise.LAPLACE else 1e-6, noise=noise)
    priced = question.price(price, Fraction(95, 100))
    random = np.random.default_rng(groups)
    held = {"n": 0, "s": 0}
    for _ in range(SHARES):
        noisy = {
            one.name: _with_noise(without, priced.mechanisms[one.name], random)
            for one, without in zip(priced.plan.sums, _sums(frame, groups), strict=True)
        }
        found = pd.DataFrame(
            {k: v.to_pylist() for k, v in columns(priced, noisy, Fraction(95, 100)).items()}
        )
        assert ((found.n_low >= 0) & (found.n_high <= 1)).all()
        for name in held:
            held[name] += int(found[f"{name}_low"][0] <= truth[name][0] <= found[f"{name}_high"][0])
    for name, count in held.items():
        assert binom.cdf(count, SHARES, 0.95) > FALSE_ALARM, f"{name}: held {count}"


def _sums(frame: pd.DataFrame, groups: int) -> tuple[pd.Series, pd.Series]:
    return frame.groupby("g").size(), frame.groupby("g").x.sum()


def _with_noise(values: pd.Series, mechanism: object, random: np.random.Generator) -> list[int]:
    if isinstance(mechanism, dp.DiscreteLaplace):
        chance = 1 - math.exp(-1 / float(mechanism.scale))
        pair = random.geometric(chance, (2, len(values)))
        noise = pair[0] - pair[1]
    else:
        assert isinstance(mechanism, dp.Gaussian)
        noise = np.rint(random.normal(0, float(mechanism.stddev), len(values)))
    return [int(value + drawn) for value, drawn in zip(values, noise, strict=True)]
