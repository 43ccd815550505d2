"""The pages of a service, for people: what is declared and left, questions, the owner's desk.

1. `_forms`: reads forms strictly; `_visit`: one request of a signed-in browser, which reaches the
   desk by the same routes, checks, rates and deadlines as a program's
2. `_shown`: numbers, entries and charts as the templates show them; `_wrong_fields`: the field that
   a refusal is about
3. `_datasets`, `_questions`, `_examples`, `_owners_desk`, `_receipts`: the pages; `_declarations`,
   `_column_fields`, `_suggestions`, `_uploads`: declaring a table step by step
4. `_site`: their addresses, and the page to sign in

Templates escape each value. No page holds a script or a style of its own, and none is stored by a
browser.
"""
