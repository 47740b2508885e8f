# Every target makes its own environment when it is missing. Only Python >= 3.11 with venv is needed; no root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Two more than there are cores: many tests wait for hosts, terminals and timers.
WORKERS := $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 2)))

.PHONY: demo test check bench soak mutants screenshots clean help

help:
	@echo "make demo         a small living cluster and the console on it"
	@echo "make test         all tests"
	@echo "make check        tests, lint, types, import contracts"
	@echo "make bench        benchmarks, with the figures on the standard output"
	@echo "make soak         200 seeds x 20 days of the scheduler with faults (long)"
	@echo "make soak-console 10,000 polls of the console: memory and keys stay flat (long)"
	@echo "make mutants      faults planted in the policy, each of which the tests must catch (long)"
	@echo "make looks        keep how the screens look now for their tests, and write docs/keys.md: read the difference in git"
	@echo "make tour         take the tour of docs/tour.md on the demo, in tmux at three sizes, and write it anew"
	@echo "make screenshots  redraw screenshots/ from the demo, with a fixed seed and clock"

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "opsconsole needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12"; exit 1; }
	@echo "Making the environment $(VENV) with the tested versions of requirements.lock (once, about a minute)."
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "This Python has no venv module. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/opsconsole demo

test: $(READY)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

check: lint test

.PHONY: lint
lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(READY)
	@$(BIN)/python -m benchmarks

soak: $(READY)
	@$(BIN)/python -m tests.storm --seeds 200 --hours 480

mutants: $(READY)
	@$(BIN)/python -m tests.mutants

.PHONY: soak-console
soak-console: $(READY)
	@$(BIN)/python -m benchmarks.console.soak

.PHONY: tour
tour: $(READY)
	@$(BIN)/python -m tests.tour

.PHONY: looks
looks: $(READY)
	@OPSCONSOLE_UPDATE_SNAPSHOTS=1 $(BIN)/python -m pytest tests/ui/test_looks.py tests/ui/test_keys.py

screenshots: $(READY)
	@$(BIN)/python -m tests.screenshots

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis
