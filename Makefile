# `make demo` and `make test` set everything up by themselves, in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint types unit bench clean

demo: .venv/demo  ## a device learns 50 objects; writes demo/report.html
	$(BIN)/lrtflite simulate --report demo/report.html --json demo/report.json

test: lint types unit  ## everything that CI runs

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev
	$(BIN)/mypy

# Two processes: TensorFlow and a TFLite runtime in one process can crash.
unit: .venv/dev
	$(BIN)/pytest tests --ignore tests/host --ignore tests/converters
	$(BIN)/pytest tests/host tests/converters

bench: .venv/dev  ## slow studies: speed, memory, accuracy
	$(BIN)/python benchmarks/app_session.py
	$(BIN)/python benchmarks/synthetic_strategies.py
	$(BIN)/python benchmarks/photographs.py

clean:
	rm -rf .venv demo bundle

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo: pyproject.toml .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[device,report]'
	touch $@

.venv/dev: pyproject.toml .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ .venv/demo
