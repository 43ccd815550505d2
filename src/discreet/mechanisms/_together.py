"""One release of several parts, each by its own mechanism."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet import _checks
from discreet._frozen import FrozenMapping
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded, stated
from discreet.mechanisms._mechanism import Mechanism, checked_mechanism
from discreet.noise import Bits


@dataclass(frozen=True, slots=True)
class Together:
    """Releases the named parts of one `Bounded`, each by its own mechanism with fresh noise.

    Guarantee: the sum of the mechanisms' privacy losses, by composition.
    """

    mechanisms: Mapping[str, Mechanism[Any, Any]]  # Any: for each part its own

    def __post_init__(self) -> None:
        """Store an immutable copy, so that it can't change between the privacy loss and the
        draw."""
        given = dict(self.mechanisms.items()) if isinstance(self.mechanisms, Mapping) else {}
        if not given:
            raise InvalidArgument("mechanisms: give a mapping from each part's name to a mechanism")
        for name, mechanism in given.items():
            checked_mechanism(mechanism, f"mechanisms[{_checks.text(mechanisms=name)!r}]")
        object.__setattr__(self, "mechanisms", FrozenMapping(dict(sorted(given.items()))))

    def privacy_loss(self, bounded: Bounded[Mapping[str, Any]]) -> PrivacyLoss:
        """The sum over the parts; raises unless each part has exactly one mechanism."""
        names = {part.name for part in stated(bounded).parts}
        if not bounded.is_joint or names != set(self.mechanisms):
            raise InvalidArgument(
                f"Together has mechanisms for {sorted(self.mechanisms)}, {bounded.name!r} has the "
                f"parts {sorted(names)}: give one for each"
            )
        losses = (m.privacy_loss(bounded.only(name)) for name, m in self.mechanisms.items())
        return sum(losses, PrivacyLoss(unit=bounded.unit))

    def sample(self, value: Mapping[str, Any], bits: Bits) -> Mapping[str, Any]:
        """Each part's value with its own noise, in the order of the parts."""
        return {name: self.mechanisms[name].sample(part, bits) for name, part in value.items()}
