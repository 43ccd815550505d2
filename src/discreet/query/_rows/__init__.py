"""The rows of a table, wherever they are: each source gives Arrow data of the named columns.

Read `_source` first. It reads CSV files by `_csv_reader` and data frames by `_frames`.
`_shared_rows` says whether two sources overlap, and `_public_table` is a table of nobody's rows.
"""
