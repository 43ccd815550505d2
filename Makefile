# Everything a developer runs. It needs Python 3.11 or newer, and no rights beyond your own.

BIN := .venv/bin
READY := .venv/ready
TRAINED := .venv/ready-to-train
UNFINISHED := .venv/unfinished
PIP := -m pip --disable-pip-version-check --no-input -qq install

# The first Python that runs, is new enough and can make environments; or say: make PYTHON=...
FITS := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON = $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	"$$p" -c "$(FITS)" >/dev/null 2>&1 && echo "$$p" && break; done)

# PyTorch's processor build by its exact version, since another request can bring gigabytes; and the
# libraries that work with it
TRAINING := torch==2.13.0 accelerate lightning peft scikit-learn transformers

# Libraries that we compare with, each in an environment of its own; one test reads one of them
PEERS := $(patsubst benchmarks/peers/%.txt,.peers/%/ready,$(wildcard benchmarks/peers/*.txt))
TESTED := $(READY) $(TRAINED) .peers/dp-accounting/ready

COMPARISONS := noise query postgres accounting local ledger mechanisms train units accuracy audit

# Tests start many processes, which would all compile the package again
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help again install torch demo demo-service test test-long check format bench mutants peers docs \
	constraints clean

help:  ## list these targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | \
		while IFS='|' read -r name does; do printf '  make %-13s%s\n' "$$name" "$$does"; done

install: $(READY)  ## make .venv with everything but PyTorch in it

# The stamps are written last. An install that was broken off leaves its mark instead, and then
# .venv is made anew: nobody knows what half an install left there.
$(READY): pyproject.toml constraints.txt $(if $(wildcard $(UNFINISHED)),again)
	@"$(PYTHON)" -c "$(FITS)" || { echo "discreet needs Python 3.11 or newer, with venv and\
	 ensurepip (Debian: python3-venv); name one by: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Making .venv and installing into it, which takes about a minute."
	@"$(BIN)/python" -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear .venv
	@touch $(UNFINISHED)
	@"$(BIN)/python" $(PIP) -c constraints.txt hatchling editables setuptools
	@"$(BIN)/python" $(PIP) -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@ && rm $(UNFINISHED)

again:
	@rm -rf .venv

torch: $(TRAINED)  ## PyTorch and its companions, which private training and its tests need

$(TRAINED): $(READY) Makefile
	@echo "Installing PyTorch and its companions, which takes about a minute."
	@touch $(UNFINISHED)
	@"$(BIN)/python" $(PIP) -c constraints.txt $(TRAINING)
	@touch $@ && rm $(UNFINISHED)

demo: $(READY)  ## ask private questions of real wages, until the budget is spent
	@"$(BIN)/python" examples/demo.py

demo-service: $(READY)  ## serve these wages to two analysts, until Ctrl-C
	@"$(BIN)/python" examples/demo_service.py

test: $(TESTED)  ## all tests and doctests, with all that they need
	@"$(BIN)/python" -m pytest -n auto -rs

test-long: $(TESTED)  ## the tests that run for minutes
	@"$(BIN)/python" -m pytest -n auto -rs -m long -o faulthandler_timeout=3600

check: $(TRAINED)  ## format, lint, strict types and layers; changes nothing
	@"$(BIN)/python" -m ruff format --check .
	@"$(BIN)/python" -m ruff check .
	@"$(BIN)/python" -m mypy
	@"$(BIN)/python" -m tools.layers
	@"$(BIN)/python" -m tools.cycles

format: $(READY)  ## rewrite the code in the one format
	@"$(BIN)/python" -m ruff check --fix --exit-zero --quiet .
	@"$(BIN)/python" -m ruff format .

bench: $(TRAINED)  ## time discreet beside those of its peers that are made
	@for name in $(COMPARISONS); do \
		echo "== $$name"; "$(BIN)/python" -m "benchmarks.$$name" || exit 1; done

# Which mutants run: ONLY=ledger,noise.bits names modules, SAMPLE=8 takes 8 mutants of each module,
# NEAR=1 runs only the tests that are named after a module, and AGAIN=1 the survivors once more.
# WORST=3 makes the 3 worst changes of each function instead, and runs the quick tests near them.
mutants: $(TESTED) .mutants/ready  ## change the code and see that tests notice (hours; ONLY=part)
	@"$(BIN)/python" -m tools.weakenings
	@$(if $(WORST),"$(BIN)/python" -m tools.worst_mutants "$(WORST)",.mutants/bin/python -m tools.mutants) \
		$(if $(ONLY),--only "$(ONLY)") \
		$(if $(SAMPLE),--sample "$(SAMPLE)") $(if $(NEAR),--near) $(if $(AGAIN),--again)

# Cosmic Ray has an environment of its own; the tests run in .venv.
.mutants/ready: tools/mutants.txt | $(READY)
	@echo "Making .mutants."
	@"$(BIN)/python" -m venv .mutants
	@.mutants/bin/python $(PIP) --no-deps -r "$<"
	@touch $@

peers: $(PEERS)  ## one environment for each library that we compare with

# Each list names exact versions of all that its library needs, so nothing else is resolved.
.peers/%/ready: benchmarks/peers/%.txt | $(READY)
	@echo "Making .peers/$*."
	@"$(BIN)/python" -m venv --clear ".peers/$*"
	@".peers/$*/bin/python" $(PIP) --no-deps -r "$<"
	@".peers/$*/bin/python" -m pip check --disable-pip-version-check >/dev/null
	@touch $@

docs: $(READY)  ## build the site, strictly
	@"$(BIN)/python" -m zensical build --clean --strict

constraints:  ## resolve anew, and write what was found to constraints.txt
	@"$(PYTHON)" -m venv --clear .constraints
	@.constraints/bin/python $(PIP) '.[dev]' $(TRAINING)
	@{ sed '/^#/!d' constraints.txt; \
		.constraints/bin/python -m pip freeze --all --exclude discreet --exclude pip | \
		sed 's/+cpu$$//'; } > .constraints/new.txt
	@mv .constraints/new.txt constraints.txt && rm -rf .constraints

clean:  ## remove everything that was made here
	@rm -rf .venv .constraints .mutants .peers build dist site .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
