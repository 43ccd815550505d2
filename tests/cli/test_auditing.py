"""``discreet audit`` measures a function from the current folder."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.kit import Run

CODE = """
import random

def count(people):
    return round(len(people) + random.expovariate(1) - random.expovariate(1))

fixed = random.Random(1)  # the search must find the same pairs each time

def hides(people):  # too little noise from eight people on
    scale = 1 if len(people) < 8 else 9
    return round(len(people) + fixed.expovariate(scale) - fixed.expovariate(scale))

def prints(people):
    print("hello")
    return count(people)

def late(people):
    if len(people) > 1:
        from HELPER import scale
    else:
        scale = 1
    return round(random.expovariate(1) - random.expovariate(scale))

def lacks(people):
    if len(people) > 1:
        import no_such_module
    return 1

def stops(people):
    raise SystemExit(0)

def breaks(people, count):
    return 1 / 0

def endless(people):
    yield 1

pairs = [([1, 2], [1])]
rows = [1, 2]

def mean(people):
    return sum(people) / len(people) + random.gauss(0, 1)

none = [([1, 2], [1]), ([1], [])]

def train(members):
    return members

def blind(output):
    return [0] * len(output)

def seeing(output):
    return output

class Counter:
    def __init__(self):
        self.generator = random.Random()

    def answer(self):
        return self.generator.gauss(0, 1)

class SafeCounter:
    def answer(self):
        return random.SystemRandom().gauss(0, 1)

laws = [({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75})]
groups = [[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]]
secret = [1, 0, 1, 0]
"""


@pytest.fixture
def place(run: Run, request: pytest.FixtureRequest) -> Iterator[str]:
    """A module of its own name, so that no earlier one is found."""
    name = f"audited_{abs(hash(request.node.name))}"
    Path(f"{name}.py").write_text(CODE.replace("HELPER", f"{name}_helper"), encoding="utf-8")
    Path(f"{name}_helper.py").write_text("scale = 1\n", encoding="utf-8")
    yield name
    for each in (name, f"{name}_helper"):
        sys.modules.pop(each, None)


@pytest.mark.parametrize(
    ("claim", "code"), [(("--epsilon", "1"), 0), (("--claim", "Pure(0.2)"), 3)]
)
def test_the_exit_code_says_whether_the_claim_is_refuted(
    run: Run, place: str, claim: tuple[str, str], code: int
) -> None:
    ended = run("audit", f"{place}:count", f"{place}:pairs", *claim, "--samples", "5000")
    assert ended.code == code
    assert ended.out.startswith("REFUTED" if code else "not refuted")
    assert ended.err == ""
    assert str(Path.cwd()) not in sys.path


def test_a_stopped_membership_audit_goes_on(run: Run, place: str) -> None:
    """The second command trains nothing, and says so."""
    line = ("--candidates", "100", "--epsilon", "1", "--runs", "2", "--folder", "runs")
    first = run("audit", "membership", f"{place}:train", f"{place}:seeing", *line)
    again = run("audit", "membership", f"{place}:train", f"{place}:seeing", *line)
    assert (first.code, again.code) == (3, 3)
    assert again.out == f"{first.out}  2 of 2 runs come from the folder\n"
    changed = run("audit", "membership", f"{place}:breaks", f"{place}:seeing", *line)
    assert (changed.code, changed.out) == (2, "")
    assert "made by other functions" in changed.err
    other = run("audit", "membership", f"{place}:train", f"{place}:seeing", *line, "--shadows", "2")
    assert (other.code, other.out) == (2, "")
    assert "its runs have the settings" in other.err


# an audit that finds a fault, or none; each with its exit code and the start of its output
AUDITS: list[tuple[str, int, str]] = [
    ("black-box {0}:count {0}:pairs --epsilon 1 --samples 2000", 0, "not refuted"),
    ("black-box {0}:count {0}:pairs --claim Pure(0.1) --samples 5000", 3, "REFUTED"),
    ("search {0}:hides {0}:rows --epsilon 1 --tries 150 --outputs 60 --samples 3000", 3, "REFUTED"),
    ("membership {0}:train {0}:blind --candidates 100 --epsilon 1", 0, "not refuted"),
    ("membership {0}:train {0}:seeing --candidates 100 --epsilon 1", 3, "REFUTED"),
    ("replay {0}:count {0}:pairs --sensitivity 1", 0, "0 of 1 pairs"),
    ("replay {0}:mean {0}:none", 3, "1 of 2 pairs"),
    ("misuse {0}:SafeCounter {0}:SafeCounter.answer", 0, "copy.copy: no fault"),
    ("misuse {0}:Counter {0}:Counter.answer", 3, "copy.copy: no fault\ncopy.deepcopy: its noise"),
    ("exact {0}:laws", 0, "exact privacy of 1 pair"),
    ("exact {0}:laws --epsilon 1.1", 0, "not refuted"),
    ("exact {0}:laws --epsilon 1", 3, "REFUTED"),
    ("reconstruct {0}:groups {0}:secret", 0, "without noise, "),
    ("reconstruct {0}:groups {0}:secret --epsilon 1", 0, "with noise of epsilon 1, "),
]


@pytest.mark.parametrize(("line", "code", "start"), AUDITS)
def test_each_audit_ends_with_its_code(
    run: Run, place: str, line: str, code: int, start: str
) -> None:
    ended = run("audit", *line.format(place).split())
    assert (ended.code, ended.out[: len(start)]) == (code, start), ended


@pytest.mark.parametrize("line", [one for one, _, _ in AUDITS if "SafeCounter" not in one])
def test_each_audit_prints_json_and_writes_a_report(run: Run, place: str, line: str) -> None:
    options = "--json", "--html", "audit.html"
    ended = run("audit", *line.format(place).split(), *options)
    assert isinstance(json.loads(ended.out), dict)
    assert "Meaning for one person" in Path("audit.html").read_text(encoding="utf-8")


def test_options_may_stand_before_the_function(run: Run, place: str) -> None:
    options = ("--epsilon", "1", "--samples", "2000")
    assert run("audit", *options, f"{place}:count", f"{place}:pairs").code == 0


LATE = """
def late(people):
    if people:
        import {0}_noise
    return 0

def lost(people):
    import sys
    sys.path.clear()
    return 0

pairs = [([1], [])]
"""


@pytest.mark.parametrize("name", ["late", "lost"])
def test_a_function_may_import_when_it_is_called(run: Run, place: str, name: str) -> None:
    """An error of an import would be an output, and tell the datasets apart."""
    Path(f"{place}.py").write_text(LATE.format(place), encoding="utf-8")
    Path(f"{place}_noise.py").write_text("", encoding="utf-8")
    before = list(sys.path)
    try:
        options = ("--epsilon", "0.1", "--samples", "2000")
        ended = run("audit", f"{place}:{name}", f"{place}:pairs", *options)
    finally:
        sys.path[:] = before
        sys.modules.pop(f"{place}_noise", None)
    assert (ended.code, ended.out[:11]) == (0, "not refuted")


def test_json_and_the_report_say_the_same(run: Run, place: str) -> None:
    options = ("--epsilon", "0.2", "--samples", "5000", "--json", "--html", "audit.html")
    ended = run("audit", f"{place}:count", f"{place}:pairs", *options)
    assert ended.code == 3
    assert json.loads(ended.out)["is_refuted"]
    assert "The claim is refuted" in Path("audit.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("count", "{}:pairs", "--epsilon", "1"), "MODULE:NAME"),
        (("{}:gone", "{}:pairs", "--epsilon", "1"), "has no gone"),
        (("no_such_module:f", "{}:pairs", "--epsilon", "1"), "no_such_module"),
        (("{}:count", "{}:pairs"), "either --epsilon or --claim"),
        (("{}:count", "{}:pairs", "--epsilon", "1", "--claim", "Pure(1)"), "either"),
        (("{}:count", "{}:pairs", "--delta", "0.1", "--claim", "Pure(1)"), "belongs to --epsilon"),
        (("{}:count", "{}:count", "--epsilon", "1"), "pairs"),
        (("{}:lacks", "{}:pairs", "--epsilon", "1"), "no_such_module"),
        (("{}:stops", "{}:pairs", "--epsilon", "1"), "SystemExit: 0"),
        (("{}:breaks", "{}:pairs", "--epsilon", "1"), "ZeroDivisionError: division by zero, at"),
        (("{}:endless", "{}:pairs", "--epsilon", "1"), "of type generator"),
        (("{}:count", "{}:pairs", "--epsilon", "1", "--html", "no/a.html"), "is missing"),
        (("json:gone", "{}:pairs", "--epsilon", "1"), "json/__init__.py"),
        (("blackbox", "{}:count", "{}:pairs"), "Did you mean 'black-box'?"),
        (("nothing",), "No such command 'nothing'"),
        (("exact", "{}:laws", "--delta", "0.1"), "belongs to --epsilon"),
        (("membership", "{}:train", "{}:blind", "--candidates", "9"), "--epsilon or --claim"),
        (("misuse", "{}:Counter", "{}:Counter.gone"), "has no Counter.gone"),
        (("misuse", "{}:Counter", "{}:mean"), "TypeError: "),
        (("misuse", "{}:Counter", "{}:stops"), "SystemExit: 0"),
        (("replay", "{}:count", "{}:pairs", "--sensitivity", "-1"), "above 0"),
        (("search", "{}:count", "{}:count", "--epsilon", "1"), "rows: give a list"),
        (("search", "{}:count", "{}:rows"), "--epsilon or --claim"),
        (("search", "{}:count", "{}:rows", "--epsilon", "1", "--outputs", "9"), "at least 40"),
        (("reconstruct", "{}:secret", "{}:secret"), "groups: give a matrix"),
    ],
)
def test_mistakes_are_usage(run: Run, place: str, arguments: tuple[str, ...], text: str) -> None:
    ended = run("audit", *(one.format(place) for one in arguments))
    assert ended.code == 2
    assert text in ended.message


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "SyntaxError"),
        ("import sys; sys.exit(0)", "SystemExit"),
    ],
)
def test_a_fault_of_the_module_is_shown(run: Run, place: str, code: str, text: str) -> None:
    Path(f"{place}_helper.py").write_text(code, encoding="utf-8")
    ended = run("audit", f"{place}_helper:f", f"{place}:pairs", "--epsilon", "1")
    assert ended.code == 2
    assert text in ended.message
    assert not Path("discreet.log").exists()


def test_a_module_may_be_imported_at_a_call(run: Run, place: str) -> None:
    options = ("--epsilon", "1", "--samples", "1000")
    assert run("audit", f"{place}:late", f"{place}:pairs", *options).code == 0


def test_a_function_that_prints_leaves_json_alone(run: Run, place: str) -> None:
    options = ("--epsilon", "1", "--samples", "200", "--json")
    ended = run("audit", f"{place}:prints", f"{place}:pairs", *options)
    assert "is_refuted" in json.loads(ended.out)
