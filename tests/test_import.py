"""``import discreet`` is light: it loads no heavy library, and takes little time beyond NumPy's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

HEAVY = [
    "duckdb",
    "fastapi",
    "ibis",
    "jinja2",
    "lightning",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "scipy.fft",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "sqlalchemy",
    "sqlglot",
    "starlette",
    "structlog",
    "torch",
    "transformers",
    "uvicorn",
]

LOADED = """
import json, sys
{code}
print(json.dumps(sorted(sys.modules)))
"""

# CPU time, so that other load on the machine does not count
SECONDS = """
import time
import numpy, scipy.special, scipy.fft
start = time.process_time()
import discreet, discreet.accounting
print(time.process_time() - start)
"""

HELP = """
import contextlib, io
from discreet.cli import main
sys.argv = ["discreet", "--help"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
"""

ASK = """
import contextlib, json, sys
from discreet.__main__ import main
sys.argv = ["discreet", "ask", "wages", "SELECT AVG(pay) FROM wages", "--epsilon", "1"]
with contextlib.suppress(SystemExit):
    main()
print(json.dumps(sorted(sys.modules)))
"""


def test_each_part_is_there_after_the_import() -> None:
    """As pages write them: `dp.query.plan_workload`."""
    folders = Path(str(discreet.__file__)).parent.glob("[a-z]*/__init__.py")
    parts = sorted({folder.parent.name for folder in folders} - {"cli"})  # commands, no library
    assert len(parts) >= 11
    code = f"import discreet as dp; print([getattr(dp, part).__name__ for part in {parts}])"
    assert run(code).strip() == str([f"discreet.{part}" for part in parts])
    assert set(parts) <= set(dir(discreet))


def test_import_loads_no_heavy_library() -> None:
    assert heavy_in(run(LOADED.format(code="import discreet"))) == []


def test_balls_are_loaded_when_they_are_needed() -> None:
    assert "flint" not in json.loads(run(LOADED.format(code="import discreet")))
    needed = "import discreet; discreet.PrivacyLoss()"
    assert "flint" in json.loads(run(LOADED.format(code=needed)))


def test_a_question_loads_no_library_that_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "wages.csv").write_text("pay\n1\n2\n")
    declare = [
        sys.executable,
        "-m",
        "discreet",
        "declare",
        "wages.csv",
        "--row",
        "--bound=pay=0..9",
    ]
    subprocess.run([*declare, "--epsilon=9"], cwd=tmp_path, capture_output=True, check=True)
    loaded = json.loads(run(ASK, folder=tmp_path).splitlines()[-1])
    assert {"pyarrow", "duckdb", "ibis.backends.sql.compilers.duckdb"} <= set(loaded)
    assert {"pandas", "pydantic"}.isdisjoint(loaded)
    assert "ibis.backends.sql.compilers.athena" not in loaded
    idle = {"numpy.f2py.crackfortran", "numpy.ma", "numpy.random", "scipy.special"}
    assert not (idle | {"pyarrow.compute", "charset_normalizer"}) & set(loaded)


def test_a_command_can_ask_whether_pandas_is_installed() -> None:
    """PyTorch looks for the modules of a list, pandas among them, when an optimizer is made."""
    code = (
        "import importlib.util, sys\n"
        "from discreet.__main__ import main\n"
        "sys.argv = ['discreet', '--version']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "importlib.util.find_spec('pandas')\n"
        "try:\n    import pandas\nexcept ModuleNotFoundError as missing:\n    print(missing.name)\n"
    )
    assert run(code).splitlines()[-1] == "pandas"


def test_a_command_ends_with_its_output_its_code_and_what_runs_at_the_end(tmp_path: Path) -> None:
    """It ends before Python frees its objects."""
    code = (
        "import atexit, sys\n"
        "from discreet import __main__\n"
        "class Finder:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name == 'discreet.cli':\n"
        "            atexit.register(print, 'at the end')\n"
        "sys.meta_path.insert(0, Finder)\n"
        "sys.argv = ['discreet', *{arguments}]\n"
        "__main__.main()\n"
    )
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for arguments, status, text in (
        (["--version"], 0, "discreet "),
        (["ask", "t", "SELECT"], 2, ""),
    ):
        command = [sys.executable, "-c", code.format(arguments=arguments)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == status
        assert done.stdout.startswith(text)
        assert done.stdout.endswith("at the end\n")


def test_help_loads_no_heavy_library() -> None:
    loaded = run(LOADED.format(code=HELP))
    assert heavy_in(loaded) == []
    assert {"numpy", "scipy"}.isdisjoint(json.loads(loaded))


def test_a_heavy_library_would_be_found() -> None:
    assert heavy_in(run(LOADED.format(code="import discreet, scipy.stats")))[-1] == "scipy.stats"


def test_import_takes_little_time() -> None:
    run(SECONDS)  # compiles the bytecode
    assert min(float(run(SECONDS)) for _ in range(5)) <= 0.2


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_command_answers(option: str) -> None:
    command = [str(Path(sys.executable).with_name("discreet")), option]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "discreet" in answer.stdout
    assert answer.stderr == ""


def heavy_in(modules: str) -> list[str]:
    return sorted(set(HEAVY) & set(json.loads(modules)))


def run(code: str, folder: Path | None = None) -> str:
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=True
    ).stdout
