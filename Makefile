# make run            a sample tree taken through a week of runs, in ./demo
# make run LOGS=DIR   what a run would do with your own logs; changes nothing
# make test           the tests          make check   format, lint, types, import floors
# make bench          ratios against peers, into docs/performance.md (BENCH=--quick: does it still work?)
# make clean          everything that the above made
#
# Needs Python 3.11 or later and nothing else; PYTHON=/path/to/python3 picks one.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
DEMO ?= demo
LOGS ?=
TESTS ?= tests
BENCH ?= --write
TEST_FLAGS ?= -n auto
quote = '$(subst ','\'',$(1))'

.PHONY: run test check format bench clean
.DEFAULT_GOAL := run

run: $(VENV)/ready
ifeq ($(strip $(LOGS)),)
	@$(BIN)/python -m lifecycle.sample demo --into $(call quote,$(DEMO))
else
	@$(BIN)/lifecycle plan --root $(call quote,$(LOGS))
endif

test: $(VENV)/ready-dev
	$(BIN)/python -m pytest $(TEST_FLAGS) $(TESTS)

check: $(VENV)/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/ready-dev
	$(BIN)/python -m benchmarks $(BENCH)

# The environment is made anew when pyproject.toml changes, and only then. `run` needs no developer's tools.
$(VENV)/made: pyproject.toml
	@set -e; \
	for python in $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$${found:-}" ]; then echo 'no Python 3.11 or later found; HINT: make PYTHON=/path/to/python3' >&2; exit 2; fi; \
	echo "making $(VENV) with $$found ($$("$$found" --version))"; \
	rm -rf $(VENV); \
	"$$found" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo 'HINT: on Debian and Ubuntu the venv module is a package of its own: apt-get install python3-venv' >&2; exit 2; }
	@touch $@

$(VENV)/ready: $(VENV)/made
	@$(PIP) install --editable .
	@touch $@

$(VENV)/ready-dev: $(VENV)/made
	@$(PIP) install --editable '.[dev]'
	@touch $(VENV)/ready $@

clean:
	@if [ -e $(call quote,$(DEMO)/.made-by-lifecycle-sample) ]; then rm -rf $(call quote,$(DEMO)); fi
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find lifecycle migrations tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
