"""Coins and numbers, by every script of words; and bits that nothing seeds."""

import ast
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.audit import ZeroNoiseBits
from discreet.local import client
from discreet.local.client import _bits
from discreet.local.client._bits import SystemBits, below, coins
from tests.noise.walk import assert_refuted, coin, independent, numbers, refutation, walk

SOURCE = Path(discreet.__file__).parent
GIVEN = {"draw_reports", "draw_permanent"}  # what takes bits from its caller


@pytest.mark.parametrize("chance", ["0", "1", "1/2", "1/3", "5/16", "17/256", "255/256", "2/257"])
@pytest.mark.parametrize(("width", "depth"), [(2, 6), (4, 3), (8, 2)])
def test_a_coin_has_its_chance(chance: str, width: int, depth: int) -> None:
    exact = Fraction(chance)
    found = walk(lambda b: int(coins(exact, 1, b)[0]), width, depth)
    assert refutation(found, coin(exact)) is None
    assert found.undecided[-1] <= Fraction(1, 1 << width * (depth - 1)) / (1 << width)


def test_coins_are_independent() -> None:
    found = walk(lambda b: numbers(coins(Fraction(1, 3), 2, b)), 3, 5)
    assert refutation(found, independent(coin(Fraction(1, 3)))) is None
    assert found.undecided[-1] < Fraction(1, 100)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 16, 17, 100])
def test_numbers_below_a_limit_are_alike(limit: int) -> None:
    width, depth = (4, 3) if limit < 17 else (4, 4)
    found = walk(lambda b: int(below(limit, 1, b)[0]), width, depth)
    assert (
        refutation(found, lambda n: Fraction(1, limit) if 0 <= n < limit else Fraction(0)) is None
    )
    assert set(found.decided) == set(range(limit))
    assert found.undecided[-1] <= Fraction(1, 2)


def test_a_number_made_without_drawing_again_is_refuted() -> None:
    found = walk(lambda b: int(b.words(1)[0]) % 3, 4, 1)
    assert_refuted(found, lambda n: Fraction(1, 3))


def test_a_coin_that_stops_early_is_refuted() -> None:
    found = walk(lambda b: int(b.words(1)[0] <= 16 // 3), 4, 1)
    assert_refuted(found, coin(Fraction(1, 3)))


def test_whole_words_become_bytes_and_numbers() -> None:
    class Words:
        width = 64

        def words(self, count: int) -> _bits.Words:
            return np.full(count, 0x8000_7FFF_0001_FF80, np.uint64)

    assert coins(Fraction(1, 2), 8, Words()).tolist() == [
        b < 128 for b in Words().words(1).tobytes()
    ]
    turned = (1 << 64) - 1 - 0x8000_7FFF_0001_FF80
    assert below(1 << 62, 1, Words())[0] == turned % (1 << 62)


@pytest.mark.parametrize("width", [1, 8, 64])
def test_words_of_ones_end_every_draw(width: int) -> None:
    ones = ZeroNoiseBits(width)
    for limit in (1, 2, 3, 1000, (1 << 62) - 1):
        assert below(limit, 3, ones).tolist() == [0, 0, 0]
    for chance in (Fraction(0), Fraction(1, 3), Fraction(1, 2), 1 - Fraction(1, 10**9)):
        assert coins(chance, 3, ones).tolist() == [False] * 3
    assert coins(Fraction(1), 3, ones).tolist() == [True] * 3


def test_nothing_seeds_the_bits() -> None:
    mechanism = client.RandomizedResponse(Fraction(3), 1 << 20)
    found = []
    for _ in range(2):
        np.random.seed(0)
        found.append(mechanism.randomize(np.zeros(8, np.int64)).tolist())
    assert found[0] != found[1]


def test_a_fork_repeats_nothing() -> None:
    source = SystemBits()
    source.words(1)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, source.words(2).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 16) != source.words(2).tobytes()


def test_only_the_clients_give_bits_and_only_the_systems() -> None:
    assert list(given(SOURCE)) == []


@pytest.mark.parametrize(
    "code",
    [
        "x = client.draw_reports(values, bits)",
        "draw = client.draw_permanent",
        "draw = getattr(client, 'draw_reports')",
    ],
)
def test_a_planted_source_is_found(tmp_path: Path, code: str) -> None:
    (tmp_path / "new.py").write_text(code)
    assert len(list(given(tmp_path))) == 1


def given(source: Path) -> Iterator[str]:
    """Lines outside the client that name what takes bits; inside it, those that hand on others
    than the system's or the ones they were given."""
    for path in sorted(source.rglob("*.py")):
        inside = path.parent.name == "client" and path.parent.parent.name == "local"
        text = path.read_text()
        if not any(name in text for name in (*GIVEN, "SYSTEM")):
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(ast.Attribute(attr=name), [_, ast.Name("SYSTEM" | "bits")]) if inside:
                    assert name
                case ast.Attribute(attr=name) if name in GIVEN and not inside:
                    yield f"{path}:{node.lineno}"
                case ast.Constant(value) if value in GIVEN and not inside:
                    yield f"{path}:{node.lineno}"
                case ast.Name("SYSTEM", ast.Store()) if path.name != "_bits.py":
                    yield f"{path}:{node.lineno}"
