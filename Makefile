# Fourstage: make demo, make test, make check, make up. Needs Python 3.11-3.13 and nothing else.
PYTHON ?= python3
BIN = .venv/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-all check up bench schema lock audit fuzz .venv

help: ## this list
	@grep -E '^[a-z.-]+:.*##' Makefile | sed 's/:.*##/ \t/'

demo: .venv/ready ## four stages end to end, offline, in minutes
	$(BIN)/fourstage run recipes/quickstart.yaml

test: .venv/ready-dev ## the default suite
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0 -m "not slow"

test-all: .venv/ready-dev ## the slow ones too: interruption, schedule, servers, refresh, comparison
	$(BIN)/python -m pytest

check: .venv/ready-dev ## format, lint, types, direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

up: .venv/ready ## Prefect server, worker, deployments and MLflow's pages on loopback
	$(BIN)/fourstage up

.venv: .venv/ready ## the set-up alone

# A stamp is written last, so that an interrupted installation is not taken for a whole one.
.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "Fourstage needs Python 3.11 to 3.13, this is %d.%d: make PYTHON=python3.12 ..." % v)'
	@echo "Installing the $$(grep -c == requirements.lock) packages of requirements.lock into .venv, about 3 GB: some 3 minutes, in which pip says nothing."
	$(PYTHON) -m venv .venv
	$(PIP) -r requirements.lock
	$(PIP) --no-deps --editable .
	touch $@

.venv/ready-dev: requirements-dev.lock .venv/ready
	@echo "Installing what tests and checks need, less than a minute."
	$(PIP) -r requirements-dev.lock
	touch $@

bench: .venv/ready .venv-bench/ready ## speed of training beside plain Keras and Hugging Face
	$(BIN)/python -m benchmarks.pretraining_throughput --peers .venv-bench/bin/python

.venv-bench/ready: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

schema: .venv/ready ## write recipes/schema.json and docs/reference anew
	$(BIN)/python -m fourstage.recipe
	$(BIN)/python -m fourstage.command.reference

lock: ## write both locks anew; needs uv
	uv pip compile --universal --python-version 3.11 --no-header --no-annotate --quiet pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.11 --no-header --no-annotate --quiet --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

# Not part of `check`, `test` or CI: the answer changes with the day, and needs the package index.
audit: .venv/ready-audit ## known vulnerabilities of the locked packages, as the package index lists them
	@if .venv/audit/bin/pip-audit --strict --disable-pip --no-deps --progress-spinner off -r requirements.lock >.venv/audit.txt 2>&1; \
	then echo "audit: no known vulnerability in the packages of requirements.lock"; \
	elif grep -q "^Found .* known vulnerabilit" .venv/audit.txt; \
	then cat .venv/audit.txt; echo "audit: raise what is listed above in pyproject.toml, then make lock test audit"; exit 1; \
	else tail -n 1 .venv/audit.txt; echo "audit: not done: the package index did not answer for every package; run it again where it does"; exit 1; \
	fi

fuzz: .venv/ready-fuzz ## every parser for a minute each, guided by coverage
	$(BIN)/python -m tests.faults.fuzz 60

.venv/ready-fuzz: .venv/ready-dev
	$(PIP) atheris
	touch $@

.venv/ready-audit:
	$(PYTHON) -m venv .venv/audit
	.venv/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	touch $@
