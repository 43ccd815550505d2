"""Laws of one sum that together bound its delta at every epsilon, from above."""

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from discreet._arrays import FloatArray
from discreet.accounting.pld._composed_pair import composed_pld
from discreet.accounting.pld._composition import Composition
from discreet.accounting.pld._distribution import (
    composition_at,
    is_lopsided,
    without_remote,
)
from discreet.accounting.pld._dominating_pairs import Side
from discreet.accounting.pld._grid import NoFiniteMass
from discreet.accounting.pld._tilt import CoarsePld, CountedPairs, tilt_for_delta, tilt_for_epsilon
from discreet.accounting.pld._uncomposed import UncomposedPld
from discreet.errors import NoBound

_LEFT_OUT = 1e-8  # part of the least delta that a coarse estimate leaves out
_TOLERANCE = 3e-4
_EACH = 2  # each second level has a law of its own if laws take long
_EVERYTHING = UncomposedPld(Side.UPPER, np.zeros(0), np.zeros(0), 1.0)  # its delta is 1


@dataclass(frozen=True, slots=True)
class ProfileLaw:
    """Laws of one sum from above, for one direction, each near its own epsilon."""

    epsilons: tuple[float, ...]
    laws: tuple[Composition | UncomposedPld, ...]

    @staticmethod
    def of(pairs: CountedPairs, levels: Sequence[float], apart: float) -> "ProfileLaw":
        """Laws that suit these falling deltas, for epsilons that are at least ``apart`` from each
        other."""
        if not pairs:
            return ProfileLaw((), ())
        if len(pairs) == 1 and pairs[0][1] == 1:
            return ProfileLaw((0.0,), (UncomposedPld.of_pair(pairs[0][0], Side.UPPER),))
        least = levels[-1]
        pairs = without_remote(pairs, Side.UPPER, least * _LEFT_OUT)
        coarse = CoarsePld.of(pairs, min(least, 1e-12) * _LEFT_OUT)
        if coarse.is_too_large:
            return ProfileLaw((0.0,), (_EVERYTHING,))
        # 1. Tilts for the levels, and one near 0. Even closer to 0, compositions take long and gain
        # little.
        far = [tilt_for_delta(coarse, level) for level in levels]
        tilts = [tilt_for_epsilon(coarse, far[-1].epsilon / 16)]
        for tilt in far:
            if tilt.epsilon > tilts[-1].epsilon + apart:
                tilts.append(tilt)

        # 2. A law for each tilt; or, if no tilt suits the sum, slower ones for a few levels.
        if any(is_lopsided(coarse, one) for one in (tilt_for_epsilon(coarse, 0.0), *tilts)):
            with suppress(NoBound):
                few = [*levels[:-1:_EACH], least]
                whole = [composed_pld(pairs, Side.UPPER, level * _LEFT_OUT) for level in few]
                ends = (law.epsilon(level) for law, level in zip(whole, few, strict=True))
                return ProfileLaw(tuple(ends), tuple(whole))
        try:
            laws = [composition_at(coarse, tilt, _TOLERANCE, Side.UPPER) for tilt in tilts]
        except NoFiniteMass:
            return ProfileLaw((0.0,), (_EVERYTHING,))
        return ProfileLaw(tuple(tilt.epsilon for tilt in tilts), tuple(laws))

    def delta(self, epsilon: float) -> float:
        """The smaller delta of the laws just below and above this epsilon."""
        place = bisect_left(self.epsilons, epsilon)
        near = self.laws[max(0, place - 1) : place + 1]
        return min((law.delta(epsilon) for law in near), default=0.0)

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        """`delta` at each epsilon; hundreds take little longer than one for an uncomposed law."""
        if len(self.laws) == 1 and isinstance(law := self.laws[0], UncomposedPld):
            return law.deltas(epsilons)
        return np.array([self.delta(epsilon) for epsilon in epsilons.tolist()])
