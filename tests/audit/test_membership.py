"""Guesses about one run: bounds hold, reach what theory gives, and find wrong training loops."""

import json
import math
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from discreet.accounting import Gaussian, PrivacyLoss, Pure
from discreet.audit import RightGuesses, membership, report
from discreet.audit._one_run import EventFloor as Floor
from discreet.errors import InvalidArgument
from tests.audit.laws import generator, on_grid

Coins = Any  # an array of booleans
CANARIES = 1000


def floor_of(loss: PrivacyLoss) -> Floor:
    profile = loss.profile()
    return Floor(profile.epsilons, profile.deltas)


def right_share(mu: float) -> float:
    """Of guesses about bits with Gaussian noise, of distance ``mu`` in standard deviations."""
    return float(norm.cdf(mu / 2))


LAWS: dict[str, tuple[Floor, float]] = {
    "randomized response, 0.5": (floor_of(1 * Pure(0.5)), 1 / (1 + math.exp(-0.5))),
    "randomized response, 4": (floor_of(1 * Pure(4)), 1 / (1 + math.exp(-4))),
    "Gaussian, 0.5": (floor_of(1 * Gaussian(2)), right_share(0.5)),
    "Gaussian, 2": (floor_of(1 * Gaussian(0.5)), right_share(2)),
    "shown with delta": (Floor((0.0,), (0.1,)), 0.1 + 0.9 / 2),
    "epsilon and delta": (Floor((1.0,), (0.05,)), 0.05 + 0.95 / (1 + math.exp(-1))),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("candidates", [1, 10, 200])
def test_no_number_of_right_guesses_refutes_a_right_claim(name: str, candidates: int) -> None:
    """Independent answers reach their claim exactly, and their right guesses are binomial."""
    floor, share = LAWS[name]
    for right in range(candidates + 1)[:: max(1, candidates // 20)]:
        chance = float(binom.sf(right - 1, candidates, share))
        assert not RightGuesses(right, candidates, candidates).refutes(floor, chance)


@pytest.mark.parametrize("chance", [0.5, 0.01, 1e-9])
def test_guesses_that_are_right_together_refute_no_right_claim(chance: float) -> None:
    """All coins are shown at once with probability delta: any law of independent guesses fails."""
    assert not RightGuesses(100, 100, 100).refutes(Floor((0.0,), (chance,)), chance)
    assert RightGuesses(100, 100, 100).refutes(Floor((0.0,), (chance / 300,)), chance)


@pytest.mark.parametrize(("right", "guesses"), [(4803, 5000), (1982, 2000), (499, 500)])
def test_the_bound_has_power(right: int, guesses: int) -> None:
    """The clearest of 10 000 bits with Gaussian noise of mu = 2 refute mu = 1 at 95 %, and an
    epsilon of 2 at delta 1e-5."""
    counted = RightGuesses(right, guesses, 10_000)
    assert counted.refutes(floor_of(1 * Gaussian(1)), 0.05)
    assert not counted.refutes(floor_of(1 * Gaussian(0.5)), 0.05)
    assert counted.epsilon(1e-5, 0.05) > 2


def test_randomized_response_reaches_what_theory_gives() -> None:
    """982 of 1 000 guesses are right at epsilon 4; the bound of Steinke, Nasr and Jagielski is 3.6
    at 95 %."""
    assert RightGuesses(982, 1000, 1000).epsilon(0.0, 0.05) == pytest.approx(3.6, abs=0.005)
    random, lie = generator(), 1 / (1 + math.exp(4))

    def answers(members: Coins) -> Any:  # Any: an array
        return members ^ (random.random(members.size) < lie)

    found = membership(
        answers, float_of, candidates=CANARIES, claim=4, guesses=CANARIES, confidence=0.95
    )
    assert found.counts[0].right > 950
    assert found.epsilon() > 2.8
    assert not membership(answers, float_of, candidates=CANARIES, claim=4).is_refuted
    assert membership(answers, float_of, candidates=CANARIES, claim=2).is_refuted


def float_of(output: Any) -> Any:
    return np.asarray(output, dtype=float)


def test_epsilon_rises_with_right_guesses_and_falls_with_delta() -> None:
    found = [RightGuesses(right, 500, 1000).epsilon(1e-5, 0.05) for right in range(250, 501, 50)]
    assert found == sorted(found)
    assert found[0] == 0 < found[-1]
    counted = RightGuesses(480, 500, 1000)
    epsilons = [counted.epsilon(delta, 0.05) for delta in (0.0, 1e-9, 1e-5, 1e-3, 0.1)]
    assert epsilons == sorted(epsilons, reverse=True)


# Training loops, attacked by canary gradients

STEPS, NOISE = 4, 8.0
CLAIM = STEPS * Gaussian(NOISE)
Loop = Callable[[Coins], Any]  # Any: noisy sums, (step, weight)


def training(
    *,
    noise: float = NOISE,
    length: float = 1.0,
    seed: int | None = None,
    clips: bool = True,
    times: int = 1,
) -> Loop:
    """A loop whose candidates each move one weight of their own."""
    random = generator()

    def train(members: Coins) -> Any:  # Any: an array
        gradients = np.diag(members * 30 * length)
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        if clips:
            gradients = gradients * np.minimum(1, length / np.maximum(norms, 1e-9))
        drawn = random if seed is None else np.random.default_rng(seed)
        sums = [
            gradients.sum(axis=0) + drawn.normal(0, noise, members.size)
            for _ in range(STEPS * times)
        ]
        return on_grid(np.array(sums))

    return train


def canary_score(sums: Any) -> Any:
    """The product of each canary's gradient and the sum of all steps."""
    return sums.sum(axis=0)


def known_noise(sums: Any) -> Any:
    """An attacker who knows the seed takes the noise away."""
    drawn = np.random.default_rng(7)
    noise = np.array([drawn.normal(0, NOISE, sums.shape[1]) for _ in range(STEPS)])
    return (sums - noise).sum(axis=0)


LOOPS: dict[str, tuple[Loop, Callable[[Any], Any]]] = {
    "noise of an eighth": (training(noise=NOISE / 8), canary_score),
    "clip skipped": (training(clips=False), canary_score),
    "clip norm forgotten in the noise": (training(length=8.0), canary_score),
    "two hundred times the steps": (training(times=200), canary_score),
    "seed known": (training(seed=7), known_noise),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_wrong_loop_is_found_in_one_run(name: str) -> None:
    train, score = LOOPS[name]
    assert membership(train, score, candidates=400, claim=CLAIM).is_refuted


@pytest.mark.parametrize("score", [canary_score, known_noise])
def test_a_right_loop_is_not_accused(score: Callable[[Any], Any]) -> None:
    """BadValue with probability 1e-9."""
    assert not membership(training(), score, candidates=400, claim=CLAIM).is_refuted


# Shadow runs


def overfitted(members: Coins) -> Any:
    """Losses that fall for members, and differ much more between candidates."""
    hardness = 10.0 * np.arange(members.size)
    return hardness - members + generator_of_runs.normal(0, 0.3, members.size)


generator_of_runs = generator()


def minus(losses: Any) -> Any:
    return -losses


def test_shadow_runs_make_scores_of_different_candidates_comparable() -> None:
    plain = membership(overfitted, minus, candidates=200, claim=1)
    assert not plain.is_refuted
    assert plain.auc < 0.7
    found = membership(overfitted, minus, candidates=200, claim=1, shadows=16)
    assert found.is_refuted
    assert found.auc > 0.9


class Stopped(Exception):
    """Raised in the place of an interrupt."""


@pytest.mark.parametrize("complete", [0, 1, 9])
def test_a_stopped_audit_goes_on_after_its_last_complete_run(tmp_path: Path, complete: int) -> None:
    """And its result is that of the stored runs: nothing is trained when all are complete."""
    left, trained = [complete], [0]

    def train(members: Coins) -> Any:
        if not left[0]:
            raise Stopped
        left[0] -= 1
        trained[0] += 1
        return overfitted(members)

    given: dict[str, Any] = {"candidates": 50, "claim": 1, "shadows": 8, "folder": tmp_path / "a"}
    if complete < 9:
        with pytest.raises(Stopped):
            membership(train, minus, **given)
        left[0] = 9 - complete
    first = membership(train, minus, **given)
    assert trained == [9]
    assert (first.runs, first.stored_runs) == (9, complete % 9)
    again = membership(train, minus, **given)
    assert again.counts == first.counts
    assert (again.runs, again.stored_runs) == (9, 9)
    assert "9 of 9 runs come from the folder" in repr(again)
    assert "Of 9 runs, 9 were stored before this audit." in report(again).json()


def noisy_training(noise: float, *, how: str) -> Any:  # Any: a callable of each kind
    """Randomized response that lies with this probability."""

    def lies(coins: Coins, share: float = noise) -> Any:
        return coins ^ (np.random.default_rng().random(coins.size) < share)

    class Trainer:
        def __init__(self) -> None:
            self.settings = {"noise": noise}

        def __call__(self, coins: Coins) -> Any:
            return lies(coins, self.settings["noise"])

        train = __call__

    class Settings:
        share = noise

    holders = {
        "a namespace": Namespace(share=noise),
        "a simple namespace": SimpleNamespace(shares=[noise]),
        "a dataclass": Setting(noise),
        "a class": Settings,
        "a list in a mapping": {"shares": [noise]},
    }
    if how in holders:
        holder = holders[how]

        def by_setting(coins: Coins) -> Any:
            return lies(coins, share_of(holder))

        return by_setting
    made: dict[str, Any] = {
        "a default": lies,
        "a closure": lambda coins: lies(coins, noise),
        "a function that it calls": lambda coins: lies(coins).copy(),
        "an argument": partial(score_lies, share=noise),
        "an object": Trainer(),
        "a method": Trainer().train,
    }
    return made[how]


@dataclass
class Setting:
    share: float


def share_of(holder: Any) -> float:  # Any: holds it in one way or another
    shares = holder["shares"] if isinstance(holder, dict) else getattr(holder, "shares", None)
    share: float = shares[0] if shares else holder.share
    return share


def score_lies(coins: Coins, *, share: float) -> Any:
    return coins ^ (np.random.default_rng().random(coins.size) < share)


@pytest.mark.parametrize(
    "how",
    [
        "a default",
        "a closure",
        "a function that it calls",
        "an argument",
        "an object",
        "a method",
        "a namespace",
        "a simple namespace",
        "a dataclass",
        "a class",
        "a list in a mapping",
    ],
)
def test_runs_of_another_function_are_refused(tmp_path: Path, how: str) -> None:
    """The old verdict is not given for a mechanism that was changed, in either direction."""
    given: dict[str, Any] = {"candidates": 50, "claim": 1, "folder": tmp_path}
    leaks, right = (noisy_training(each, how=how) for each in (0.0, 0.5))
    membership(leaks, float_of, **given)
    assert membership(noisy_training(0.0, how=how), float_of, **given).stored_runs == 1
    for other, score in ((right, float_of), (leaks, minus), (never, float_of)):
        with pytest.raises(InvalidArgument, match="made by other functions"):
            membership(other, score, **given)


SCRIPT = """
import os
from discreet.audit import membership

NOISE = float(os.environ["NOISE"])
NAMES = {"b", "a", "c"}

def train(coins):
    return coins * (NOISE if "a" in {"b", "a", "c"} else 1)

def score(output):
    return output

membership(train, score, candidates=50, claim=1, folder="runs")
"""


def test_a_changed_file_or_setting_is_noticed_by_another_process(tmp_path: Path) -> None:
    def ends_well(noise: str, code: str = SCRIPT) -> bool:
        (tmp_path / "run.py").write_text(code)
        given = {**os.environ, "NOISE": noise}
        line = [sys.executable, "run.py"]
        ended = subprocess.run(line, cwd=tmp_path, env=given, capture_output=True, check=False)
        return not ended.returncode

    assert ends_well("1")
    assert ends_well("1")
    assert not ends_well("2")
    assert not ends_well("1", SCRIPT.replace("else 1", "else 2"))


def never(_: Coins) -> Any:
    raise AssertionError


def same(coins: Coins) -> Any:
    return coins


def test_stored_runs_of_other_settings_are_refused(tmp_path: Path) -> None:
    given: dict[str, Any] = {"candidates": 50, "claim": 1, "folder": tmp_path}
    membership(same, float_of, **given)
    for other in ({"candidates": 60}, {"shadows": 4}, {"runs": 2}, {"guesses": 7}):
        with pytest.raises(InvalidArgument, match="its runs have the settings"):
            membership(same, float_of, **{**given, **other})


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InvalidArgument, match="it has other files"):
        membership(never, float_of, candidates=50, claim=1, folder=tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"half"])
def test_a_damaged_run_is_named(tmp_path: Path, content: bytes) -> None:
    given: dict[str, Any] = {"candidates": 50, "claim": 1, "runs": 2, "folder": tmp_path}
    membership(same, float_of, **given)
    whole = (tmp_path / "run-1.npy").read_bytes()
    for damaged in (content, whole[:-8], whole.replace(np.float64(1).tobytes(), b"\xff" * 8)):
        (tmp_path / "run-1.npy").write_bytes(damaged)
        with pytest.raises(InvalidArgument, match=r"run-1\.npy is damaged: remove this file"):
            membership(same, float_of, **given)
    (tmp_path / "run-1.npy").unlink()
    assert membership(same, float_of, **given).counts[0].right == 100


def test_a_folder_that_cant_be_used_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InvalidArgument, match="folder = "):
        membership(never, float_of, candidates=50, claim=1, folder=file)
    settings = tmp_path / "runs" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{")
    with pytest.raises(InvalidArgument, match=r"settings\.json can't be read"):
        membership(never, float_of, candidates=50, claim=1, folder=settings.parent)


def test_a_run_that_cant_be_stored_ends_the_audit(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "run-0.partial").mkdir()
    with pytest.raises(InvalidArgument, match=r"run-0\.npy can't be written"):
        membership(lambda coins: coins, float_of, candidates=50, claim=1, folder=tmp_path / "runs")


def test_one_candidate_of_many_runs_is_enough() -> None:
    """As in audits that train many models with and without one canary."""
    found = membership(training(noise=0.1), canary_score, candidates=1, runs=200, claim=CLAIM)
    assert found.is_refuted


def test_the_result_prints_and_is_json() -> None:
    found = membership(lambda coins: coins, float_of, candidates=100, claim=1)
    assert "REFUTED" in repr(found)
    assert "right: 100 of 100 guesses" in repr(found)
    told = json.loads(found.to_json())
    assert told["is_refuted"]
    assert told["auc"] == 1
    assert told["evidence"][0] == {"right": 100, "guesses": 100, "candidates": 100}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"candidates": 0}, "candidates"),
        ({"candidates": 3}, "at least 4"),
        ({"runs": 0}, "runs"),
        ({"shadows": 1}, "shadows"),
        ({"shadows": -1}, "shadows"),
        ({"guesses": 0}, "guesses"),
        ({"guesses": 200}, "there are 100 candidates"),
        ({"claim": None}, "claim"),
        ({"delta": 1e-5}, "one run may show everything"),
        ({"confidence": 2}, "confidence"),
        ({"score": lambda _: [1.0]}, "return one number for each"),
        ({"score": lambda coins: np.full(coins.size, math.nan)}, "NaN"),
    ],
)
def test_wrong_arguments_are_refused(changes: dict[str, Any], text: str) -> None:
    given = {"score": float_of, "candidates": 100, "claim": 1, **changes}
    with pytest.raises(InvalidArgument, match=text):
        membership(lambda coins: coins, **given)


def test_scores_see_no_coins_of_the_loop() -> None:
    """A loop may change its coins."""

    def erase(coins: Coins) -> Any:
        kept = coins.copy()
        coins[:] = False
        return kept

    assert membership(erase, float_of, candidates=100, claim=1).is_refuted
