"""Attacks on whole releases: how much of the data can be rebuilt from many counts.

Each count is of the people in a known group whose secret bit is 1, such as the smokers of one
street. The groups are the rows of a matrix of 0 and 1, with a column for each person.
"""

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _html
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.audit._replay import Run
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, Door, Mechanism, Sensitivity, release_through
from discreet.noise import SecureBits

Groups = npt.NDArray[np.int64]
CountMechanism = Mechanism[Any, Any]  # Any: takes and returns integer arrays

_WEIGHT_TOLERANCE = 1e-9  # far above the rounding error of a weight, far below 1 / people


@dataclass(frozen=True, slots=True, repr=False)
class Reconstruction:
    """The secret bits that an attacker rebuilt from counts.

    Of ``people`` bits ``right`` are right, and the counts without noise determine those of
    ``certain`` people. ``common`` bits are right if everybody gets the more frequent bit, which
    the total alone shows. ``privacy_loss`` is the price of the noise, for one person whose bit
    changes, and ``None`` without noise.
    """

    people: int
    right: int
    common: int
    certain: int
    privacy_loss: PrivacyLoss | None

    _repr_html_ = _html.shown

    def to_json(self) -> str:
        """The numbers of bits and the privacy loss as JSON."""
        found: dict[str, object] = {
            name: getattr(self, name) for name in ("people", "right", "common", "certain")
        }
        loss = self.privacy_loss
        found["privacy_loss"] = None if loss is None else json.loads(loss.to_json())
        return json.dumps(found, indent=2)

    def __repr__(self) -> str:
        noise = "without noise"
        if self.privacy_loss is not None:
            epsilon = self.privacy_loss.epsilon()
            noise = (
                f"with noise of epsilon {_html.up(epsilon, 3)}"
                if math.isfinite(epsilon)
                else (f"with noise of {self.privacy_loss}")
            )
        return (
            f"{noise}, {self.right} of {self.people} bits are rebuilt; the more frequent bit alone "
            f"gives {self.common}"
        )


@dataclass(frozen=True, slots=True)
class Exposure:
    """A person whose bit is a weighted sum of the counts.

    If each count has independent noise of standard deviation s, the sum tells the bit with noise of
    standard deviation s times ``spread``. It uses ``counts`` of them.
    """

    person: int
    spread: float
    counts: int

    _repr_html_ = _html.shown


def group_matrix(*tables: Sequence[Hashable]) -> Groups:
    """The groups of some tables of counts. A table is given by the key of each person in it, in the
    same order in all tables; it has one count for each key.

    >>> group_matrix(["north", "north", "south"], ["old", "young", "young"]).tolist()
    [[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 1]]
    """
    if not tables or len({len(keys) for keys in tables}) != 1 or not tables[0]:
        raise InvalidArgument("tables: give each table one key for each person")
    rows = [[int(key == one) for key in keys] for keys in tables for one in dict.fromkeys(keys)]
    return np.array(rows, dtype=np.int64)


def exposed(groups: npt.ArrayLike) -> tuple[Exposure, ...]:
    """The people whose bit follows from the counts without noise, whatever the others' bits are.

    This generalizes differencing: two counts whose groups differ in one person tell that person's
    bit, with a spread of sqrt(2). For each person the weights of the smallest spread are found.
    """
    matrix = _checked_groups(groups)
    inverse = np.linalg.pinv(matrix.astype(float))  # (person, count)
    determined = inverse @ matrix  # the identity's rows where the counts determine a person
    return tuple(
        Exposure(
            person,
            float(np.linalg.norm(inverse[person])),
            int((np.abs(inverse[person]) > _WEIGHT_TOLERANCE).sum()),
        )
        for person in range(matrix.shape[1])
        if np.abs(determined[person] - np.eye(matrix.shape[1])[person]).max() < _WEIGHT_TOLERANCE
    )


def reconstruct(
    groups: npt.ArrayLike, secret: npt.ArrayLike, mechanism: CountMechanism | None = None
) -> Reconstruction:
    """Rebuild secret bits from their counts in groups, with a mechanism's noise or without noise.

    ``groups`` has shape (count, person) and ``secret`` has one bit for each person; both are 0 or
    1. Run it on made-up bits before you release counts: no ledger is charged. The attacker looks
    for shares from 0 to 1 whose counts are nearest to the noisy counts in the sum of absolute
    differences, and rounds them.

    Source: Dinur and Nissim 2003; the linear program of Dwork, McSherry and Talwar 2007.

    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> groups, secret = random.integers(0, 2, (80, 40)), random.integers(0, 2, 40)
    >>> reconstruct(groups, secret).right
    40
    """
    matrix = _checked_groups(groups)
    bits = np.asarray(secret)
    if bits.shape != matrix.shape[1:] or not np.isin(bits, (0, 1)).all():
        raise InvalidArgument(f"secret: give {matrix.shape[1]} bits, one for each person")
    answers, loss = matrix @ bits.astype(np.int64), None
    if mechanism is not None:
        answers, loss = _noisy(answers, matrix, mechanism)
    rebuilt = _nearest(matrix, answers) > 0.5
    ones = int(bits.sum())
    return Reconstruction(
        people=len(bits),
        right=int((rebuilt == bits.astype(bool)).sum()),
        common=max(ones, len(bits) - ones),
        certain=len(exposed(matrix)),
        privacy_loss=loss,
    )


def _noisy(
    answers: Groups, matrix: Groups, mechanism: CountMechanism
) -> tuple[Groups, PrivacyLoss]:
    """The counts with noise, through an insecure door. A bit moves its person's counts by 1."""
    most = int(matrix.sum(axis=0).max())
    bounded: Bounded[Any] = Bounded(
        lambda: answers,
        sensitivity=Sensitivity(l0=most, linf=1),
        unit=Unit.ROW,
        name="counts",
        shape=answers.shape,
    )
    run = Run()
    released = release_through(Door(run, SecureBits(), run), bounded, mechanism)
    return np.asarray(released.value), released.privacy_loss


def _nearest(matrix: Groups, answers: Groups) -> npt.NDArray[np.float64]:
    """Shares from 0 to 1 that minimize the sum of |counts - answers|."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    counts, people = matrix.shape
    each = eye_array(counts)
    # counts = answers + over - under, with over and under at least 0
    equal = hstack([csr_array(matrix), -each, each], format="csr")
    costs = np.concatenate([np.zeros(people), np.ones(2 * counts)])
    bounds = [(0, 1)] * people + [(0, None)] * (2 * counts)
    found = linprog(costs, A_eq=equal, b_eq=answers, bounds=bounds, method="highs")
    assert found.x is not None  # any shares are feasible, and costs are at least 0
    return found.x[:people]


def _checked_groups(groups: npt.ArrayLike) -> Groups:
    matrix = np.asarray(groups)
    if matrix.ndim != 2 or not matrix.size or not np.isin(matrix, (0, 1)).all():
        raise InvalidArgument(
            "groups: give a matrix of 0 and 1 with a row for each count and a column for each "
            "person, as from group_matrix"
        )
    return matrix.astype(np.int64)
