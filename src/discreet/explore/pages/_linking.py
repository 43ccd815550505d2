"""Linking: ratings without names, and a person whose few public ratings find her row again."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet._budget import Limit
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.explore._page import (
    Control,
    ControlValues,
    Experiment,
    ExperimentOutcome,
    Guess,
    NoisyNumber,
    Page,
    Preset,
    View,
)
from discreet.explore.pages._texts import (
    ABOUT_EPSILON,
    at_most_percent,
    meaning,
    no_meaning,
    percent,
    program,
)
from discreet.mechanisms import Bounded, DiscreteLaplace, IntegerArray, release
from discreet.plots import Axis, Chart, RuleLine, Series

BoolArray = npt.NDArray[np.bool_]

_PERSON = Unit("person")
_PEOPLE, _EACH, _FILMS = 500, 8, 20
_COUNTED = _EACH + 1  # counts that a person adds 1 to, with the secret one
_KNOWN = (0, 1, 2, 3, 4, 5, 6)

_ABOUT, _ROWS = "about the secret rating", "Rows without names"
ROWS, COUNTS = "rows without names", "noisy counts"

_CODE_ROWS = """
import numpy as np

# 500 made-up people rate 8 of 20 films; half of them have rated a film that they keep secret
chance = np.random.default_rng(4)
popular = 1 / np.arange(1, 21) ** 0.6
stars = np.zeros((500, 20), np.int64)
for row in stars:
    films = chance.choice(20, 8, replace=False, p=popular / popular.sum())
    row[films] = chance.choice([1, 2, 3, 4, 5], 8, p=[0.05, 0.1, 0.25, 0.35, 0.25])
secret = np.arange(500) % 2

# each is sought by {known} of her ratings; a guess is what most of the rows that agree say
order = np.random.default_rng(5)
alone, right = [], []
for row in stars:
    known = order.permutation(np.flatnonzero(row))[:{known}]
    agree = (stars[:, known] == row[known]).all(axis=1)
    share = secret[agree].mean()
    alone.append(agree.sum() == 1)
    right.append(max(share, 1 - share))
alone, right = float(np.mean(alone)), float(np.mean(right))
"""
_CODE_COUNTS = """
import numpy as np
import discreet as dp

# how many people rated each of 20 films, and the secret one; a person adds to 9 of the counts
counts = dp.Bounded(
    lambda: np.zeros(21, np.int64),
    sensitivity=9,
    unit=dp.Unit("person"),
    name="ratings by film",
    shape=(21,),
)
mechanism = dp.DiscreteLaplace.for_epsilon({epsilon}, counts)
error = mechanism.error(0.95)  # of one count

# the secret rating changes one count, by 1
one = dp.Bounded(lambda: 0, sensitivity=1, unit=dp.Unit("person"), name="the secret count")
loss = mechanism.privacy_loss(one)
bound = (1 + loss.advantage()) / 2  # for every guess about the secret rating
present = (1 + (9 * loss).advantage()) / 2  # whether she is in the data: nine counts, by 1 each
"""


def view(values: ControlValues) -> View:
    """How many people can be found, and the bound for counts."""
    known, epsilon = values["known"], values["epsilon"]
    alone, right = _guesses(known)
    bound, present, error = _counted(epsilon)
    is_rows = values["publish"] == ROWS
    if is_rows:
        says = (
            _agreement(known, alone)
            + f" A guess about the secret is right {percent(right)} of the time."
        )
        figures, code = {"alone": alone, "right": right}, program(_CODE_ROWS, known=known)
    else:
        says = (
            "No row is published, only how many people rated each film, to within "
            f"{error:,} in 95 % of cases. Whatever the attacker knows, even all other ratings: a "
            f"guess about the secret one is right at most {at_most_percent(bound)} of the time."
        )
        figures = {"bound": bound, "present": present, "error": error}
        code = program(_CODE_COUNTS, epsilon=epsilon)
    return View(
        says=says,
        meaning=no_meaning(_ABOUT, _ROWS) if is_rows else _meaning(epsilon),
        charts=(_chart(known if is_rows else None, bound),),
        heads=(
            "ratings known",
            "one row agrees",
            "right with rows",
            "right with counts, at most",
        ),
        rows=tuple(
            (
                str(count),
                percent(_guesses(count)[0]),
                percent(_guesses(count)[1]),
                at_most_percent(bound),
            )
            for count in _KNOWN
        ),
        figures=figures,
        code=code,
        idle=() if is_rows else ("known",),
    )


def _agreement(known: int, alone: float) -> str:
    ratings = {0: "no rating", 1: "1 rating"}.get(known, f"{known} ratings")
    start = f"An attacker who knows {ratings} of a person finds"
    if not alone:
        return f"{start} several rows that agree, and can’t tell which one is hers."
    return (
        f"{start} one row only that agrees, in {percent(alone)} of the cases. This row holds all "
        "her other ratings, also the secret one."
    )


def _chart(known: int | None, bound: float) -> Chart:
    """With a mark at the ratings that the attacker knows, if they matter."""
    alone, right = zip(*map(_guesses, _KNOWN), strict=True)
    lines = (
        ("rows: one row agrees", alone, 2),
        ("rows: right about the secret", right, 1),
        ("noisy counts: bound for every guess about it", [bound] * len(_KNOWN), 0),
    )
    return Chart(
        "How often the attack succeeds",
        "Guessing blindly about the secret rating is right half the time.",
        Axis("ratings that the attacker knows", _KNOWN[0], _KNOWN[-1]),
        Axis("in %", 0, 105),
        tuple(
            Series(label, "line", tuple((x, 100 * y) for x, y in zip(_KNOWN, line, strict=True)), n)
            for label, line, n in lines
        ),
        (
            *(() if known is None else (RuleLine("x", known, "known"),)),
            RuleLine("y", 50, "blind guess"),
        ),
    )


@lru_cache(maxsize=1)
def _table() -> tuple[IntegerArray, IntegerArray]:
    """Made-up stars, shape (person, film), 0 for a film that was not rated; and the secrets."""
    chance = np.random.default_rng(4)
    popular = 1 / np.arange(1, _FILMS + 1) ** 0.6
    stars = np.zeros((_PEOPLE, _FILMS), np.int64)
    for row in stars:
        films = chance.choice(_FILMS, _EACH, replace=False, p=popular / popular.sum())
        row[films] = chance.choice([1, 2, 3, 4, 5], _EACH, p=[0.05, 0.1, 0.25, 0.35, 0.25])
    return stars, np.arange(_PEOPLE) % 2


def _agreeing(row: IntegerArray, known: IntegerArray) -> BoolArray:
    """The rows that agree with this one in the known films."""
    found: BoolArray = (_table()[0][:, known] == row[known]).all(axis=1)
    return found


@lru_cache(maxsize=16)
def _guesses(count: int) -> tuple[float, float]:
    """The share of people who are found alone, and how often a guess about the secret is right."""
    stars, secret = _table()
    order, alone, right = np.random.default_rng(5), [], []
    for row in stars:
        agree = _agreeing(row, order.permutation(np.flatnonzero(row))[:count])
        share = secret[agree].mean()
        alone.append(agree.sum() == 1)
        right.append(max(share, 1 - share))
    return float(np.mean(alone)), float(np.mean(right))


@lru_cache(maxsize=16)
def _counted(epsilon: float) -> tuple[float, float, int]:
    """The bounds of every guess about the secret rating, and about whether a person is in the data;
    the error of one count."""
    loss, error = _loss_of_one(epsilon)
    return (1 + loss.advantage()) / 2, (1 + (_COUNTED * loss).advantage()) / 2, error


@lru_cache(maxsize=16)
def _meaning(epsilon: float) -> str:
    return meaning(_COUNTED * _loss_of_one(epsilon)[0])


def _loss_of_one(epsilon: float) -> tuple[PrivacyLoss, int]:
    """The privacy loss of one rating, which changes one count by 1; and the error of one count."""
    mechanism = DiscreteLaplace.for_epsilon(epsilon, _counts(np.zeros(_FILMS + 1, np.int64)))
    one = Bounded(lambda: 0, sensitivity=1, unit=_PERSON, name="the secret count")
    return mechanism.privacy_loss(one), mechanism.error(0.95)


def _counts(true: IntegerArray) -> Bounded[IntegerArray]:
    """People by film; a person adds 1 to as many counts as she rates films."""
    return Bounded(
        lambda: true,
        sensitivity=_COUNTED,
        unit=_PERSON,
        name="ratings by film",
        shape=(_FILMS + 1,),
    )


def link(values: ControlValues) -> ExperimentOutcome:
    """One attack on a person drawn at random."""
    stars, secret = _table()
    chance = np.random.default_rng()
    person = int(chance.integers(_PEOPLE))
    if values["publish"] == ROWS:
        films = chance.permutation(np.flatnonzero(stars[person]))[: values["known"]]
        agree = np.flatnonzero(_agreeing(stars[person], films))
        share = secret[agree].mean()
        guessed = int(share > 0.5) if share != 0.5 else int(chance.integers(2))
        rows = "1 row agrees" if len(agree) == 1 else f"{len(agree)} rows agree"
        points: tuple[NoisyNumber, ...] = ()
        how = f"{rows} with the known ratings of person {person + 1}"
    else:
        points = _noisy(values["epsilon"])
        # all others are known to this attacker, so the count would show the person's secret
        others = int(secret.sum() - secret[person])
        guessed = int(points[-1].value > others + 0.5)
        how = (
            f"{points[-1].value:,.0f} people rated the secret film, says the noisy count, and the "
            f"attacker knows of {others}"
        )
    is_right = guessed == secret[person]
    return ExperimentOutcome(
        f"{how}. The guess is {'right' if is_right else 'wrong'}",
        points,
        guesses=(Guess(values["publish"], bool(is_right)),),
    )


def _noisy(epsilon: float) -> tuple[NoisyNumber, ...]:
    """Noisy counts of the first films and of the secret one."""
    from discreet.ledger import Ledger  # it loads a database

    stars, secret = _table()
    true = np.append((stars > 0).sum(axis=0), secret.sum())
    asked = _counts(true)
    mechanism = DiscreteLaplace.for_epsilon(epsilon, asked)
    ledger = Ledger.in_memory(unit=_PERSON, limit=Limit(epsilon=epsilon))
    noisy, error = release(asked, mechanism, ledger).value, mechanism.error(0.95)
    shown = [*range(5), _FILMS]
    return tuple(
        NoisyNumber(
            "secret" if n == _FILMS else f"film {n + 1}",
            int(noisy[n]),
            int(noisy[n]) - error,
            int(noisy[n]) + error,
            int(true[n]),
        )
        for n in shown
    )


PAGE = Page(
    name="linking",
    title="Linking",
    lead=(
        "Ratings without names are not anonymous: a few that somebody knows anyway find the whole "
        "row again."
    ),
    question="Why is it not enough to remove the names?",
    answer=(
        "A few facts that somebody knows about a person agree with one row only, and this row"
        " shows all the rest."
    ),
    notes=(
        (
            "A person tells everybody what she thinks of a few films. The published table has no "
            "names, but only one row has these ratings, so it must be hers, with all that she did "
            "not tell. Drag the slider: a handful of ratings suffices. This happened to real data "
            "of films, searches and taxi rides."
        ),
        (
            "With noisy counts there is no row to find. The attacker of this page knows the whole "
            "table but one rating, and still guesses hardly better than blindly. The bound holds "
            "for everything he may know, today or later. It is lower for one rating than for "
            "whether somebody is in the data at all, since one rating moves one count only."
        ),
    ),
    controls=(
        Control("publish", "publish", (ROWS, COUNTS), ROWS),
        Control(
            "known",
            "ratings known",
            _KNOWN,
            3,
            term=(
                "How many of a person’s ratings the attacker knows already, for example from what "
                "she told friends."
            ),
        ),
        Control("epsilon", "ε of all counts", (0.1, 0.25, 0.5, 1, 2, 5), 0.5, term=ABOUT_EPSILON),
    ),
    presets=(
        Preset("know one more rating", {"publish": ROWS, "known": 4}),
        Preset("publish noisy counts", {"publish": COUNTS}),
    ),
    compute=view,
    experiments=(Experiment("link", "Attack", "attacks", ("publish", "known", "epsilon"), link),),
)
