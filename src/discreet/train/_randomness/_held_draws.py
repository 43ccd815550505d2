"""A quantile of each law in place of random numbers, so that all examples get the same one.

A model may compare random numbers with a threshold, as masks and layer drop do. At a low and at a
high quantile, such a comparison has both results.
"""

import random
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from discreet.train._calls._arguments import Args, Keywords, named

MIDDLE, LOW, HIGH = 0.75, 2.0**-10, 1 - 2.0**-10
LEVELS = MIDDLE, LOW, HIGH

_WORDS = 624  # of 32 bits: the state of Python's and NumPy's generators (MT19937)

Held = Callable[[Args, Keywords, float], Any]  # Any: what the function returns


# Tensors of a given size, or like another one


def _uniform(share: float) -> float:
    return share


def _normal(share: float) -> float:
    return NormalDist().inv_cdf(share)


def _of_size(quantile: Callable[[float], float]) -> Held:
    """For functions that draw a tensor of a given size."""

    def held(args: Args, keywords: Keywords, share: float) -> Tensor:
        given = args[0] if args and not isinstance(args[0], int) else args
        size: Any = keywords.get("size", given)  # Any: numbers, as PyTorch takes them
        rest = {key: keywords[key] for key in keywords if key not in ("size", "generator")}
        kind = {"dtype": torch.get_default_dtype(), **rest}
        return torch.full(tuple(size), quantile(share), **kind)

    return held


def _like(quantile: Callable[[float], float]) -> Held:
    """For functions that draw a number for each entry of a tensor."""

    def held(args: Args, keywords: Keywords, share: float) -> Tensor:
        given = named("input", args, keywords)
        rest = {key: given[key] for key in given if key not in ("input", "generator")}
        return torch.full_like(given["input"], quantile(share), **rest)

    return held


def _between(low: float, high: float, share: float) -> int:
    """The quantile of a whole number from ``low`` to ``high - 1``."""
    return int(low + int(share * (high - low)))


def _integers(args: Args, keywords: Keywords, share: float) -> Tensor:
    has_low = len(args) > 2 or "low" in keywords or (len(args) == 2 and "size" in keywords)
    given = named("low high size" if has_low else "high size", args, keywords)
    rest = {key: given[key] for key in ("dtype", "device") if key in given}
    number = _between(given.get("low", 0), given["high"], share)
    return torch.full(tuple(given["size"]), number, **{"dtype": torch.int64, **rest})


def _integers_like(args: Args, keywords: Keywords, share: float) -> Tensor:
    has_low = len(args) > 2 or "low" in keywords
    given = named("input low high" if has_low else "input high", args, keywords)
    rest = {key: given[key] for key in ("dtype", "device") if key in given}
    number = _between(given.get("low", 0), given["high"], share)
    return torch.full_like(given["input"], number, **rest)


def _unmoved(args: Args, keywords: Keywords, _: float) -> Tensor:
    """0, 1, 2, ... in place of a random order."""
    rest = {key: keywords[key] for key in ("dtype", "device") if key in keywords}
    return torch.arange(args[0] if args else keywords["n"], **rest)


# Numbers whose law depends on a tensor


def _shifted(args: Args, keywords: Keywords, share: float) -> Tensor:
    """For `torch.normal`: a mean and a standard deviation, one of them a tensor, or a size."""
    given = named("mean std size", args, keywords)
    found: Any = given.get("std", 1.0) * _normal(share) + given.get("mean", 0.0)  # Any: or a float
    if isinstance(found, Tensor):
        return found
    rest = {key: value for key, value in given.items() if key not in ("mean", "std")}
    drawn: Tensor = _of_size(lambda _: found)((), rest, share)
    return drawn


def _coin(args: Args, keywords: Keywords, share: float) -> Tensor:
    given = named("input p", args, keywords)
    like: Tensor = given["input"]
    is_head = torch.as_tensor(given.get("p", like) > 1 - share, device=like.device)
    return is_head.to(like.dtype).expand(like.shape).clone()


def _count(args: Args, keywords: Keywords, share: float) -> Tensor:
    """For `torch.poisson`, by a normal law of the same mean and variance."""
    mean: Tensor = named("input", args, keywords)["input"]
    return (mean + _normal(share) * mean.sqrt()).round().clamp(min=0)


def _successes(args: Args, keywords: Keywords, share: float) -> Tensor:
    """For `torch.binomial`, as for `torch.poisson`."""
    given = named("count prob", args, keywords)
    number: Tensor = given["count"]
    mean = number * given["prob"]
    spread = (mean * (1 - given["prob"])).sqrt()
    found = (mean + _normal(share) * spread).round().clamp(min=0)
    return torch.minimum(found, number.expand_as(found))


def _places(args: Args, keywords: Keywords, share: float) -> Tensor:
    """For `multinomial`; without replacement, several places are the most likely ones."""
    given = named("input num_samples replacement", args, keywords)
    number, chances = given["num_samples"], given["input"]
    if number > 1 and not given.get("replacement"):
        most_likely: Tensor = chances.topk(number, -1).indices
        return most_likely
    passed = chances.cumsum(-1) <= share * chances.sum(-1, keepdim=True)
    place = passed.sum(-1, keepdim=True).clamp(max=chances.shape[-1] - 1)
    places: Tensor = place.expand(*chances.shape[:-1], number).clone()
    return places


def _gamma(args: Args, keywords: Keywords, share: float) -> Tensor:
    """By the approximation of Wilson and Hilferty (1931)."""
    shape: Tensor = named("input", args, keywords)["input"]
    root = 1 - 1 / (9 * shape) + _normal(share) / (3 * shape.sqrt())
    return shape * root.clamp(min=0.01) ** 3


def _shares(args: Args, keywords: Keywords, share: float) -> Tensor:
    """Shares of a Dirichlet law: at a high level the first one is large, at a low one the last."""
    weights: Tensor = named("input", args, keywords)["input"]
    places = torch.arange(weights.shape[-1], device=weights.device)
    return torch.softmax(weights.log() - _normal(share) * places, -1)


def _gumbel(args: Args, keywords: Keywords, _: float) -> Tensor:
    """`F.gumbel_softmax` with constant noise, which changes nothing."""
    given = named("logits tau hard eps dim", args, keywords)
    along = given.get("dim", -1)
    soft = torch.softmax(given["logits"] / given.get("tau", 1), along)
    if not given.get("hard", False):
        return soft
    most = torch.zeros_like(soft).scatter_(along, soft.argmax(along, keepdim=True), 1.0)
    return most - soft.detach() + soft


# Methods that draw into a tensor


def _into(order: str, quantile: Callable[..., float], *usual: float) -> Held:
    """By the names of the law's parameters, their usual values, and its quantile."""

    def filled(args: Args, keywords: Keywords, share: float) -> Tensor:
        given = named(f"input {order}", args, keywords)
        several = zip(order.split(), usual, strict=True)
        found = quantile(share, *(given.get(name, value) for name, value in several))
        result: Tensor = given["input"].fill_(found)
        return result

    return filled


def _coin_into(args: Args, keywords: Keywords, share: float) -> Tensor:
    given = named("input p", args, keywords)
    chance = given.get("p", 0.5)
    if not isinstance(chance, Tensor):
        chance = torch.tensor(chance)
    result: Tensor = given["input"].copy_(chance > 1 - share)
    return result


def _random_into(args: Args, keywords: Keywords, share: float) -> Tensor:
    """``random_()``, ``random_(to)`` or ``random_(from, to)``."""
    given = named("input to" if len(args) == 2 else "input from to", args, keywords)
    result: Tensor = given["input"].fill_(
        _between(given.get("from") or 0, given.get("to") or 128, share)
    )
    return result


def _exponential(share: float, rate: float) -> float:
    return float(-np.log1p(-share) / rate)


def _waited(share: float, chance: float) -> float:
    return float(max(1.0, np.ceil(np.log1p(-share) / np.log1p(-chance)))) if chance < 1 else 1.0


HELD: dict[Any, Held] = {  # Any: functions
    torch.randn_like: _like(_normal),
    torch.rand_like: _like(_uniform),
    torch.randint_like: _integers_like,
    torch.randn: _of_size(_normal),
    torch.rand: _of_size(_uniform),
    torch.randint: _integers,
    torch.randperm: _unmoved,
    Tensor.normal_: _into("mean std", lambda s, mean, std: mean + std * _normal(s), 0.0, 1.0),
    Tensor.log_normal_: _into(
        "mean std", lambda s, mean, std: float(np.exp(mean + std * _normal(s))), 1.0, 2.0
    ),
    Tensor.uniform_: _into("from to", lambda s, low, high: low + s * (high - low), 0.0, 1.0),
    Tensor.cauchy_: _into(
        "median sigma", lambda s, m, width: m + width * float(np.tan(np.pi * (s - 0.5))), 0.0, 1.0
    ),
    Tensor.exponential_: _into("lambd", _exponential, 1.0),
    Tensor.geometric_: _into("p", _waited, 0.5),
    Tensor.random_: _random_into,
    **dict.fromkeys((torch.bernoulli, Tensor.bernoulli), _coin),
    Tensor.bernoulli_: _coin_into,
    torch.normal: _shifted,
    torch.poisson: _count,
    torch.binomial: _successes,
    **dict.fromkeys((torch.multinomial, Tensor.multinomial), _places),
    torch._standard_gamma: _gamma,  # noqa: SLF001  torch.distributions calls it
    torch._sample_dirichlet: _shares,  # noqa: SLF001  as above
    nn.functional.gumbel_softmax: _gumbel,
}


# Python's and NumPy's generators


def set_numbers(share: float) -> None:
    """Set the global generators of Python and NumPy, so that the next 312 uniform numbers are at
    this level."""
    words = [_state_word(int(share * 2**32))] * _WORDS
    random.setstate((3, (*words, 0), None))
    _set_numpy({"key": np.array(words, np.uint32), "pos": 0})


def _state_word(output: int) -> int:
    """The word of an MT19937 state that gives this output: tempering undone (Matsumoto and
    Nishimura 1998, section 2.1)."""
    third = output ^ output >> 18
    second = third ^ third << 15 & 0xEFC60000
    first = second
    for _ in range(4):  # each turn finds 7 more bits
        first = second ^ first << 7 & 0x9D2C5680
    word = first
    for _ in range(2):  # 11 more bits
        word = first ^ word >> 11
    return word


def seed_numbers(seed: int) -> None:
    """Seed the global generators of Python and NumPy."""
    random.seed(seed)
    _set_numpy(_numpy_state(seed))


@lru_cache(maxsize=8)  # a few seeds come again and again
def _numpy_state(seed: int) -> Any:  # Any: NumPy's dictionary
    return np.random.MT19937(seed).state["state"]


def numbers_states() -> tuple[object, object]:
    """The states of the global generators of Python and NumPy."""
    found = np.random.get_state(legacy=False)
    parts = found["state"].items()
    # arrays have no equality of their own
    held = {name: bytes(part) if isinstance(part, np.ndarray) else part for name, part in parts}
    return random.getstate(), {**found, "state": held}


def _set_numpy(state: object) -> None:
    kind = {"bit_generator": "MT19937", "has_gauss": 0, "gauss": 0.0}  # no normal number waits
    np.random.set_state({**kind, "state": state})
