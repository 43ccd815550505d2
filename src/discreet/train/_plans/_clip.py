"""The part of clipping that a plan needs, without PyTorch."""

from typing import Protocol


class Clip(Protocol):
    """A way to clip contributions, with a bound on each of them."""

    @property
    def order(self) -> int:
        """The norm that is bounded: L1 or L2."""
        ...

    @property
    def sensitivity(self) -> float:
        """The largest norm of an example's whole contribution."""
        ...
