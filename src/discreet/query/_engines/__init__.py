"""The engines that compute sums over rows: DuckDB within the process, PostgreSQL and Spark.

Read `_engine` first, the role that both play. `_conversion` and `_spelling` turn a source's
columns into the declared types, and `_engine_statement` is what an engine runs. `_duckdb` computes
and `_duckdb_table` reads a user's database, as `_duckdb_file` does one at a `_duckdb_address`. A
server compiles from a closed list of forms, `_closed_compiler` and `_repeated_values`;
PostgreSQL's are `_postgres_compiler`, `_postgres_forms` and `_postgres_texts`, run by `_postgres`;
`_postgres_table` and `_postgres_address` say where, and `_postgres_connections` connects. Spark's
files have the same names (`_spark`, `_spark_compiler`, `_spark_forms`, `_spark_texts`,
`_spark_table`, `_spark_address`), with `_spark_session` for the application that computes.
`_address` reads all addresses, `_file_behind` finds the file behind a link, and `_common_type` is
the type of a column in several files. `_other_dialects` writes SQL for engines on which nothing is
run.
"""
