"""Bundles the libraries that the explorer's pages load, from pinned npm versions.

Run as ``python -m tools.vendor``; it needs Node.js and npm. It writes the bundle, the licences of
all that is in it, and checksums to ``static/vendor`` of the common look. With ``--check`` it writes
nothing and fails if the result would differ.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
VENDORED = HERE.parents[1] / "src" / "discreet" / "_look" / "static" / "vendor"
SUMS = "SHA256SUMS"


def bundled(folder: Path) -> dict[str, bytes]:
    """The files of ``static/vendor`` by name, made in this empty folder."""
    for name in ("package.json", "package-lock.json", "plot.js"):
        shutil.copy(HERE / name, folder)
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], folder)
    [esbuild] = folder.glob("node_modules/@esbuild/*/bin/esbuild")
    inputs = folder / "inputs.json"
    options = "--bundle --minify --format=iife --global-name=Plot --legal-comments=none"
    out = folder / "out.js"
    _run(
        [
            str(esbuild),
            "plot.js",
            *options.split(),
            "--charset=utf8",
            f"--outfile={out}",
            f"--metafile={inputs}",
            "--log-level=error",
        ],
        folder,
    )
    files = {"plot.js": out.read_bytes(), "licences.txt": _licences(folder, inputs).encode()}
    return files | {SUMS: checksums(files).encode()}


def checksums(files: dict[str, bytes]) -> str:
    """A line for each file, as sha256sum writes it."""
    return "".join(
        f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in sorted(files.items())
    )


def _licences(folder: Path, inputs: Path) -> str:
    """The licence of each package that has a part in the bundle."""
    texts = [
        "plot.js is a bundle of these packages, each under its own licence.\n",
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
        differing = [name for name, text in files.items() if (VENDORED / name).read_bytes() != text]
        if differing:
            sys.exit(f"built anew, these differ: {', '.join(differing)}")
        print("the vendored files are those that the pinned versions give")
        return
    VENDORED.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (VENDORED / name).write_bytes(text)
        print(f"{name}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
