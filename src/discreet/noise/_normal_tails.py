"""Sums of e^(-x^2 / (2 sigma^2)) over all integers x >= k, for any sigma, as balls.

For a small sigma the terms are added. For a large one the sum is an integral plus corrections at
its end (the midpoint form of the Euler-Maclaurin formula), with a bound on the remainder.
"""

import math
from fractions import Fraction

from flint import arb, ctx

from discreet._exact import ball

_LARGEST_ADDED = 16


def normal_tail(sigma: Fraction, k: int) -> arb:
    """The sum over all x with |x| >= k over the sum over all x, for k >= 1, at the precision in
    force."""
    if sigma <= _LARGEST_ADDED:
        return 2 * _added(sigma, k) / (1 + 2 * _added(sigma, 1))
    return 2 * _integrated(sigma, k) / _total(sigma)


def normal_variance(sigma: Fraction) -> arb:
    """The variance of the discrete Gaussian: a sum of terms below sigma = 2. From there on it is
    sigma^2, with relative error 10^-30 (Poisson's formula)."""
    if sigma >= 2:
        return ball(sigma**2)
    chances = [(-ball(k**2 / (2 * sigma**2))).exp() for k in range(40)]
    squares = sum((k**2 * chance for k, chance in enumerate(chances)), arb(0))
    return 2 * squares / (2 * sum(chances, arb(0)) - 1)


def _added(sigma: Fraction, k: int) -> arb:
    """Each term is the one before it times a ratio that decreases, so a geometric series bounds the
    remainder."""
    unit = ball(-1 / (2 * sigma**2))
    summand, ratio = (unit * k**2).exp(), (unit * (2 * k + 1)).exp()
    square, total = (2 * unit).exp(), arb(0)
    for _ in range(math.ceil(sigma * (math.isqrt(3 * ctx.prec // 2) + 1)) + 1):  # to 2^-prec
        total += summand
        summand *= ratio
        ratio *= square
    return total + (summand / (1 - ratio)).union(arb(0))


def _total(sigma: Fraction) -> arb:
    """The integral, times 1 + 2 (r + r^4 + r^9 + ...) with r = e^(-2 pi^2 sigma^2), by Poisson's
    formula."""
    ratio = (-2 * (arb.pi() * ball(sigma)) ** 2).exp()
    rest = (3 * ratio**4).union(arb(0))
    return ball(sigma) * (2 * arb.pi()).sqrt() * (1 + 2 * ratio + rest)


def _integrated(sigma: Fraction, k: int) -> arb:
    """The midpoint form of the Euler-Maclaurin formula.

    Let z = (k - 1/2) / sigma, bell = e^(-z^2 / 2), and He the Hermite polynomials. The sum is the
    integral from z on, minus B_2m(1/2) / (2m)! times the derivative of order n = 2m - 1 for each m.
    The derivative is -He_n(z) bell / sigma^n, and B_2m(1/2) = -(1 - 2^-n) B_2m.

    The remainder is at most 2 |B_2m| / (2m)! times the integral of the absolute value of the next
    derivative, since |B_2m(t) - B_2m(1/2)| <= 2 |B_2m|. Let H be He with all signs positive, and
    J_2m the integral of H_2m from z on. Then J_2m = H_n(z) bell + 2 n J_(2m - 2), since
    H_n' = n H_(n-1).
    """
    s, z = ball(sigma), ball((k - Fraction(1, 2)) / sigma)
    bell, left = (-z * z / 2).exp(), (arb.pi() / 2).sqrt() * (z / arb(2).sqrt()).erfc()
    total, weight = s * left, s
    even, odd, even_plus, odd_plus = arb(1), z, arb(1), z  # He and H of the orders n - 1 and n
    for n in range(1, 2 * max(4, ctx.prec // 16), 2):
        weight /= n * (n + 1) * s * s
        total -= (1 - arb(2) ** -n) * arb.bernoulli(n + 1) * weight * odd * bell
        left = odd_plus * bell + 2 * n * left
        even, even_plus = z * odd - n * even, z * odd_plus + n * even_plus
        odd, odd_plus = z * even - (n + 1) * odd, z * even_plus + (n + 1) * odd_plus
    left *= 2 * abs(arb.bernoulli(n + 1)) * weight
    return total + left.union(-left)
