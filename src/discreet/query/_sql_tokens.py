"""Splits an SQL text into tokens of a closed list, few and flat enough to be parsed.

Words, signs, numbers and texts are read as in the SQL standard; everything else is refused, with
its place. So sqlglot's parser only meets the kinds of tokens below: no extension of a dialect, and
nothing that makes it recurse without end.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Token, TokenType

from discreet import _checks
from discreet.errors import QueryRefused
from discreet.query._sql_words import (
    FORM,
    FUNCTIONS,
    NO_FUNCTION,
    NO_SUBQUERY,
    ONE_QUESTION,
    ONE_TABLE,
    READ_ONLY,
    REFUSED_CALLS,
    REFUSED_SIGNS,
    REFUSED_WORDS,
    USE_IS_NULL,
)

MAX_CHARACTERS = 10_000
MAX_TOKENS = 1_000
MAX_OPERATORS = 100  # a chain of them is a tree of that depth, which is walked by recursion
MAX_NESTING = 24  # sqlglot uses 24 of Python's 1000 frames for each parenthesis

_WORDS = {
    "AND": TokenType.AND,
    "AS": TokenType.ALIAS,
    "BETWEEN": TokenType.BETWEEN,
    "FALSE": TokenType.FALSE,
    "FROM": TokenType.FROM,
    "GROUP BY": TokenType.GROUP_BY,
    "IN": TokenType.IN,
    "IS": TokenType.IS,
    "NOT": TokenType.NOT,
    "NULL": TokenType.NULL,
    "OR": TokenType.OR,
    "SELECT": TokenType.SELECT,
    "TRUE": TokenType.TRUE,
    "WHERE": TokenType.WHERE,
}
_SIGNS = {
    "!=": TokenType.NEQ,
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    "*": TokenType.STAR,
    "+": TokenType.PLUS,
    ",": TokenType.COMMA,
    "-": TokenType.DASH,
    ".": TokenType.DOT,
    "/": TokenType.SLASH,
    ";": TokenType.SEMICOLON,
    "<": TokenType.LT,
    "<=": TokenType.LTE,
    "<>": TokenType.NEQ,
    "=": TokenType.EQ,
    ">": TokenType.GT,
    ">=": TokenType.GTE,
}
_KINDS = _WORDS | _SIGNS
_ADVICE = REFUSED_WORDS | REFUSED_SIGNS

_BLANK = r"(?:\s|--[^\n\r]*+|/\*(?:[^*/]|\*(?!/)|/(?!\*))*+\*/)"
_SIGN = "|".join(re.escape(s) for s in sorted(_SIGNS | REFUSED_SIGNS, key=len, reverse=True))
_LEXEME = re.compile(
    rf"(?P<blank>{_BLANK}++)"
    r"|(?P<text>'(?:[^']|'')*+')"
    r'|(?P<name>"(?:[^"]|"")++")'
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))"
    rf"|(?P<grouping>(?i:GROUP){_BLANK}++(?i:BY)(?!\w))"
    r"|(?P<word>[^\W\d]\w*+)"
    rf"|(?P<sign>{_SIGN})"
    r"|(?P<unknown>.)"
)
_OPERATORS = {
    TokenType.AND,
    TokenType.DASH,
    TokenType.OR,
    TokenType.PLUS,
    TokenType.SLASH,
    TokenType.STAR,
}
_PREFIXES = {TokenType.DASH, TokenType.NOT, TokenType.PLUS}
_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP BY")
_CLAUSE_KINDS = {_WORDS[clause] for clause in _CLAUSES}
_CONSTANTS = {TokenType.FALSE, TokenType.NULL, TokenType.NUMBER, TokenType.STRING, TokenType.TRUE}
_VALUE_ENDS = {*_CONSTANTS, TokenType.IDENTIFIER, TokenType.R_PAREN}
_VALUE_STARTS = {
    *_CONSTANTS,
    TokenType.IDENTIFIER,
    TokenType.DATE,
    TokenType.L_PAREN,
    TokenType.VAR,
}
_INFIXES = {_KINDS[word] for word in _KINDS.keys() - _CLAUSES} - {
    *_CONSTANTS,
    TokenType.DASH,
    TokenType.L_PAREN,
    TokenType.NOT,
    TokenType.R_PAREN,
    TokenType.SEMICOLON,
    TokenType.STAR,
}
_IN_FROM = {*_CLAUSE_KINDS, TokenType.ALIAS, TokenType.COMMA, TokenType.DOT, TokenType.IDENTIFIER}
_OPENERS = _KINDS.keys() - {"TRUE", "FALSE", "NULL", ")", "*", ";"}
_CLOSERS = {"", ",", ")", ";", "FROM", "WHERE", "GROUP BY"}

_AMISS = "the clauses of a query have another order"
_NUMBER = "a number is written 12, 1.5 or 1e3"
_NO_SIGN = "this sign has no meaning here"
_MISSING_AFTER = "something is missing after this"
_MISSING_BEFORE = "something is missing before this"
_PLAIN_NAME = "a name stands bare or in double quotes"
_PLAIN_TEXT = "a text is written '...' and means each of its characters; '' in it is one quote"


@dataclass(frozen=True, slots=True)
class _Lexeme:
    """A piece of the text: its kind, its spelling, its start, and its word or sign as in the
    tables."""

    kind: str
    written: str
    start: int
    word: str

    @property
    def end(self) -> int:
        return self.start + len(self.written)


_NOTHING = _Lexeme("nothing", "", 0, "")


def tokens(text: str) -> list[Token]:
    """The tokens of one SELECT statement for sqlglot's parser. The column of a token is the number
    of its first character."""
    if isinstance(text, str):
        _check_characters(text)
    _checks.text(sql=text)
    lexemes = list(_lexemes(text))
    if not lexemes:
        raise QueryRefused(f"the text is empty; {FORM}")
    found = list(_spelled(text, lexemes))
    while found[-1].token_type is TokenType.SEMICOLON:
        found.pop()
    _check_order(text, found)
    _check_limits(found)
    return found


def refused(text: str, start: int, end: int, why: str) -> QueryRefused:
    """The error for a part of the text: the part, its place, and what is possible."""
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return QueryRefused(f"`{_shown(text[start:end])}` (line {line}, column {column}): {why}")


def _shown(part: str) -> str:
    short = part if len(part) <= 60 else f"{part[:50]} ..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(short.split()))


def _check_characters(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise QueryRefused(
            f"the text has {len(text)} characters; a query has at most {MAX_CHARACTERS}"
        )
    for place, character in enumerate(text):
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\t\n\r":
            raise refused(text, place, place + 1, "control characters are not read")


def _lexemes(text: str) -> Iterator[_Lexeme]:
    for match in _LEXEME.finditer(text):
        kind, written = str(match.lastgroup), match.group()
        if kind != "blank":
            upper = (
                written.upper() if written.isascii() else written
            )  # the upper case of the long s is S
            word = "GROUP BY" if kind == "grouping" else upper
            yield _Lexeme(kind, written, match.start(), word)


def _spelled(text: str, lexemes: Sequence[_Lexeme]) -> Iterator[Token]:
    neighbours = zip([_NOTHING, *lexemes], lexemes, [*lexemes[1:], _NOTHING], strict=False)
    for before, one, after in neighbours:
        why = _complaint(before, one, after)
        if why is not None:
            shows_next = one.word == "FROM" or after.word == "("
            raise refused(text, one.start, after.end if shows_next else one.end, why)
        kind, spelling = _SPELLINGS[one.kind](one, after)
        yield Token(kind, spelling, col=one.start, start=one.start, end=one.end - 1)


def _complaint(before: _Lexeme, one: _Lexeme, after: _Lexeme) -> str | None:
    """The first reason why this piece can't stand here, or None."""
    word, is_first = one.word, before is _NOTHING
    is_name = one.kind in ("word", "name") and word not in _WORDS
    is_called = is_name and after.word == "("
    is_prefixed = one.kind == "text" and before.kind == "word" and before.end == one.start
    reasons = (
        (one.kind == "unknown", _NUMBER if word in ".0123456789" else _NO_SIGN),
        (is_first and word != "SELECT", _ADVICE.get(word, READ_ONLY)),
        (not is_first and word == "SELECT", NO_SUBQUERY),
        (is_called and word in REFUSED_CALLS, REFUSED_CALLS.get(word)),
        (word in _ADVICE, _ADVICE.get(word)),
        (is_called and word not in FUNCTIONS, NO_FUNCTION),
        (word == "GROUP", "write GROUP BY and keys"),
        (word == "FROM" and after.kind not in ("word", "name"), ONE_TABLE),
        (word == "NULL" and before.word not in ("IS", "NOT"), USE_IS_NULL),
        (word == ";" and after.word not in ("", ";"), ONE_QUESTION),
        (word in _OPENERS and after.word in _CLOSERS, _MISSING_AFTER),
        (before.word == "AS" and not is_name, _PLAIN_NAME),
        (is_prefixed and before.word not in {*_WORDS, "DATE"}, _PLAIN_TEXT),
    )
    return next((why for applies, why in reasons if applies), None)


def _spelled_word(one: _Lexeme, after: _Lexeme) -> tuple[TokenType, str]:
    if one.word in _WORDS:
        return _WORDS[one.word], one.word
    if one.word == "DATE" and after.kind == "text":
        return TokenType.DATE, one.word
    if after.word == "(":
        return TokenType.VAR, FUNCTIONS[one.word]
    return TokenType.IDENTIFIER, one.written


def _unquoted(one: _Lexeme) -> str:
    quote = one.written[0]
    return one.written[1:-1].replace(quote * 2, quote)


_SPELLINGS: dict[str, Callable[[_Lexeme, _Lexeme], tuple[TokenType, str]]] = {
    "grouping": _spelled_word,
    "name": lambda one, _: (TokenType.IDENTIFIER, _unquoted(one)),
    "number": lambda one, _: (TokenType.NUMBER, one.written),
    "sign": lambda one, _: (_SIGNS[one.word], one.word),
    "text": lambda one, _: (TokenType.STRING, _unquoted(one)),
    "word": _spelled_word,
}


def _check_order(text: str, found: Sequence[Token]) -> None:
    """Refuse clauses in a wrong order, and values without a sign or word between them."""
    clause = 0
    for before, token in pairwise(found):
        kind, is_after_value = token.token_type, before.token_type in _VALUE_ENDS
        is_negated = before.token_type is TokenType.NOT and kind in (
            TokenType.BETWEEN,
            TokenType.IN,
        )
        is_name_given = kind is TokenType.IDENTIFIER and clause < _CLAUSES.index("WHERE")
        reasons = (
            (token.text in _CLAUSES[: clause + 1] and kind in _CLAUSE_KINDS, _AMISS),
            (is_after_value and kind in _VALUE_STARTS and not is_name_given, _MISSING_BEFORE),
            (clause == _CLAUSES.index("FROM") and kind not in _IN_FROM, ONE_TABLE),
            (kind in _INFIXES and not is_after_value and not is_negated, _MISSING_BEFORE),
        )
        for applies, why in reasons:
            if applies:
                raise refused(text, token.start, token.end + 1, f"{why}; {FORM}")
        if kind in _CLAUSE_KINDS:
            clause = _CLAUSES.index(token.text)


def _check_limits(found: Sequence[Token]) -> None:
    operators = sum(token.token_type in _OPERATORS for token in found)
    for name, number, most, advice in (
        ("words and signs", len(found), MAX_TOKENS, "ask for less at a time"),
        ("AND, OR, + - * /", operators, MAX_OPERATORS, "compare with many values by IN (...)"),
        ("nested parentheses and NOT", _nesting(found), MAX_NESTING, "write it flatter"),
    ):
        if number > most:
            raise QueryRefused(f"the query has {number} {name}; it may have {most}: {advice}")


def _nesting(found: Iterable[Token]) -> int:
    """The largest number of parentheses and prefixes that are open at one place."""
    deepest, prefixes, opened = 0, 0, [0]
    for token in found:
        if token.token_type in _PREFIXES:
            prefixes += 1
        elif token.token_type is TokenType.L_PAREN:
            opened.append(opened[-1] + prefixes + 1)
            prefixes = 0
        else:
            if token.token_type is TokenType.R_PAREN and len(opened) > 1:
                opened.pop()
            prefixes = 0
        deepest = max(deepest, opened[-1] + prefixes)
    return deepest
