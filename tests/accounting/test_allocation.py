"""Steps that are allocated at random, against every outcome on small tables."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_poly

from discreet._budget import RenyiLimit
from discreet._exact import ball, float_up, fraction, precision
from discreet.accounting import (
    DiscreteLaplace,
    Filter,
    Gaussian,
    PoissonSampled,
    Pure,
    RandomAllocation,
    Term,
    _bounds,
)
from discreet.accounting._bounds import known
from discreet.accounting.pld._dominating_pairs import Side
from discreet.errors import NoBound
from tests.accounting.enumerated import Law, allocated, gaussian
from tests.accounting.holding import (
    SURE,
    assert_attained,
    assert_holds,
    hockey_stick,
    is_caught,
    renyi,
    shown,
)


class TestRandomAllocation:
    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    @pytest.mark.parametrize("steps", [1, 2, 3, 5])
    def test_every_allocation(self, steps: int, epsilon: float) -> None:
        term = RandomAllocation(Pure(epsilon), steps)
        laws = [
            Law(allocated(units + 1, steps, epsilon), allocated(units, steps, epsilon))
            for units in (0, 1, 2)
        ]
        assert_holds(term, laws)
        assert_attained(term, laws[:1])
        if steps > 1:
            assert is_caught(RandomAllocation(Pure(epsilon), 2 * steps), laws)

    @pytest.mark.parametrize("multiplier", [0.7, 2.0])
    def test_two_steps_of_normal_noise(self, multiplier: float) -> None:
        noise = gaussian(multiplier)
        with_unit, without = noise(1.0), noise(0.0)
        both = np.outer(with_unit, without) + np.outer(without, with_unit)
        real = Law(both.ravel() / 2, np.outer(without, without).ravel())
        term = RandomAllocation(Gaussian(multiplier), 2)
        assert_holds(term, [real])
        assert_attained(term, [real], slack=3e-3)
        assert is_caught(RandomAllocation(Gaussian(multiplier), 4), [real])

    @pytest.mark.parametrize("order", [2, 3, 5, 8])
    @pytest.mark.parametrize(
        ("multiplier", "steps"), [(1, 2), (1, 10), (2, 100), (Fraction(3, 2), 7)]
    )
    def test_renyi_by_the_multinomial_sum(
        self, multiplier: Fraction, steps: int, order: int
    ) -> None:
        """For a unit that goes and whole orders, the power of the mean can be multiplied out."""
        square = 1 / Fraction(multiplier) ** 2
        with precision(256):
            series = arb_poly(
                [
                    (ball(n * (n - 1) * square) / 2).exp() / math.factorial(n)
                    for n in range(order + 1)
                ]
            )
            power = arb_poly([1])
            for _ in range(steps):
                power = arb_poly((power * series).coeffs()[: order + 1])
            moment = power[order] * math.factorial(order) / arb(steps) ** order
            exact = moment.log() / (order - 1)
            found = ball(
                fraction(renyi(RandomAllocation(Gaussian(multiplier), steps), Fraction(order)))
            )
            assert found >= exact
            assert found <= exact * 1.02 + 1e-9

    @pytest.mark.parametrize("order", [Fraction(2), Fraction(5, 2), Fraction(4), Fraction(9)])
    @pytest.mark.parametrize("multiplier", [1, 2])
    def test_renyi_of_two_steps_by_the_trapezoid_rule(
        self, multiplier: int, order: Fraction
    ) -> None:
        """Both directions, with nothing left out: no failure is counted beside them."""
        term = RandomAllocation(Gaussian(multiplier), 2)
        exact = of_two_steps(multiplier, float(order))
        assert _bounds.failure_probability(1 * term) == 0
        assert max(exact) <= renyi(term, order) * (1 + SURE) + SURE
        assert renyi(term, order) <= min(1.001 * max(exact), renyi(Gaussian(multiplier), order))

    @pytest.mark.parametrize("order", [2, 9, 20, 40])
    @pytest.mark.parametrize("multiplier", [0.5, 1, 2])
    def test_renyi_of_each_direction(self, multiplier: float, order: int) -> None:
        """An added unit is bounded by itself. Its divergence is the smaller one, so the maximum
        of both hides it. At high orders, losses far out decide."""
        term = RandomAllocation(Gaussian(fraction(multiplier)), 2)
        removed, added = of_two_steps(multiplier, order)
        with precision(256):
            pairs = term._pairs()
            whole = Fraction(order)
            assert removed * (1 - SURE) <= float_up(term._removed(pairs[0], whole))
            assert added * (1 - SURE) <= float_up(term._added(pairs[-1], whole))

    @pytest.mark.parametrize("inner", [Gaussian(1), DiscreteLaplace(2), Pure(1)], ids=shown)
    def test_allocation_fails_no_more_than_one_step(self, inner: Term) -> None:
        """It fits limits that admit no failure, and costs less there than one step."""
        term = RandomAllocation(inner, 20)
        assert _bounds.failure_probability(1 * term) == 0
        filter_ = Filter.for_limit(RenyiLimit({2: 0.5, 4: 0.9}))
        spent = filter_.add(filter_.start, 1 * term)
        assert filter_.admits(spent)
        assert spent.sums < filter_.add(filter_.start, 1 * inner).sums

    @pytest.mark.parametrize(("multiplier", "steps"), [(1.0, 100), (0.5, 30), (3.0, 1000)])
    def test_by_drawing(self, multiplier: float, steps: int) -> None:
        """Both directions from draws of the mean ratio: five standard errors are a lot."""
        count = min(40_000, 3_000_000 // steps)
        draws = np.random.default_rng(20260101).standard_normal((count, steps))
        loss = draws / multiplier - 1 / (2 * multiplier**2)
        moved = loss.copy()
        moved[:, 0] += 1 / multiplier**2
        without, with_unit = (np.log(np.exp(each).mean(axis=1)) for each in (loss, moved))
        term = RandomAllocation(Gaussian(multiplier), steps)
        for epsilon in (0.0, 0.1, 0.5):
            for (upper, lower), seen in zip(
                zip(known(term.pairs(Side.UPPER)), known(term.pairs(Side.LOWER)), strict=True),
                (with_unit, -without),
                strict=True,
            ):
                gains = np.maximum(-np.expm1(epsilon - seen), 0.0)
                error = 5 * float(gains.std()) / math.sqrt(len(gains)) + 1e-5
                assert hockey_stick(upper, epsilon) >= float(gains.mean()) - error
                assert hockey_stick(lower, epsilon) <= float(gains.mean()) + error
                assert hockey_stick(lower, epsilon) <= hockey_stick(upper, epsilon)

    @pytest.mark.parametrize(("multiplier", "steps", "epochs"), [(1, 100, 5), (2, 30, 1)])
    def test_is_near_poisson_sampling(self, multiplier: int, steps: int, epochs: int) -> None:
        epoch = RandomAllocation(Gaussian(multiplier), steps)
        sampled = PoissonSampled(Gaussian(multiplier), Fraction(1, steps))
        interval = (epochs * epoch).interval(1e-5)
        assert interval.upper <= interval.lower * 1.005
        assert 0.8 < interval.upper / (epochs * steps * sampled).epsilon(1e-5) < 1.05

    def test_losses_beyond_floats_leave_the_simple_bounds(self) -> None:
        tiny = RandomAllocation(Gaussian(Fraction(1, 1000)), 10)
        with pytest.raises(NoBound, match="above 300"):
            known(tiny.pairs(Side.UPPER))
        assert tiny.failure_probability() == 0
        assert renyi(tiny, Fraction(2)) == renyi(Gaussian(Fraction(1, 1000)), Fraction(2))


def of_two_steps(multiplier: float, order: float) -> tuple[float, float]:
    """The divergences of two steps of normal noise for a removed and for an added unit, by the
    trapezoid rule."""
    reach = order / multiplier + 30  # the integrands peak within the first part
    x = np.linspace(-reach, reach, int(8 * reach)) * multiplier
    loss = x / multiplier**2 - 1 / (2 * multiplier**2)
    law = -((x / multiplier) ** 2) / 2 - math.log(multiplier * math.sqrt(2 * math.pi))
    ratio = np.logaddexp.outer(loss, loss) - math.log(2)
    both = np.add.outer(law, law)

    def divergence(power: float) -> float:
        logs = both + power * ratio
        most = float(logs.max())
        total = float(np.exp(logs - most).sum()) * (x[1] - x[0]) ** 2
        return (most + math.log(total)) / (order - 1)

    return divergence(order), divergence(1 - order)
