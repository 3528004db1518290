# Every target makes what it needs: an environment in .venv, the package built and installed in it,
# and the packages of one extra of pyproject.toml. Tests with the oldest versions of other packages,
# and with large ones, have environments of their own. Python 3.11 or newer, make and a C++20
# compiler are all that must be there before. What does not wait for one another runs side by side.

PYTHON ?= python3
VENV := .venv
OLDEST := $(VENV)-oldest
FOREIGN := $(VENV)-foreign
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet
SUBMAKE := $(MAKE) --silent --no-print-directory
TOGETHER := $(BIN)/python .ci/side_by_side.py
PROCESSES ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Each process begins with a half of the tests, in their order, so that tests which share a fitted
# machine meet; who is done early takes from the other.
PARALLEL := --numprocesses $(PROCESSES) --dist worksteal
# Which tests; "make test-all" asks those too that this leaves out. See tests/tiers.py.
TIER ?= -m "not thorough"
# For the makes that this one starts.
export PYTHON PROCESSES PYTEST TIER
export PIP_DISABLE_PIP_VERSION_CHECK := 1

SANITIZE := build/sanitize
WHEEL := $(VENV)/wheel
SOURCES := $(sort $(shell find native src -type f ! -path 'native/tests/*' ! -name '*.pyc'))
NATIVE := $(sort $(shell find native -name '*.hpp' -o -name '*.cpp'))

.DEFAULT_GOAL := help
# All targets share one environment, which two pips must not change at once.
.NOTPARALLEL:
# Keeps ninja from looking for the job server of make -j, which it cannot reach from here.
unexport MAKEFLAGS
# The stamps are made on the way to a target; make must not delete them as intermediate files.
.SECONDARY:
.PHONY: help demo test test-all test-native test-python test-oldest test-foreign native-tests lint bench \
  bench-quick docs prepare clean FORCE

help:
	@echo 'make demo         fit and show a classifier on data that comes with scikit-learn'
	@echo 'make test         native tests under sanitizers beside Python tests, within minutes'
	@echo 'make test-all     the same with every combination of options, where that leaves some out'
	@echo 'make test-native  only the first'
	@echo 'make test-python  only the second; PYTEST="-k loss" passes options on'
	@echo 'make test-oldest  Python tests with the oldest versions that pyproject.toml allows'
	@echo 'make test-foreign tests with MLflow, skops, imbalanced-learn, LightGBM, Optuna and shap'
	@echo 'make lint         ruff, mypy, import layers, clang-format'
	@echo 'make bench        benchmarks against other libraries'
	@echo 'make bench-quick  every part of them on few rows: shows that they run'
	@echo 'make docs         HTML documentation in build/docs'
	@echo 'make prepare      all environments, the package and native tests, for all of the above'
	@echo 'make clean        remove all that make made, environments included'
	@echo
	@echo 'PYTHON=python3.13 chooses the interpreter of a new .venv.'
	@echo 'WIDEMARGIN_DATA=folder lets tests and benchmarks read data sets.'

demo: $(VENV)/.extra-demo
	@$(BIN)/python examples/demo.py

test: $(VENV)/.created
	@$(TOGETHER) wheel='$(SUBMAKE) $(VENV)/.wheel' packages='$(SUBMAKE) $(VENV)/.deps-test'
	@$(SUBMAKE) $(VENV)/.extra-test
	@$(TOGETHER) native='$(SUBMAKE) test-native' python='$(SUBMAKE) test-python'

test-all:
	@$(SUBMAKE) test TIER=

test-native: native-tests
	@UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  $(BIN)/ctest --test-dir $(SANITIZE) --output-on-failure --no-tests=error

native-tests: $(VENV)/.deps-test
	@$(BIN)/cmake -S . -B $(SANITIZE) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	  -DWIDEMARGIN_PYTHON=OFF -DWIDEMARGIN_SANITIZE=ON --log-level=WARNING >/dev/null
	@$(BIN)/cmake --build $(SANITIZE) -- --quiet -j $(PROCESSES)

test-python: $(VENV)/.extra-test
	@$(BIN)/python -m pytest $(PARALLEL) $(TIER) $(PYTEST)

test-oldest: $(OLDEST)/.package
	@$(OLDEST)/bin/python -m pytest $(PARALLEL) $(PYTEST)

test-foreign: $(FOREIGN)/.package
	@$(FOREIGN)/bin/python -m pytest tests/foreign $(PYTEST)

lint: $(VENV)/.extra-lint
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy src/widemargin
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/clang-format --dry-run --Werror $(NATIVE)

bench: $(VENV)/.extra-bench
	@$(BIN)/python -m benchmarks

# Without data sets, which take minutes to read for the first time.
bench-quick: $(VENV)/.extra-bench
	@mkdir -p build
	@env -u WIDEMARGIN_DATA $(BIN)/python -m benchmarks --quick > build/bench-quick.md
	@echo 'Every part of the benchmarks runs: build/bench-quick.md'

docs: $(VENV)/.extra-docs
	@$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs
	@echo 'Documentation: build/docs/index.html'

clean:
	@rm -rf $(VENV) $(OLDEST) $(FOREIGN) build dist wheelhouse docs/generated
	@rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

prepare: $(VENV)/.created
	@$(TOGETHER) wheel='$(SUBMAKE) $(VENV)/.wheel' \
	  packages='$(SUBMAKE) $(VENV)/.deps-test $(VENV)/.deps-lint $(VENV)/.deps-bench' \
	  oldest='$(SUBMAKE) $(OLDEST)/.deps' foreign='$(SUBMAKE) $(FOREIGN)/.deps'
	@$(SUBMAKE) native-tests $(VENV)/.package $(OLDEST)/.package $(FOREIGN)/.package

# The wheel is built once for all environments and extras; these then add only what is missing.
$(VENV)/.extra-%: $(VENV)/.deps-% $(VENV)/.package
	@touch $@

$(VENV)/.deps-%: pyproject.toml .ci/requirements.py | $(VENV)/.created
	@echo 'Installing the packages of the extra "$*"'
	@$(BIN)/python .ci/requirements.py $* > $(VENV)/requirements-$*.txt
	@$(PIP) -r $(VENV)/requirements-$*.txt
	@touch $@

$(VENV)/.wheel: pyproject.toml CMakeLists.txt $(SOURCES) $(VENV)/.sources | $(VENV)/.created
	@echo 'Building widemargin'
	@rm -rf $(WHEEL)
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEEL) .
	@touch $@

$(VENV)/.package: $(VENV)/.wheel
	@$(PIP) --no-deps --force-reinstall $(WHEEL)/*.whl
	@touch $@

$(OLDEST)/.deps: pyproject.toml .ci/requirements.py | $(VENV)/.created
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info >= (3, 13))' || \
	  { echo 'NumPy 1.26 is not there for Python 3.13: make clean, make test-oldest PYTHON=python3.11'; exit 1; }
	@echo 'Installing the packages of "make test-oldest"'
	@$(BIN)/python -m venv $(OLDEST)
	@$(BIN)/python .ci/requirements.py --oldest test > $(OLDEST)/oldest.txt
	@$(BIN)/python .ci/requirements.py test > $(OLDEST)/requirements.txt
	@$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/oldest.txt -r $(OLDEST)/requirements.txt
	@touch $@

$(FOREIGN)/.deps: pyproject.toml .ci/requirements.py | $(VENV)/.created
	@echo 'Installing the packages of "make test-foreign"'
	@$(BIN)/python -m venv $(FOREIGN)
	@$(BIN)/python .ci/requirements.py foreign > $(FOREIGN)/requirements.txt
	@$(FOREIGN)/bin/python -m pip install --quiet -r $(FOREIGN)/requirements.txt
	@touch $@

# The other environments get the same wheel.
$(OLDEST)/.package $(FOREIGN)/.package: %/.package: %/.deps $(VENV)/.wheel
	@$*/bin/python -m pip install --quiet --no-deps --force-reinstall $(WHEEL)/*.whl
	@touch $@

# The list of source files, rewritten only when it differs, so that a removed file rebuilds too.
$(VENV)/.sources: FORCE | $(VENV)/.created
	@echo '$(SOURCES)' | cmp -s - $@ || echo '$(SOURCES)' > $@

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'widemargin needs Python 3.11 or newer: make PYTHON=python3.11 ...'; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@
