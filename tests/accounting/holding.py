"""Terms beside the laws of what they price: none less private, some as bad, cheaper ones caught."""

from fractions import Fraction

import numpy as np

from discreet._exact import float_up, precision
from discreet.accounting import Term, _bounds
from discreet.accounting._bounds import known
from discreet.accounting.pld._dominating_pairs import Pair
from tests.accounting.enumerated import Law

EPSILONS = [0.0, 0.05, 0.2, 0.5, 1.0, 2.0]
ORDERS = [Fraction(3, 2), Fraction(2), Fraction(3), Fraction(8)]
SURE = 1e-9  # of sums of floats, and of cells far out


def assert_holds(term: Term, laws: list[Law]) -> None:
    """No law is less private than what is stated of the term, nor are two of them."""
    for epsilon in EPSILONS:
        once, twice = (1 * term).delta(epsilon), (2 * term).delta(epsilon)
        for real in laws:
            assert real.delta(epsilon) <= once + SURE
            if len(real.p) < 100:
                assert real.and_again(real).delta(epsilon) <= twice + SURE
    if not _bounds.failure_probability(1 * term):
        for order in ORDERS:
            bound = renyi(term, order)
            assert all(real.renyi(float(order)) <= bound + SURE for real in laws)


def is_caught(cheaper: Term, laws: list[Law]) -> bool:
    """Whether some law is less private than what is stated of the term."""
    return any(
        real.delta(epsilon) > (1 * cheaper).delta(epsilon) + SURE
        for epsilon in EPSILONS
        for real in laws
    )


def assert_attained(term: Term, laws: list[Law], slack: float = SURE) -> None:
    """Some law has the lower ends' epsilons."""
    for delta in (0.05, 0.002):
        lower = (1 * term).interval(delta).lower
        assert lower == 0 or max(real.delta(lower) for real in laws) >= delta - slack


def renyi(term: Term, order: Fraction) -> float:
    """The bound at this order, as a float."""
    with precision(256):
        return float_up(known(term.renyi(order)))


def hockey_stick(pair: Pair, epsilon: float) -> float:
    """Of a pair of atoms only."""
    finite = np.isfinite(pair.atoms.loss)
    loss, p = pair.atoms.loss[finite], pair.atoms.p[finite]
    gains = p * np.maximum(-np.expm1(epsilon - loss), 0.0)
    return float(gains.sum() + pair.atoms.p[pair.atoms.loss == np.inf].sum())


def shown(value: object) -> str | None:
    """How a test names a term."""
    return repr(value) if isinstance(value, Term) else None
