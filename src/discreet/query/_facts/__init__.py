"""The public facts of a table: its columns, its unit, and how much one unit may contribute.

Read `_columns` first; `_declaration` holds a table's facts together. `_date_format` lists the
formats of dates in texts, and `_public_facts` writes the facts that an answer depends on as JSON.
"""
