"""Texts that reach for files, other tables, functions, settings: each is refused."""

import pytest

from discreet.errors import QueryRefused
from tests.query.wages import WAGES, parse

ATTACKS = """
SELECT COUNT(*) FROM 'wages.parquet'
SELECT COUNT(*) FROM "wages.parquet"
SELECT COUNT(*) FROM '/etc/passwd'
SELECT COUNT(*) FROM read_csv('/etc/passwd')
SELECT COUNT(*) FROM read_text('/etc/passwd') AS wages
SELECT COUNT(*) FROM glob('/*')
SELECT COUNT(*) FROM query('SELECT 1')
SELECT COUNT(*) FROM query_table('wages')
SELECT COUNT(*) FROM duckdb_tables()
SELECT COUNT(*) FROM duckdb_tables
SELECT COUNT(*) FROM pragma_storage_info('wages')
SELECT COUNT(*) FROM information_schema.tables
SELECT COUNT(*) FROM sqlite_master
SELECT COUNT(*) FROM frame
SELECT COUNT(*) FROM range(10)
SELECT COUNT(*) FROM UNNEST([1, 2])
SELECT COUNT(*) FROM (VALUES (1)) AS wages(wage)
SELECT COUNT(*) FROM (wages)
SELECT COUNT(*) FROM ONLY wages
SELECT COUNT(*) FROM wages, other
SELECT COUNT(*) FROM wages wages, wages other
SELECT COUNT(*) FROM wages AS wages(a, b)
SELECT COUNT(*) FROM wages w (wage, year)
SELECT COUNT(*) FROM wages AS "w"("a")
SELECT COUNT(*) FROM wages TABLESAMPLE 10%
SELECT COUNT(*) FROM wages USING SAMPLE 1 ROWS
SELECT COUNT(*) FROM wages USING SAMPLE reservoir(1 ROWS) REPEATABLE (1)
SELECT COUNT(*) FROM wages AT (VERSION => 1)
SELECT COUNT(*) FROM wages AT (TIMESTAMP => DATE '2020-01-31')
SELECT COUNT(*) FROM wages FOR SYSTEM_TIME AS OF DATE '2020-01-31'
SELECT COUNT(*) FROM wages CROSS JOIN wages AS b
SELECT COUNT(*) FROM wages POSITIONAL JOIN other
SELECT COUNT(*) FROM wages ASOF JOIN other USING (year)
SELECT COUNT(*) FROM wages SEMI JOIN other USING (year)
SELECT COUNT(*) FROM wages NATURAL JOIN other
SELECT COUNT(*) FROM wages, LATERAL (SELECT 1)
SELECT COUNT(*) FROM wages LATERAL VIEW explode(x) t AS y
SELECT COUNT(*) FROM wages CONNECT BY PRIOR year = year
SELECT COUNT(*) FROM wages MATCH_RECOGNIZE (PATTERN (a))
PIVOT wages ON year USING COUNT(*)
SELECT COUNT(*) FROM wages PIVOT (COUNT(*) FOR year IN (1980))
SELECT COUNT(*) FROM wages UNPIVOT (a FOR b IN (year))
UNPIVOT wages ON year
FROM wages
FROM wages SELECT COUNT(*)
FROM wages |> AGGREGATE COUNT(*)
SELECT COUNT(*) FROM wages |> LIMIT 1
TABLE wages
VALUES (1)
DESCRIBE wages
SHOW TABLES
SUMMARIZE wages
EXPLAIN ANALYZE SELECT COUNT(*) FROM wages
CALL pragma_version()
PRAGMA database_list
SET enable_external_access = true
RESET ALL
ATTACH 'x.db' AS x
DETACH x
INSTALL httpfs
LOAD httpfs
USE other
CHECKPOINT
VACUUM
BEGIN
COMMIT
EXPORT DATABASE 'x'
IMPORT DATABASE 'x'
COPY wages TO '/tmp/x.csv'
COPY (SELECT COUNT(*) FROM wages) TO '/tmp/x.csv'
INSERT INTO wages SELECT * FROM wages
INSERT INTO wages VALUES (1) RETURNING *
UPDATE wages SET wage = 0
DELETE FROM wages
MERGE INTO wages USING wages ON TRUE WHEN MATCHED THEN DELETE
TRUNCATE wages
DROP TABLE wages
ALTER TABLE wages ADD x INT
CREATE TABLE x AS SELECT COUNT(*) FROM wages
CREATE MACRO count(x) AS 1
PREPARE q AS SELECT COUNT(*) FROM wages
EXECUTE q
EXECUTE BEGIN EXECUTE BEGIN EXECUTE
SELECT COUNT(*) FROM wages; DROP TABLE wages
SELECT COUNT(*) FROM wages;;SELECT 1
SELECT COUNT(*) FROM wages /* */ ; -- ;¶SELECT 1
SELECT COUNT(*) FROM wages -- x\r; SELECT 1
SELECT COUNT(*) FROM wages /* /* */ WHERE in_union */
SELECT COUNT(*) FROM wages {# WHERE in_union #}
SELECT COUNT(*) FROM {{ wages }}
SELECT COUNT(*) FROM {% if x %} wages {% endif %}
SELECT COUNT(*) INTO OUTFILE '/tmp/x' FROM wages
SELECT COUNT(*) INTO x FROM wages
SELECT COUNT(*) FROM wages FOR UPDATE
SELECT COUNT(*) FROM wages SETTINGS max_threads = 1
SELECT COUNT(*) FROM wages FORMAT JSON
SELECT COUNT(*) FROM wages PREWHERE in_union
SELECT TOP 1 COUNT(*) FROM wages
SELECT AS STRUCT COUNT(*) FROM wages
SELECT STRAIGHT_JOIN COUNT(*) FROM wages
SELECT COLUMNS(*) FROM wages
SELECT COUNT(COLUMNS(*)) FROM wages
SELECT COUNT(COLUMNS('w.*')) FROM wages
SELECT * EXCLUDE (wage) FROM wages
SELECT COUNT(* EXCLUDE (wage)) FROM wages
SELECT * REPLACE (1 AS wage) FROM wages
SELECT COUNT(*) n: FROM wages
SELECT n: COUNT(*) FROM wages
SELECT wage FROM wages
SELECT person, COUNT(*) FROM wages GROUP BY person
SELECT rowid, COUNT(*) FROM wages GROUP BY rowid
SELECT SUM(rowid) FROM wages
SELECT COUNT(*) FROM wages WHERE rowid = 1
SELECT COUNT(wages) FROM wages
SELECT SUM(wages.rowid) FROM wages
SELECT SUM(main.wages.wage) FROM wages
SELECT LIST(wage) FROM wages
SELECT ARRAY_AGG(wage) FROM wages
SELECT STRING_AGG(note, ',') FROM wages
SELECT FIRST(wage) FROM wages
SELECT ANY_VALUE(wage) FROM wages
SELECT APPROX_COUNT_DISTINCT(wage) FROM wages
SELECT HISTOGRAM(wage) FROM wages
SELECT STATS(wage) FROM wages
SELECT error('x') FROM wages
SELECT COUNT(error(note)) FROM wages
SELECT SUM(random()) FROM wages
SELECT SUM(nextval('s')) FROM wages
SELECT SUM(getvariable('x')) FROM wages
SELECT SUM(ROW_NUMBER()) FROM wages
SELECT SUM(wage.x) FROM wages
SELECT SUM(wage[1]) FROM wages
SELECT SUM({'a': wage}.a) FROM wages
SELECT SUM([wage][1]) FROM wages
SELECT SUM([x for x in wage]) FROM wages
SELECT SUM(x -> x + 1) FROM wages
SELECT SUM(LAMBDA x: x) FROM wages
SELECT SUM(note -> '$.a') FROM wages
SELECT SUM(note ->> 'a') FROM wages
SELECT SUM(wage := 1) FROM wages
SELECT SUM(x => wage) FROM wages
SELECT SUM(VARIADIC wage) FROM wages
SELECT SUM(wage IGNORE NULLS) FROM wages
SELECT SUM(wage RESPECT NULLS) FROM wages
SELECT SUM(ALL wage) FROM wages
SELECT SUM(DISTINCT wage) FROM wages
SELECT SUM(wage) WITHIN GROUP (ORDER BY wage) FROM wages
SELECT wage.sum() FROM wages
SELECT (COUNT(*), 1) FROM wages
SELECT ROW(COUNT(*)) FROM wages
SELECT COUNT(*)::VARCHAR FROM wages
SELECT COUNT(*) AS n, n + 1 FROM wages
SELECT COUNT(*) + (SELECT 1) FROM wages
SELECT COUNT(*) FROM wages WHERE wage IN (FROM other)
SELECT COUNT(*) FROM wages WHERE wage IN (TABLE other)
SELECT COUNT(*) FROM wages WHERE wage IN other
SELECT COUNT(*) FROM wages WHERE wage IN (VALUES (1))
SELECT COUNT(*) FROM wages WHERE wage = ALL (SELECT 1)
SELECT COUNT(*) FROM wages WHERE wage IN UNNEST([1])
SELECT COUNT(*) FROM wages WHERE wage = 1/0
SELECT COUNT(*) FROM wages WHERE wage // 0 = 1
SELECT COUNT(*) FROM wages WHERE wage % 0 = 1
SELECT COUNT(*) FROM wages WHERE CAST(note AS HUGEINT) = 1
SELECT COUNT(*) FROM wages WHERE TRY_CAST(note AS JSON) = 1
SELECT COUNT(*) FROM wages WHERE note::INT = 1
SELECT COUNT(*) FROM wages WHERE INT '1' = 1
SELECT COUNT(*) FROM wages WHERE TIMESTAMP '2020-01-31' < day
SELECT COUNT(*) FROM wages WHERE strptime(note, '%Y') < day
SELECT COUNT(*) FROM wages WHERE INTERVAL 1 DAY < day
SELECT COUNT(*) FROM wages WHERE EXTRACT(epoch FROM day) = 1
SELECT COUNT(*) FROM wages WHERE repeat(note, 1000000) = ''
SELECT COUNT(*) FROM wages WHERE note SIMILAR TO '(a+)+'
SELECT COUNT(*) FROM wages WHERE note LIKE 'a%' ESCAPE '!'
SELECT COUNT(*) FROM wages WHERE note ~~ 'a'
SELECT COUNT(*) FROM wages WHERE note ^@ 'a'
SELECT COUNT(*) FROM wages WHERE note GLOB 'a'
SELECT COUNT(*) FROM wages WHERE note REGEXP 'a'
SELECT COUNT(*) FROM wages WHERE wage IS DISTINCT FROM 1
SELECT COUNT(*) FROM wages WHERE in_union IS UNKNOWN
SELECT COUNT(*) FROM wages WHERE in_union XOR in_union
SELECT COUNT(*) FROM wages WHERE (wage) OVERLAPS (wage)
SELECT COUNT(*) FROM wages WHERE CURRENT_USER = 'a'
SELECT COUNT(*) FROM wages WHERE current_setting('x') = 'a'
SELECT COUNT(*) FROM wages WHERE note = $$a$$
SELECT COUNT(*) FROM wages WHERE note = $tag$a$tag$
SELECT COUNT(*) FROM wages WHERE note = e'\\''
SELECT COUNT(*) FROM wages WHERE note = b'1'
SELECT COUNT(*) FROM wages WHERE note = r'a'
SELECT COUNT(*) FROM wages WHERE note = U&'\\0041'
SELECT COUNT(*) FROM wages WHERE wage = 0b1
SELECT COUNT(*) FROM wages WHERE wage = 0x1
SELECT COUNT(*) FROM wages WHERE wage = 1L
SELECT COUNT(*) FROM wages WHERE wage = nan
SELECT COUNT(*) FROM wages WHERE wage = infinity
SELECT COUNT(*) FROM wages WHERE wage = 'nan'
SELECT COUNT(*) FROM wages GROUP BY ALL
SELECT COUNT(*) FROM wages GROUP BY CUBE (year) WITH TOTALS
SELECT COUNT(*) FROM wages GROUP BY year WITH ROLLUP
SELECT COUNT(*) FROM wages GROUP BY DISTINCT year
SELECT COUNT(*) FROM wages GROUP BY (SELECT 1)
SELECT COUNT(*) FROM wages GROUP BY wage * 1
SELECT COUNT(*) FROM wages GROUP BY 'year'
SELECT COUNT(*) FROM wages WINDOW w AS ()
SELECT COUNT(*) FROM wages CLUSTER BY year
SELECT COUNT(*) FROM wages SORT BY year
SELECT COUNT(*) FROM wages DISTRIBUTE BY year
SELECT /*+ x */ wage FROM wages
\u017fELECT COUNT(*) FROM wages
SELECT COUNT(*) \u017fROM wages
SELECT COUNT(*) FROM wage\u017f
SELECT COUNT(*) FROM wages WHERE in_union\u0000
SELECT COUNT(*) FROM wages WHERE note = '\u0000'
SELECT COUNT(*) FROM wages WHERE note = '\ud800'
SELECT COUNT(*) FROM wages WHERE note = '\u001b[2J'
\ufeffSELECT COUNT(*) FROM wages
SELECT COUNT(*) FROM wages WHERE in_union \u2019 1
"""


@pytest.mark.parametrize("text", ATTACKS.strip("\n").split("\n"), ids=ascii)
def test_an_attack_is_refused(text: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        parse(text.replace("¶", "\n"), WAGES)
    assert str(refusal.value).isprintable()
