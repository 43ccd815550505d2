"""Databases whose tables a service answers about: those that its declaration lists, and no others.

A worker opens its connections first, and then gives up the network. So it can ask these databases,
and reach no other place.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from discreet import errors
from discreet.query._engines._postgres_address import PostgresAddress
from discreet.query._engines._postgres_connections import OpenConnections
from discreet.query._toml._declared_files import PublicFile, TableFile

_EACH = 4  # connections of a worker to a database: one question has at most three at a time
_PREFIX = "PG"  # begins the names of libpq's variables


def _sources(declared: Mapping[str, TableFile]) -> Iterable[tuple[str, TableFile | PublicFile]]:
    """All private and public tables."""
    others = next(iter(declared.values())).others if declared else {}
    return {**others, **declared}.items()


def files_of(declared: Mapping[str, TableFile]) -> list[Path]:
    """The files of all private and public tables; refused if rows are where no worker reaches."""
    found = []
    for name, one in _sources(declared):
        if isinstance(one.source, Path):
            found.append(one.source.resolve())
        elif not isinstance(one.source, PostgresAddress):
            raise errors.Refused(
                f"the rows of {name} are at {one.source}, which a worker of the service does not "
                "reach: serve tables in files and in PostgreSQL"
            )
    return sorted(set(found))


def check_listed(declared: Mapping[str, TableFile], listed: Sequence[str]) -> None:
    """Refuse tables in databases that the declaration does not list for its service."""
    for name, one in declared.items():
        source = one.source
        if isinstance(source, PostgresAddress) and source.database not in listed:
            raise errors.Refused(
                f"the rows of {name} are in a database that the service may not reach; list it in "
                f'discreet.toml: [service] databases = ["{source.database}"]'
            )


def has_databases(declared: Mapping[str, TableFile]) -> bool:
    """Whether a worker needs what libpq reads: its variables, and the folder of password files."""
    return any(isinstance(one.source, PostgresAddress) for one in declared.values())


def variables_for_databases() -> dict[str, str]:
    """The variables of this process that libpq reads."""
    return {
        name: text
        for name, text in os.environ.items()
        if name == "HOME" or name.startswith(_PREFIX)
    }


def connected(declared: Mapping[str, TableFile]) -> Mapping[str, TableFile]:
    """The same tables, with open connections to their databases. This process then forgets the
    variables of libpq."""
    opened: dict[str, OpenConnections] = {}
    for one in declared.values():
        if isinstance(one.source, PostgresAddress) and one.source.database not in opened:
            opened[one.source.database] = OpenConnections(one.source, _EACH)
    for name in [name for name in os.environ if name.startswith(_PREFIX)]:
        del os.environ[name]

    def reached(one: TableFile) -> TableFile:
        links = None if one.links is None else reached(one.links)
        if not isinstance(one.source, PostgresAddress):
            return replace(one, links=links)
        source = replace(one.source, open_connections=opened[one.source.database])
        return replace(one, source=source, links=links)

    found = {name: reached(one) for name, one in declared.items()}
    public = {name: one for name, one in _sources(declared) if isinstance(one, PublicFile)}
    others: dict[str, TableFile | PublicFile] = dict(public)
    complete = {name: replace(one, others=MappingProxyType(others)) for name, one in found.items()}
    others |= complete
    return complete


def connections_of(one: TableFile) -> OpenConnections | None:
    """The open connections to the database of a table; None for files."""
    source = one.source
    found = source.open_connections if isinstance(source, PostgresAddress) else None
    return found if isinstance(found, OpenConnections) else None
