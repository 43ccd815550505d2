"""The field of a form that a refusal is about, by the label that the page shows.

Requests name their members, and a declaration's file its settings. A form's page says the same with
the label of the field, and marks it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.query._toml._located_toml import dotted
from discreet.service._problems import BAD_BODY, Problem
from discreet.service.pages._visit import in_words

_LOCATED = re.compile(r"[^\s:]*discreet\.toml(?:, line \d+)?: |[^\n:]*\.toml, line \d+: ")
_MEMBER = re.compile(r": (?:look at|give) (\w+)$")
_VALUE = re.compile(r" = .*?: |: | (?=is declared as )", re.DOTALL)
# what an error says of a declaration's file, and how the fields of a form have it
_FOR_FIELDS = (
    (re.compile(r"^(\w+): (?=give )"), ""),
    (
        re.compile(r"^a column of type (\w+) has no (\w+), only .*$"),
        r"a column of type \1 takes none: empty this field",
    ),
    (re.compile(r"\[(1980, 1981)\]"), r"\1"),
    (re.compile(r'"(1980\.\.1987)"'), r"\1"),
    (re.compile(r"\blower\b"), "“from”"),
    (re.compile(r"\bupper\b"), "“to”"),
)
_NUMBER = "with a point and without blanks"
ALLOWED = {
    "epsilon": f"give a number above 0, such as 0.5, {_NUMBER}",
    "delta": f"give a number from 0 up to, but not including, 1, such as 1e-6, {_NUMBER}",
    "within": f"give a number above 0, such as 50, {_NUMBER}",
    "group_size": "give a whole number, 1 or above",
    "days": "give a whole number, 1 or above",
    "rows": "give a whole number, 1 or above",
    "groups": "give a whole number, 1 or above",
    "name": "give a name of at most 200 characters, without /",
    "share": "give a name of at most 200 characters, without /",
    "reason": "give a reason",
    "sql": "give a question",
}


class FieldProblem(Problem):
    """A form is refused for one of its fields."""

    def __init__(self, field: str, text: str) -> None:
        """The name of the field in the form, and what it may hold."""
        super().__init__(BAD_BODY, f"{BAD_BODY.text}: {text}")
        self.field, self.allowed = field, text


@dataclass(frozen=True, slots=True)
class FormField:
    """A field: its id on the page, its label there, its name in the form, and the names that
    requests and declarations have for it."""

    id: str
    label: str
    name: str
    spellings: tuple[str, ...] = ()

    @staticmethod
    def of(name: str, label: str, *spellings: str) -> "FormField":
        """A field whose id is its name."""
        return FormField(name, label, name, (name, *spellings))


@dataclass(frozen=True, slots=True)
class FormRefusal:
    """A refusal as a page shows it: in words, with the field that it is about, if there is one."""

    text: str
    field: FormField | None = None

    @property
    def words(self) -> str:
        """The refusal with the label of the field."""
        return self.text if self.field is None else f"{self.field.label}: {self.text}"


def setting_of(table: str, *keys: str) -> str:
    """The name of a table's setting in errors about the declaration's file."""
    return dotted(("tables", table, *keys))


def refusal_of(problem: Problem, fields: Sequence[FormField]) -> FormRefusal:
    """The refusal, with the one of these fields that it names."""
    # 1. by the page's own checks
    if isinstance(problem, FieldProblem):
        named = (one for one in fields if one.name == problem.field)
        return FormRefusal(problem.allowed, next(named, None))
    # 2. by the limits of requests, which name a member
    text = str(problem)
    if problem.kind is BAD_BODY and (member := _MEMBER.search(text)):
        for field in fields:
            if member[1] in (field.name, *field.spellings):
                return FormRefusal(ALLOWED.get(field.name, "give another value"), field)
    # 3. by errors that begin with a setting or an argument
    bare = _LOCATED.sub("", text, count=1)
    for field in fields:
        for spelling in sorted(field.spellings, key=len, reverse=True):
            said = _VALUE.match(bare, len(spelling)) if bare.startswith(spelling) else None
            if said is not None:
                return FormRefusal(_for_fields(bare[said.end() :]), field)
    return FormRefusal(in_words(problem))


def _for_fields(text: str) -> str:
    for pattern, words in _FOR_FIELDS:
        text = pattern.sub(words, text)
    return text
