"""Half-widths of weighted sums of many independent Laplace noises, by their Fourier transform.

Let X be the sum, phi its characteristic function, which is real and falls, and d > 0. The square
wave with period 4 pi / d has the series of sin((k + 1/2) d y) / (pi (k + 1/2)) over k = 0, 1, ...,
which is 1/2 for 0 < y < 2 pi / d and odd. Its mean at y = q - X is

    S(q)  =  sum over k of  phi((k + 1/2) d) sin((k + 1/2) d q) / (pi (k + 1/2)).

So P(|X| > q) <= 1 - 2 S(q) + 2 P(|X| > 2 pi / d - q) (Davies 1973). The last term is bounded by
Chernoff's inequality. If the largest scale is 1, then phi(t) <= phi(T) (1 + T^2) / (1 + t^2) for
t >= T, so the terms beyond T = (K + 1/2) d, with K large, add up to less than phi(T).
"""

import math

import numpy as np

from discreet._arrays import FloatArray
from discreet._bisection import halved

_TERMS = 8192
_HALVINGS = 48
_ALIAS = 1e-4  # the share of the risk that the period may take
_ROUNDING = 1e-11
_LEAST_RISK = 1e-5  # below it, the terms beyond the last one would matter
_SLOPES = 1 - np.geomspace(1e-6, 1, 400, endpoint=False)


def laplace_half_width(scales: FloatArray, outside: float) -> float:
    """A number t with P(|X_1 + X_2 + ...| > t) <= outside, for independent Laplace X of these
    scales. It is nearly the smallest one, unless the risk is below 1e-5: then it is Chernoff's."""
    largest = float(scales.max())
    if largest == 0:
        return 0.0
    shares = scales / largest
    high = _chernoff(shares, outside)
    if outside < _LEAST_RISK:
        return high * largest
    # 1. a period so long that few values lie beyond it
    step = 2 * math.pi / (high + _chernoff(shares, outside * _ALIAS / 2))
    places = np.arange(_TERMS) + 0.5
    times = places * step
    # 2. the weights of the sines, and what the sum may be off
    chances = np.exp(-np.log1p(np.square(np.outer(shares, times))).sum(axis=0))
    weights = chances / (math.pi * places)
    spare = outside * _ALIAS + 2 * float(chances[-1]) + _ROUNDING
    # 3. the smallest number whose bound is good enough
    _, enough = halved(
        lambda width: 1 - 2 * float(weights @ np.sin(times * width)) + spare > outside,
        0.0,
        high,
        _HALVINGS,
    )
    return enough * largest


def _chernoff(shares: FloatArray, outside: float) -> float:
    """Chernoff's bound, the smallest of many slopes. The largest share is 1."""
    logarithms = -np.log1p(-np.square(np.outer(shares, _SLOPES))).sum(axis=0)
    return float(np.min((math.log(2 / outside) + logarithms) / _SLOPES)) * (1 + 1e-9)
