# Fourstage: make demo, make test, make check, make up. Needs Python 3.11-3.13 and nothing else.
PYTHON ?= python3
BIN = .venv/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-all check up bench schema lock .venv

help: ## this list
	@grep -E '^[a-z.]+:.*##' Makefile | sed 's/:.*##/ \t/'

demo: .venv/ready ## four stages end to end, offline, in minutes
	$(BIN)/fourstage run recipes/quickstart.yaml

test: .venv/ready-dev ## the default suite
	$(BIN)/python -m pytest -m "not gpu and not slow"

test-all: .venv/ready-dev ## the slow ones too: interruption, schedule, servers, refresh, comparison
	$(BIN)/python -m pytest -m "not gpu"

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
	$(PYTHON) -m venv .venv
	$(PIP) -r requirements.lock
	$(PIP) --no-deps --editable .
	touch $@

.venv/ready-dev: requirements-dev.lock .venv/ready
	$(PIP) -r requirements-dev.lock
	touch $@

schema: .venv/ready ## write recipes/schema.json anew
	$(BIN)/python -m models.recipe

lock: ## write both locks anew; needs uv
	uv pip compile --universal --python-version 3.11 --no-header --no-annotate --quiet pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.11 --no-header --no-annotate --quiet --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
