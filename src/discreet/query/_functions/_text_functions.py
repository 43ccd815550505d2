"""The rows of functions of texts.

They take texts of at most 4 096 bytes in valid UTF-8; any other text is NULL to them. The time of a
search grows with the product of the lengths of text and pattern, so both are limited. No row makes
the engine fail, and none makes an answer take much longer. A character is a code point.
"""

from typing import Any

from discreet.errors import QueryRefused
from discreet.query._facts._columns import ColumnType
from discreet.query._functions._scalar_rules import (
    CONSTANT_NUMBER,
    CONSTANT_TEXT,
    TEXTS,
    ArgumentFacts,
    EngineValue,
    Form,
    ScalarFacts,
    ScalarFunction,
    ScalarRule,
    number_facts,
    whole_constant,
)

LONGEST = 2**12  # bytes of a text
LONGEST_PATTERN = 200  # characters


def _text_facts(_: ArgumentFacts) -> ScalarFacts:
    return ScalarFacts(ColumnType.TEXT, None, None, can_be_null=True)


def _length_facts(_: ArgumentFacts) -> ScalarFacts:
    return number_facts(ColumnType.INTEGER, 0, LONGEST, can_be_null=True)


def _like_facts(given: ArgumentFacts) -> ScalarFacts:
    if len(str(given[1].constant)) > LONGEST_PATTERN:
        raise QueryRefused(f"a pattern has at most {LONGEST_PATTERN} characters")
    return ScalarFacts(ColumnType.BOOLEAN, None, None, can_be_null=True)


def _like(_: ScalarFacts, value: EngineValue, pattern: str) -> EngineValue:
    """By a regular expression, since the engine searches these in linear time."""
    signs = {"%": ".*", "_": "."}
    searched = "".join(signs.get(sign) or rf"\x{{{ord(sign):x}}}" for sign in pattern)
    return value.re_search(rf"(?s)\A{searched}\z")


def _substr_facts(given: ArgumentFacts) -> ScalarFacts:
    whole_constant(given[1], "the place of the first character", 1, LONGEST)
    if given[2:]:
        whole_constant(given[2], "the number of characters", 0, LONGEST)
    return _text_facts(given)


def _substr(_: ScalarFacts, value: EngineValue, first: Any, count: Any = LONGEST) -> EngineValue:
    return value.substr(int(first) - 1, int(count))


def _substr_of_key(value: str, first: Any, count: Any = LONGEST) -> str:
    return value[int(first) - 1 :][: int(count)]


def _lower_of_key(value: str) -> str:
    """Unicode's simple mapping, which has one character for each."""
    return "".join("i" if sign == "\u0130" else sign.lower() for sign in value)


def _upper_of_key(value: str) -> str:
    if any(len(sign.upper()) > 1 for sign in value):
        raise QueryRefused(f"the key {value!r} has a letter without a single capital letter")
    return "".join(sign.upper() for sign in value)


TEXT_RULES = (
    ScalarRule(ScalarFunction.LIKE, (TEXTS, CONSTANT_TEXT), _like_facts, _like, Form.INFIX),
    ScalarRule(
        ScalarFunction.LOWER,
        (TEXTS,),
        _text_facts,
        lambda _, value: value.lower(),
        of_key=_lower_of_key,
        other_spellings=("LCASE",),
    ),
    ScalarRule(
        ScalarFunction.UPPER,
        (TEXTS,),
        _text_facts,
        lambda _, value: value.upper(),
        of_key=_upper_of_key,
        other_spellings=("UCASE",),
    ),
    ScalarRule(
        ScalarFunction.TRIM,
        (TEXTS,),
        _text_facts,
        lambda _, value: value.re_replace("^ +| +$", ""),
        of_key=lambda value: value.strip(" "),
    ),
    ScalarRule(
        ScalarFunction.SUBSTR,
        (TEXTS, CONSTANT_NUMBER, CONSTANT_NUMBER),
        _substr_facts,
        _substr,
        optional=1,
        of_key=_substr_of_key,
        other_spellings=("SUBSTRING",),
    ),
    ScalarRule(
        ScalarFunction.LENGTH,
        (TEXTS,),
        _length_facts,
        lambda _, value: value.length(),
        of_key=len,
        other_spellings=("CHAR_LENGTH", "CHARACTER_LENGTH", "LEN"),
    ),
    ScalarRule(
        ScalarFunction.CONCAT,
        (TEXTS, TEXTS),
        _text_facts,
        lambda _, left, right: left + right,
        Form.INFIX,
        of_key=lambda left, right: left + right,
    ),
)
