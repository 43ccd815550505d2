"""Text to a privacy loss: what is printed reads back, and everything else is refused by place."""

from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Expression,
    Gaussian,
    LossDistribution,
    PoissonSampled,
    PrivacyLoss,
    ProfileCurve,
    Pure,
    Term,
    TunedNegativeBinomial,
    Zcdp,
    parse,
    terms,
)
from discreet.errors import InvalidArgument
from tests.accounting.examples import ALL_TERMS, some_loss
from tests.time_limit import time_limit

PIECES = st.sampled_from(
    [
        *("Pure", "Gaussian", "PrivacyLoss", "accounting.", "epsilon", "x", "if", "not", "lambda"),
        *("(", ")", "+", "*", "/", "=", ",", ".", "-", "**", "//", " ", "\n", "\t", "\0", "#", "'"),
        *(
            "0",
            "1",
            "10",
            "0.1",
            "1e9",
            "1e999",
            "1e-99999",
            "007",
            "1_000",
            "0x1",
            "1j",
            "9" * 400,
        ),
        *(":", ";", "[", "]", "{", "}", "@", "\\", "λ", "\ud800", "True", "...", "None"),
    ]
)


@given(some_loss())
@example(PrivacyLoss())
@example(7 * Gaussian(Fraction(10**400 + 1, 3)))
def test_a_printed_loss_is_read_back(loss: PrivacyLoss) -> None:
    assert parse(repr(loss)) == loss
    assert parse(repr(loss).replace("accounting.", "")) == loss


@pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
def test_each_term_is_known(term: Term) -> None:
    assert parse(repr(term)) == PrivacyLoss.of(term)


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("1000 * Gaussian(1.1)", 1000 * Gaussian(1.1)),
        ("Gaussian(1.1) * 10", 10 * Gaussian(1.1)),
        ("3 * Pure(0.1) + Gaussian(multiplier=4)", 3 * Pure(0.1) + Gaussian(4)),
        ("2 * (3 * (Pure(1) + Zcdp(2)) + Pure(1))", 8 * Pure(1) + 6 * Zcdp(2)),
        ("Approximate(0.1, delta=256/60_000)", 1 * Approximate(0.1, Fraction(256, 60_000))),
        ("DiscreteLaplace(scale=10, sensitivity=2,)", 1 * DiscreteLaplace(10, 2)),
        ("60/4 * 2 * Pure(1e-5)", 30 * Pure(1e-5)),
        ("1e3 * Pure(1.) + 2.0 * Pure(.5)", 1000 * Pure(1) + 2 * Pure(0.5)),
        (" Pure(1)\n\t+ Pure(2) ", Pure(1) + Pure(2)),
        ("0 * Pure(1)", PrivacyLoss()),
        ("accounting.PrivacyLoss() + accounting.Pure(1)", 1 * Pure(1)),
        (
            "1000 * PoissonSampled(Gaussian(1.1), rate=256/60000)",
            1000 * PoissonSampled(Gaussian(1.1), Fraction(256, 60_000)),
        ),
        (
            "accounting.PoissonSampled(2 * (Pure(1) + Gaussian(2)), 1/4)",
            1 * PoissonSampled(2 * Pure(1) + 2 * Gaussian(2), 0.25),
        ),
        ("PoissonSampled(PrivacyLoss(), rate=1)", 1 * PoissonSampled(PrivacyLoss(), 1)),
        ("Pure(0.1000000000000000000001)", 1 * Pure(Fraction(10**21 + 1, 10**22))),
    ],
)
def test_a_text_says_what_python_would(text: str, loss: PrivacyLoss) -> None:
    assert parse(text) == loss


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("2 * Gausian(1)", 4, "no term 'Gausian' (did you mean Gaussian?); there are Approx"),
        ("PURE(1)", 0, "did you mean Pure?"),
        ("Gaussian", 0, "Gaussian needs its parameters: Gaussian(multiplier)"),
        ("Gaussian(sigma)", 9, "sigma stands for no number"),
        ("Gaussian(multiplir=1)", 9, "no multiplir (did you mean multiplier?); it takes mult"),
        ("Gaussian(1, multiplier=1)", 0, "Gaussian takes multiplier: multiple values"),
        ("Gaussian(multiplier=1, multiplier=2)", 23, "each parameter is given once"),
        ("Gaussian()", 0, "missing a required argument"),
        ("Gaussian(1, 2)", 0, "too many positional arguments"),
        ("Gaussian(0)", 0, "multiplier = 0: give a finite number above 0"),
        ("Gaussian(Pure(1))", 0, "multiplier = accounting.Pure(epsilon=1): give a finite"),
        ("1.5 * Pure(1)", 0, "1.5 times: give a whole number, 0 or above, as the count"),
        ("(Pure(1) ) + 2", 11, "a number and a privacy loss can't be added"),
        ("Pure(1) * Pure(2)", 8, "privacy losses can't be multiplied"),
        ("Pure(1) / 2", 8, "a privacy loss can't be divided"),
        ("2 / Pure(1)", 2, "a privacy loss can't be divided"),
        ("Pure(2) - Pure(1)", 8, "only +, * and / are allowed"),
        ("Pure(2**3)", 6, "only +, * and / are allowed"),
        ("Pure(-1)", 0, "Pure: epsilon = -1: give a finite number, 0"),
        ("Pure(-x)", 5, "this has no meaning here: allowed are"),
        ("Pure(1/(2*0))", 8, "this divides by 0"),
        ("3", 0, "3 is a number: give a privacy loss"),
        ("Pure(1", 4, "this parenthesis isn't closed"),
        ("Pure(1))", 7, "')' can't stand here"),
        ("Pure(1) Pure(2)", 8, "'Pure' can't stand here"),
        ("Pure(1) +", 9, "more must follow"),
        ("Pure(1)(2)", 0, "only a term takes parameters"),
        ("os.system(1)", 0, "only a term takes parameters"),
        ("__import__(1)", 0, "no term '__import__'"),
        ("Pure(*x)", 5, "this has no meaning here"),
        ("Pure(**x)", 7, "x stands for no number"),
        ("Pure(**1)", 5, "each parameter is given once"),
        ("True * Pure(1)", 0, "this has no meaning here"),
        ("Pure(True)", 0, "epsilon = True: give a finite number"),
        ("Pure(1 + True)", 9, "this has no meaning here"),
        ("PoissonSampled(2, rate=1)", 0, "privacy_loss = Fraction(2, 1): give a term or a"),
        ("PoissonSampled(2 * Pur(2), rate=1)", 19, "no term 'Pur'"),
        ("Pure(1j)", 5, "'1j' can't stand here"),
        ("Pure('1')", 5, "can't stand here: allowed are numbers, names"),
        ("Pure(0x10)", 5, "'0x10' can't stand here"),
        ("Pure(1) if 1 else 2", 0, "this has no meaning here"),
        ("PrivacyLoss(1)", 0, "no term 'PrivacyLoss'"),
        ("Pure(1e1001)", 5, "at most 1000 digits"),
        ("Pure(1e99999999999999999999)", 5, "at most 1000 digits"),
        ("Pure(1e600 * 1e600)", 5, "at most 1000 digits"),
        ("(" * 31 + "1" + ")" * 31, 30, "at most 30 parentheses may be nested"),
    ],
)
def test_an_error_shows_the_place_of_a_mistake(text: str, at: int, message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        parse(text)
    what, shown, mark = str(error.value).split("\n")
    assert message in what
    assert shown == f"  {text}"
    assert mark == " " * (2 + at) + "^"


def test_errors_show_the_wrong_part_of_a_long_text() -> None:
    with pytest.raises(InvalidArgument) as error:
        parse("Pure(1) + " * 40 + "Pur(2)" + " + Pure(1)" * 40)
    what, shown, mark = str(error.value).split("\n")
    assert what.startswith("no term 'Pur'")
    assert len(shown) < 80
    assert shown[mark.index("^") :].startswith("Pur(2)")


@pytest.mark.parametrize(
    "text",
    [
        *("", " \n", "+".join(["1"] * 1999), "*".join(["1"] * 1999), "-" * 3999 + "1"),
        *(
            "not " * 900 + "1",
            "1**" * 1300 + "1",
            "x.y" * 1300,
            "Pure(" * 800,
            ")" * 4000,
            "(" * 4000,
        ),
        *(
            "9" * 4000,
            "Pure(" + "9" * 1001 + ")",
            "1e999*" * 600 + "Pure(1)",
            "a" * 4001,
            "x" * 4000,
        ),
        *("1 if 1 else " * 300 + "1", "Pure(x for x in y)", "=", "a=1", "a:=1", "yield", "await x"),
        *(
            "1if 2else 3",
            "1 is 1",
            "f''",
            "Pure(1)\0",
            "\ufeffPure(1)",
            "Pure(\uff11)",
            "\uff30ure(1)",
        ),
    ],
    ids=lambda text: repr(text)[:20],
)
def test_nothing_takes_long_or_breaks(text: str) -> None:
    with time_limit(), pytest.raises(InvalidArgument) as error:
        parse(text)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("given", [None, 3, b"Pure(1)", Pure(1)], ids=repr)
def test_only_a_text_is_read(given: object) -> None:
    with pytest.raises(InvalidArgument, match="as text, not as"):
        parse(given)  # type: ignore[arg-type]


@settings(max_examples=500)
@given(st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=60)))
def test_any_text_is_a_loss_or_a_mistake(text: str) -> None:
    try:
        loss = parse(text)
    except InvalidArgument:
        return
    assert parse(repr(loss)) == loss


class TestNames:
    def test_a_name_stands_for_a_number(self) -> None:
        training = Expression.of("2 * n * Gaussian(sigma / 3) + Pure(1)")
        assert training.names == {"n", "sigma"}
        assert training.loss({"n": 5, "sigma": 1.5}) == 10 * Gaussian(0.5) + Pure(1)

    @pytest.mark.parametrize(
        ("text", "counts"),
        [
            ("n * Pure(1)", {"n"}),
            ("Pure(1) * (2 * n + m)", {"n", "m"}),
            ("n * Pure(x) + m * (k * Pure(2))", {"n", "m", "k"}),
            ("Pure(a * b)", set()),
            ("n * Pure(n)", {"n"}),
            ("a * b", set()),
            ("accounting.Pure(epsilon=x)", set()),
            ("n * PoissonSampled(m * Gaussian(s), rate=b / t)", {"n", "m"}),
            ("RandomizedResponse(1, k)", {"k"}),
            ("RandomizedResponse(e, categories=2 * k)", {"k"}),
        ],
    )
    def test_counts_are_distinguished_from_other_numbers(self, text: str, counts: set[str]) -> None:
        assert Expression.of(text).counts == counts

    def test_terms_and_parameters_are_no_names(self) -> None:
        assert Expression.of("accounting.Pure(epsilon=1) + PrivacyLoss()").names == set()

    def test_names_in_terms_of_terms(self) -> None:
        training = Expression.of("n * PoissonSampled(Gaussian(sigma), rate=batch / 60_000)")
        assert training.names == {"n", "sigma", "batch"}
        values = {"n": 10, "sigma": 2, "batch": 600}
        assert training.loss(values) == 10 * PoissonSampled(Gaussian(2), 0.01)

    def test_the_error_names_a_misspelt_name(self) -> None:
        with pytest.raises(InvalidArgument, match=r"sigam stands for no number .*mean sigma"):
            Expression.of("Gaussian(sigam)").loss({"sigma": 1})

    @pytest.mark.parametrize("value", [float("nan"), "1", True, None], ids=repr)
    def test_a_value_is_a_finite_number(self, value: object) -> None:
        with pytest.raises(InvalidArgument, match=r"x = .*: give a finite number"):
            Expression.of("Pure(x)").loss({"x": value})  # type: ignore[dict-item]

    @pytest.mark.parametrize("count", [-1, 0.5])
    def test_a_count_is_whole_and_not_negative(self, count: float) -> None:
        with pytest.raises(InvalidArgument, match="give a whole number, 0 or above, as the count"):
            Expression.of("n * Pure(1)").loss({"n": count})


def test_a_new_term_is_known_with_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    class Halved(Pure):
        """A term of a term."""

        def __init__(self, of: Term | PrivacyLoss, *, rate: Fraction, often: bool = False) -> None:
            given.extend((of, rate, often))
            super().__init__(rate)

    monkeypatch.setattr(terms, "Halved", Halved, raising=False)
    monkeypatch.setattr(terms, "__all__", [*terms.__all__, "Halved"])
    parse("3 * Halved(Gaussian(4), rate=1/2) + Halved(of=2 * Pure(1), rate=1, often=True)")
    assert given == [Gaussian(4), Fraction(1, 2), False, 2 * Pure(1), Fraction(1), True]


@given(
    st.fractions(-500, 500, max_denominator=10**6),
    st.fractions(Fraction(-9, 10), 5, max_denominator=10**6),
)
def test_negative_numbers_are_read_back(loss: Fraction, eta: Fraction) -> None:
    tuned = TunedNegativeBinomial(Pure(0.1), eta, 0.1) if eta else Pure(1)
    rare = Fraction(1, 10**300)  # so that the other law's probability is below 1 too
    for term in (LossDistribution({loss: rare}), tuned):
        assert parse(repr(term)) == PrivacyLoss.of(term)


def test_a_long_loss_is_refused_by_the_way_to_write_it() -> None:
    curve = 1 * ProfileCurve({n: Fraction(1, n + 1) for n in range(400)})
    with pytest.raises(InvalidArgument, match="write a longer loss by to_json"):
        parse(repr(curve))
    assert PrivacyLoss.from_json(curve.to_json()) == curve
