"""The report of an audit: one noun and one template for all kinds of audits.

`AuditReport` holds the sentences and figures, and shows them as a page of HTML or as JSON. The
sentences about each kind of result are made in `_report_words`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from discreet import _html

Sentences = tuple[str, ...]

_STYLE = "font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em"
_HEADS = {
    "claimed": "Claimed",
    "tried": "Tried",
    "found": "Found",
    "meaning": "Meaning for one person",
    "not_tried": "Not tried",
}


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Figures of a report: a caption, the heads of columns, and rows of texts."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class AuditReport:
    """An audit in words, for people who are not specialists.

    ``verdict`` is one sentence, and ``has_fault`` says whether the audit found a fault. The other
    texts are the sentences of each part: the claim, the trials, the finding, its meaning for one
    person, and everything that was not tried. ``evidence`` is the result as JSON.
    """

    verdict: str
    has_fault: bool
    claimed: Sentences
    tried: Sentences
    found: Sentences
    meaning: Sentences
    not_tried: Sentences
    evidence: str
    figures: FigureTable | None = None

    def html(self) -> str:
        """The report as one page of HTML, without scripts."""
        verdict = escape(self.verdict)
        parts = "".join(self._section(name, head) for name, head in _HEADS.items())
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{verdict}</title>'
            f'<body style="{_STYLE}"><h1>{verdict}</h1>{parts}</body></html>\n'
        )

    def json(self) -> str:
        """The report as JSON: the sentences of each part, and the evidence."""
        parts = {name: getattr(self, name) for name in _HEADS}
        evidence = json.loads(self.evidence)
        found = {"verdict": self.verdict, "has_fault": self.has_fault, **parts}
        return json.dumps({**found, "evidence": evidence}, indent=2)

    def _section(self, name: str, head: str) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in getattr(self, name))
        figures = ""
        if name == "found" and self.figures is not None:
            shown = self.figures
            figures = _html.table(shown.caption, shown.heads, shown.rows)
        return f"<h2>{escape(head)}</h2>{lines}{figures}"

    def _repr_html_(self) -> str:
        return self.html()
