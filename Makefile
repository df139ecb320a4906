# Everything installs into .venv with the versions of constraints.txt; set PYTHON to use another interpreter.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

.PHONY: demo test torture lint bench pages docs clean

PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) torch==2.13.0
	$(PIP) -e .
	touch $@

.venv/developing: .venv/installed  # what only developers need
	$(PIP) -e '.[dev]'
	touch $@

demo: .venv/installed
	$(BIN)/wcll demo

lint: .venv/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q

torture: .venv/developing  # the same kills as in the tests, and more of them; and a benchmark that takes long
	WCLL_KILLS=30 $(BIN)/pytest -q tests/experiments/test_worker_killed.py tests/owndata/test_streaming_benchmark.py

bench: .venv/developing
	$(BIN)/python benchmarks/labels.py
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/ranks.py
	$(BIN)/python benchmarks/streaming.py

pages: .venv/developing  # the parts of README and docs that are made from results and code
	$(BIN)/python docs/generate.py

.venv/documenting: .venv/developing
	$(PIP) -e '.[docs]'
	touch $@

docs: .venv/documenting  # the site: docs/_build/html/index.html; nothing is fetched, warnings are errors
	$(BIN)/python docs/generate.py --check
	$(BIN)/pytest -n $(WORKERS) -q README.md docs/causes.md docs/quickstart.md docs/guide
	$(BIN)/python -m sphinx -q -n -W --keep-going docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

clean:
	rm -rf .venv docs/_build docs/api docs/gallery docs/methods
