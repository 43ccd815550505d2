"""Reads and writes ``discreet.toml``, in which an owner declares tables.

Read `_declaration_file` first, then `_declared_files` and `_declared_columns`. `_located_toml`
has the line of each entry, `_declaration_edit` adds settings, and `_proposed` proposes types.
"""
