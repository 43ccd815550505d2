"""One request of a signed-in browser. It reaches the desk as a program's request does."""

import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from discreet import _look
from discreet._version import __version__
from discreet.service._app import Application
from discreet.service._problems import (
    BAD_BODY,
    BUSY,
    FORBIDDEN,
    LOST,
    NO_SHARE,
    NOT_FOUND,
    TOO_LARGE,
    TOO_MANY,
    TOO_SLOW,
    UNAUTHORIZED,
    UNSUPPORTED,
    WRONG_METHOD,
    Problem,
)
from discreet.service._routes import ROUTES
from discreet.service._sessions import BrowserSession
from discreet.service._tokens import Role, TokenFacts
from discreet.service.pages import _shown
from discreet.service.pages._forms import FormFields, members_of

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
STATIC = HERE / "static"
_OWN_FORMS = _look.POLICY.format(forms="'self'")
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{_OWN_FORMS}; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # without any, browsers would not say where a form is from
}
_FORMS_WORDS = {
    UNSUPPORTED: "this form was not sent as browsers send forms: open the page again",
    TOO_LARGE: "this form is too large: shorten its texts",
    UNAUTHORIZED: "sign in again",
    FORBIDDEN: "your role does not allow it",
    NO_SHARE: "you have no share of this table’s budget: ask its owner for one",
    NOT_FOUND: "there is nothing at this address that you may see",
    WRONG_METHOD: "this address takes no form: open the page again",
    TOO_SLOW: "this form did not arrive within 10 seconds: send it again",
    TOO_MANY: "you sent too much at once: wait a second, and send it again",
    BUSY: "the service is busy: send the form again later; nothing is paid twice",
    LOST: "no answer was made in time: send the form again; nothing is paid twice",
}
# What errors tell programs and their authors, and what they tell readers of a page.
_FOR_PEOPLE = (
    (re.compile(r"^share '(.*?)': would reach"), r"the share of \1 would reach"),
    (re.compile(r": its owner allows it by ledger\.unlock\(.*$"), r". Its owner can allow it"),
    (re.compile(r"^request id '.*?' was"), r"this form was"),
    (re.compile(r": take a new id for this one$"), r". Open the page again to ask this one"),
    (re.compile(r": ask under a new id, which is a new charge"), r": a new form is a new charge"),
)
_PLACE = re.compile(r"{(\w+)}")
_ROUTE_OF = {route.answer: route for route in ROUTES}

REUSED = 409  # a form was paid before, for something else

JsonValue = Any  # Any: values of JSON


def templates() -> "Environment":
    """The templates of the pages."""
    found = _look.templates(HERE / "templates")
    found.filters.update(
        tighter_groups=_shown.tighter_groups,
        limit=_shown.limit,
        spent=_shown.spent,
        left=_shown.left,
        at=_shown.at_minute,
        cost=_shown.cost,
        cell=_shown.cell,
        number=_shown.number,
        width=_shown.width,
        chart=_shown.chart_json,
    )
    found.globals["once"] = partial(secrets.token_urlsafe, 16)
    return found


@dataclass(frozen=True, slots=True)
class Rendering:
    """Makes responses of templates."""

    environment: "Environment"

    def page(
        self,
        template: str,
        status: int = 200,
        *,
        session: BrowserSession | None = None,
        **values: object,
    ) -> Response:
        """A page; ``session`` is of the reader, who may be unknown."""
        html = self.environment.get_template(template).render(
            root="/",
            policy="",
            version=__version__,
            me=None if session is None else session.caller,
            key=None if session is None else session.form_key,
            is_owner=session is not None and session.caller.role is Role.OWNER,
            may_ask=session is not None and session.caller.role is not Role.VIEWER,
            **{"refusal": None, "done": "", **values},
        )
        return Response(_shown.in_order(html), status, HEADERS, media_type="text/html")


@dataclass(frozen=True, slots=True)
class Visit:
    """A request with its session and, for a form that was sent, its fields."""

    application: Application
    rendering: Rendering
    request: Request
    session: BrowserSession
    form: FormFields
    folder: Path  # of the declaration

    @property
    def caller(self) -> TokenFacts:
        """Who is signed in."""
        return self.session.caller

    def place(self, name: str) -> str:
        """A part of the address."""
        return str(self.request.path_params[name])

    def check_owner(self) -> None:
        """Refuse all others than owners before anything is read."""
        if self.caller.role is not Role.OWNER:
            raise Problem(FORBIDDEN)

    async def bytes_of(
        self, answer: Callable[..., object], *places: str, form: FormFields | None = None
    ) -> bytes:
        """The JSON text that this method of the desk answers, by its route: the same check of the
        role, the same limits, and the same deadline. Raises `Problem`."""
        route = _ROUTE_OF[answer]

        async def who() -> TokenFacts:
            return self.session.caller

        async def read() -> dict[str, JsonValue]:
            return members_of(form or {}, route.members)

        named = dict(zip(_PLACE.findall(route.path), places, strict=True))
        found = await self.application.answered(route, who, named, read, is_of_page=True)
        if isinstance(found, Problem):
            raise found
        return found

    async def get(
        self, answer: Callable[..., object], *places: str, form: FormFields | None = None
    ) -> JsonValue:
        """The JSON that this method of the desk answers."""
        return json.loads(await self.bytes_of(answer, *places, form=form))

    def page(self, template: str, status: int = 200, **values: object) -> Response:
        """A page for this reader."""
        return self.rendering.page(template, status, session=self.session, **values)


def redirected(to: str) -> Response:
    """A look at another page, after a form was sent."""
    return RedirectResponse(to, 303, HEADERS)


def file(name: str, body: bytes | str, kind: str) -> Response:
    """A file to download."""
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(body, 200, headers, media_type=kind)


def in_words(problem: Problem) -> str:
    """A problem in words for people, who fill fields and send no JSON."""
    if problem.kind in _FORMS_WORDS:
        return _FORMS_WORDS[problem.kind]
    if problem.kind is not BAD_BODY:
        text = str(problem)
        for pattern, words in _FOR_PEOPLE:
            text = pattern.sub(words, text)
        return text
    _, _, where = str(problem).partition(": ")
    is_of_member = not where or where.startswith("look at ")
    return (
        f"a field has no value that is allowed: {where or 'look at each'}"
        if is_of_member
        else where
    )


def choice(form: Mapping[str, str], name: str, *allowed: str) -> str:
    """The field's value, which is one of these; the first one unless it is given. Raises
    `Problem`."""
    given = form.get(name, allowed[0])
    if given not in allowed:
        raise Problem(BAD_BODY, f"{BAD_BODY.text}: look at {name}")
    return given
