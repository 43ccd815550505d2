"""The rows of a table, wherever they are: each source gives Arrow data of the named columns.

Read `_source` first. Files and folders are in `_files`, with `_csv_reader`, `_json_reader` and
`_file_format`; data frames in `_frames`.
`_shared_rows` says whether two sources overlap, and `_public_table` is a table of nobody's rows.
"""
