# Everything installs into .venv with the versions of constraints.txt; set PYTHON to use another interpreter.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

.PHONY: demo test torture lint bench docs clean

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: .venv/installed
	$(BIN)/wcll demo

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q

torture: .venv/installed  # the same kills as in the tests, and more of them
	WCLL_KILLS=10 $(BIN)/pytest -q tests/running/test_killed.py

bench: .venv/installed
	$(BIN)/python benchmarks/labels.py
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/fit.py

docs: .venv/installed
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv
