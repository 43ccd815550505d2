"""Prepares the API reference: doctests become code blocks, and each name appears once.

The documentation loads this file as a Griffe extension (`zensical.toml`).
"""

import re

from griffe import Alias, Docstring, Extension, GriffeLoader, Module, Object

# A doctest extends from its first prompt to the next blank line.
DOCTEST = re.compile(r"^>>> .*?(?=^[ ]*$|\Z)", re.MULTILINE | re.DOTALL)


class Reference(Extension):
    """Prepare the objects that mkdocstrings shows."""

    def on_object(self, *, obj: Object, **_: object) -> None:
        """Put the doctests of a docstring into code blocks; hide special methods."""
        if obj.is_special:
            obj.docstring = None
        elif obj.docstring:
            obj.docstring.value = fenced(obj.docstring)

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **_: object) -> None:
        """Show each exported name once: with the package itself if it exports the name, otherwise
        with its part."""
        loader.resolve_aliases()
        for module in parts(pkg):
            uncover(module)
        whole = {pkg[name].canonical_path for name in exports(pkg)}
        for part in parts(pkg):
            for name in exports(part):
                if part[name].canonical_path in whole:
                    part[name].public = False


def fenced(docstring: Docstring) -> str:
    """The text with a fence around each doctest."""
    return DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", docstring.value)


def uncover(module: Module) -> None:
    """Replace a submodule by the exported function of the same name."""
    for name in exports(module):
        inner = module.members[name]
        if name in module.imports and inner.is_module and name in inner.members:
            module.set_member(name, Alias(name, inner[name], parent=module))


def exports(module: Module) -> list[str]:
    """The names in the module's ``__all__`` that exist."""
    return [str(name) for name in module.exports or () if str(name) in module.members]


def parts(module: Module) -> list[Module]:
    """The packages and modules below the module."""
    below = [part for part in module.modules.values() if not part.is_alias]
    return [*below, *(inner for part in below for inner in parts(part))]
