"""Random numbers are held at several quantiles, so that a check sees both sides of a threshold.

Masks, layer drop and coins compare a number with a threshold. A branch that mixes examples is
refused before the charge, however rare it is among quantiles from 1/1000 to 999/1000.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import check
from discreet.train._randomness._held_draws import (
    HELD,
    HIGH,
    LEVELS,
    LOW,
    numbers_states,
    seed_numbers,
    set_numbers,
)
from tests.train.layers import WIDTH, Layers, Use, of, summed

SAMPLE = 20_000
HALF = torch.full((SAMPLE,), 0.3)
CHANCES = torch.tensor([0.2, 0.0, 0.7, 0.1])
EMPTY = torch.zeros(SAMPLE)
ARGUMENTS: dict[Any, list[tuple[Any, ...]]] = {  # Any: functions, and what they take
    torch.rand: [(SAMPLE,), (2, SAMPLE // 2)],
    torch.randn: [(SAMPLE,)],
    torch.rand_like: [(HALF,)],
    torch.randn_like: [(HALF,)],
    torch.randint: [(7, (SAMPLE,)), (-3, 9, (SAMPLE,))],
    torch.randint_like: [(HALF, 7), (HALF, -3, 9)],
    torch.bernoulli: [(HALF,), (EMPTY,), (EMPTY + 1,), (EMPTY, 0.02)],
    Tensor.bernoulli: [(HALF,), (EMPTY, 0.98)],
    torch.normal: [(HALF, 2.0), (3.0, HALF), (HALF, HALF), (3.0, 0.1, (SAMPLE,))],
    torch.poisson: [(HALF,), (HALF * 50,)],
    torch.binomial: [(EMPTY + 9, HALF), (EMPTY + 1, HALF)],
    torch.multinomial: [(CHANCES.expand(SAMPLE, -1), 1), (CHANCES, SAMPLE, True)],
    Tensor.multinomial: [(torch.tensor([1.0, 1.0]), SAMPLE, True)],
    torch._standard_gamma: [(HALF,), (HALF * 20,)],
    Tensor.normal_: [(EMPTY,), (EMPTY, 3.0, 0.1)],
    Tensor.log_normal_: [(EMPTY,)],
    Tensor.uniform_: [(EMPTY,), (EMPTY, 4.0, 5.0)],
    Tensor.cauchy_: [(EMPTY,)],
    Tensor.exponential_: [(EMPTY,), (EMPTY, 3.0)],
    Tensor.geometric_: [(EMPTY, 0.5), (EMPTY, 0.02)],
    Tensor.random_: [(EMPTY, 9), (EMPTY, 3, 9), (EMPTY, 2)],
    Tensor.bernoulli_: [(EMPTY,), (EMPTY, 0.02), (EMPTY, HALF)],
}
NO_QUANTILE = {  # several numbers together, or noise that changes no order
    *(torch.randperm, torch._sample_dirichlet, nn.functional.gumbel_softmax),
}


def drawn(function: Any, args: tuple[Any, ...]) -> Tensor:
    """A sample of the law, of at least this size."""
    if function.__name__[-1] == "_":
        args = (args[0].clone(), *args[1:])
    found: Tensor = function(*args)
    return found.flatten().double()


@pytest.mark.parametrize("function", [*ARGUMENTS], ids=lambda one: one.__name__)
def test_levels_are_quantiles(function: Any) -> None:
    """About 20 of 20 000 numbers pass each level; more than 80, with probability below 1e-20."""
    torch.manual_seed(0)
    for args in ARGUMENTS[function]:
        sample = drawn(function, args)
        copied = (args[0].clone(), *args[1:]) if function.__name__[-1] == "_" else args
        middle, low, high = (HELD[function](copied, {}, one).clone() for one in LEVELS)
        assert middle.shape == low.shape == high.shape
        for held in (middle, low, high):
            assert (held.double() == held.double().flatten()[0]).all()  # the same for all
        bounds = [float(one.flatten()[0]) for one in (low, middle, high)]
        assert bounds == sorted(bounds)
        approximate = function in (torch.poisson, torch.binomial, torch._standard_gamma)
        beyond = 400 if approximate else 80
        assert int((sample < bounds[0]).sum()) <= beyond
        assert int((sample > bounds[2]).sum()) <= beyond
        values = {*sample.tolist()}
        seen = {float(one.double().flatten()[0]) for one in (middle, low, high)}
        if len(values) == 2 and 400 < sample.mean() * SAMPLE < SAMPLE - 400:
            assert seen == values  # both sides of a coin


def test_each_held_function_is_tested() -> None:
    assert {*ARGUMENTS} | NO_QUANTILE == {*HELD}


@pytest.mark.parametrize("level", LEVELS)
def test_numbers_of_python_and_numpy_are_at_a_level(level: float) -> None:
    before = random.getstate(), np.random.get_state()
    try:
        set_numbers(level)
        assert all(abs(random.random() - level) < 1e-8 for _ in range(312))
        assert np.abs(np.random.random(312) - level).max() < 1e-8
        assert len({random.random() for _ in range(20_000)}) > 50  # a loop that waits goes on
        assert len({*np.random.random(20_000)}) > 50
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


@pytest.mark.parametrize(
    "draw", [random.random, np.random.rand, np.random.randn], ids=["Python", "uniform", "normal"]
)
def test_one_number_changes_the_states(draw: Callable[[], float]) -> None:
    """A second normal number of NumPy comes from no new word, only from the pair's first."""
    before = random.getstate(), np.random.get_state()
    try:
        seed_numbers(5)
        seen = [numbers_states()]
        for _ in range(3):
            draw()
            seen.append(numbers_states())
        assert all(one != two for n, one in enumerate(seen) for two in seen[:n])
        seed_numbers(5)
        assert numbers_states() == seen[0]
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


COINS: dict[str, Callable[[], float]] = {
    "rand": lambda: torch.rand(1).item(),
    "a float": lambda: float(torch.empty(()).uniform_()),
    "a distribution": lambda: torch.distributions.Uniform(0.0, 1.0).sample().item(),
    "random": random.random,
    "random, uniform": lambda: random.uniform(0, 1),
    "numpy": lambda: float(np.random.rand()),
    "numpy, uniform": lambda: float(np.random.uniform(0, 1)),
}
SIDES: dict[str, Callable[[float], bool]] = {
    "rarely": lambda u: u < 0.002,
    "in the middle": lambda u: u > 0.5,
    "at the end": lambda u: u > 0.998,
}


def mixed(m: Layers, x: Tensor) -> Tensor:
    """By values that no rule sees."""
    return summed(m.layer(x - x.mean(0)))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("coin", COINS)
def test_a_branch_that_mixes_examples_is_refused(coin: str, side: str) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        return mixed(m, x) if SIDES[side](COINS[coin]()) else summed(m.layer(x))

    model = Layers(use).double()
    with pytest.raises(Refused, match="mean over examples"):
        check(model, model, of(5, WIDTH))


@pytest.mark.parametrize("side", ["rarely", "at the end"])
@pytest.mark.parametrize("coin", ["rand", "random", "numpy"])
def test_two_branches_train_if_neither_mixes(coin: str, side: str) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        return summed(m.layer(x)) if SIDES[side](COINS[coin]()) else summed(m.layer(x)) * 0

    model = Layers(use).double()
    check(model, model, of(5, WIDTH))


@pytest.mark.parametrize("function", [random.random, lambda: float(np.random.rand())])
@pytest.mark.parametrize("threshold", [0.002, 0.5, 1.0])
def test_numbers_of_python_for_each_example_are_refused(
    function: Callable[[], float], threshold: float
) -> None:
    """With one more example, those behind it would get others' numbers."""

    def use(m: Layers, x: Tensor) -> Tensor:
        if function() >= threshold:
            return summed(m.layer(x))
        numbers = [function() for _ in x]
        rows = [one * a * b for one, a, b in zip(x, numbers, reversed(numbers), strict=True)]
        return summed(m.layer(torch.stack(rows)))

    model = Layers(use).double()
    with pytest.raises(Refused, match="for each example"):
        check(model, model, of(5, WIDTH))


def waits(draw: Callable[[], float]) -> Use:
    """Draws until a number falls into a small interval."""

    def use(m: Layers, x: Tensor) -> Tensor:
        found = draw()
        while not 0.3 < found < 0.35:
            found = draw()
        return summed(m.layer(x)) * found

    return use


@pytest.mark.parametrize("coin", ["rand", "random", "numpy"])
def test_a_loop_that_waits_for_a_number_ends(coin: str) -> None:
    model = Layers(waits(COINS[coin])).double()
    check(model, model, of(5, WIDTH))


INITIALIZERS: dict[str, Callable[[Tensor], Tensor]] = {
    "normal": lambda one: nn.init.normal_(one, std=0.1),
    "uniform": lambda one: nn.init.uniform_(one, -1.0, 1.0),
    "constant": lambda one: nn.init.constant_(one, 0.3),
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers_train_in_a_forward_pass(name: str) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        new = INITIALIZERS[name](torch.empty(len(x), WIDTH, dtype=x.dtype))
        return summed(m.layer(x + new + INITIALIZERS[name](torch.empty_like(x))))

    model = Layers(use).double()
    check(model, model, of(5, WIDTH))


def test_initializers_have_the_same_law_for_each_example() -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        own = nn.init.normal_(torch.empty(len(x), dtype=x.dtype))
        return summed(m.layer(x)) * own * own.flip(0)

    model = Layers(use).double()
    with pytest.raises(Refused, match="losses"):
        check(model, model, of(5, WIDTH))


@pytest.mark.parametrize("make", [torch.empty_like, lambda x: torch.empty(len(x), WIDTH)])
def test_truncated_normal_numbers_are_refused_by_name(make: Callable[[Tensor], Tensor]) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        return summed(m.layer(x + nn.init.trunc_normal_(make(x))))

    model = Layers(use).double()
    with pytest.raises(Refused, match=r"trunc_normal_ draws until.*clamp"):
        check(model, model, of(5, WIDTH))


def test_levels_are_on_both_sides_of_usual_thresholds() -> None:
    assert min(LEVELS) == LOW < 0.001 < 0.999 < HIGH == max(LEVELS)


def test_two_noisy_views_are_refused_for_their_reason() -> None:
    """Both views are equal where draws are held, so each gradient is a rounding error."""

    def views(m: Layers, x: Tensor) -> Tensor:
        first, second = (m.layer(x + 0.1 * torch.randn_like(x)) for _ in range(2))
        return -nn.functional.cosine_similarity(first, second)

    model = Layers(views)
    with pytest.raises(Refused, match="two noisy views of an example are equal here"):
        check(model, model, of(5, WIDTH).float())
