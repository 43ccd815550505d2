"""Splits an SQL text into tokens by sqlglot, within limits.

Each token is of a listed kind, in a listed place. They cover the text, but for blanks and comments.
The words of `KEYWORDS` are all that the tokenizer knows: any other word is a name.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence

from sqlglot import Token, Tokenizer, TokenType
from sqlglot.errors import TokenError

from discreet.errors import QueryRefused
from discreet.query._expressions._aggregates import SPELLINGS
from discreet.query._expressions._sql_words import (
    A_TABLE,
    FORM,
    KEYWORDS,
    MAX_NESTING,
    NO_FUNCTION,
    NO_LIST,
    NO_SUBQUERY,
    ONE_QUESTION,
    OPENERS,
    PAIRS,
    READ_ONLY,
    REFUSED_CALLS,
    REFUSED_SIGNS,
    REFUSED_WORDS,
    SPECIAL_CALLS,
    USE_IS_NULL,
)
from discreet.query._functions._functions import CALLS

MAX_CHARACTERS = 10_000
_LONGEST_WORD = 60  # that is compared with names of functions
MAX_TOKENS = 1_000
MAX_OPERATORS = 100  # a chain of them is a tree of that depth, which is walked by recursion

_SIGNS = {
    "!=": TokenType.NEQ,
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    "%": TokenType.MOD,
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
    "[": TokenType.L_BRACKET,
    "]": TokenType.R_BRACKET,
    "||": TokenType.DPIPE,
}
_WORDS = {word: TokenType[word] for word in KEYWORDS - {"AS", *(first for first, _ in PAIRS)}} | {
    "AS": TokenType.ALIAS
}
_PAIRS = {words: TokenType[kind] for words, kind in PAIRS.items()}
_CONSTANTS = {TokenType.FALSE, TokenType.NULL, TokenType.NUMBER, TokenType.STRING, TokenType.TRUE}
_VALUE_ENDS = {*_CONSTANTS, TokenType.END, TokenType.IDENTIFIER, TokenType.R_PAREN}
_AFTER_NOT = {TokenType.BETWEEN, TokenType.IN, TokenType.LIKE, TokenType.NULL}
_BEFORE_NULL = {TokenType.ELSE, TokenType.IS, TokenType.THEN}
_TABLES = {TokenType.IDENTIFIER, TokenType.L_PAREN}
_BEFORE_SELECT = {  # R_PAREN of WITH
    *(None, TokenType.ALL, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.UNION)
}
_BEFORE_QUERY = {  # before its parenthesis
    *(TokenType.ALIAS, TokenType.ALL, TokenType.FROM, TokenType.JOIN, TokenType.L_PAREN)
}
_BEFORE_LIST = {TokenType.COMMA, TokenType.L_PAREN}  # of levels
_OPERATORS = {
    TokenType[name]
    for name in ("AND", "DASH", "DPIPE", "MOD", "OR", "PLUS", "SLASH", "STAR", "WHEN")
}
OPENING = {TokenType.CASE, TokenType.L_BRACKET, TokenType.L_PAREN}
CLOSING = {TokenType.END, TokenType.R_BRACKET, TokenType.R_PAREN}
_FUNCTIONS = {*SPELLINGS, *CALLS, *SPECIAL_CALLS}
_CLAUSES = {
    TokenType[name] for name in ("GROUP_BY", "HAVING", "LIMIT", "OFFSET", "ORDER_BY", "WHERE")
}
_PREFIXES = {TokenType.DASH, TokenType.NOT, TokenType.PLUS}

_BLANKS = re.compile(r"(?:\s|--[^\n\r]*+|/\*(?:[^*/]|\*(?!/)|/(?!\*))*+\*/)*+")
_NAME = re.compile(r"[^\W\d]\w*+")
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])")
_EXPONENTS = re.compile(  # what may hold the letters of a number, and numbers with exponents
    r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|--[^\n\r]*+|/\*.*?\*/|[^\W\d]\w*+"""
    r"|(?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[eE][+-]?[0-9]++(?![\w.]))|[0-9]++",
    re.DOTALL,
)

LOST = f"this is not expected here, or something is missing beside it; {FORM}"
_EMPTY = "there is nothing in these parentheses"
_NO_NAME = "a name stands bare or in double quotes"
_NOTHING_NAMED = "AS names the value before it, and there is none"
_NO_NUMBER = "a number is written 12, 1.5 or 1e3"
_NO_SIGN = "this sign has no meaning here"
_NO_TEXT = "a text is written '...' and means each of its characters; '' in it is one quote"


class _Tokenizer(Tokenizer):
    KEYWORDS = dict.fromkeys(REFUSED_SIGNS, TokenType.UNKNOWN) | _WORDS | _SIGNS
    SINGLE_TOKENS = dict.fromkeys(Tokenizer.SINGLE_TOKENS, TokenType.UNKNOWN) | {
        sign: kind for sign, kind in _SIGNS.items() if len(sign) == 1
    }


def check_size(text: str) -> None:
    """Refuse a text that is longer or more deeply nested than `read` allows."""
    check_characters(text)
    check_limits(tokens_of(text))


def check_characters(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise QueryRefused(
            f"the text has {len(text)} characters; a query has at most {MAX_CHARACTERS}"
        )
    for place, character in enumerate(text):
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\t\n\r":
            raise refused_at(text, place, place + 1, "control characters are not read")


def refused_at(text: str, start: int, end: int, why: str) -> QueryRefused:
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return QueryRefused(f"`{_shown(text[start:end])}` (line {line}, column {column}): {why}")


def _shown(part: str) -> str:
    short = part if len(part) <= 60 else f"{part[:50]} ..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(short.split()))


# --- tokens ---


def tokens_of(text: str) -> list[Token]:
    """sqlglot's tokens, each of a listed kind, with only blanks and comments between them. The
    column of a token is the number of its first character."""
    tokenizer = _Tokenizer()
    try:
        tokenizer.tokenize(_without_exponents(text))
        end_of_text = len(text)
    except TokenError:  # a quote has no end; the tokens before it are there
        end_of_text = None
    end = 0
    found: list[Token] = []
    for token in tokenizer.tokens:
        _check_blanks(text, end, token.start)
        found.append(_joined(text, token, found))
        end = token.end + 1
    _check_blanks(text, end, end_of_text)
    while found and found[-1].token_type is TokenType.SEMICOLON:
        found.pop()
    if found and found[0].text.upper() not in {"SELECT", "WITH", *REFUSED_WORDS}:
        raise refused_at(text, found[0].start, found[0].end + 1, READ_ONLY)
    for token, after in zip(found, [*found[1:], None], strict=False):
        _classify(text, token, after)
    return found


def _without_exponents(text: str) -> str:
    """The text with other digits for each exponent, since sqlglot reads 1e5+1 as one number.
    Places, quotes and comments stay the same, and `_joined` takes numbers from the text itself."""
    return _EXPONENTS.sub(lambda found: "0" * len(found[0]) if found["number"] else found[0], text)


def _check_blanks(text: str, start: int, end: int | None) -> None:
    """Refuse anything but blanks and standard comments: sqlglot takes more for a comment, and one
    without an end for a whole one."""
    blank = _BLANKS.match(text, start, len(text) if end is None else end)
    stop = blank.end() if blank else start
    if stop != end:
        sign = (
            text[stop : stop + 2]
            if text[stop : stop + 2] in REFUSED_SIGNS
            else text[stop : stop + 1]
        )
        raise refused_at(text, stop, stop + len(sign), REFUSED_SIGNS.get(sign, _NO_SIGN))


def _joined(text: str, token: Token, found: list[Token]) -> Token:
    """The token, which takes up the one before it where they are .5 or two words that are one."""
    kind, start = token.token_type, token.start
    before = text[found[-1].start : found[-1].end + 1].upper() if found else ""
    if kind is TokenType.NUMBER and before == "." and found[-1].end + 1 == start:
        start = found.pop().start
    elif kind is TokenType.VAR and (before, token.text.upper()) in _PAIRS:
        kind, start = _PAIRS[before, token.text.upper()], found.pop().start
    is_quoted = kind in (TokenType.IDENTIFIER, TokenType.STRING)
    written = token.text if is_quoted else text[start : token.end + 1]
    return Token(kind, written, col=start, start=start, end=token.end)


def _classify(text: str, token: Token, after: Token | None) -> None:
    """Refuse a token without a meaning; make words names, except calls and the DATE of a day."""
    # 1. the kind of word, sign or number
    kind, written = token.token_type, token.text
    word = written.upper() if written.isascii() else written  # the upper case of the long s is S
    is_word = kind is TokenType.VAR or (kind in _WORDS.values() and word not in _WORDS)
    is_before_text = after is not None and after.token_type is TokenType.STRING
    is_prefix = is_word and is_before_text and after is not None and after.start == token.end + 1
    is_name = is_word or kind is TokenType.IDENTIFIER
    is_called = is_name and after is not None and after.token_type is TokenType.L_PAREN
    is_unknown = is_called and not (is_word and (word in _FUNCTIONS or word in OPENERS))
    number = _NUMBER.match(text, token.start)
    # 2. a reason to refuse it
    for applies, why in (
        (kind is TokenType.UNKNOWN, REFUSED_SIGNS.get(written, _NO_SIGN)),
        (is_called and is_word and word in REFUSED_CALLS, REFUSED_CALLS.get(word)),
        (is_word and word in REFUSED_WORDS, REFUSED_WORDS.get(word)),
        (is_unknown, _no_function(word) if is_unknown else None),
        (is_word and not _NAME.fullmatch(written), REFUSED_SIGNS.get(written[:1], _NO_SIGN)),
        (kind is TokenType.NATIONAL_STRING or (is_prefix and word != "DATE"), _NO_TEXT),
        (kind is TokenType.NUMBER and not (number and number.end() == token.end + 1), _NO_NUMBER),
        (kind is TokenType.IDENTIFIER and not written, REFUSED_SIGNS['"']),
    ):
        if applies:
            end = after.end if is_called and after is not None else token.end
            raise refused_at(text, token.start, end + 1, str(why))
    # 3. its meaning for the parser
    if is_word and word == "DATE" and is_before_text:
        token.token_type = TokenType.DATE
    elif is_called and word in OPENERS:
        token.token_type = TokenType[word]
    elif is_word and not is_called:
        token.token_type = TokenType.IDENTIFIER


def _no_function(word: str) -> str:
    close = difflib.get_close_matches(word[:_LONGEST_WORD], sorted(_FUNCTIONS))
    if not close:
        return NO_FUNCTION
    why, _, where_all_are = NO_FUNCTION.partition(", such as")[0].partition("; ")
    nearest = " or ".join(filter(None, [", ".join(close[:-1]), close[-1]]))
    return f"{why}; did you mean {nearest}? {where_all_are}"


def check_places(text: str, found: Sequence[Token]) -> None:
    """Refuse more than one SELECT, a compared NULL, and a NOT that negates nothing."""
    # each token, with the two before it and the one after it
    kinds = [None, None, *(token.token_type for token in found), None]
    has_sets = False  # in which () is a total over all groups
    for token, earlier, before, kind, next_kind in zip(
        found, kinds, kinds[1:], kinds[2:], kinds[3:], strict=False
    ):
        is_after_value = before in _VALUE_ENDS
        is_tested = before in _BEFORE_NULL or (
            before is TokenType.NOT and (earlier is TokenType.IS or earlier in _VALUE_ENDS)
        )
        is_extract = earlier is TokenType.L_PAREN and before is TokenType.IDENTIFIER
        is_list = before in (TokenType.IN, TokenType.VAR, TokenType.OVER) or has_sets
        has_sets |= kind is TokenType.GROUPING_SETS
        is_query = before in _BEFORE_SELECT and (
            before is not TokenType.L_PAREN or earlier in _BEFORE_QUERY
        )
        is_empty = kind is TokenType.L_PAREN and next_kind is TokenType.R_PAREN and not is_list
        negates = next_kind in _AFTER_NOT
        for applies, why in (
            (kind is TokenType.SELECT and not is_query, NO_SUBQUERY),
            (is_empty, _EMPTY),
            (kind is TokenType.L_BRACKET and before not in _BEFORE_LIST, NO_LIST),
            (kind is TokenType.FROM and next_kind not in _TABLES and not is_extract, A_TABLE),
            (kind is TokenType.SEMICOLON, ONE_QUESTION),
            (kind is TokenType.NULL and not is_tested, USE_IS_NULL),
            (kind is TokenType.NOT and is_after_value and not negates, LOST),
            (kind is TokenType.ALIAS and next_kind not in _TABLES, _NO_NAME),
            (kind is TokenType.ALIAS and before is TokenType.SELECT, _NOTHING_NAMED),
            (kind in _CLAUSES and next_kind is None, LOST),
        ):
            if applies:
                raise refused_at(text, token.start, token.end + 1, why)


def check_limits(found: Sequence[Token]) -> None:
    operators = sum(token.token_type in _OPERATORS for token in found)
    for name, number, most, advice in (
        ("words and signs", len(found), MAX_TOKENS, "ask for less at a time"),
        (
            "AND, OR, WHEN, + - * / % ||",
            operators,
            MAX_OPERATORS,
            "compare with many values by IN (...)",
        ),
        ("nested parentheses and NOT", _nesting(found), MAX_NESTING, "write it flatter"),
    ):
        if number > most:
            raise QueryRefused(f"the query has {number} {name}; it may have {most}: {advice}")


def _nesting(found: Iterable[Token]) -> int:
    """The largest number of parentheses, CASE and prefixes that are open at one place."""
    deepest, prefixes, opened = 0, 0, [0]
    for token in found:
        if token.token_type in _PREFIXES:
            prefixes += 1
        elif token.token_type in OPENING:
            opened.append(opened[-1] + prefixes + 1)
            prefixes = 0
        else:
            if token.token_type in CLOSING and len(opened) > 1:
                opened.pop()
            prefixes = 0
        deepest = max(deepest, opened[-1] + prefixes)
    return deepest
