"""One durable budget per dataset: every charge is recorded before any private value is read.

A `Ledger` is a payer. It admits a charge by the filter of `discreet.accounting` and appends it to a
chain of entries, so that no crash, race or restart takes it over its limit. Read in this order:

1. `_ledger`: the class `Ledger`, which callers use; `_reader`: its half that reads; `_shares`:
   payers with a part of its limit; `_views`: the texts it shows
2. `_facts`: recorded facts, and the state after each; `_fact_json`: their values as JSON;
   `_canonical`: one text for each value; `_entries`: their rows and digests; `_chain`: the rules
   from one entry to the next
3. `_decisions`: whether a charge is admitted or repeated; `_appending`: each decision that appends
   an entry; `_reserves`: amounts of the limit that are set aside for shares; `_writer`: decisions
   of many threads in one transaction; `_totals` and `_subtotals`: the sum of all charges without a
   full reading
4. `_addresses`: paths and addresses of databases; `_place`: the files of a declared ledger;
   `_store`: what a store does, and transactions over a database; `_sqlite_store`, `_sqlite` and
   `_database`: one SQLite file; `_turns`: locks on that file; `_postgres_store` and `_postgres`: a
   schema in PostgreSQL; `_anchor` and `_postgres_anchor`: the head of the chain, stored elsewhere;
   `_schema_beside`: tables of others in the same database
5. `_receipts`: checks a receipt against its entry; `_export`: the chain as a text file

An entry is a `Row` in the store, a `Link` inside, and an `Entry` in public.
"""

from discreet.ledger._decisions import ChargeOrder
from discreet.ledger._export import ExportCheck, check_export
from discreet.ledger._facts import Kind
from discreet.ledger._ledger import Ledger
from discreet.ledger._receipts import ReceiptCheck, check_receipt
from discreet.ledger._shares import Share, ShareBalance
from discreet.ledger._views import Balance, Entry

__all__ = [
    "Balance",
    "ChargeOrder",
    "Entry",
    "ExportCheck",
    "Kind",
    "Ledger",
    "ReceiptCheck",
    "Share",
    "ShareBalance",
    "check_export",
    "check_receipt",
]
