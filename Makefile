# Everything a developer runs. It needs Python 3.11 or newer, and no rights beyond your own.

BIN := .venv/bin
READY := .venv/ready
PIP := -m pip --disable-pip-version-check --no-input --quiet install

# The first Python that runs, is new enough and can make environments; or say: make PYTHON=...
FITS := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON = $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	"$$p" -c "$(FITS)" >/dev/null 2>&1 && echo "$$p" && break; done)

# PyTorch by its exact version, since another request can bring gigabytes; and who works with it
TRAINING := torch==2.13.0 accelerate lightning peft scikit-learn transformers

COMPARISONS := noise group_by accounting local mechanisms train units accuracy

.DEFAULT_GOAL := help
.PHONY: help install torch demo test test-long check format bench peers docs constraints clean

help:  ## list these targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | \
		while IFS='|' read -r name does; do printf '  make %-13s%s\n' "$$name" "$$does"; done

install: $(READY)  ## make .venv with everything in it

$(READY): pyproject.toml constraints.txt
	@"$(PYTHON)" -c "$(FITS)" || { echo "discreet needs Python 3.11 or newer, with venv and\
	 ensurepip (Debian: python3-venv); name one by: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Making .venv and installing into it; this may take a few minutes."
	@"$(BIN)/python" -c "" 2>/dev/null || "$(PYTHON)" -m venv --clear .venv
	@"$(BIN)/python" $(PIP) -c constraints.txt hatchling editables
	@"$(BIN)/python" $(PIP) -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

torch: $(READY)  ## PyTorch and its companions, which private training and its tests need
	@"$(BIN)/python" $(PIP) -c constraints.txt $(TRAINING)

demo: $(READY)  ## ask private questions of real wages, until the budget is spent
	@"$(BIN)/python" examples/demo.py

test: $(READY)  ## all tests and doctests
	@"$(BIN)/python" -m pytest -n auto

test-long: $(READY)  ## the tests that run for minutes
	@"$(BIN)/python" -m pytest -n auto -m long

check: $(READY)  ## format, lint, strict types and layers; changes nothing
	@"$(BIN)/python" -m ruff format --check .
	@"$(BIN)/python" -m ruff check .
	@"$(BIN)/python" -c "import torch" 2>/dev/null || without='--exclude (^|/)train --follow-imports silent'; \
		"$(BIN)/python" -m mypy $$without
	@"$(BIN)/python" -m tools.layers

format: $(READY)  ## rewrite the code in the one format
	@"$(BIN)/python" -m ruff check --fix --exit-zero --quiet .
	@"$(BIN)/python" -m ruff format .

bench: $(READY)  ## time discreet beside those of its peers that are made
	@for name in $(COMPARISONS); do \
		echo "== $$name"; "$(BIN)/python" -m "benchmarks.$$name" || exit 1; done

peers: $(READY)  ## one environment for each library that we compare with
	@for list in benchmarks/peers/*.txt; do name=$$(basename "$$list" .txt); echo "== $$name"; \
		"$(BIN)/python" -m venv --clear ".peers/$$name" && \
		".peers/$$name/bin/python" $(PIP) -r "$$list" || exit 1; done

docs: $(READY)  ## build the site, strictly
	@"$(BIN)/python" -m mkdocs build --strict --quiet --site-dir site

constraints:  ## resolve anew, and write what was found to constraints.txt
	@"$(PYTHON)" -m venv --clear .constraints
	@.constraints/bin/python $(PIP) '.[dev]' $(TRAINING)
	@{ sed '/^#/!d' constraints.txt; \
		.constraints/bin/python -m pip freeze --all --exclude discreet --exclude pip | \
		sed 's/+cpu$$//'; } > .constraints/new.txt
	@mv .constraints/new.txt constraints.txt && rm -rf .constraints

clean:  ## remove everything that was made here
	@rm -rf .venv .constraints .peers build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
