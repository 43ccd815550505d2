"""The addresses of the pages. Each request belongs to a session, and each form to its page."""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from discreet import _look
from discreet.service._app import Application
from discreet.service._body import LARGEST, largest_body
from discreet.service._logs import owners_log
from discreet.service._problems import (
    FOREIGN,
    NOT_FOUND,
    UNAUTHORIZED,
    UNEXPECTED,
    Problem,
    problem_of,
)
from discreet.service._routes import RECEIPT
from discreet.service._safe_headers import is_by_tls
from discreet.service._sessions import SESSION_SECONDS, BrowserSession, SessionStore
from discreet.service.pages import (
    _datasets,
    _declarations,
    _owners_desk,
    _questions,
    _receipts,
    _uploads,
)
from discreet.service.pages._forms import (
    OF_COLUMNS,
    FormFields,
    check_origin,
    key_of_file,
    read_form,
)
from discreet.service.pages._visit import STATIC, Rendering, Visit, in_words, redirected, templates
from discreet.service.pages._wrong_fields import FormRefusal

PageOf = Callable[[Visit], Awaitable[Response]]

_SECURE, _PLAIN = "__Host-discreet", "discreet"  # the first is for HTTPS only
_TARGET = re.compile(r"/(?:tables|answers|desk|receipts)(?:/[\w%.~-]+)*", re.ASCII)
_ENDED = "Your session has ended, and nothing was sent: sign in again."

_SIGN_OUT = "/sign-out"
_TABLE, _ANSWER, _UPLOAD = "/tables/{table}", "/answers/{request}", "/desk/files/{name}"
PAGES: Sequence[tuple[str, str, PageOf]] = (
    ("GET", "/tables", _datasets.tables),
    ("GET", _TABLE, _datasets.dataset),
    ("GET", f"{_TABLE}/ask", _questions.form),
    ("POST", f"{_TABLE}/ask", _questions.ask),
    ("POST", f"{_TABLE}/forecast", _questions.forecast),
    ("GET", _ANSWER, _questions.answer),
    ("GET", f"{_ANSWER}/statement", _questions.statement),
    ("GET", f"{_ANSWER}/answer.csv", _questions.download_csv),
    ("GET", f"{_ANSWER}/answer.json", _questions.download_json),
    ("GET", f"{_ANSWER}/receipt.json", _questions.download_receipt),
    ("GET", "/receipts", _receipts.form),
    ("POST", "/receipts", _receipts.check),
    ("GET", "/desk", _owners_desk.desk),
    ("GET", "/desk/declare", _declarations.sources),
    ("POST", "/desk/declare/look", _declarations.look),
    ("POST", "/desk/declare/remove", _declarations.remove_upload),
    ("POST", "/desk/declare", _declarations.declare),
    ("GET", f"{_TABLE}/columns", _declarations.columns),
    ("POST", f"{_TABLE}/columns", _declarations.add_columns),
    ("POST", f"{_TABLE}/suggest", _declarations.suggest),
    ("POST", _UPLOAD, _uploads.upload),
    ("POST", "/desk/tokens", _owners_desk.issue),
    ("POST", "/desk/tokens/revoke", _owners_desk.revoke_token),
    ("POST", f"{_TABLE}/shares", _owners_desk.grant),
    ("POST", f"{_TABLE}/shares/revoke", _owners_desk.revoke_share),
    ("POST", f"{_TABLE}/unlock", _owners_desk.unlock),
    ("POST", f"{_TABLE}/verify", _owners_desk.verify),
)


# forms of some length: if the session ended meanwhile, they are shown again after the next sign-in
_KEPT = (f"{_TABLE}/ask", f"{_TABLE}/forecast", f"{_TABLE}/columns", "/desk/declare")
_KEPT_TO = re.compile(r"/tables/[\w%.~-]+/(?:forecast|columns)|/desk/declare", re.ASCII)
_KEPT_FIELD = "kept-"
_LARGEST = {  # bytes of forms that may be larger than others
    "/receipts": largest_body(RECEIPT),
    "/desk/declare": OF_COLUMNS,
    f"{_TABLE}/columns": OF_COLUMNS,
}


@dataclass(frozen=True, slots=True)
class KeptForm:
    """A form that came after its session had ended. The page to sign in holds its fields, and then
    a page that sends it to this address."""

    to: str
    fields: FormFields

    @staticmethod
    def of(path: str, form: FormFields) -> "KeptForm | None":
        """The form of this address. A question leads to its forecast, which pays nothing."""
        left_out = ("key", "part", "agreed")
        fields = {name: text for name, text in form.items() if name not in left_out}
        to = f"{path.removesuffix('/ask')}/forecast" if path.endswith("/ask") else path
        return KeptForm(to, fields) if _KEPT_TO.fullmatch(to) else None

    @staticmethod
    def held_by(form: FormFields) -> "KeptForm | None":
        """The form that the page to sign in held; None if there was none."""
        fields = {
            name.removeprefix(_KEPT_FIELD): text
            for name, text in form.items()
            if name.startswith(_KEPT_FIELD)
        }
        return KeptForm.of(form.get("form", ""), fields)


class Site:
    """The pages over an application and its sessions."""

    def __init__(self, application: Application, sessions: SessionStore, folder: Path) -> None:
        """Show what this application answers, about a declaration in this folder."""
        self._application, self._sessions, self._folder = application, sessions, folder
        self._rendering = Rendering(templates())
        _uploads.remove_parts(folder)  # this service alone uses the folder

    def routes(self) -> list[BaseRoute]:
        """The addresses, for a server."""
        return [
            Mount("/static", _look.static_files(STATIC)),
            Route("/", self._home),
            Route("/sign-in", self._sign_in_form, methods=["GET"]),
            Route("/sign-in", self._sign_in, methods=["POST"]),
            Route(_SIGN_OUT, self._page(_SIGN_OUT, self._sign_out), methods=["POST"]),
            *(
                Route(path, self._page(path, page), methods=[method])
                for method, path, page in PAGES
            ),
        ]

    def _page(self, path: str, page: PageOf) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            session: BrowserSession | None = None
            try:
                session = await to_thread.run_sync(self._session, request)
                if session is None:
                    found = await self._signed_out(request, path)
                else:
                    if path != _SIGN_OUT:  # whoever sent too much may still leave
                        self._application.count(session.caller)
                    form = await self._form(request, session, path)
                    visit = Visit(
                        *(self._application, self._rendering, request, session, form, self._folder)
                    )
                    found = await page(visit)
            except Exception as error:  # noqa: BLE001  # each becomes a problem of the list
                found = self._failed(error, session)
            caller = None if session is None else session.caller
            self._application.note(path, found.status_code, request.method, caller)
            return found

        return endpoint

    async def _form(self, request: Request, session: BrowserSession, path: str) -> FormFields:
        if request.method != "POST":
            return {}
        if path == _UPLOAD:
            form = key_of_file(request)
        else:
            form = await read_form(request, _LARGEST.get(path, LARGEST))
        if not session.admits(form.get("key", "")):
            raise Problem(FOREIGN)
        return form

    def _failed(self, error: Exception, session: BrowserSession | None) -> Response:
        problem = problem_of(error)
        if problem.kind is UNEXPECTED:
            owners_log.error("a page failed unexpectedly", exc_info=error)
        return self._rendering.page(
            "problem.html",
            problem.kind.status,
            session=session,
            problem=in_words(problem),
            is_missing=problem.kind is NOT_FOUND,
        )

    # sessions

    def _session(self, request: Request) -> BrowserSession | None:
        text = _cookie(request)
        return None if text is None else self._sessions.session(text)

    async def _signed_out(self, request: Request, path: str) -> Response:
        to = quote(request.url.path, safe="/%")
        if request.method != "POST":
            return redirected(f"/sign-in?to={to}")
        kept = None
        if path in _KEPT:
            check_origin(request)
            with suppress(Problem):  # it is too large to stand in another form
                kept = KeptForm.of(to, await read_form(request))
        return self._sign_in_page("/tables", _ENDED, UNAUTHORIZED.status, kept)

    async def _home(self, _: Request) -> Response:
        return redirected("/tables")

    async def _sign_in_form(self, request: Request) -> Response:
        return self._sign_in_page(_target(request.query_params.get("to")))

    def _sign_in_page(
        self, to: str, problem: str = "", status: int = 200, kept: KeptForm | None = None
    ) -> Response:
        refusal = FormRefusal(problem) if problem else None
        return self._rendering.page("sign_in.html", status, to=to, refusal=refusal, kept=kept)

    async def _sign_in(self, request: Request) -> Response:
        try:
            found = await self._signed_in(request)
        except Exception as error:  # noqa: BLE001  # each becomes a problem of the list
            found = self._failed(error, None)
        self._application.note("/sign-in", found.status_code, "POST", None)
        return found

    async def _signed_in(self, request: Request) -> Response:
        form = await read_form(request, 2 * LARGEST)  # it may hold another one
        kept = KeptForm.held_by(form)
        to, token = _target(form.get("to")), form.get("token", "").strip()
        text = await to_thread.run_sync(partial(self._sessions.opened, token))
        if text is None:
            wrong = "This is no valid token. Ask the owner of the table for one."
            return self._sign_in_page(to, wrong, UNAUTHORIZED.status, kept)
        found = redirected(to)
        if kept is not None:
            session = await to_thread.run_sync(self._sessions.session, text)
            found = self._rendering.page("kept.html", session=session, kept=kept)
        is_secure = _is_secure(request)
        found.set_cookie(
            _SECURE if is_secure else _PLAIN,
            text,
            max_age=SESSION_SECONDS,
            secure=is_secure,
            httponly=True,
            samesite="strict",
        )
        return found

    async def _sign_out(self, visit: Visit) -> Response:
        text = _cookie(visit.request)
        _questions.DRAFTS.forget(visit)
        if text is not None:
            await to_thread.run_sync(self._sessions.end, text)
        found = redirected("/sign-in")
        for name, is_secure in ((_SECURE, True), (_PLAIN, False)):
            found.delete_cookie(name, secure=is_secure, httponly=True, samesite="strict")
        found.headers["Clear-Site-Data"] = '"cache"'
        return found


def _is_secure(request: Request) -> bool:
    """Whether the browser speaks HTTPS, perhaps to a proxy before this service."""
    return is_by_tls(request) or request.headers.get("origin", "").startswith("https:")


def _cookie(request: Request) -> str | None:
    """The text of the session's cookie; that of HTTPS counts first, and with TLS alone. Cookies of
    others on this host may have any form."""
    pairs = [
        pair.strip(" \t").partition("=")
        for line in request.headers.getlist("cookie")
        for pair in line.split(";")
    ]
    for own in (_SECURE,) if is_by_tls(request) else (_SECURE, _PLAIN):
        for name, _, text in pairs:
            if name == own and text:
                return text
    return None


def _target(given: str | None) -> str:
    """The page to show after signing in: one of this service, whatever was given."""
    return given if given and len(given) < 500 and _TARGET.fullmatch(given) else "/tables"
