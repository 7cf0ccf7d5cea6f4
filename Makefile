# Two commands are enough on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# For example PIP_ARGS="--extra-index-url ..." to choose another build of PyTorch.
PIP_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install demo test test-system test-all test-versions test-clients mutations check format book docs bench clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

install: $(VENV)/installed  ## make .venv and install Dragoman there (the other commands do it when needed)

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Dragoman needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; try make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e '.[dev]'
	@touch $@

demo: install  ## train a translator on the embedded corpus in about two minutes and look at it
	@$(BIN)/dragoman demo

test: install  ## the quick tests: units, contracts, golden losses, a real process for each promise
	@$(BIN)/python -m pytest -n auto --dist worksteal -m "not system and not slow" --durations=25

test-system: install  ## kills, crash points, broken corpora, exports, compilers, the real command line
	@$(BIN)/python -m pytest -n auto --dist worksteal -m "system and not slow" --durations=40

test-all: install  ## all of them, the long ones, and the quick ones with other versions
	@$(BIN)/python -m pytest -m "slow or not slow" --timeout 7200
	@$(BIN)/python tests/versions.py

test-versions: install  ## the quick tests with other versions of Python, PyTorch and all dependencies: tests/versions.py
	@$(BIN)/python tests/versions.py

test-clients: install  ## programs of others, unmodified, against our server and exports; each in an environment of its own
	@$(BIN)/python tests/clients/run.py

mutations: install  ## the core with a small mistake at a time: those that no test sees; ONLY='dragoman.nn.masks*': of one file
	@OMP_NUM_THREADS=1 $(BIN)/mutmut run $(ONLY)
	@$(BIN)/mutmut results

check: install  ## formatter, linter, types, import contracts, words, links
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/plain_words.py
	$(BIN)/python tests/links.py

format: install  ## let the formatter and the linter mend what they can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

book: install  ## run every chapter of the book and write build/book/index.html, and notebooks
	@$(BIN)/python -m dragoman.learn.book build/book

docs: install  ## build one site of all pages that opens without a network: build/site (with the book after `make book`)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e '.[docs]'
	@$(BIN)/python docs/site.py build

bench: install  ## what the benchmarks are and how to run them
	@cat benchmarks/README.md

clean:  ## remove the environment and caches; runs/ and data/ stay
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
