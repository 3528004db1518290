# Every target makes what it needs: an environment in .venv, the package built and installed in it,
# and the packages of one extra of pyproject.toml. Tests with the oldest versions of other packages,
# and with large ones, have environments of their own. Python 3.11 or newer, make and a C++20
# compiler are all that must be there before.

PYTHON ?= python3
VENV := .venv
OLDEST := $(VENV)-oldest
FOREIGN := $(VENV)-foreign
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet
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
.PHONY: help demo test test-native test-python test-oldest test-foreign lint bench docs clean FORCE

help:
	@echo 'make demo         fit and show a classifier on data that comes with scikit-learn'
	@echo 'make test         native tests under sanitizers, then Python tests'
	@echo 'make test-native  only the first'
	@echo 'make test-python  only the second; PYTEST="-k loss" passes options on'
	@echo 'make test-oldest  Python tests with the oldest versions that pyproject.toml allows'
	@echo 'make test-foreign tests with MLflow, skops, imbalanced-learn, Optuna and shap'
	@echo 'make lint         ruff, mypy, import layers, clang-format'
	@echo 'make bench        benchmarks against other libraries'
	@echo 'make docs         HTML documentation in build/docs'
	@echo 'make clean        remove all that make made, environments included'
	@echo
	@echo 'PYTHON=python3.13 chooses the interpreter of a new .venv.'
	@echo 'WIDEMARGIN_DATA=folder lets tests and benchmarks read data sets.'

demo: $(VENV)/.extra-demo
	@$(BIN)/python examples/demo.py

test: test-native test-python

test-native: $(VENV)/.extra-test
	@$(BIN)/cmake -S . -B $(SANITIZE) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	  -DWIDEMARGIN_PYTHON=OFF -DWIDEMARGIN_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  --log-level=WARNING >/dev/null
	@$(BIN)/cmake --build $(SANITIZE) -- --quiet
	@UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  $(BIN)/ctest --test-dir $(SANITIZE) --output-on-failure --no-tests=error

test-python: $(VENV)/.extra-test
	@$(BIN)/python -m pytest --numprocesses 2 $(PYTEST)

test-oldest: $(OLDEST)/.package
	@$(OLDEST)/bin/python -m pytest --numprocesses 2 $(PYTEST)

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

docs: $(VENV)/.extra-docs
	@$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs
	@echo 'Documentation: build/docs/index.html'

clean:
	@rm -rf $(VENV) $(OLDEST) $(FOREIGN) build dist wheelhouse docs/generated
	@rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

# The wheel is built once for all extras; an extra then adds only what is missing.
$(VENV)/.extra-%: pyproject.toml | $(VENV)/.package
	@echo 'Installing the packages of the extra "$*"'
	@$(PIP) "$$(echo $(WHEEL)/*.whl)[$*]"
	@touch $@

$(VENV)/.package: pyproject.toml CMakeLists.txt $(SOURCES) $(VENV)/.sources | $(VENV)/.created
	@echo 'Building widemargin'
	@rm -rf $(WHEEL)
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEEL) .
	@$(PIP) --no-deps --force-reinstall $(WHEEL)/*.whl
	@touch $@

# The other environments get the same wheel.
define install-beside
	@echo 'Installing the packages of "make test-$(2)"'
	@$(BIN)/python -m venv $(1)
	@$(1)/bin/python -m pip install --quiet $(3) "$$(echo $(WHEEL)/*.whl)[$(4)]"
	@$(1)/bin/python -m pip install --quiet --no-deps --force-reinstall $(WHEEL)/*.whl
	@touch $@
endef

$(OLDEST)/.package: $(VENV)/.package .ci/oldest.py
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info >= (3, 13))' || \
	  { echo 'NumPy 1.26 is not there for Python 3.13: make clean, make test-oldest PYTHON=python3.11'; exit 1; }
	@$(BIN)/python .ci/oldest.py test > $(VENV)/oldest.txt
	$(call install-beside,$(OLDEST),oldest,--constraint $(VENV)/oldest.txt,test)

$(FOREIGN)/.package: $(VENV)/.package
	$(call install-beside,$(FOREIGN),foreign,,foreign)

# The list of source files, rewritten only when it differs, so that a removed file rebuilds too.
$(VENV)/.sources: FORCE | $(VENV)/.created
	@echo '$(SOURCES)' | cmp -s - $@ || echo '$(SOURCES)' > $@

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'widemargin needs Python 3.11 or newer: make PYTHON=python3.11 ...'; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@
