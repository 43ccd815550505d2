"""The running sums of a filter after its charges, in whole units."""

from dataclasses import dataclass

from discreet.accounting.filter._sums import EXHAUSTED, Counting


@dataclass(frozen=True, slots=True)
class Spent:
    """The failures and the running sums of a filter, in whole units.

    ``alone`` is set if the first charge was beyond all sums: its cost by itself with all of delta,
    plus the pure epsilons since then. A sum that reaches ``EXHAUSTED`` stays there, beyond every
    bound.
    """

    failures: int
    sums: tuple[int, ...]
    alone: int | None = None

    def plus(self, added: Counting | None) -> "Spent":
        """These sums with these additions; ``alone`` stays as it is."""
        if added is None:
            return self
        pairs = zip(self.sums, added.sums, strict=True)
        sums = tuple(min(total + more, EXHAUSTED) for total, more in pairs)
        return Spent(self.failures + added.failures, sums, self.alone)

    def beside(self, reserved: Counting | None) -> "Spent":
        """The sums as if the reserved amount were spent, too."""
        after = self.plus(reserved)
        if reserved is None or self.alone is None:
            return after
        return Spent(after.failures, after.sums, min(self.alone + pure(reserved), EXHAUSTED))


def pure(added: Counting) -> int:
    """The addition to the pure epsilons where no failure may follow a first charge alone."""
    return EXHAUSTED if added.failures else added.sums[0]
