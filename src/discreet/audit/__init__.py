"""Attacks on mechanisms: on those of this library, and on any others.

`black_box` measures a lower bound on the privacy loss from outputs on neighbouring datasets
(`_black_box`, with `_draws`, `_canonical`, `_outputs`, `_scores`, `_guesses`, `_certified`,
`_result`). `neighbours` makes pairs of datasets (`_neighbours`), and `search_pairs` looks for
the worst pair (`_pair_search`). `report` puts any audit in words (`_report`, `_report_words`).
`membership` lets an attacker guess who took part in a run, such as a training, and measures a lower
bound from one run (`_membership`, `_one_run`, `_stored_runs`, `_code_digest`). `exact` computes the
privacy of a finite mechanism from the probabilities of its outcomes (`_exact_privacy`).
`reconstruct` rebuilds secret bits from many counts, and `exposed` lists the units whose secret bit
follows from exact counts (`_reconstruction`). `misuse` makes common mistakes with a live object
(`_misuse`).

Nothing here is for production: bits are not secret, and no ledger is charged. `_bits` has sources
of random words that can be seeded, scripted, recorded and replayed, or that make all noise zero.
`_replay` runs an action on a table and on a neighbouring table with the same words, and compares
everything that may not differ; `replay_pipeline` and `replay_pairs` do so with any function of a
table, whatever it draws from (`_pipeline`, with `_output_parts`, `_output_facts`, `_watch`,
`_word_streams`). A
`Door` with these bits is insecure, and each release that comes through it says so.
"""

from discreet.audit._bits import OutOfWords, RecordingBits, ScriptedBits, SeededBits, ZeroNoiseBits
from discreet.audit._black_box import black_box
from discreet.audit._certified import GuessCount
from discreet.audit._exact_privacy import ExactPrivacy, WorstEvent, exact
from discreet.audit._membership import MembershipResult, membership
from discreet.audit._misuse import MisuseAttempt, MisuseResult, misuse
from discreet.audit._neighbours import neighbours
from discreet.audit._one_run import RightGuesses
from discreet.audit._pair_search import search_pairs
from discreet.audit._pipeline import (
    PairDifference,
    PipelineResult,
    replay_pairs,
    replay_pipeline,
)
from discreet.audit._reconstruction import (
    Exposure,
    Reconstruction,
    exposed,
    group_matrix,
    reconstruct,
)
from discreet.audit._replay import Difference, Run, replay
from discreet.audit._report import AuditReport, FigureTable
from discreet.audit._report_words import report
from discreet.audit._result import BlackBoxResult

__all__ = [
    "AuditReport",
    "BlackBoxResult",
    "Difference",
    "ExactPrivacy",
    "Exposure",
    "FigureTable",
    "GuessCount",
    "MembershipResult",
    "MisuseAttempt",
    "MisuseResult",
    "OutOfWords",
    "PairDifference",
    "PipelineResult",
    "Reconstruction",
    "RecordingBits",
    "RightGuesses",
    "Run",
    "ScriptedBits",
    "SeededBits",
    "WorstEvent",
    "ZeroNoiseBits",
    "black_box",
    "exact",
    "exposed",
    "group_matrix",
    "membership",
    "misuse",
    "neighbours",
    "reconstruct",
    "replay",
    "replay_pairs",
    "replay_pipeline",
    "report",
    "search_pairs",
]
