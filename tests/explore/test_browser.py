"""The pages in a real browser, used as a person would."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Route, ViewportSize

from discreet import explore
from discreet.explore import pages
from discreet.explore._page import View
from tests.explore import kit
from tests.explore.kit import Visitor

Scheme = Literal["dark", "light"]
# each size and each scheme once: widths do not depend on colours, nor contrasts on widths
LOOKS: list[tuple[int, int, Scheme]] = [(1280, 900, "light"), (360, 740, "dark")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from kit.browser()


@pytest.fixture(scope="module")
def address(browser: Browser) -> Iterator[str]:
    with kit.served() as found:
        yield found


@pytest.fixture(scope="module")
def one_page(browser: Browser) -> Iterator[Visitor]:
    """A page for many tests: the first one of a context takes four times as long to open."""
    with browser.new_context() as context:
        yield Visitor(context)


@pytest.fixture
def visitor(one_page: Visitor) -> Iterator[Visitor]:
    """Afterwards the test fails if the console showed an error or a request left the machine."""
    one_page.begin_anew()
    yield one_page
    assert one_page.problems == []
    assert one_page.requests
    assert one_page.requests_elsewhere() == []


@pytest.fixture
def failing(one_page: Visitor) -> Visitor:
    """For requests that fail, which the console shows."""
    one_page.begin_anew()
    return one_page


def check_shown(visitor: Visitor, view: View) -> None:
    """The page shows this view: its sentence, its table, its code, its pictures."""
    found = visitor.shown()
    assert int(str(found.pop("paths"))) >= len(
        [one for chart in view.charts for one in chart.series]
    )
    assert found == {
        "says": view.says,
        "meaning": view.meaning,
        "rows": [list(row) for row in view.rows],
        "code": view.code,
        "titles": [chart.title for chart in view.charts],
    }


@pytest.mark.parametrize("name", pages.NAMES)
def test_every_number_is_the_librarys(visitor: Visitor, address: str, name: str) -> None:
    page = pages.page(name)
    visitor.go(f"{address}{name}.html")
    check_shown(visitor, pages.view(name, page.start))
    places = [*page.start]
    for number, control in enumerate(page.controls):
        places[number] = (places[number] + 1) % len(control.values)
        visitor.set(control.name, places[number])
        check_shown(visitor, pages.view(name, tuple(places)))


@pytest.mark.parametrize("name", ["index", *pages.NAMES])
def test_pages_read_well_everywhere(visitor: Visitor, address: str, name: str) -> None:
    """Nothing is wider than the screen, and axe finds nothing serious."""
    visitor.go(f"{address}{name}.html")
    if name != "index":
        visitor.page.click("summary")
        for button in visitor.page.query_selector_all(".experiment"):
            button.click()
        visitor.rest()
    for width, height, scheme in LOOKS:
        visitor.page.set_viewport_size(ViewportSize(width=width, height=height))
        visitor.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        visitor.page.wait_for_function(FITS)
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width
        assert serious(visitor) == []


# every picture is as wide as its place
FITS = """() => [...document.querySelectorAll("figure, .chart")].every(
  one => !one.chart || Math.abs(one.clientWidth - one.querySelector("svg").clientWidth) <= 2
)"""


def serious(visitor: Visitor) -> list[str]:
    """The serious violations that axe finds."""
    if not visitor.page.evaluate("Boolean(window.axe)"):
        visitor.page.evaluate(AXE_SCRIPT)
    found = visitor.page.evaluate(
        "axe.run({resultTypes: ['violations']}).then(found => found.violations)"
    )
    return [
        f"{one['id']}: {one['help']} at {[node['target'] for node in one['nodes']]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def test_axe_would_find_something(visitor: Visitor, address: str) -> None:
    visitor.go(f"{address}survey.html")
    visitor.page.evaluate(
        "document.querySelector('#c-people').previousElementSibling.previousElementSibling.remove()"
    )
    assert any(text.startswith("label") for text in serious(visitor))


def test_a_request_to_elsewhere_would_be_noticed(visitor: Visitor, address: str) -> None:
    visitor.go(f"{address}index.html")
    visitor.requests.append("https://example.com/font.woff")
    assert visitor.requests_elsewhere() == ["https://example.com/font.woff"]
    visitor.requests.pop()


def test_a_person_spends_the_budget_and_is_refused(visitor: Visitor, address: str) -> None:
    visitor.go(f"{address}budget.html")
    asked = [0.5, 2, 2, 0.5]
    for number, price in enumerate(asked, 1):
        visitor.set("epsilon", pages.page("budget").prices.index(price))
        visitor.ask()
        check_shown(visitor, explore.view("budget", {"epsilon": price}, asked=asked[:number]))
    answers = visitor.texts("#e-ask ol li")
    assert len(answers) == 4
    assert all(re.match(r"mean salary: -?[\d,]+ \(|.*no number", answer) for answer in answers)
    # a price once paid does not come back: moving the slider changes the next question only
    assert visitor.page.is_disabled("#c-limit")
    visitor.set("epsilon", 2)
    check_shown(visitor, explore.view("budget", {"epsilon": 1}, asked=asked))
    visitor.ask()
    assert visitor.page.is_visible("#box.refused")
    check_shown(visitor, explore.view("budget", {"epsilon": 1}, asked=[*asked, 1]))
    visitor.ask()  # and asking on changes nothing
    assert len(visitor.texts("#e-ask ol li")) == 4
    visitor.page.click("button[type=reset]")
    visitor.settle()
    check_shown(visitor, explore.view("budget"))
    assert visitor.page.is_enabled("#c-limit")
    assert not visitor.page.is_visible("#e-ask")


def test_sliders_work_by_keyboard_and_say_their_values(visitor: Visitor, address: str) -> None:
    visitor.go(f"{address}survey.html")
    people = visitor.page.locator("#c-people")
    people.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.settle()
    assert people.get_attribute("aria-valuetext") == "3,000"
    assert visitor.page.inner_text("#o-people") == "3,000"
    assert "3,000 people" in visitor.page.inner_text("#says")
    assert visitor.page.get_attribute("#o-people", "aria-live") == "off"
    visitor.page.wait_for_function(
        "() => document.getElementById('spoken').textContent.includes('3,000 people')"
    )


@pytest.mark.parametrize("name", pages.NAMES)
def test_a_phone_shows_the_picture_while_a_control_is_dragged(
    visitor: Visitor, address: str, name: str
) -> None:
    """Between the words that stay at the top, and the lower edge."""
    visitor.page.set_viewport_size(ViewportSize(width=360, height=740))
    visitor.go(f"{address}{name}.html")
    visitor.page.wait_for_function(FITS)
    # an outcome of three lines
    visitor.page.evaluate(
        "document.getElementById('newest').textContent = 'An outcome. '.repeat(6)"
    )
    for height in (780, 768, 640):
        visitor.page.set_viewport_size(ViewportSize(width=360, height=height))
        top, picture, controls = visitor.page.evaluate(HEIGHTS)
        assert picture < controls
        first = 80  # pixels of the first control
        assert top + (controls - picture) + first <= height


# of all that stays at the top; and where the first picture and the controls begin
HEIGHTS = """() => {
  const box = one => one.getBoundingClientRect();
  const staying = [...document.querySelectorAll(".desk *")].filter(
    one => getComputedStyle(one).position === "sticky");
  return [
    staying.reduce((sum, one) => sum + box(one).height, 0),
    ...["figure", "#controls"].map(name => box(document.querySelector(name)).top),
  ];
}"""


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (360, 740), (360, 640)])
@pytest.mark.parametrize("name", ["survey", "attacks", "budget"])
def test_the_newest_outcome_is_seen_without_scrolling(
    visitor: Visitor, address: str, name: str, width: int, height: int
) -> None:
    visitor.page.set_viewport_size(ViewportSize(width=width, height=height))
    visitor.go(f"{address}{name}.html")
    visitor.page.locator(".experiment").last.click()
    visitor.page.wait_for_function("() => document.getElementById('newest').textContent")
    newest = visitor.page.locator("#newest")
    assert newest.get_attribute("role") == "status"
    box = newest.bounding_box()
    assert box
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= height


def test_a_slow_outcome_dims_the_picture_and_takes_no_second_click(
    visitor: Visitor, address: str
) -> None:
    visitor.go(f"{address}example.html")
    visitor.rest_of("train")
    button = visitor.page.locator('[data-name="guess"]')
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    visitor.page.route("**/outcomes/example/guess/*", hold)
    button.click()
    visitor.page.wait_for_selector('.stage[aria-busy="true"]')
    assert button.is_disabled()
    assert visitor.page.inner_text("#newest") == "Training…"
    held[0].continue_()
    visitor.page.wait_for_selector('.stage[aria-busy="false"]')
    assert button.is_enabled()
    assert visitor.page.inner_text("#newest").startswith("The example was")


def test_a_run_is_played_step_by_step(visitor: Visitor, address: str) -> None:
    """By keyboard: each step shows its words, and as many points of epsilon; after the last one a
    new run begins."""
    visitor.go(f"{address}training.html")
    visitor.rest_of("train")
    with visitor.page.expect_response("**/outcomes/training/train/*") as answered:
        visitor.page.click("button:text('Train')")
    steps = answered.value.json()["steps"]
    visitor.page.wait_for_function("() => !document.querySelector('.waits')")
    slider, words = visitor.page.locator("#play input"), visitor.page.locator("#play p")
    button = visitor.page.locator("#play button")
    assert words.inner_text() == steps[19] == slider.get_attribute("aria-valuetext")
    whole = points_of_epsilon(visitor)
    slider.press("Home")
    for number in (1, 2, 3):
        assert words.inner_text() == steps[number - 1]
        assert points_of_epsilon(visitor) == number
        slider.press("ArrowRight")
    assert whole == 20
    slider.press("End")
    slider.press("ArrowLeft")
    with visitor.page.expect_response("**/outcomes/training/train/*") as answered:
        button.press("Enter")
        assert button.inner_text() == "Pause"
    following = answered.value.json()["steps"]
    visitor.page.wait_for_function(
        "text => document.querySelector('#play p').textContent === text", arg=following[1]
    )
    button.press("Enter")
    assert button.inner_text() == "Play"
    stopped = words.inner_text()
    assert stopped in following
    visitor.page.wait_for_timeout(600)  # more than two steps
    assert words.inner_text() == stopped
    visitor.page.click("button[type=reset]")
    visitor.rest_of("train")
    assert points_of_epsilon(visitor) == 20


def points_of_epsilon(visitor: Visitor) -> int:
    """The points of the chart "Epsilon by step"."""
    line = visitor.page.get_attribute("#charts figure:nth-child(3) g[clip-path] path", "d")
    return len(re.findall("[ML]", line or ""))


@pytest.mark.parametrize("width", [1280, 360])
def test_a_word_is_explained_on_hover_and_focus(visitor: Visitor, address: str, width: int) -> None:
    visitor.page.set_viewport_size(ViewportSize(width=width, height=740))
    visitor.go(f"{address}training.html")
    mark, text = visitor.page.locator(".tip button").nth(1), visitor.page.locator("#t-noise")
    assert mark.get_attribute("aria-describedby") == "t-noise"
    assert not text.is_visible()
    mark.focus()
    assert text.is_visible()
    box = text.bounding_box()
    assert box
    assert 0 <= box["x"] < box["x"] + box["width"] <= width
    visitor.page.keyboard.press("Escape")
    assert not text.is_visible()
    visitor.page.keyboard.press("Tab")
    mark.hover()
    assert text.is_visible()
    text.hover()  # it stays while the pointer reads along
    assert text.is_visible()
    visitor.page.mouse.move(0, 0)
    assert not text.is_visible()


def test_tab_reaches_everything_in_order(visitor: Visitor, address: str) -> None:
    visitor.go(f"{address}survey.html")
    reached = []
    for _ in range(24):
        visitor.page.keyboard.press("Tab")
        reached.append(
            visitor.page.evaluate(
                "document.activeElement.id || document.activeElement.name ||"
                " document.activeElement.textContent.trim()"
            )
        )
    wanted = ["Skip to the page", "Budget", "theme", "c-odds", "c-people", "mine", "Flip for me"]
    assert [one for one in dict.fromkeys(reached) if one in wanted] == wanted


def test_a_drag_writes_only_what_changes(visitor: Visitor, address: str) -> None:
    """The own answer changes no view; more people change the sentence, not the meaning."""
    visitor.go(f"{address}survey.html")
    visitor.page.evaluate(
        """() => {
          window.written = new Set();
          for (const name of ["says", "meaning", "charts", "table", "code"]) {
            new MutationObserver(() => window.written.add(name)).observe(
              document.getElementById(name),
              {attributes: true, characterData: true, childList: true, subtree: true});
          }
        }"""
    )
    visitor.set("mine", 1)
    assert visitor.page.evaluate("[...window.written]") == []
    visitor.set("people", 1)
    written = visitor.page.evaluate("[...window.written]")
    assert "meaning" not in written
    assert {"says", "charts", "code"} <= {*written}


def test_an_address_holds_the_view(visitor: Visitor, address: str) -> None:
    visitor.go(f"{address}mechanisms.html")
    visitor.set("mechanism", 1)
    visitor.set("delta", 2)
    visitor.page.wait_for_url("**delta=0.001*")
    link = visitor.page.url
    assert "mechanism=Gaussian%20noise" in link
    said = visitor.page.inner_text("#says")
    visitor.page.goto("about:blank")
    visitor.go(link)
    visitor.settle()
    assert visitor.page.inner_text("#says") == said


@pytest.mark.parametrize("name", ["composition", "mechanisms", "trust"])
def test_a_preset_sets_its_controls_and_no_other(visitor: Visitor, address: str, name: str) -> None:
    page = pages.page(name)
    visitor.go(f"{address}{name}.html")
    wanted: dict[str, object] = {}
    for preset in page.presets:
        visitor.follow(f".presets a:text-is('{preset.label}')")
        wanted |= preset.values
        check_shown(visitor, explore.view(name, wanted))


@pytest.mark.parametrize("hash_", ["#epsilon=7", "#nothing=1&&=", "#%E0%A4%A", "#epsilon=<b>"])
def test_a_strange_address_shows_the_first_view(visitor: Visitor, address: str, hash_: str) -> None:
    visitor.go(f"{address}trust.html{hash_}")
    visitor.settle()
    page = pages.page("trust")
    check_shown(visitor, page.view(page.start))


def ground(visitor: Visitor) -> str:
    """The colour behind everything."""
    found: str = visitor.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    return found


def test_colours_follow_the_system_and_the_switch(visitor: Visitor, address: str) -> None:
    visitor.page.emulate_media(color_scheme="dark")
    visitor.go(f"{address}index.html")
    dark = ground(visitor)
    visitor.page.click("#theme")
    assert visitor.page.inner_text("#theme") == "Colours: light"
    light = ground(visitor)
    assert light != dark
    visitor.go(f"{address}survey.html")  # the choice stays
    assert ground(visitor) == light
    visitor.page.click("#theme")
    assert ground(visitor) == dark


def test_paper_is_light_and_names_the_values(visitor: Visitor, address: str) -> None:
    visitor.page.emulate_media(color_scheme="dark")
    visitor.go(f"{address}survey.html")
    dark = ground(visitor)
    for _ in range(2):
        visitor.page.click("#theme")
    assert visitor.page.inner_text("#theme") == "Colours: dark"
    assert ground(visitor) == dark
    visitor.page.emulate_media(media="print")
    assert ground(visitor) == "rgb(252, 252, 251)"
    assert visitor.page.is_visible("#o-people")
    assert not visitor.page.is_visible("#c-people")
    assert not visitor.page.is_visible(".experiment")


def test_a_server_that_stopped_is_named(failing: Visitor, address: str) -> None:
    failing.go(f"{address}survey.html")
    failing.page.context.set_offline(True)
    failing.page.locator("#c-odds").press("ArrowRight")
    failing.page.wait_for_selector("#box.refused")
    assert "Is discreet explore still running?" in failing.page.inner_text("#says")


def test_a_question_that_the_server_did_not_answer_does_not_count(
    failing: Visitor, address: str
) -> None:
    failing.go(f"{address}budget.html")
    failing.page.route("**/outcomes/**", lambda route: route.abort())
    failing.page.click("button.experiment")
    failing.page.wait_for_selector("#box.refused")
    failing.page.wait_for_selector("button.experiment:enabled")
    assert failing.page.locator("#table tbody tr").count() == 1
    assert "No answer came" in failing.page.inner_text("#says")
    failing.page.context.set_offline(True)
    failing.ask()
    assert failing.page.locator("#table tbody tr").count() == 1


def test_an_address_changed_by_hand_shows_its_view(visitor: Visitor, address: str) -> None:
    visitor.go(f"{address}survey.html")
    visitor.page.evaluate("location.hash = '#people=300&odds=9'")
    visitor.page.wait_for_function(
        "() => document.getElementById('says').textContent.includes('300 people')"
    )
    assert visitor.page.inner_text("#o-odds") == "9"


def test_without_javascript_the_first_view_can_be_read(browser: Browser, address: str) -> None:
    """And nothing looks as if it worked: values of controls are texts."""
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        for name in pages.NAMES:
            first = pages.view(name, pages.page(name).start)
            page.goto(f"{address}{name}.html")
            assert "need JavaScript" in page.inner_text("main")
            assert page.inner_text("#says") == first.says
            assert page.locator("#table tbody tr").count() == len(first.rows)
            shown = "button:visible, input:visible, a[href^='#']:visible"
            assert page.locator(f"main :is({shown})").count() == 0
            for control in pages.page(name).controls:
                assert control.texts[control.place] in page.inner_text("#controls")


def test_the_export_opens_from_the_disk(visitor: Visitor, exported: Path) -> None:
    """Each control is dragged over all its values; every request is for a file of the folder."""
    page = pages.page("survey")
    visitor.go(f"{exported.as_uri()}/survey.html")
    check_shown(visitor, pages.view("survey", page.start))
    places = [*page.start]
    for number, control in enumerate(page.controls):
        for place in reversed(range(len(control.values))):
            places[number] = place
            visitor.set(control.name, place)
            assert visitor.page.inner_text("#says") == pages.view("survey", tuple(places)).says
    check_shown(visitor, pages.view("survey", tuple(places)))
    visitor.page.click("button:text('Ask the crowd')")
    visitor.page.click("button:text('Flip for me')")
    visitor.page.wait_for_selector("#e-crowd ol li")
    visitor.page.wait_for_selector("#e-flip ol li")


def test_recorded_guesses_are_counted_once(visitor: Visitor, exported: Path) -> None:
    """An export has few outcomes and shows them in turn: more presses are no more evidence."""
    visitor.go(f"{exported.as_uri()}/survey.html")
    visitor.page.evaluate(
        """() => Object.values(discreetRecorded.outcomes.crowd).forEach(list => list.forEach(
          (one, n) => { one.guesses = [{label: "guess", is_right: n === 0, bound: ""}]; }))"""
    )
    said = []
    for _ in range(5):
        visitor.page.click("button:text('Ask the crowd')")
        visitor.page.wait_for_function("() => !document.querySelector('.waits')")
        said.append(visitor.page.text_content("#e-crowd .tally") or "")
    assert [text.partition(",")[0] for text in said] == [
        "guess: right 1 of 1 times",
        *["guess: right 1 of 2 times"] * 4,
    ]
    assert ["All recorded outcomes were shown" in text for text in said] == [False] * 2 + [True] * 3
