# Two verbs to remember: `make repro` rebuilds the datasets, `make test` tests the code.
PYTHON ?= $(firstword $(foreach p,python3.12 python3.11 python3.13 python3,$(shell command -v $(p) 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONNOUSERSITE := 1

.PHONY: setup repro check test clean

setup: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("KernelQuarry needs Python 3.11 to 3.13, not " + sys.version.split()[0]) if not (3, 11) <= sys.version_info[:2] <= (3, 13) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

repro: setup
	dvc repro
	dvc metrics show

check: setup
	ruff check .
	ruff format --check .
	mypy
	lint-imports

test: setup
	pytest

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
