"""Paid one-time rights belong to one process and can't be copied; every class with state is
covered."""

import copy
import dataclasses
import enum
import importlib
import inspect
import os
import pickle
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import discreet
from discreet import Ledger, Limit, Unit, _ownership
from discreet._ownership import Owned
from discreet.accounting import PrivacyLoss
from discreet.errors import Refused
from discreet.mechanisms import DiscreteLaplace
from discreet.mechanisms._door import Door
from discreet.mechanisms._session import Session
from discreet.mechanisms.trees import StreamCounter
from discreet.noise import SecureBits
from discreet.train import StepTicket
from discreet.train._counting import Uncounted
from discreet.train._hosted import Hosted
from discreet.train._trained import _FreePayer
from discreet.train.lightning import PrivateStrategy
from tests.mechanisms.kit import FakePayer
from tests.train import test_transformers as of_trainers
from tests.train.steps import data, known, linear, short
from tests.train.third_party_models import gpt

UNIT = Unit("person")
COUNTER = StreamCounter(DiscreteLaplace(2), steps=4)

NO_RIGHT = {  # classes with state but without a right, with the reason
    "mechanisms._silence._IfSilent": "a filter of warnings",
    "query._engines._closed_compiler.ClosedForms": "Ibis' compiler, which has no state of ours",
    "query._expressions._frame.ValueExpression": "the base of frozen values",
    "query._expressions._python_values.QuestionPart": "the base of frozen values",
    "query._answers._paid_result.PaidResult": "the base of frozen values",
    "train._tags._earlier._Passes": "weak references to memory of one run's passes",
    "train._state._parametrizations.Parametrizations": "copies of a model's buffers",
    "train._state._reachable._ObjectSearch": "objects that a data set can reach",
    "train._forward._zeroed_memory.ZeroedMemory": "what one forward pass did",
    "query._engines._closed_compiler._FilledForm": "a part of a statement's tree",
    "query._engines._postgres_connections.OpenConnections": "of a process that can't be forked",
    "query._engines._postgres_compiler._PostgresWriter": "Ibis' compiler, no state of ours",
    "query._engines._spark_compiler._SparkWriter": "Ibis' compiler, no state of ours",
    "accounting._pairs.Conversion": "numbers of one calculation",
    "accounting._events._Reader": "the place in a text",
    "accounting._loss.Term": "the base of frozen values",
    "accounting._bounds.Bounds": "the base of frozen values",
    "accounting.terms._around_loss.AroundLoss": "the base of frozen values",
    "accounting.terms._curves._UpperPair": "the base of frozen values",
    "accounting.terms._pure.EpsilonTerm": "the base of frozen values",
    "accounting.terms._tuning._BestOfRuns": "the base of frozen values",
    "_fields.Converted": "for annotations only",
    "query._bounding._compiling.Compiler": "expressions of one question",
    "query._rows._source.ComputedSource": "the base of frozen values",
    "explore._reserve.OutcomeQueue": "which requests wait",
    "explore._reserve.OutcomeReserve": "outcomes that were drawn beforehand",
    "explore._server._Activity": "times of requests",
    "explore._server._Headers": "the application behind it",
    "service._memory.MemoryWatch": "limits of processes",
    "service._queue.RequestQueue": "requests of one event loop, each answered once",
    "service._sessions.SessionStore": "the right is in the database, read by each request",
    "service.pages._owners_desk.SentForms": "marks of forms that were sent, of one process",
    "service.pages._questions.LastDrafts": "texts that were not asked",
    "service.pages._site.Site": "the application behind it",
    "query._bounding._stages.Stages": "expressions of one question",
    "train._checks._loss_identity._Contents": "a value that is compared",
    "train._calls._precision.AutocastNotice": "what one forward pass did",
    "train._calls._contexts._ClosedEngine": "nothing: it refuses calls, or hands them on",
    "train._forward._unseen.Unseen": "what one forward pass did",
    "_fields._Declared": "a tuple of a field's check and type",
    "audit._bits._BitsByWord": "words that are no secret",
    "audit._bits.RecordingBits": "words that are no secret",
    "audit._bits.ScriptedBits": "words that are no secret",
    "audit._bits.SeededBits": "words that are no secret",
    "audit._bits.ZeroNoiseBits": "words that are no secret",
    "audit._misuse._LineInterrupt": "a count of lines",
    "audit._pipeline._WatchedRun": "a record of one run",
    "audit._replay.Run": "a payer of audits, which pays nothing",
    "audit._output_facts.OutputFacts": "the facts of one output",
    "audit._watch.RunWatch": "a record of one run",
    "audit._watch._AuditHook": "the place of the one hook of a process",
    "cli._auditing._AuditGroup": "parses one command line",
    "cli._plain_values.PlainCommand": "parses one command line",
    "cli._plain_values.PlainGroup": "parses one command line",
    "cli._exit_codes._OwnersFile": "the handler of a log",
    "cli._output.StopColumn": "a column of Rich's, no state of ours",
    "_frozen.FrozenMapping": "a value that can't be altered",
    "ledger._database.Database": "a connection that the stores of a process lend",
    "ledger._database._Driver": "a connection that the stores of a process lend",
    "ledger._ledger.Ledger": "the right is in its file; a copy opens the file anew",
    "ledger._shares.Share": "the right is in the ledger's file, where each charge is checked",
    "ledger._subtotals.TotalsReader": "sums up to one link, compared with the head at each use",
    "ledger._totals.ChainTotals": "sums up to one link, compared with the head at each use",
    "ledger._store.ThreadInUse": "of a store, which renews it in a child",
    "ledger._store.Transaction": "a view inside one transaction",
    "ledger._postgres_anchor.PostgresAnchor": "connects anew in each process",
    "ledger._postgres_store.PostgresStore": "connects anew in each process",
    "ledger._sqlite_store.SqliteStore": "connects anew in each process, or refuses to",
    "ledger._writer.Writer": "drops what waits in another process",
    "ledger._writer._Job": "a call in one thread, which waits for it",
    "ledger._sqlite_store._Stores": "the stores of this process, which a fork waits for",
    "ledger._export._ExportReader": "reads one file of public entries",
    "local.client._bits.Randomizer": "a base of frozen values",
    "local.client._bits.SystemBits": "has no state: each call asks the operating system",
    "local._mechanism.FrequencyEstimator": "a base of frozen values",
    "local._mechanism.ReportingMechanism": "a base of frozen values",
    "mechanisms._additive.IndependentNoise": "a base of frozen values",
    "mechanisms._additive.ScaledNoise": "a base of frozen values",
    "mechanisms._real.NoiseOnGrid": "a base of frozen values",
    "mechanisms.selection._choice.Choice": "a base of frozen values",
    "mechanisms.thresholds._noisy_counts.NoisyCounts": "a base of frozen values",
    "noise._bits.SecureBits": "a copy or a child has a fresh stream: tests/noise/test_bits.py",
    "noise._bits._Process": "counts forks, one for each process",
    "noise._bits._Streams": "streams of each thread, made anew in each process",
    "noise._inversion.Inverted": "a table of public probabilities",
    "noise._steps.Stepped": "a table of public probabilities",
    "noise._steps.StepsResolved": "a table of public probabilities",
    "noise._affine_quantile.Magnitudes": "a table of public probabilities",
    "noise._affine_quantile.Signed": "a table of public probabilities",
    "_ownership.Owned": "the base of those that hold one",
    "query._relations._beside.Beside": "makes tables; each release pays",
    "query._relations._beside._Declarations": "public facts",
    "query._toml._declaration_file.Tables": "reads tables; each release pays",
    "query._expressions._query.FromText": "a text",
    "query._sql._text._Generator": "writes one text",
    "query._sql._text._Parser": "reads one text",
    "query._sql._tokens._Tokenizer": "reads one text",
    "service._answers.AnswerStore": "public bytes in a file",
    "service._app.Application": "requests of a desk; each is paid at its ledger",
    "service._client.RemoteTables": "asks the service at each use",
    "service._desk.Desk": "ledgers and files; each charge is checked there",
    "service._group_commit.GroupCommit": "writes to a file, in turns",
    "service._group_commit._Write": "one write, and its result",
    "service._pace.RateLimit": "counts requests",
    "service._payment.Payment": "the right is in the ledger's file, under the request id",
    "service._protocol.OneLength": "refuses requests",
    "service._protocol.TimedProtocol": "a connection",
    "service._protocol.WriteBuffer": "a connection",
    "service._safe_headers.SafeHeaders": "adds headers to responses",
    "service._tokens.TokenStore": "digests in a file",
    "service._slots.WorkerSlots": "counts workers",
    "service._waiting_room.WaitingRoom": "counts requests",
    "service._worker_process.WaitingProcess": "a process that has read nothing yet",
    "service._workers.Worker": "a process, which the parent pays for",
    "service._workers.WorkerPool": "processes, which the parent pays for",
    "train._state._attributes.Attributes": "a model's attributes within one step",
    "train._forward._backward.Backward": "looks at one backward pass",
    "train._state._buffers.Buffers": "a model's buffers within one step",
    "train._forward._capture.Capture": "what one backward pass leaves",
    "train._checks._caught_errors._Failing": "one forward pass, in which a call may fail",
    "train._randomness._drawn_unrecorded.WatchfulCapture": "what one backward pass leaves",
    "train._tags._draws.Draws": "whose random numbers are whose in one forward pass",
    "train._flow._parsed_index.ParsedIndex": "reads one index",
    "train._forward._arranged.having": "the rows of one call",
    "train._calls._in_place.CountsOfChanges": "what one forward pass changed",
    "train._tags._indices.IndexFacts": "facts about the indices of one forward pass",
    "train._tags._indices._Facts": "facts about the indices of one forward pass",
    "train._checks._loss_identity._Walk": "walks what a loss reads",
    "train._forward._shared.Shared": "which tensors depend on no data in one forward pass",
    "train._forward._tagging.Before": "which tensors one call changes",
    "train._forward._tagging.Tagging": "whose rows are whose in one forward pass",
    "train._tags._by_tensor.Tags": "whose rows are whose in one forward pass",
    "train._forward._unintercepted._Dispatched": "watches calls of PyTorch within one forward pass",
    "train._checks._comparison.ModelComparison": "looks at made-up examples",
    "train._step_inputs.StepStatistics": "counts within one step",
    "train.lightning._StepTickets": "asks the strategy for each ticket",
    "train._plans._noise._BuffersOfThread": "memory for random numbers, wiped",
    "train._plans._noise._NoiseBuffers": "memory of one step",
    "train._checks._microbatch.MicrobatchSize": "the size of parts, which changes no sum",
    "train._progress._Updates": "a bar on a screen",
    "train._rules._gradients.CachedSquares": "numbers of one pass",
    "train._rules._recurrent._Gru": "one layer's pass",
    "train._rules._recurrent._Lstm": "one layer's pass",
    "train._rules._recurrent._Plain": "one layer's pass",
    "train._plans._sampling._Fresh": "the choice of batches; each run makes its own",
    "train._plans._sampling._InEpochs": "the choice of batches; each run makes its own",
    "train._step_checks.StepChecks": "a model's buffers and attributes within one step",
    "train._checks._loss_identity._Same": "compares by identity",
    "train._randomness._secret_draws.RefuseGenerators": "watches calls of PyTorch within one step",
    "train._randomness._secret_draws.SecretDraws": "draws of a model: no noise comes from them",
    "train._randomness._secret_draws._Watch": "watches calls of PyTorch within one step",
    "train.transformers._EpochLength": "the length of an epoch",
    "train._randomness._deterministic.DeterministicMode": "settings within one step",
    "train._state._checksums.SortedTensors": "tensors whose bits are compared",
    "train._state._tensor_bits.TensorBits": "the bits of an optimizer's tensors before the losses",
    "train._state._optimizer_writes.OptimizerWrites": "the optimizer before the losses of one step",
}


def classes() -> Iterator[tuple[str, type]]:
    """Every class of the package, by its name."""
    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        if module.name.endswith("__main__"):
            continue
        found = importlib.import_module(module.name)
        for name, each in vars(found).items():
            if inspect.isclass(each) and each.__module__ == module.name:
                yield f"{module.name.removeprefix('discreet.')}.{name}", each


def has_state(each: type) -> bool:
    """Whether its objects may change, or contain an object that may."""
    if issubclass(each, enum.Enum | BaseException) or getattr(each, "_is_protocol", False):
        return False
    return not (dataclasses.is_dataclass(each) and each.__dataclass_params__.frozen)  # type: ignore[attr-defined]  # every dataclass has them


def test_every_class_with_state_is_owned_or_holds_no_right() -> None:
    found = dict(classes())
    stateful = {name for name, each in found.items() if has_state(each)}
    owned = {name for name, each in found.items() if issubclass(each, Owned) and each is not Owned}
    assert stateful - owned == set(NO_RIGHT)
    assert not owned & set(NO_RIGHT)
    assert set(RIGHTS) == owned


def opened() -> Session[int, tuple[int, bool]]:
    ledger = Ledger.in_memory(unit=UNIT, limit=Limit(10))
    loss: PrivacyLoss = COUNTER.privacy_loss(UNIT)
    receipt = ledger.charge(loss, purpose="a test", by="ana")
    return Session(Door.secure(ledger), COUNTER, UNIT, receipt)  # type: ignore[arg-type]  # it gives integers


def totals() -> Owned:
    add = COUNTER.begin(SecureBits())
    return add.__self__  # type: ignore[attr-defined,no-any-return]  # a bound method


def stream() -> Owned:
    bits = SecureBits()
    bits.word()
    return bits._streams.current()


def hosted() -> Hosted:
    plan = short(records=40, batch=10, steps=4)
    return Hosted(plan, FakePayer(), name="a test", by="ana")


def trainer() -> Owned:
    made: Owned = of_trainers.trainer(Path(tempfile.gettempdir()), gpt())
    return made


RIGHTS: dict[str, Callable[[], Owned]] = {
    "mechanisms._door.Door": lambda: Door.secure(Ledger.in_memory(unit=UNIT, limit=Limit(1))),
    "mechanisms._session.Session": opened,
    "mechanisms.trees._stream._Totals": totals,
    "noise._bits._Stream": stream,
    "train._counting.Uncounted": Uncounted,
    "train._hosted.Hosted": hosted,
    "train.lightning.PrivateStrategy": lambda: PrivateStrategy(short(), payer=FakePayer()),
    "train._step_ticket.StepTicket": lambda: StepTicket(1),
    "train._training_run.TrainingRun": lambda: known(linear(), data(), short()).__enter__(),
    "train._trained._FreePayer": _FreePayer,
    "train.transformers.PrivateTrainer": trainer,
}
COPIES: dict[str, Callable[[object], object]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy within": lambda right: copy.deepcopy({"within": [right]}),
    "pickle": pickle.dumps,
    "an old pickle": lambda right: pickle.dumps(right, protocol=0),
    "replace": dataclasses.replace,  # type: ignore[dict-item]  # of values only
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", RIGHTS)
def test_no_right_is_copied(name: str, way: str) -> None:
    right = RIGHTS[name]()
    with pytest.raises((Refused, TypeError)) as caught:
        COPIES[way](right)
    if way != "replace":
        assert "can't be copied" in str(caught.value)
    right.check_process()


def in_child(work: Callable[[], bool]) -> bool:
    """Whether this holds in a forked child."""
    child = os.fork()
    if not child:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("name", RIGHTS)
def test_no_right_is_used_after_a_fork(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the child has its parent's process id."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    right = RIGHTS[name]()

    def refused() -> bool:
        try:
            right.check_process()
        except Refused as error:
            return "belongs to the process" in str(error)
        return False

    assert in_child(refused)
    right.check_process()


USES = {
    "a session": "lambda: opened.ask(bounded)",
    "a door's payer": "lambda: door.payer",
    "a door's bits": "lambda: door.bits",
    "a counter": "lambda: add(1)",
}
SETTING = """
import ctypes, os, signal
from discreet import Bounded, Ledger, Limit, Unit, _ownership, session
from discreet.errors import Refused
from discreet.mechanisms import DiscreteLaplace
from discreet.mechanisms._door import Door
from discreet.mechanisms.trees import StreamCounter
from discreet.noise import SecureBits

os.getpid = lambda: 1  # as in another PID namespace
unit = Unit("person")
counter = StreamCounter(DiscreteLaplace(2), steps=4)
ledger = Ledger.in_memory(unit=unit, limit=Limit(10))
bounded = Bounded(lambda: 1, sensitivity=1, unit=unit, name="one")
door, bits = Door.secure(ledger), SecureBits()
words = [bits.word()]
add = counter.begin(bits)
made = session(counter, ledger, unit=unit, name="a test")
opened = made.__enter__()
SYS_CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
ways = {
    "fork": os.fork,
    "a clone that Python doesn't see": lambda: ctypes.PyDLL(None).syscall(
        SYS_CLONE, signal.SIGCHLD, 0, 0, 0, 0
    ),
}
def child(way, use):
    reader, writer = os.pipe()
    number = ways[way]()
    if not number:
        try:
            said = str(use())
        except Refused:
            said = "refused"
        except BaseException as error:
            said = repr(error)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(number, 0)
    return os.read(reader, 4096).decode()
"""
WIPES = "linux" in sys.platform and os.uname().machine in ("x86_64", "aarch64")


def printed(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SETTING + code],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(not WIPES, reason="pages are wiped in children by Linux alone")
@pytest.mark.parametrize("use", USES)
def test_children_of_every_kind_are_refused(use: str) -> None:
    """Each has the process id of its parent; one is created without Python's fork hooks."""
    code = f"use = {USES[use]}\nfor way in ways: print(child(way, use))\nuse()\nprint('parent')"
    assert printed(code) == ["refused", "refused", "parent"]


@pytest.mark.skipif(not WIPES, reason="pages are wiped in children by Linux alone")
def test_children_of_every_kind_draw_other_words() -> None:
    code = """
draw = lambda: ",".join(str(bits.word()) for _ in range(40))
found = [word for way in ways for word in child(way, draw).split(",")]
found += [word for way in ways for word in child(way, draw).split(",")]
found += draw().split(",")
print(len(found), len(set(found)))
"""
    assert printed(code) == ["200", "200"]


def test_a_process_is_the_same_as_itself() -> None:
    before = _ownership.process()
    assert _ownership.process() == before
    assert in_child(lambda: _ownership.process() != before)
    assert in_child(lambda: _ownership.process() == _ownership.process())
    assert _ownership.process() == before
