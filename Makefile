# Everything needed on a machine that has python3 (3.11 or later), venv, pip and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Tests spend most of their time in the compiler, which uses one core: one process a core.
JOBS      ?= $(shell $(PYTHON) -c 'import os; print(min(8, os.cpu_count() or 1))')
# Programs of tests run for milliseconds and take seconds to optimize, so `make test` and `test-room` ask XLA for plain
# code, where rounding differs as between processors. test-merge, test-slow and test-portable compile as users do.
QUICKLY   := JAX_DISABLE_MOST_OPTIMIZATIONS=1 XLA_FLAGS="$(XLA_FLAGS) --xla_cpu_use_fusion_emitters=false"
PYTEST    := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations=30 --durations-min=1
# A stamp is touched only after its step succeeded, so whatever was interrupted starts again.
MADE      := $(VENV)/.made
RUN_READY := $(VENV)/.ready-run
DEV_READY := $(VENV)/.ready-dev
# The theme announces a next version of MkDocs on every run; versions are pinned here.
MKDOCS    := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs

.DEFAULT_GOAL := help
.PHONY: help run lab browser torch test test-room test-merge test-types test-slow test-portable test-lowest test-newest test-wheel lint style types docs docs-serve format benchmark benchmark-check claims clean
.DELETE_ON_ERROR:

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-14s %s\n", $$1, $$2}'

run: $(RUN_READY)  ## set up .venv and predict scikit-learn's digits into out/
	$(BIN)/nearkernel predict digits

lab: $(RUN_READY)  ## set up .venv and open the page of live experiments
	$(BIN)/nearkernel lab

test:  ## set up .venv, lint, check types, build the documentation and run the test suite (ten minutes)
	@$(MAKE) --no-print-directory -j4 browser style types docs
	$(QUICKLY) $(PYTEST)

test-room: $(DEV_READY)  ## lint, types and tests of one room and of the laws that name it: make test-room ROOM=forecasts
	$(QUICKLY) $(BIN)/python tests/support/runs/room.py "$(ROOM)" -n $(JOBS) --dist worksteal

test-types: $(DEV_READY)  ## run tests with the types of signatures checked (half as slow again)
	NEARKERNEL_TYPES=1 $(PYTEST) tests/activations tests/base tests/estimators \
	  tests/geometry tests/kernels tests/saved tests/scale

test-merge: $(DEV_READY) torch  ## what else runs before a change is merged: all claims, pages, notebooks, PyTorch, more cases
	$(PYTEST) -m merge

test-slow: $(DEV_READY) browser torch  ## run only the slow checks: statistics of many networks (half an hour)
	$(PYTEST) -m slow

test-portable: $(DEV_READY)  ## run the numerical tests as other processors would (half an hour)
	$(BIN)/python tests/support/runs/portable.py -n $(JOBS) --dist worksteal

test-lowest: $(MADE)  ## run the core's tests with the lowest versions that pyproject.toml allows
	$(BIN)/python tests/support/runs/versions.py lowest

test-newest: $(MADE)  ## run the core's tests with the newest versions that pyproject.toml allows
	$(BIN)/python tests/support/runs/versions.py newest

test-wheel: $(DEV_READY)  ## build the wheel, install it with each extra into an empty environment, and use it there
	$(BIN)/python -m pytest -m slow tests/project/test_package.py

lint: style types  ## ruff (lint and format), codespell and mypy

style: $(DEV_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell *.md docs src benchmarks

types: $(DEV_READY)
	$(BIN)/mypy

docs: $(DEV_READY)  ## the documentation site, in site/; any warning fails
	$(MKDOCS) build

browser:  ## Chromium for the tests of the lab, installed where that is possible
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
	  echo "Installing Chromium for the tests of the lab ..."; \
	  { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } >/dev/null 2>&1; } || \
	  echo "note: Chromium cannot be installed here, so the lab's browser tests are skipped; install it by hand."

torch: $(DEV_READY)  # PyTorch for the tests of nk.from_torch, installed where that is possible
	@$(BIN)/python -c 'import torch' 2>/dev/null || { \
	  echo "Installing PyTorch for the slow tests ..."; \
	  $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[torch]'; } || \
	  echo "note: PyTorch cannot be installed here, so its tests are skipped; install it by hand."

docs-serve: $(DEV_READY)  ## the same at http://127.0.0.1:8000, built anew on every change
	$(MKDOCS) serve

format: $(DEV_READY)  ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# In this order; rivals get environments of their own, made once. estimators.py is run where it is there.
BENCHMARKS := kernels budget precision raw architectures solve scale large plan commands rich torch_resnet estimators \
              nearly_kernel network_expansion geometry regions features curves statistics exact lab crowd

benchmark: $(DEV_READY)  ## measure against rivals on a quiet machine and refresh all tables (two hours)
	@failed=""; for name in $(BENCHMARKS); do \
	  [ -e benchmarks/$$name.py ] || continue; \
	  echo "benchmarks/$$name.py --write"; \
	  $(BIN)/python benchmarks/$$name.py --write || failed="$$failed $$name"; \
	done; \
	$(BIN)/python docs/speeds.py && $(BIN)/python docs/gallery.py accuracy_for_time || failed="$$failed docs"; \
	[ -z "$$failed" ] || { echo "error: these benchmarks failed, their tables are as before:$$failed"; exit 1; }

benchmark-check: $(DEV_READY)  ## quick runs: which ratios fell by more than a quarter (ten minutes)
	$(BIN)/python benchmarks/check.py

claims: $(RUN_READY)  ## check every claim of the theory and write docs/claims.md
	$(BIN)/python docs/claims_page.py --jobs $(JOBS)

clean:  ## remove .venv, out/, site/ and every cache
	rm -rf $(VENV) .cache out site .mypy_cache .ruff_cache .pytest_cache .jax_cache .hypothesis build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
	  sys.exit(v < (3, 11) and f"error: nearkernel needs Python 3.11 or later, $(PYTHON) is {v[0]}.{v[1]}; try: make PYTHON=python3.11")'
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(RUN_READY): pyproject.toml constraints.txt | $(MADE)
	@echo "Installing nearkernel into $(VENV) (the first time takes a minute or two) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[lab,scale]'
	@touch $@

$(DEV_READY): pyproject.toml constraints.txt | $(MADE)
	@echo "Installing nearkernel and its development tools into $(VENV) (the first time takes a minute or two) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	@touch $@ $(RUN_READY)
