"""The noise that trees add to their sums, and its privacy loss."""

from collections.abc import Iterable

from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._discrete_gaussian import DiscreteGaussian
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._gaussian import Gaussian
from discreet.mechanisms._sensitivity import Sensitivity

TreeNoise = DiscreteLaplace | Gaussian | DiscreteGaussian
"""A mechanism that can make the sums of a tree private."""


def checked_noise(noise: object) -> TreeNoise:
    """The noise; raises if trees can't add it."""
    if isinstance(noise, DiscreteLaplace | Gaussian | DiscreteGaussian):
        return noise
    raise InvalidArgument(f"noise = {noise!r}: give DiscreteLaplace, Gaussian or DiscreteGaussian")


def summed_loss(noise: TreeNoise, levels: Iterable[Sensitivity], unit: Unit) -> PrivacyLoss:
    """The sum of the privacy losses of all levels, given by their sensitivities."""
    stated = (
        Bounded(_nothing, sensitivity=level, unit=unit, name="level", shape=(max(level.l0, 1),))
        for level in levels
    )
    return sum((noise.privacy_loss(level) for level in stated), PrivacyLoss(unit=unit))


def _nothing() -> int:
    return 0
