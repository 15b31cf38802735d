PYTHON ?= python3
BIN = .venv/bin
export FOURSTAGE_HOME ?= $(CURDIR)/var

.PHONY: demo test check bench up docs clean

demo: .venv ## four stages end to end, offline, in minutes
	$(BIN)/fourstage run recipes/quickstart.yaml

test: .venv/dev
	$(BIN)/python -m pytest

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

up: .venv
	$(BIN)/fourstage up

# The lock names exact versions; the project itself is installed without touching them.
.venv: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch .venv

.venv/dev: requirements-dev.lock | .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	@touch .venv/dev

requirements.lock requirements-dev.lock: ;
lock: ## needs uv; both files are committed
	uv pip compile --universal --python-version 3.11 --no-header --no-annotate --quiet pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.11 --no-header --no-annotate --quiet --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
