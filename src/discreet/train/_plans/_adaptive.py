"""A clip norm that moves to a private quantile of the contributions' norms.

Each step counts the contributions of its batch within the clip norm, with exact noise. The next
step's norm follows from that noisy count only, so that it is public. Sum and count are of one
sample, and a plan prices them together before the first step. Andrew et al. (2021),
"Differentially private learning with adaptive clipping".
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet import _checks
from discreet._exact import fraction, shown
from discreet.accounting import Gaussian
from discreet.errors import InvalidArgument
from discreet.noise import Bits, RoundedGaussianLaw

_FARTHEST = 20 * math.log(2)  # how far from its start a norm may go, in logarithms

COUNT_GAP = (
    "the count of contributions within the clip norm: one whose norm lies within round-off of it "
    "may count either way, whatever else is in the batch"
)


@dataclass(frozen=True, slots=True)
class NoisyShare:
    """A step's clip norm and the noisy share of contributions within it, both public.

    Steps are counted from 1.
    """

    step: int
    norm: float
    share: float


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Clips to an L2 norm of all parameters that moves to a ``quantile`` of the norms.

    It begins at ``start``. After each step it is multiplied by exp(rate (quantile - share)), where
    the noisy share of contributions within it has standard deviation ``stddev``, as a share of the
    plan's batch. It stays between a millionth of its start and a million times its start. The noise
    on the sum is the plan's multiplier times the norm in use.

    Guarantee: a step costs what its sum and its count cost together, on one sample. In the count
    each contribution is 1 or -1, so that a unit that comes or goes moves it by 1, and one that is
    replaced by 2.

    >>> Adaptive(stddev=0.05).term(batch=256, moves=1)
    accounting.Gaussian(multiplier=25.6)
    """

    quantile: float = 0.5
    start: float = 1.0
    rate: float = 0.2
    stddev: float = 0.05

    order: ClassVar[int] = 2

    def __post_init__(self) -> None:
        for name in ("quantile", "start", "rate", "stddev"):
            given = _checks.positive(**{name: getattr(self, name)})
            object.__setattr__(self, name, float(given))
        if not self.quantile < 1:
            raise InvalidArgument(f"quantile = {self.quantile}: give a share between 0 and 1")

    @property
    def sensitivity(self) -> float:
        """The largest norm of a contribution to the first step."""
        return self.start

    def scale(self, batch: int) -> Fraction:
        """Standard deviation of the noise on the number within the norm minus the number beyond."""
        return 2 * fraction(self.stddev) * batch

    def term(self, *, batch: int, moves: int) -> Gaussian:
        """The count's term, where a unit moves it by at most ``moves``."""
        return Gaussian(self.scale(batch) / moves)

    def share(self, within: int, beyond: int, batch: int, bits: Bits) -> float:
        """The noisy share of contributions within the norm, relative to the public batch size."""
        noise = int(RoundedGaussianLaw(self.scale(batch)).draws(bits, 1)[0])
        return 0.5 + (within - beyond + noise) / (2 * batch)

    def after(self, last: NoisyShare) -> float:
        """The norm of the next step."""
        far = math.log(last.norm / self.start) + self.rate * (self.quantile - last.share)
        return self.start * math.exp(min(max(far, -_FARTHEST), _FARTHEST))

    def explain(self, batch: int) -> str:
        """The clip and its noisy count, in words."""
        return (
            f"an L2 norm that starts at {self.start:g} and goes to where {self.quantile:g} of all "
            f"are within it; how many are is counted with noise of {shown(self.scale(batch) / 2)}"
        )


def read(norms: Any) -> list[NoisyShare]:  # Any: of a file
    """The counts of steps in a checkpoint."""
    try:
        found = [NoisyShare(int(step), float(norm), float(share)) for step, norm, share in norms]
    except (TypeError, ValueError):
        found = [NoisyShare(0, math.nan, math.nan)]
    if not all(0 < each.norm < math.inf and math.isfinite(each.share) for each in found):
        raise InvalidArgument(
            "resume: its clip norms are not positive; give what TrainingRun.checkpoint returns"
        )
    return found
