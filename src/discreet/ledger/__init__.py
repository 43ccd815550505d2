"""One durable budget per dataset: every charge is recorded before anything is looked at.

A `Ledger` is a payer. It decides by the filter of `discreet.accounting`, whole, and keeps an
append-only chain of entries, so that no crash, race or restart takes it over its limit.
"""

from discreet.ledger._entries import Kind
from discreet.ledger._ledger import Ledger
from discreet.ledger._views import Balance, Entry

__all__ = ["Balance", "Entry", "Kind", "Ledger"]
