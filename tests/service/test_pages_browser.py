"""The pages in a real browser, used by an owner and two analysts."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, ViewportSize

from discreet.ledger import Kind
from tests.cli.kit import wages
from tests.explore import kit as browsers
from tests.explore.kit import Visitor
from tests.explore.test_browser import serious
from tests.ledger import postgres
from tests.service import kit
from tests.service.kit import Served

MORE = 'job = { type = "text" }\n' + kit.RATE
CANARY = "clerk"  # a value of rows that no page may show
# draws a chart of twelve years on a narrow page: no name of an axis covers another one
NAMES_APART = """() => {
  const figure = document.querySelector('figure[data-chart]');
  const chart = JSON.parse(figure.dataset.chart);
  chart.x.categories = Array.from({length: 12}, (_, n) => String(1980 + n));
  chart.series[0].points = chart.x.categories.map(name => [name, 1, 0, 2]);
  figure.style.width = '280px';
  window.discreetChart.show(figure, chart);
  const texts = [...figure.querySelectorAll('svg text')];
  const names = texts.filter(one => chart.x.categories.includes(one.textContent));
  const boxes = names.map(one => one.getBoundingClientRect());
  return boxes.length > 3 && boxes.every((box, n) => !n || boxes[n - 1].right < box.left);
}"""
# each control and link can be seen without a scroll to the side
ALL_SEEN = """() => {
  const end = one => one.getBoundingClientRect().right;
  const wanted = '.card :is(input, select, button), .stacked :is(a, summary)';
  const all = [...document.querySelectorAll(wanted)];
  return all.filter(one => end(one) > end(one.closest('.card, main'))).map(one => one.outerHTML);
}"""
Scheme = Literal["dark", "light"]
LOOKS: list[tuple[int, int, Scheme]] = [(1280, 900, "light"), (360, 740, "dark")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from browsers.browser()


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def served(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    addresses = [postgres.address() for _ in range(2)] if request.param == "postgres" else []
    with kit.service(folder, "--workers", "1", more=MORE, addresses=addresses) as running:
        yield running


class Reader(Visitor):
    """Someone who reads pages of the service. Every page that is shown is noted."""

    def __init__(self, context: BrowserContext, served: Served) -> None:
        super().__init__(context)
        self.served = served
        self.sources: list[str] = []
        self.titles: set[str] = set()
        self.page.on("response", lambda answer: self.requests.append(answer.url))

    def begin_anew(self) -> None:
        """Forget the session, too, and the pages that were noted."""
        super().begin_anew()
        self.page.context.clear_cookies()
        self.sources.clear()
        self.titles.clear()

    def sign_in(self, token: str) -> "Reader":
        self.page.goto(self.served.url)
        self.page.fill("#token", token)
        self.page.click("main button[type=submit]")
        self.page.wait_for_url("**/tables")
        return self

    def look(self, path: str) -> str:
        """Open a page; its words."""
        self.page.goto(f"{self.served.url}{path}")
        return self.note()

    def note(self) -> str:
        self.sources.append(self.page.content())
        self.titles.add(self.page.title())
        return self.page.inner_text("main")

    def write(self, sql: str) -> None:
        """Write a question into the editor, by its keys."""
        self.page.wait_for_selector("#editor")
        self.page.evaluate(
            "document.getElementById('editor').shadowRoot.querySelector('.cm-content').focus()"
        )
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(sql)

    def foresee(self) -> str:
        """Wait for the forecast of what was written; its words."""
        shown = ":is(#price, .refused, .failed)"
        self.page.wait_for_selector(f"#forecast:not([aria-busy=true]) {shown}")
        found = self.page.inner_text("#forecast")
        assert self.page.query_selector("#price"), found
        return found

    def pay(self) -> str:
        """Press the button, and wait for the answer or the refusal; its words."""
        with self.page.expect_navigation():
            self.page.click("#pay")
        return self.note()

    def press(self, button: str) -> str:
        """Press the button of a form, and wait for the next page; its words."""
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=button, exact=True).first.click()
        return self.note()

    def check(self) -> None:
        """Nothing failed, nothing left the machine, and no value of a row was shown."""
        assert self.problems == []
        assert self.requests_elsewhere() == []
        seen = [*self.sources, *self.requests, *self.titles]
        assert [text for text in seen if CANARY in text] == []
        urls = " ".join(self.requests)
        assert not re.search(r"SELECT|wage\b(?!s)|discreet_[0-9a-f]", urls)


@pytest.fixture
def readers(browser: Browser, served: Served) -> Iterator[list[Reader]]:
    """Three people, each with a browser of his own."""
    contexts = [browser.new_context(accept_downloads=True) for _ in range(3)]
    found = [Reader(context, served) for context in contexts]
    yield found
    for one in found:
        one.check()
    for context in contexts:
        context.close()


def charges(served: Served, by: str) -> int:
    entries = served.ledger.history()
    return sum(one.kind is Kind.CHARGE and one.by == by for one in entries)


def test_an_owner_and_two_analysts(readers: list[Reader], served: Served, tmp_path: Path) -> None:
    """Sign in, grant, ask until the share is spent, be refused, lock and unlock, revoke, sign
    out."""
    owner, ana, ben = readers
    # 1. the owner makes tokens and shares
    owner.sign_in(served.owner)
    tokens = {}
    for name, share in (("ana", "0.3"), ("ben", "0.2")):
        owner.look("desk")
        owner.page.fill("#name", name)
        assert f"A token for {name}" in owner.press("Make a token")
        assert serious(owner) == []
        tokens[name] = owner.page.inner_text(".token").strip()
        owner.sources.clear()  # the one page that shows a token
        owner.look("desk")
        owner.page.fill("#share-1", name)
        owner.page.fill("#epsilon-1", share)
        owner.press("Grant")
    assert "ben" in owner.look("tables/wages")
    # 2. an analyst writes a question: a forecast, a refusal at its place, a price, an answer
    ana.sign_in(tokens["ana"])
    assert "ana" in ana.look("tables/wages")
    assert not re.search(r"\bben\b", ana.page.inner_text("main"))
    ana.look("tables/wages/ask")
    ana.write("SELECT COUNT(*) AS n,\n  kurt(wage) FROM wages")
    ana.page.wait_for_selector("#place", state="attached")
    marked = "document.getElementById('editor').shadowRoot.querySelector('.cm-wrong').innerText"
    assert ana.page.evaluate(marked) == "kurt("
    assert serious(ana) == []  # where a refusal stands
    ana.write(kit.BY_YEAR)
    assert "This costs ε = 0.1" in ana.foresee()
    assert ana.page.inner_text("#pay") == "Pay ε = 0.1 and ask"
    answer = ana.pay()
    assert "Paid ε = 0.1 by ana" in answer
    assert serious(ana) == []
    assert "one person counts for at most 3 rows" in answer
    assert len(ana.page.query_selector_all("figure svg")) == 2
    place = ana.page.url
    assert charges(served, "ana") == 1
    ana.page.reload()
    assert "Paid ε = 0.1 by ana" in ana.note()
    assert charges(served, "ana") == 1
    # 3. the receipt is downloaded, and dropped on the page that checks it
    with ana.page.expect_download() as download:
        ana.page.click("text=Receipt >> nth=1")
    receipt = tmp_path / "receipt.json"
    download.value.save_as(receipt)
    ana.look("receipts")
    with ana.page.expect_navigation():
        ana.page.set_input_files("#file", receipt)
    assert "The receipt is right" in ana.note()
    altered = {**json.loads(receipt.read_text()), "by": "ben"}
    receipt.write_text(json.dumps(altered, indent=2))
    with ana.page.expect_navigation():
        ana.page.set_input_files("#file", receipt)
    assert "altered" in ana.note()
    ana.problems = [text for text in ana.problems if "422" not in text]  # the refused form's status
    # 4. the other analyst sees none of it; both ask until a share is spent
    ben.sign_in(tokens["ben"])
    ben.page.goto(place)
    assert "there is nothing at this address" in ben.note()
    ben.problems = [text for text in ben.problems if "404" not in text]
    for reader, name, more in ((ben, "ben", 2), (ana, "ana", 2)):
        for _ in range(more):
            reader.look("tables/wages/ask")
            reader.write(kit.BY_YEAR)
            reader.foresee()
            assert f"by {name}" in reader.pay()
        reader.look("tables/wages/ask")
        reader.write(kit.BY_YEAR)
        assert "That is more than the 0 that is left" in reader.foresee()
        assert reader.page.is_disabled("#pay")
        assert reader.page.inner_text("#pay") == "Too expensive"
    assert (charges(served, "ana"), charges(served, "ben")) == (3, 2)
    assert ana.look("tables/wages").count("SELECT") == 3
    # 5. a failure locks the table; the owner sees the question, and unlocks
    charge = {"privacy_loss": kit.pure(0.01), "purpose": "a run that fails", "request": "fails"}
    made = served.send("POST", "/v1/tables/wages/charge", charge).json["receipt"]
    body = {name: made[name] for name in ("number", "digest")}
    served.send("POST", "/v1/tables/wages/lock", body)
    assert "This table is locked" in ben.look("tables/wages")
    assert "a run that fails" in owner.look("tables/wages")
    assert serious(owner) == []
    owner.page.fill("#reason", "the disk was full")
    assert "the owner unlocked the table: the disk was full" in owner.press("Unlock wages")
    # 6. a token is revoked while its page is open, and one signs out
    ben.look("tables/wages/ask")
    owner.look("desk")
    owner.page.locator("summary", has_text="Revoke").last.click()
    owner.page.get_by_role("button", name=re.compile("of ben$")).click()
    owner.page.wait_for_selector("text=revoked")
    ben.write(kit.BY_YEAR)
    ben.page.wait_for_selector("text=Your session has ended")
    assert "What you wrote is kept" in ben.pay()
    ben.problems = [text for text in ben.problems if "401" not in text]
    ben.page.fill("#token", served.token("ben"))
    assert kit.BY_YEAR in ben.press("Sign in")
    assert "This costs ε = 0.1" in ben.press("Show its price")
    assert charges(served, "ben") == 2
    ana.press("Sign out")
    ana.page.go_back()
    assert "Sign in" in ana.note()
    assert ana.page.context.cookies() == []


@pytest.fixture(scope="module")
def one_reader(browser: Browser, served: Served) -> Iterator[Reader]:
    """A page for many tests: the first one of a context takes four times as long to open."""
    with browser.new_context() as context:
        yield Reader(context, served)


@pytest.fixture
def reader(one_reader: Reader) -> Iterator[Reader]:
    one_reader.begin_anew()
    yield one_reader
    one_reader.check()


@pytest.fixture(scope="module")
def cid(served: Served) -> str:
    return served.token("cid", share=5)


def test_a_double_click_pays_once(reader: Reader, served: Served, cid: str) -> None:
    reader.sign_in(cid).look("tables/wages/ask")
    reader.write(kit.BY_YEAR)
    reader.foresee()
    before = charges(served, "cid")
    with reader.page.expect_navigation():
        reader.page.dblclick("#pay")
    reader.page.wait_for_url("**/answers/*")
    assert charges(served, "cid") == before + 1
    # whoever goes back finds the question, and pays nothing for it
    reader.page.go_back()
    assert "This costs ε = 0.1" in reader.foresee()
    assert reader.page.input_value("#sql") == kit.BY_YEAR
    assert charges(served, "cid") == before + 1
    with reader.page.expect_navigation():
        reader.page.click("text=Begin with an empty one")
    assert reader.page.input_value("#sql") == ""


def test_two_analysts_ask_at_once(readers: list[Reader], served: Served, cid: str) -> None:
    """Each sees his own answer, and each is charged once."""
    names = ("cid", "dot")
    before = [charges(served, name) for name in names]
    tokens = (cid, served.token("dot", share=5))
    for reader, token in zip(readers, tokens, strict=False):
        reader.sign_in(token).look("tables/wages/ask?new=1")
        reader.write(kit.BY_YEAR)
        reader.foresee()
    for reader in readers[:2]:  # neither waits for the other
        reader.page.evaluate("document.getElementById('pay').click()")
    for reader, name in zip(readers, names, strict=False):
        reader.page.wait_for_url("**/answers/*")
        assert f"Paid ε = 0.1 by {name}" in reader.note()
    assert readers[0].page.url != readers[1].page.url
    assert [charges(served, name) for name in names] == [one + 1 for one in before]


def test_the_browser_keeps_nothing_private(
    browser: Browser, served: Served, cid: str, tmp_path: Path
) -> None:
    """Neither its history nor its cache, nor what it would restore, on the disk of the reader."""
    profile = tmp_path / "profile"
    with browser.browser_type.launch_persistent_context(
        profile, executable_path=browsers.CHROMIUM, args=["--no-sandbox"]
    ) as context:
        reader = Reader(context, served).sign_in(cid)
        reader.look("tables/wages/ask?new=1")
        reader.write("SELECT COUNT(*) AS canary_8801 FROM wages")
        reader.foresee()
        reader.pay()
        assert "canary_8801" in reader.look(reader.page.url.removeprefix(served.url) + "/statement")
        reader.page.go_back()
        reader.look("tables")
        reader.check()
    stored = {file: file.read_bytes() for file in profile.rglob("*") if file.is_file()}
    # the history is there, and can be read: addresses of answers, which open nothing by themselves
    assert [file for file, text in stored.items() if b"/answers/" in text]
    for secret in ("canary_8801", cid, CANARY):
        for coding in ("utf-8", "utf-16-le"):
            coded = secret.encode(coding)
            assert [file.name for file, text in stored.items() if coded in text] == []


def test_an_example_is_one_click(reader: Reader, served: Served, cid: str) -> None:
    reader.sign_in(cid).look("tables/wages/ask?new=1")
    assert reader.page.input_value("#sql") == ""
    reader.page.get_by_role("link", name="Mean of wage by year").click()
    assert "This costs ε = 0.1" in reader.foresee()
    assert "Paid ε = 0.1 by cid" in reader.pay()


def test_a_refused_field_is_marked_while_one_types(
    reader: Reader, served: Served, cid: str
) -> None:
    reader.sign_in(cid).look("tables/wages/ask?new=1")
    reader.page.check("input[value=accuracy]")
    reader.page.fill("#within", "0.5")
    reader.write("SELECT AVG(wage) AS pay FROM wages")
    reader.page.wait_for_selector("#group_size[aria-invalid=true]")
    assert "in groups of (rows, for averages): give the number" in reader.note()
    assert serious(reader) == []
    reader.page.fill("#group_size", "500")
    reader.page.wait_for_selector("#price")
    assert not reader.page.query_selector("[aria-invalid]")
    reader.problems = [text for text in reader.problems if "40" not in text]


def test_a_click_pays_the_price_on_its_button(reader: Reader, served: Served, cid: str) -> None:
    reader.sign_in(cid)
    before = charges(served, "cid")
    for is_click in (True, False):
        reader.look("tables/wages/ask")
        reader.write(kit.BY_YEAR)
        reader.foresee()
        reader.page.fill("#epsilon", "0.2")
        assert reader.page.inner_text("#pay") == "Show the price"
        with reader.page.expect_navigation():
            if is_click:
                reader.page.click("#pay")
            else:
                reader.page.press("#epsilon", "Enter")
        assert reader.page.inner_text("#pay") == "Pay ε = 0.2 and ask"
        assert charges(served, "cid") == before
    assert "Paid ε = 0.2 by cid" in reader.pay()
    assert charges(served, "cid") == before + 1


def test_an_accuracy_finds_its_price(reader: Reader, served: Served, cid: str) -> None:
    reader.sign_in(cid).look("tables/wages/ask")
    reader.page.check("input[value=accuracy]")
    reader.page.fill("#within", "500")
    reader.write("SELECT COUNT(*) AS n FROM wages")
    reader.foresee()
    price = reader.page.inner_text("#price")
    reader.page.locator("#within-slider").focus()
    reader.page.keyboard.press("ArrowRight")
    reader.page.wait_for_function(
        "before => document.getElementById('price')?.textContent !== before &&"
        " !document.querySelector('[aria-busy=true]')",
        arg=price,
    )
    price = reader.page.inner_text("#price")
    assert f"Paid {price} by cid" in reader.pay()


def test_everything_works_by_keyboard_alone(reader: Reader, served: Served, cid: str) -> None:
    reader.page.goto(served.url)
    press, write = reader.page.keyboard.press, reader.page.keyboard.insert_text

    def tab_to(wanted: str) -> None:
        for _ in range(40):
            press("Tab")
            found = reader.page.evaluate(
                "document.activeElement.id + ' ' + document.activeElement.textContent.trim()"
            )
            if wanted in found:
                return
        pytest.fail(f"Tab does not reach {wanted}")

    tab_to("token")
    write(cid)
    press("Enter")
    reader.page.wait_for_selector("text=Ask a question")
    tab_to("Ask a question")
    press("Enter")
    reader.page.wait_for_selector("#editor")
    tab_to("editor")
    reader.page.keyboard.type("SELECT COUNT(*) AS n FROM wa")
    tooltip = (
        "document.getElementById('editor').shadowRoot.querySelector('.cm-tooltip-autocomplete')"
    )
    reader.page.wait_for_function(f"() => {tooltip}")
    reader.page.wait_for_timeout(300)  # the editor takes no Enter right after a list opens
    press("Enter")
    assert reader.page.input_value("#sql").startswith("SELECT COUNT(*) AS n FROM wage")
    reader.write("SELECT COUNT(*) AS n FROM wages")
    reader.foresee()
    tab_to("pay")
    press("Enter")
    reader.page.wait_for_url("**/answers/*")
    assert "by cid" in reader.note()


def test_questions_are_asked_without_scripts(browser: Browser, served: Served, cid: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        reader = Reader(context, served).sign_in(cid)
        before = charges(served, "cid")
        reader.look("tables/wages/ask")
        reader.page.fill("#sql", "SELECT COUNT(*) AS n FROM wages")
        with reader.page.expect_navigation():
            reader.page.press("#epsilon", "Enter")
        assert "This costs ε = 0.1" in reader.note()
        assert charges(served, "cid") == before
        assert "Paid ε = 0.1 by cid" in reader.pay()
        assert reader.look("tables/wages")
        reader.check()


def test_pages_read_well_everywhere(reader: Reader, served: Served, cid: str) -> None:
    """Nothing is wider than the screen, and axe finds nothing serious."""
    if served.address is not None:
        pytest.skip("the look does not depend on the database")
    answer = served.ask("look", token=cid)
    assert answer.status == 200
    served.send("GET", "/v1/tables")
    pages = {
        cid: [
            *("tables", "tables/wages", "tables/wages/ask", "receipts"),
            *("answers/look", "answers/look/statement", "answers/none"),
        ],
        served.owner: ["desk", "tables/wages"],
    }
    for token, paths in pages.items():
        reader.page.context.clear_cookies()
        reader.sign_in(token)
        for path in paths:
            reader.look(path)
            if path.endswith("ask"):
                reader.write(kit.BY_YEAR)
                reader.foresee()
            if path == "answers/look":
                assert reader.page.evaluate(NAMES_APART)
            for width, height, scheme in LOOKS:
                reader.page.set_viewport_size(ViewportSize(width=width, height=height))
                reader.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                assert reader.page.evaluate("document.documentElement.scrollWidth") <= width, path
                assert reader.page.evaluate(ALL_SEEN) == [], (path, width)
                assert serious(reader) == [], (path, width)
    reader.problems = [text for text in reader.problems if "404" not in text]


def test_an_owner_declares_a_table(reader: Reader, served: Served, tmp_path: Path) -> None:
    """Upload, look, declare, suggest for a price, complete, and ask. Files have all sorts of
    names."""
    rows = tmp_path / "Our staff, 2025.v2 (new).PARQUET"
    wages(rows, people=400)
    reader.sign_in(served.owner).look("desk/declare")
    reader.page.set_input_files("#rows", rows)
    reader.page.click("#send")
    uploaded = "input[value='Our_staff_2025_v2_new.parquet']"
    reader.page.wait_for_selector(uploaded)
    reader.page.check(uploaded)
    assert "Step 2 of 3" in reader.press("Look at its columns")
    reader.page.set_viewport_size(ViewportSize(width=360, height=800))
    assert reader.page.evaluate(ALL_SEEN) == []
    reader.page.fill("#name", "staff")
    reader.page.select_option("#unit", label="all rows with one person")
    reader.page.fill("#rows", "3")
    reader.page.fill("#epsilon", "1,5")
    assert "give a number above 0" in reader.press("Declare it")
    reader.problems = [text for text in reader.problems if "400" not in text]
    reader.page.fill("#epsilon", "30")
    assert "Step 3 of 3" in reader.press("Declare it")
    assert "it never comes back" in reader.page.inner_text("main")
    reader.page.check("[name^=number-][value=wage]")
    reader.page.fill("#price", "20")  # by which the noise hides no bound
    reader.page.press("#price", "Enter")
    reader.page.wait_for_selector("input[name=agreed]", state="attached")
    assert served.send("GET", "/v1/tables/staff/budget").json["charges"] == 0
    assert "wage:" in reader.press("Pay ε = 20 and suggest columns")
    assert served.send("GET", "/v1/tables/staff/budget").json["charges"] == 1
    assert serious(reader) == []
    for width in (1280, 360):
        reader.page.set_viewport_size(ViewportSize(width=width, height=800))
        assert reader.page.evaluate("document.documentElement.scrollWidth") <= width
    assert "wage" in reader.press("Declare these columns")
    reader.look("tables/staff/ask")
    reader.write("SELECT AVG(wage) AS pay FROM staff")
    reader.foresee()
    assert "by owner" in reader.pay()


def test_typed_bounds_choose_their_column(reader: Reader, served: Served) -> None:
    """A box that is cleared empties its fields, and ticked again it fills them."""
    shutil.copy(served.folder / "wages.parquet", served.folder / "typed.parquet")
    reader.sign_in(served.owner).look("desk/declare")
    reader.page.check("input[value='typed.parquet']")
    reader.press("Look at its columns")
    (place,) = re.findall(r'name="column-(\d+)" value="wage"', reader.page.content())
    box, lower, upper = (f"#{name}-{place}" for name in ("use", "lower", "upper"))
    assert not reader.page.is_checked(box)
    reader.page.fill(lower, "0")
    reader.page.fill(upper, "60")
    assert reader.page.is_checked(box)
    for values in ((False, "", ""), (True, "0", "60")):
        reader.page.locator(box).click()
        found = reader.page.is_checked(box), *map(reader.page.input_value, (lower, upper))
        assert found == values
    # a refused form comes back to its field
    reader.page.fill(lower, "70")
    reader.page.fill("#name", "typed")
    reader.page.select_option("#unit", label="each row by itself")
    reader.page.fill("#epsilon", "1")
    assert "wage, from: " in reader.press("Declare it")
    assert reader.page.evaluate("document.activeElement.id") == lower.lstrip("#")
    assert serious(reader) == []
    reader.problems = [text for text in reader.problems if "400" not in text]


def test_a_form_that_takes_time_says_so_and_is_sent_once(reader: Reader, served: Served) -> None:
    shutil.copy(served.folder / "wages.parquet", served.folder / "slow.parquet")
    reader.sign_in(served.owner).look("desk/declare")
    reader.page.check("input[value='slow.parquet']")
    reader.page.evaluate(  # the form is not sent, so that its page stays
        """() => {
          window.sent = 0;
          addEventListener("submit", event => {
            if (!event.defaultPrevented) window.sent += 1;
            event.preventDefault();
          });
        }"""
    )
    button = reader.page.get_by_role("button", name="Look at its columns")
    button.dblclick()
    reader.page.wait_for_selector(".progress:has-text('1 s')")
    assert reader.page.query_selector("button:disabled:has-text('One moment')")
    again = "document.querySelector('form[action$=look]').requestSubmit()"
    assert reader.page.evaluate(f"{again}, window.sent") == 1
