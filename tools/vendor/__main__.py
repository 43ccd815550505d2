"""Bundles the libraries that the pages load, from pinned npm versions.

Run as ``python -m tools.vendor``; it needs Node.js and npm. It writes each bundle, the licences of
all that is in it, and checksums to the ``static/vendor`` of the pages that load it. With
``--check`` it writes nothing and fails if the result would differ.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
_PACKAGE = HERE.parents[1] / "src" / "discreet"
SUMS = "SHA256SUMS"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle of one script of this folder: the name that pages know it by, and its place."""

    script: str
    name: str
    folder: Path

    @property
    def licences(self) -> str:
        """The name of the file of licences; each has another, since pages share an address."""
        return "licences.txt" if self.name == "Plot" else f"licences-{Path(self.script).stem}.txt"


BUNDLES = (
    Bundle("plot.js", "Plot", _PACKAGE / "_look" / "static" / "vendor"),
    Bundle("editor.js", "Editor", _PACKAGE / "service" / "pages" / "static" / "vendor"),
)


def bundled(folder: Path) -> dict[Path, bytes]:
    """The files of each ``static/vendor``, made in this empty folder."""
    for name in ("package.json", "package-lock.json", *(one.script for one in BUNDLES)):
        shutil.copy(HERE / name, folder)
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], folder)
    [esbuild] = folder.glob("node_modules/@esbuild/*/bin/esbuild")
    found: dict[Path, bytes] = {}
    for one in BUNDLES:
        files = _bundled(one, esbuild, folder)
        files[SUMS] = checksums(files).encode()
        found |= {one.folder / name: text for name, text in files.items()}
    return found


def _bundled(one: Bundle, esbuild: Path, folder: Path) -> dict[str, bytes]:
    inputs, out = folder / "inputs.json", folder / "out.js"
    options = f"--bundle --minify --format=iife --global-name={one.name} --legal-comments=none"
    _run(
        [
            str(esbuild),
            one.script,
            *options.split(),
            "--charset=utf8",
            f"--outfile={out}",
            f"--metafile={inputs}",
            "--log-level=error",
        ],
        folder,
    )
    licences = _licences(one, folder, inputs).encode()
    return {one.script: out.read_bytes(), one.licences: licences}


def checksums(files: dict[str, bytes]) -> str:
    """A line for each file, as sha256sum writes it."""
    return "".join(
        f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in sorted(files.items())
    )


def _licences(one: Bundle, folder: Path, inputs: Path) -> str:
    """The licence of each package that has a part in the bundle."""
    texts = [
        f"{one.script} is a bundle of these packages, each under its own licence.\n",
        *(
            f"\n== {package} {json.loads((at / 'package.json').read_text())['version']}\n\n"
            f"{_licence(at)}\n"
            for package, at in _packages(folder, inputs)
        ),
    ]
    return "".join(texts)


def _packages(folder: Path, inputs: Path) -> Iterator[tuple[str, Path]]:
    used = json.loads(inputs.read_text())["inputs"]
    names = set()
    for path in used:
        _, found, inner = path.rpartition("node_modules/")
        if found:
            parts = inner.split("/")
            names.add("/".join(parts[:2] if inner.startswith("@") else parts[:1]))
    for name in sorted(names):
        yield name, folder / "node_modules" / name


def _licence(package: Path) -> str:
    found = sorted(
        path for path in package.iterdir() if path.stem.upper() in ("LICENSE", "LICENCE")
    )
    return found[0].read_text(encoding="utf-8").strip()


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True)


def main() -> None:
    """Write the files, or compare them."""
    with tempfile.TemporaryDirectory() as folder:
        files = bundled(Path(folder))
    if "--check" in sys.argv[1:]:
        differing = [path.name for path, text in files.items() if path.read_bytes() != text]
        if differing:
            sys.exit(f"built anew, these differ: {', '.join(differing)}")
        print("the vendored files are those that the pinned versions give")
        return
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        print(f"{path.name}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
