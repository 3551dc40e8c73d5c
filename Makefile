# What a user or a developer of a clone needs; `make help` lists it. Nothing has to be prepared but Python and make:
# each target makes .venv and installs what it needs, and does so again when pyproject.toml changes.

PYTHON ?= python3
VENV   ?= .venv
HOST   ?= 127.0.0.1
PORT   ?= 8080
ARGS   ?=

BIN     := $(VENV)/bin
SOURCES := clients/python sandbox server trainer_bridge verifiers
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help serve demo bench test test-slow test-trainers test-hostile test-languages test-docker soak check format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  Variables: PYTHON=$(PYTHON) HOST=$(HOST) PORT=$(PORT) ARGS='more arguments for the command'"

serve: $(VENV)/.server-installed ## start the server on http://HOST:PORT
	@exec $(BIN)/adjudge serve --host $(HOST) --port $(PORT) $(ARGS)

demo: $(VENV)/.server-installed ## send examples/rows to a server and print the verdict table
	@$(BIN)/python examples/demo.py --port $(PORT) $(ARGS)

bench: $(VENV)/.server-installed ## run every benchmark (minutes); see benchmarks/README.md
	@$(BIN)/python benchmarks/all.py $(ARGS)

test: $(VENV)/.dev-installed ## run the tests
	@$(BIN)/python -m pytest -q -m "not slow and not trainers and not hostile and not languages and not docker and not soak" \
	    $(ARGS)

test-slow: $(VENV)/.dev-installed ## run the tests that take minutes
	@$(BIN)/python -m pytest -q -m slow $(ARGS)

test-hostile: $(VENV)/.dev-installed ## attack every backend that this host has
	@$(BIN)/python -m pytest -q -m hostile $(ARGS)

test-languages: $(VENV)/.dev-installed ## run the languages whose toolchains are here, also those that CI does not install
	@$(BIN)/python -m pytest -q -m languages -rs $(ARGS)

test-docker: $(VENV)/.dev-installed ## run containers on a Docker engine; as root on Debian one is installed and started
	@$(BIN)/python -m pytest -q -m docker -rs $(ARGS)

soak: $(VENV)/.dev-installed ## 10,000 mixed runs, and whether anything is left behind
	@$(BIN)/python -m pytest -q -s -m soak $(ARGS)

test-trainers: .venv-trainers/.installed ## run the trainers' own code against a server
	@.venv-trainers/bin/python -m pytest -q -m trainers $(ARGS)

check: $(VENV)/.dev-installed ## lint, formatting, types, import layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(VENV)/.dev-installed ## format the code and mend what ruff can
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

clean: ## remove the environments and everything that was generated
	rm -rf $(VENV) .venv-trainers build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	    .import_linter_cache .schemathesis
	find $(SOURCES) tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "adjudge needs Python 3.11 or later; name one: make PYTHON=python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	    echo "Python cannot make a virtual environment here. On Debian: apt-get install python3-venv" >&2; exit 1; }

# `dev` contains `server`, so its stamp stands for both.
$(VENV)/.server-installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[server]'
	@touch $@

$(VENV)/.dev-installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[server,dev]'
	@touch $@ $(VENV)/.server-installed

.venv-trainers/.installed: pyproject.toml $(wildcard tests/trainers/requirements*.txt)
	@test -x .venv-trainers/bin/python || $(PYTHON) -m venv .venv-trainers || { rm -rf .venv-trainers; \
	    echo "Python cannot make a virtual environment here. On Debian: apt-get install python3-venv" >&2; exit 1; }
	.venv-trainers/bin/python -m pip install --quiet -e '.[server,dev]' $(foreach file,$(wildcard tests/trainers/requirements*.txt),-r $(file))
	@touch $@
