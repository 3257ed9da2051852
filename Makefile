# Two verbs to remember: `make repro` rebuilds the datasets, `make test` tests the code.
VENV := .venv
BIN := $(VENV)/bin
FITS := import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
# The first interpreter that fits and runs: a name on PATH may be a version manager's stub for one that is not active.
PYTHON ?= $(shell for p in python3 python3.12 python3.11 python3.13; do \
	$$p -c '$(FITS)' >/dev/null 2>&1 && command -v $$p && break; done)
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH

.PHONY: setup repro check test clean

setup: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	@$(if $(PYTHON),,echo 'make: no Python 3.11 to 3.13 with venv was found: install one (Debian, Ubuntu: apt-get install python3-venv), or name it: make PYTHON=/path/to/python' >&2; exit 2)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

repro: setup
	@$(BIN)/dvc repro
	@$(BIN)/dvc metrics show
	@echo 'Tables: data/*.parquet (quarry status, quarry show). Datasets: data/datasets/. Page: report/index.html'

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: setup
	@$(BIN)/pytest

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
