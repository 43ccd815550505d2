"""Says why a token is not expected: the slips that people make most often."""

from collections.abc import Sequence

from sqlglot import Token, TokenType

from discreet.query._expressions._sql_words import DAY_ITSELF, FORM

_ENDS = {TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.R_PAREN, TokenType.STRING}
_STARTS = {TokenType.CASE, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.VAR}


def unexpected(found: Sequence[Token], start: int) -> str:
    """The refusal of the token that starts at this place of the text."""
    place = next(n for n, token in enumerate(found) if token.start == start)
    return f"this is not expected here{_hint(found, place)}; {FORM}"


def _hint(found: Sequence[Token], place: int) -> str:
    kinds = [token.token_type for token in found]
    before = kinds[place - 1] if place else None
    after = kinds[place + 1] if place + 1 < len(kinds) else None
    closed = kinds.count(TokenType.R_PAREN) - kinds.count(TokenType.L_PAREN)
    if closed:
        return ": a parenthesis closes nothing" if closed > 0 else ": a parenthesis is not closed"
    if kinds[place] is TokenType.COMMA and after in (None, TokenType.FROM):
        where = "at the end" if after is None else "before FROM"
        return f": the comma {where} is too many"
    if before is TokenType.IDENTIFIER and found[place - 1].text.upper() == "TOP":
        return f": write LIMIT {found[place].text} at the end"
    if before is TokenType.IDENTIFIER and found[place - 1].text.upper() == "INTERVAL":
        return f": {DAY_ITSELF}"
    is_call = kinds[place] is TokenType.L_PAREN and before is TokenType.VAR
    if is_call and place > 1 and kinds[place - 2] in _ENDS:
        return f": a comma or an operator is missing before {found[place - 1].text}"
    if kinds[place] in _STARTS and before in _ENDS:
        return ": a comma or an operator is missing before it"
    return ", or something is missing beside it"
