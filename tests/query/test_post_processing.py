"""Post-processing costs nothing, and means what SQL means."""

import math
from collections.abc import Callable

import duckdb
import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet.errors import InvalidArgument, QueryRefused
from discreet.query import (
    Table,
    plan_workload,
)
from tests.query.kit import without_noise


def _rows() -> pd.DataFrame:
    """Rows of every group of two keys, with numbers that sums tell apart."""
    number = np.arange(240)
    return pd.DataFrame(
        {
            "year": 2000 + number % 3,
            "sex": np.where(number % 5 < 2, "f", "m"),
            "pay": (number * number) % 41,
            "hours": 1 + (number * 7) % 13,
        }
    )


COLUMNS = {
    "year": dp.Column.integer(2000, 2002, keys=[2000, 2001, 2002]),
    "sex": dp.Column.text(keys=["f", "m"]),
    "pay": dp.Column.integer(0, 40),
    "hours": dp.Column.integer(0, 20),
}


def _table(epsilon: float = 100) -> Table:
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=epsilon, delta=1e-3))
    return Table(_rows(), name="t", unit=dp.Unit.ROW, columns=COLUMNS, ledger=ledger)


# --- the meaning ---

MEANT = """
SELECT year, COUNT(*) AS n FROM t GROUP BY year HAVING COUNT(*) > 79 ORDER BY year DESC
SELECT year, sex, SUM(pay) AS s FROM t GROUP BY year, sex ORDER BY s DESC, year LIMIT 3
SELECT year, sex, SUM(pay) AS s FROM t GROUP BY year, sex ORDER BY 2, 3 DESC LIMIT 2 OFFSET 3
SELECT sex, SUM(pay) / COUNT(*) AS m, SUM(pay) - 2 * SUM(hours) AS d FROM t GROUP BY sex ORDER BY m
SELECT sex, 2 * (SUM(pay) + 1) / (COUNT(*) - 3.5) AS m FROM t GROUP BY sex ORDER BY sex
SELECT year, sex, COUNT(*) AS n, SUM(pay) AS s FROM t GROUP BY ROLLUP (year, sex) ORDER BY year, sex
SELECT year, sex, SUM(pay) / SUM(hours) AS r FROM t GROUP BY CUBE (year, sex) ORDER BY r, year, sex
SELECT sex, year, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((sex), (year), ()) ORDER BY 1, 2
SELECT year, sex, COUNT(*) AS n FROM t GROUP BY sex, ROLLUP (year) ORDER BY sex, year NULLS FIRST
SELECT year, sex, AVG(pay) AS a FROM t GROUP BY CUBE (year, sex) HAVING sex IS NULL ORDER BY year
SELECT year, sex, VAR_POP(pay) v FROM t GROUP BY CUBE (year, sex) HAVING NOT year > 2000 ORDER BY 2
SELECT year % 2 = 0 AS even, COUNT(*) AS n FROM t GROUP BY year % 2 = 0 HAVING even OR n < 0
SELECT year, COUNT(*) AS n FROM t GROUP BY year HAVING sum(pay) > sum(hours) * 2.9 ORDER BY count(*)
SELECT sex, COUNT(*) AS n FROM t GROUP BY sex HAVING sex IN ('m', 'x') AND n BETWEEN 1 AND 1000
SELECT year + 1 AS y, COUNT(*) AS n FROM t GROUP BY y HAVING y <> 2002 ORDER BY -y + COUNT(*) * 0
SELECT sex, COUNT(*) / SUM(COUNT(*)) OVER () AS p FROM t GROUP BY sex ORDER BY p DESC
SELECT year, 100 * SUM(pay) / SUM(SUM(pay)) OVER () AS p FROM t GROUP BY year ORDER BY p
SELECT year, sex, COUNT(*) AS n FROM t GROUP BY ROLLUP (year), sex ORDER BY sex, year
SELECT year, sex, COUNT(*) AS n FROM t GROUP BY ROLLUP (year), CUBE (sex) ORDER BY year, sex
SELECT year, sex, SUM(pay) AS n FROM t GROUP BY GROUPING SETS ((year), CUBE (sex)) ORDER BY 1, 2
SELECT year, sex, COUNT(*) n, GROUPING(year) g FROM t GROUP BY CUBE (year, sex) ORDER BY g, 1, 2
SELECT year, sex, SUM(pay) s FROM t GROUP BY CUBE (year, sex) HAVING GROUPING(sex) = 0 ORDER BY 3
SELECT sex, GROUPING(year, sex) g FROM t GROUP BY CUBE (year, sex) HAVING COUNT(*) > 60 ORDER BY g
SELECT year, ROUND(AVG(pay), 2) AS m, ROUND(SUM(pay) / 3) AS t FROM t GROUP BY year ORDER BY year
SELECT ROUND(SUM(pay) / 7.0, -2) m, FLOOR(AVG(pay)) f, CEIL(-AVG(pay)) c FROM t
SELECT sex, SQRT(COUNT(*)) r, LN(SUM(pay)) l, EXP(AVG(pay) / 9) e FROM t GROUP BY sex ORDER BY r
SELECT sex, COALESCE(SUM(pay) / NULLIF(COUNT(*) - 96, 0), -1) AS q FROM t GROUP BY sex ORDER BY sex
SELECT CASE WHEN COUNT(*) > 99 THEN 'many' ELSE 'few' END AS size FROM t GROUP BY sex ORDER BY size
SELECT sex, CASE COUNT(*) WHEN 96 THEN AVG(pay) WHEN 1 THEN 2 END c FROM t GROUP BY sex ORDER BY c
SELECT sex, COUNT(*) > 100 AS b, AVG(pay) IS NULL OR sex = 'f' AS d FROM t GROUP BY sex ORDER BY b
SELECT CAST(AVG(pay) AS INTEGER) i, CAST(COUNT(*) > 9 AS INTEGER) j FROM t GROUP BY sex ORDER BY 1
SELECT GREATEST(COUNT(*) - 80, AVG(pay), 3) AS g, ABS(-SUM(pay)) a FROM t GROUP BY year ORDER BY a
SELECT year, LEAST(SUM(pay), NULLIF(1, 2), COUNT(*)) AS l FROM t GROUP BY year ORDER BY year
SELECT year, COUNT(*) n FROM t GROUP BY year HAVING ABS(n - 80) < 9 ORDER BY SQRT(SUM(pay))
SELECT year + 1 AS y, year, year = 2001 AS b, COUNT(*) AS n FROM t GROUP BY year ORDER BY b, year
SELECT COALESCE(sex, 'all') AS who, COUNT(*) AS n FROM t GROUP BY ROLLUP (sex) ORDER BY who
SELECT CASE WHEN COUNT(*) > 50 THEN sex END w, COUNT(*) n FROM t GROUP BY sex, year ORDER BY w, n
"""


@pytest.mark.parametrize("text", MEANT.strip().splitlines())
def test_without_noise_it_is_what_duckdb_answers(text: str) -> None:
    question = _table().question(text)
    found = without_noise(question, epsilon=1000.0)
    with duckdb.connect() as connection:
        connection.register("t", _rows())
        theirs = connection.execute(text).fetchall()
        names = [column[0] for column in connection.description]
    ours = [tuple(row[name] for name in names) for row in found.rows()]
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        for mine, its in zip(one, other, strict=True):
            if isinstance(mine, float):
                assert mine == pytest.approx(float(its), rel=1e-9)
            else:
                assert mine == its


@pytest.mark.parametrize("text", MEANT.strip().splitlines())
def test_the_text_of_the_query_gives_it_again(text: str) -> None:
    question = _table().question(text)
    assert _table().question(str(question.query)).query == question.query
    assert question.forecast(epsilon=1).lines
    assert str(question.query) in str(question.explain(epsilon=1))


def test_calls_of_python_give_the_same_query() -> None:
    grouped = _table().group_by("year", "sex")
    number, pay, name = dp.count(), dp.sum("pay"), dp.col
    pairs = [
        (
            grouped.agg(n=number, m=pay / number, p=100 * dp.share(number)).order_by("m").limit(2),
            (
                "SELECT year, sex, COUNT(*) AS n, SUM(pay) / COUNT(*) AS m, "
                "100 * SHARE(COUNT(*)) AS p FROM t GROUP BY year, sex ORDER BY m LIMIT 2"
            ),
        ),
        (
            grouped.agg(m=pay / number).having(name("m") > 3, number >= 10).rollup(),
            (
                "SELECT year, sex, SUM(pay) / COUNT(*) AS m FROM t GROUP BY ROLLUP (year, sex) "
                "HAVING m > 3 AND COUNT(*) >= 10"
            ),
        ),
        (
            grouped.agg(n=number, d=1 - name("n") / 2).order_by(dp.sum("hours"), descending=True),
            (
                "SELECT year, sex, COUNT(*) AS n, 1 - COUNT(*) / 2 AS d FROM t GROUP BY year, sex "
                "ORDER BY SUM(hours) DESC"
            ),
        ),
        (
            grouped.agg(n=number).cube().order_by("sex", nulls_first=True).limit(5, offset=1),
            (
                "SELECT year, sex, COUNT(*) AS n FROM t GROUP BY CUBE (year, sex) "
                "ORDER BY sex NULLS FIRST LIMIT 5 OFFSET 1"
            ),
        ),
        (
            grouped.agg(
                r=(pay / number).round(1),
                s=number.sqrt() + pay.ln().exp() - pay.abs().floor().ceil(),
                c=dp.mean("pay").coalesce(0).cast("integer"),
                g=number.greatest(pay, 3).least(7).nullif(7),
                big=(number > 9).then("big", otherwise="small"),
                top=name("year").is_null().then(1, otherwise=0),
            ),
            (
                "SELECT ROUND(SUM(pay) / COUNT(*), 1) AS r, "
                "SQRT(COUNT(*)) + EXP(LN(SUM(pay))) - CEIL(FLOOR(ABS(SUM(pay)))) AS s, "
                "CAST(COALESCE(AVG(pay), 0) AS INTEGER) AS c, "
                "NULLIF(LEAST(GREATEST(COUNT(*), SUM(pay), 3), 7), 7) AS g, "
                "CASE WHEN COUNT(*) > 9 THEN 'big' ELSE 'small' END AS big, GROUPING(year) AS top "
                "FROM t GROUP BY year, sex"
            ),
        ),
        (
            grouped.agg(n=number).grouping_sets(("sex", "year"), ("sex",)),
            "SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((sex, year), (sex))",
        ),
    ]
    for question, text in pairs:
        assert question.query == _table().question(text).query


@pytest.mark.parametrize(
    "act",
    [
        lambda t: t.agg(x=dp.col("pay")),
        lambda t: t.agg(x=dp.sum("pay") / 0),
        lambda t: t.agg(x=dp.sum("pay") + dp.col("year")),
        lambda t: t.agg(x=(dp.sum("pay") / dp.count()).lower()),
        lambda t: t.agg(x=dp.count().cast("text")),
        lambda t: t.agg(x=dp.count().round(99)),
        lambda t: t.agg(x=dp.sum("pay").coalesce("none")),
        lambda t: t.agg(x=(dp.count() > 3).then("a", otherwise=1)),
        lambda t: t.agg(x=(dp.col("pay") > 3).then(dp.count())),
        lambda t: t.group_by("year").agg(x=dp.col("year")),
        lambda t: t.agg(n=dp.count()).rollup(),
        lambda t: t.agg(n=dp.count()).limit(-1),
        lambda t: t.agg(n=dp.count()).limit(1.0),
        lambda t: t.agg(n=dp.count()).limit(True),
        lambda t: t.agg(n=dp.count()).having(dp.col("pay") > 1),
        lambda t: t.agg(n=dp.count()).having(dp.col("n")),
        lambda t: t.agg(n=dp.count()).order_by("m"),
        lambda t: t.agg(n=dp.count()).order_by(3),
        lambda t: t.agg(n=dp.share(dp.count())),
        lambda t: t.agg(n=dp.share("pay")),  # type: ignore[arg-type]  # the point
        lambda t: t.agg(n=dp.sum(dp.col("pay") + dp.count())),
        lambda t: t.group_by("sex").agg(n=dp.count()).grouping_sets("sex"),
        lambda t: t.group_by("sex").agg(n=dp.count()).grouping_sets(()),
        lambda t: t.group_by("sex").agg(n=dp.count()).grouping_sets(("sex", "year")),
        lambda t: t.group_by("sex").agg(n=dp.median("pay")).rollup(),
        lambda t: t.where(dp.count() > 1).agg(n=dp.count()),
        lambda t: t.group_by(x=dp.count() + 1).agg(n=dp.count()),
    ],
)
def test_expressions_without_a_rule_are_refused_in_python(act: Callable[[Table], object]) -> None:
    with pytest.raises((InvalidArgument, QueryRefused)):
        act(_table())


# --- the price ---


def test_hidden_aggregates_are_paid_and_drawn_once() -> None:
    table = _table()
    plain = table.question("SELECT SUM(pay) AS s, COUNT(*) AS n FROM t")
    text = "SELECT SUM(pay) / COUNT(*) AS m, 2 * SUM(pay) AS d FROM t HAVING COUNT(*) > -999"
    computed = table.question(text)
    costs = [one.forecast(epsilon=1).privacy_loss for one in (plain, computed)]
    assert costs[0] == costs[1]
    answer = computed.release(epsilon=1)
    assert answer.columns[::4] == ("m", "d")
    (total,), (count,) = (answer.release.value[name].tolist() for name in ("sum(pay)", "count(*)"))
    (row,) = answer.rows()
    assert row["d"] == 2 * total
    assert row["m"] == pytest.approx(total / count)
    weighted = computed.forecast(epsilon=1, weights={"SUM(pay)": 3}).lines
    assert [line.name for line in weighted] == ["SUM(pay)", "COUNT(*)", "d"]
    assert weighted[0].half_width < computed.forecast(epsilon=1).lines[0].half_width


def test_totals_are_the_sums_of_their_groups() -> None:
    text = "SELECT year, sex, COUNT(*) AS n, SUM(pay) AS s FROM t GROUP BY CUBE (year, sex)"
    rows = _table().question(text).release(epsilon=0.1).to_pandas()
    groups = rows[rows.year.notna() & rows.sex.notna()]
    assert (len(rows), len(groups)) == (12, 6)
    for _, row in rows.iterrows():
        inside = groups
        for key in ("year", "sex"):
            if pd.notna(row[key]):
                inside = inside[inside[key] == row[key]]
        assert (row.n, row.s) == (inside.n.sum(), inside.s.sum())


def test_an_answer_without_rows_has_the_same_columns() -> None:
    text = "SELECT year, COUNT(*) AS n, AVG(pay) / COUNT(*) AS r FROM t GROUP BY year"
    every = _table().question(text).release(epsilon=1)
    for clause in ("HAVING n < -1e9", "LIMIT 0", "OFFSET 9"):
        none = _table().question(f"{text} {clause}").release(epsilon=1)
        assert none.table.schema == every.table.schema
        assert none.rows() == []
        assert none.to_csv().count("\n") == 1
        assert (repr(none), none.to_json(), none._repr_html_()) > ("", "", "")


def test_notes_say_what_was_done() -> None:
    text = "SELECT year, COUNT(*) AS n, SHARE(COUNT(*)) * SUM(pay) AS r FROM t GROUP BY year"
    notes = _table().question(f"{text} ORDER BY n LIMIT 2").release(epsilon=1).notes
    for said in ("all hold together", "shares are of", "chosen by noisy", "sorted by noisy"):
        assert any(said in note for note in notes)
    totals = _table().question("SELECT COUNT(*) FROM t GROUP BY ROLLUP (sex)").release(epsilon=1)
    assert any("its caps allow in all groups together" in note for note in totals.notes)


def test_a_workload_keeps_what_is_computed() -> None:
    texts = [
        "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex",
        "SELECT sex, AVG(pay) AS a FROM t GROUP BY sex",
        "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex ORDER BY n LIMIT 1",
        "SELECT sex, COUNT(*) AS n FROM t GROUP BY ROLLUP (sex)",
    ]
    table = _table()
    planned = plan_workload(table, texts, epsilon=1)
    assert [one.serves for one in planned.questions] == [(0, 1), (2,), (3,)]
    for one in planned.questions[1:]:
        assert one.question.query == table.question(texts[one.serves[0]]).query


def test_an_error_can_be_asked_for_where_it_is_known() -> None:
    grouped = _table().group_by("year")
    made = grouped.agg(n=dp.count(), d=dp.sum("pay") - dp.sum("hours")).rollup()
    price = made.for_error(within={"n": 20, "d": 300})
    lines = made.forecast(price).lines
    assert all(line.half_width <= {"n": 20, "d": 300}.get(line.name, math.inf) for line in lines)
    assert max(line.half_width for line in lines if line.name == "d") > 250
    with pytest.raises(InvalidArgument, match="the error of r depends on the rows"):
        grouped.agg(r=dp.sum("pay") / dp.count()).for_error(within=1)
