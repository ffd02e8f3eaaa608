# Two commands do all set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Tests run in one process per core: more threads in each would only wait for each other, and so
# would the workers of a command that takes all cores (those that a test asks for by number are
# started). Commands that tests start find modules compiled.
ALONE := OMP_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1 PYTHONDONTWRITEBYTECODE=

.PHONY: demo test lint bench coverage docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/base.done
	@$(BIN)/surelearn audit

test: $(VENV)/test.done
	@$(ALONE) $(BIN)/python -m pytest -n auto --dist worksteal --quiet

lint: $(VENV)/test.done
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright

bench: $(VENV)/peers.done
	@for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

coverage: $(VENV)/test.done
	@$(BIN)/python benchmarks/coverage_audit.py

docs: $(VENV)/docs.done
	@PYTHONWARNINGS= $(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html
	@echo "docs/_build/html/index.html"

$(VENV)/base.done: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(PIP) --editable .
	@touch $@

$(VENV)/test.done: $(VENV)/base.done
	@$(PIP) --editable '.[test,excel,polars,scale,torch,privacy]'
	@touch $@

$(VENV)/peers.done: $(VENV)/test.done
	@$(PIP) --editable '.[peers]'
	@touch $@

$(VENV)/docs.done: $(VENV)/base.done
	@$(PIP) --editable '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) docs/_build docs/gallery docs/api build src/*.egg-info
