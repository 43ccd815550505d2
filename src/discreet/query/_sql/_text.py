"""Reads an SQL text by sqlglot, within limits, and refuses what sqlglot would pass over.

`_tokens` splits the text, and sqlglot parses the tokens. The tree, written as SQL again, must
have the same tokens. So no part of a text is ignored.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot import ErrorLevel, Generator, Parser, Token, TokenType, exp
from sqlglot.errors import ParseError

from discreet import _checks
from discreet.errors import QueryRefused
from discreet.query._expressions._sql_words import (
    FORM,
    ONE_QUESTION,
)
from discreet.query._sql._hints import unexpected
from discreet.query._sql._tokens import (
    CLOSING,
    OPENING,
    check_characters,
    check_limits,
    check_places,
    refused_at,
    tokens_of,
)


class _Parser(Parser):
    """Parses every call as a call by name. A name is never taken for a word of SQL: every word that
    has a meaning here is a token of its own kind."""

    # x - x % 10 is x - (x % 10), as in each engine; sqlglot has % beside + and -
    TERM: ClassVar[dict[Any, Any]] = {  # Any: as sqlglot has it
        kind: node for kind, node in Parser.TERM.items() if kind is not TokenType.MOD
    }
    FACTOR: ClassVar[dict[Any, Any]] = Parser.FACTOR | {TokenType.MOD: exp.Mod}  # Any: the same
    FUNCTIONS: ClassVar[dict[str, Any]] = {}  # Any: as sqlglot has it
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {  # Any: the same
        "EXTRACT": lambda self: self.extract()
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {  # Any: the same
        "CASE": lambda self: self._parse_case()
    }

    def extract(self) -> exp.Extract:
        """EXTRACT(part FROM value), of which the first parenthesis is read."""
        part = self._parse_id_var()
        self._match(TokenType.FROM)
        return self.expression(exp.Extract(this=part, expression=self._parse_disjunction()))

    def _parse_ordered(self, _: Any = None) -> Any:  # Any: as sqlglot has it
        """A value by which rows are sorted, with its words as they are written: sqlglot forgets
        whether they are."""
        value = self._parse_disjunction()
        directions = {TokenType.ASC: "ASC", TokenType.DESC: "DESC"}
        places = {TokenType.FIRST: "NULLS FIRST", TokenType.FINAL: "NULLS LAST"}
        words = {
            part: kinds[self._prev.token_type] if self._match_set(kinds) else ""
            for part, kinds in (("desc", directions), ("nulls_first", places))
        }
        return value and self.expression(exp.Ordered(this=value, **words))

    def _parse_window(self, this: Any, alias: bool = False) -> Any:  # noqa: FBT001, FBT002  # Any, bool: as sqlglot has it
        """Read the clauses after a call: WITHIN GROUP (ORDER BY value), and windows."""
        if self._match(TokenType.ORDERED):
            order = self._parse_wrapped(self._parse_order)
            this = self.expression(exp.WithinGroup(this=this, expression=order))
        return super()._parse_window(this, alias)

    def _parse_group(self, skip_group_by_token: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002  # the same
        """GROUP BY and its elements, in their order: sqlglot forgets the order of totals."""
        if not self._match(TokenType.GROUP_BY):
            return None
        if self._match_set((TokenType.ALL, TokenType.DISTINCT)):
            return self.expression(exp.Group(all=self._prev.token_type is TokenType.ALL))
        elements = self._parse_csv(
            lambda: (
                self._parse_grouping_sets()
                or self._parse_cube_or_rollup()
                or self._parse_disjunction()
            )
        )
        return self.expression(exp.Group(expressions=elements))

    def _parse_limit(
        self,
        this: Any = None,  # Any: as sqlglot has it
        top: bool = False,  # noqa: ARG002, FBT001, FBT002  # the same
        skip_limit_token: bool = False,  # noqa: ARG002, FBT001, FBT002  # the same
    ) -> Any:  # Any: the same
        """LIMIT and a value, and none of the other forms that sqlglot reads."""
        if not self._match(TokenType.LIMIT):
            return this
        return self.expression(exp.Limit(this=this, expression=self._parse_term()))

    def _match_text_seq(self, *texts: Any, advance: bool = True) -> Any:  # Any: as sqlglot has it
        if self._curr and self._curr.token_type is TokenType.IDENTIFIER:
            return None
        return super()._match_text_seq(*texts, advance=advance)


class _Generator(Generator):
    TRANSFORMS = Generator.TRANSFORMS | {
        exp.Array: lambda self, node: f"[{self.expressions(node, flat=True)}]",
        exp.Cast: lambda self, node: f"DATE {self.sql(node, 'this')}",  # no other cast is parsed
        exp.Ordered: lambda self, node: " ".join(
            filter(None, (self.sql(node, "this"), node.args["desc"], node.args["nulls_first"]))
        ),
    }


@dataclass(frozen=True, slots=True)
class SqlText:
    """The tree of one SELECT statement, and the text and the tokens that it came from."""

    select: exp.Select
    text: str
    tokens: Sequence[Token]

    def refused(self, node: exp.Expr, why: str) -> QueryRefused:
        """The error for a node: its text, its place, and what is possible."""
        covered = self._covered(node)
        if not covered and node.parent is not None:
            return self.refused(node.parent, why)
        first, last = _balanced(self.tokens, *covered) if covered else (0, -1)
        return refused_at(self.text, self.tokens[first].start, self.tokens[last].end + 1, why)

    def is_quoted(self, name: exp.Identifier) -> bool:
        """Whether a name stands in double quotes."""
        return self.text[name.meta["start"]] == '"'

    def check_nothing_is_lost(self) -> None:
        """Refuse a text of which sqlglot dropped, added or moved tokens, as it does with trailing
        commas, a BETWEEN without AND, and clauses in another order. All nodes must be listed."""
        try:
            written = tokens_of(_Generator().generate(self.select))
        except Exception:  # noqa: BLE001  # sqlglot may fail in any way
            raise QueryRefused(f"the text can't be read; {FORM}") from None
        ours, theirs = list(_fixed(self.tokens)), list(_fixed(written))
        pairs = zip(ours, theirs, strict=False)
        first = next((n for n, pair in enumerate(pairs) if len({*map(_spelling, pair)}) > 1), None)
        if first is None and len(ours) != len(theirs):
            first = min(len(theirs), len(ours) - 1)
        if first is None and _negations(self.tokens) != _negations(written):
            first = 0
        if first is not None:
            start, end = ours[first].start, ours[first].end
            raise refused_at(self.text, start, end + 1, unexpected(self.tokens, start))

    def _covered(self, node: exp.Expr) -> tuple[int, int] | None:
        """The places of the node's first and last token, as far as sqlglot records them."""
        starts = {one.meta["start"] for one in node.walk() if "start" in one.meta}
        places = [n for n, token in enumerate(self.tokens) if token.start in starts]
        if isinstance(node, exp.Boolean):  # sqlglot doesn't for these
            kind = TokenType.TRUE if node.this else TokenType.FALSE
            places = [n for n, token in enumerate(self.tokens) if token.token_type is kind][:1]
        if isinstance(node, exp.Distinct) and not places:  # nor for SELECT DISTINCT
            kinds = [token.token_type for token in self.tokens]
            places = [kinds.index(TokenType.DISTINCT)]
        return (places[0], places[-1]) if places else None


def read(text: str) -> SqlText:
    """The tree of a text that is one SELECT statement; `QueryRefused` with a place otherwise."""
    if isinstance(text, str):
        check_characters(text)
    _checks.text(sql=text)
    tokens = tokens_of(text)
    if not tokens:
        raise QueryRefused(f"the text is empty; {FORM}")
    check_places(text, tokens)
    check_limits(tokens)
    return SqlText(_parsed(text, tokens), text, tokens)


# --- the tree ---


def _parsed(text: str, found: list[Token]) -> exp.Select:
    try:
        [select] = _Parser(error_level=ErrorLevel.IMMEDIATE).parse(found, text)
    except ParseError as error:
        start = error.errors[0].get("col")
        at = next((token for token in found if token.col == start), found[-1])
        raise refused_at(text, at.start, at.end + 1, unexpected(found, at.start)) from None
    except Exception:  # noqa: BLE001  # the parser may fail in any way
        raise QueryRefused(f"the text can't be read; {FORM}") from None
    if isinstance(select, exp.Union):
        raise QueryRefused(f"{ONE_QUESTION}; UNION ALL stands in FROM: FROM (...) AS name")
    if not isinstance(select, exp.Select):
        raise QueryRefused(f"the text is not one SELECT statement; {FORM}")
    return select


def _negations(found: Iterable[Token]) -> int:
    return sum(token.token_type is TokenType.NOT for token in found)


def _fixed(found: Sequence[Token]) -> Iterator[Token]:
    """The tokens, but for those that another spelling leaves out or moves: COUNT(*) AS n is
    COUNT(*) n, x IS NULL in NOT x IS NULL may be x NOT NULL, and x NOT IN (1) is NOT x IN (1)."""
    for token, after in zip(found, [*found[1:], None], strict=False):
        kind, next_kind = token.token_type, after and after.token_type
        is_left_out = kind is TokenType.IS and next_kind in (TokenType.NOT, TokenType.NULL)
        is_left_out |= kind is TokenType.ALIAS and next_kind is TokenType.IDENTIFIER
        if kind is not TokenType.NOT and not is_left_out:
            yield token


def _spelling(token: Token) -> tuple[TokenType, str]:
    """The part of a token that both texts must share: only its kind for a sign such as !=."""
    is_exact = token.token_type in (TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING)
    is_call = token.token_type is TokenType.VAR
    return token.token_type, token.text if is_exact else token.text.upper() * is_call


def _balanced(found: Sequence[Token], first: int, last: int) -> tuple[int, int]:
    """The range of tokens, widened until its parentheses are balanced."""
    if found[last].token_type is TokenType.VAR:
        last += 1
    while last + 1 < len(found) and _opened(found[first : last + 1]) > 0:
        last += 1
    while first > 0 and _opened(found[first : last + 1]) < 0:
        first -= 1
    return first, last


def _opened(part: Sequence[Token]) -> int:
    kinds = [token.token_type for token in part]
    return sum((kind in OPENING) - (kind in CLOSING) for kind in kinds)
