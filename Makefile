# `make demo` and `make test` set everything up by themselves, in .venv.
PYTHON ?= python3
BIN := .venv/bin
HOST_TESTS := tests/host tests/converters
SERVICE_TESTS := tests/page tests/serve

.PHONY: demo test quick lint types unit unit-device unit-host test-arm test-page torture fuzz docs site dist smoke bench \
	bench-layers clean

demo: .venv/demo  ## a device learns 50 objects; writes demo/report.html
	$(BIN)/lrtflite simulate --report demo/report.html --json demo/report.json

test: lint types unit  ## everything that CI runs

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini

# TensorFlow and a TFLite runtime in one process can crash, so tests of the host have a process of
# their own. Side by side, both halves take little more time than the longer one; the output of each
# is shown once it has ended. Tests of the service come after those of the host, which are quicker.
unit: .venv/dev
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target unit-device unit-host

unit-device: .venv/dev
	$(BIN)/pytest tests $(addprefix --ignore ,$(HOST_TESTS) $(SERVICE_TESTS))

unit-host: .venv/dev
	$(BIN)/pytest $(HOST_TESTS)
	$(BIN)/pytest $(SERVICE_TESTS)

# `unit` has these tests too, where the tools are installed. BUNDLE is one to try by hand.
test-arm: .venv/dev  ## the demo bundle, or BUNDLE=..., on emulated 64-bit ARM; installs the tools in .arm
	PYTHON=$(BIN)/python tools/install_arm.sh
	LRTFLITE_REQUIRE_ARM=1 LRTFLITE_ARM_BUNDLE='$(BUNDLE)' $(BIN)/pytest tests/arm

# `unit` has these too, where the tools are installed.
test-page: .venv/dev  ## the page of `lrtflite serve` in Chromium; installs the tools where it can
	PYTHON=$(BIN)/python tools/install_page.sh
	LRTFLITE_REQUIRE_PAGE=1 $(BIN)/pytest tests/page

# `unit` has a bounded part of both.
torture: .venv/dev  ## every bit, every call, hundreds of kills of a state that is being written
	LRTFLITE_TORTURE=60 $(BIN)/pytest tests/torture/test_crashes.py tests/torture/test_learner_crashes.py

fuzz: .venv/dev  ## files that somebody else made: 20,000 examples for each reader
	LRTFLITE_FUZZ=20000 $(BIN)/pytest tests/torture/test_fuzz.py tests/torture/test_fuzz_keras.py
	LRTFLITE_FUZZ=20000 $(BIN)/pytest tests/host/test_fuzz_weights.py

quick: .venv/dev  ## the device half without conversions, in under a minute
	$(BIN)/pytest -q -m 'not slow' tests --ignore tests/host --ignore tests/converters

docs: .venv/demo  ## docs/cli.md and docs/api.md, from help texts and docstrings
	$(BIN)/python tools/make_docs.py

site: .venv/site  ## the documentation as a site in build/site; a broken link is an error
	$(BIN)/mkdocs build --quiet --strict

dist: .venv/site  ## a wheel and an sdist in dist
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

# Without extras: nothing but numpy and Click.
smoke: dist  ## the wheel in an environment of its own: the command answers
	rm -rf build/smoke
	$(PYTHON) -m venv build/smoke
	build/smoke/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd build && smoke/bin/python -I ../tools/smoke.py

# Reference weights and photographs, where they are; else the weights come from the internet.
SHARED := $(or $(LRTFLITE_SHARED),../shared)
WEIGHTS := $(or $(wildcard $(SHARED)/weights/mobilenet_v1_1.0_imagenet_notop.npz),imagenet)

bench: build/alpha-1.0/manifest.json  ## slow studies: speed, memory, accuracy
	$(BIN)/python benchmarks/app_session.py build/alpha-1.0
	$(BIN)/python benchmarks/training_step.py --layers-table
	test ! -d $(SHARED)/data || $(BIN)/python benchmarks/training_step.py --networks
	$(BIN)/python benchmarks/synthetic_strategies.py
	$(BIN)/lrtflite experiment benchmarks/experiment_smoke.toml --out build/experiment-smoke
	test ! -d $(SHARED)/data || $(BIN)/python benchmarks/photographs.py
	test ! -d $(SHARED)/data || \
		$(BIN)/python benchmarks/few_pictures.py build/alpha-1.0 folder:$(SHARED)/data/caltech50_128
	test ! -d $(SHARED)/data || $(BIN)/python benchmarks/later_classes.py

bench-layers: .venv/dev  ## accuracy above three replay layers, of host training, and aging; hours
	$(BIN)/python benchmarks/replay_layers.py synthetic
	test ! -d $(SHARED)/data || $(BIN)/python benchmarks/replay_layers.py photographs
	test ! -d $(SHARED)/data || $(BIN)/python benchmarks/replay_layers.py shifted
	test ! -d $(SHARED)/data || $(BIN)/python benchmarks/host_training.py
	$(BIN)/lrtflite convert --adapt-moments --classes 50 --out build/adapting
	$(BIN)/python benchmarks/aging.py build/adapting --rates 0 5e-5 5e-3

build/alpha-1.0/manifest.json: .venv/dev
	$(BIN)/lrtflite convert --weights $(WEIGHTS) --alpha 1.0 --out build/alpha-1.0

clean:
	rm -rf .venv .arm demo bundle build

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo: pyproject.toml .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[device,photos,report,serve]'
	touch $@

.venv/site: pyproject.toml .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'mkdocs-material>=9.5' 'build>=1.2'
	touch $@

.venv/dev: pyproject.toml .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ .venv/demo
