"""Which genes are associated with a disease? Private top-k, then a private chi-square test of each.

The study is made up: 2 000 cases, 2 000 controls, 200 places in the genome (SNPs), each with 0, 1
or 2 copies of the rarer allele. At two of them, 17 and 101, it is more frequent among the cases.
"""

import numpy as np

from discreet import DiscreteLaplace, Ledger, Limit, Unit, release
from discreet.mechanisms import Bounded, Grid
from discreet.mechanisms.selection import TopK
from discreet.mechanisms.statistics import chi_square, chi_square_scores, contingency

PATIENT = Unit("patient_id")
CASES = CONTROLS = 2000
SNPS = 200
GENOTYPE = Grid(0, 2)


def main() -> None:
    """Choose the two SNPs with the largest chi-square, and test both on noisy tables."""
    study = made_up()
    columns = {"case": Grid(0, 1)} | {f"snp{i}": GENOTYPE for i in range(SNPS)}
    patients = Bounded.rows(lambda: study, columns=columns, unit=PATIENT, name="study")
    ledger = Ledger.in_memory(unit=PATIENT, limit=Limit(epsilon=3))

    scores = chi_square_scores(patients, "case", cases=CASES, controls=CONTROLS)
    top = TopK.for_epsilon(2, scores, range(SNPS), k=2)
    best = release(scores, top, ledger).value
    print(f"At epsilon 2, the SNPs with the largest chi-square scores are {best}.")

    for snp in map(int, best):
        pair = Bounded.rows(
            lambda snp=snp: study[:, [0, snp + 1]],
            columns={"case": Grid(0, 1), "copies": GENOTYPE},
            unit=PATIENT,
            name=f"case and SNP {snp}",
        )
        table = contingency(pair)
        noise = DiscreteLaplace.for_epsilon(0.5, table)
        answer = release(table, noise, ledger)
        found = chi_square(answer)
        print(f"\nSNP {snp}, each count within {answer.error()}:\n{answer.value}")
        print(f"chi-square {found.statistic:.1f}, p-value {found.p_value:.4f}, noise included")


def made_up() -> np.ndarray:
    """The study, shape (patient, status and SNPs)."""
    random = np.random.default_rng(1)
    frequencies = np.tile(random.uniform(0.1, 0.5, SNPS), (CASES + CONTROLS, 1))
    frequencies[:CASES, [17, 101]] += 0.12
    status = np.repeat([1, 0], [CASES, CONTROLS])
    return np.concatenate([status[:, np.newaxis], random.binomial(2, frequencies)], axis=1)


if __name__ == "__main__":
    main()
