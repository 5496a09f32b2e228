# The newcomer's path: `make repro` installs what is missing and runs the whole study.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PORT ?= 5000
PROCESSES ?= 2
# The build of torch: empty is what pip finds; cpu, cu130, auto … is what uv finds for that backend.
TORCH_BACKEND ?=
TORCH := $(shell sed -n 's/^ *"\(torch==[^"]*\)".*/\1/p' pyproject.toml)
IMAGE ?= ccwm

# mujoco reads this when it is imported, so it is set before any Python starts.
export MUJOCO_GL ?= egl
# The stages that DVC starts are found in the project's own environment.
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: help install repro tune verify record doctor test test-slow fuzz lint format ui lock audit clean distclean docker

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(VENV)/.installed ## Make .venv from the lock file (once; again only when the lock or pyproject.toml changes)

$(VENV)/.installed: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python found: install Python 3.11, or pass PYTHON=/path/to/python3.11."; exit 1; }
	@test -x $(BIN)/python || "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
		|| { echo "$(PYTHON) is not Python 3.11: install it, or pass PYTHON=/path/to/python3.11."; exit 1; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements.lock
	$(if $(TORCH_BACKEND),\
		$(BIN)/uv pip install --python $(BIN)/python --torch-backend $(TORCH_BACKEND) "$(TORCH)",\
		$(BIN)/python -m pip install --quiet "$(TORCH)")
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	$(BIN)/python -m pip check
	@touch $@

repro: install ## Run the study that params.yaml describes, and only what changed since the last time
	$(BIN)/ccwm gl
	$(BIN)/ccwm fleet run
	$(BIN)/dvc repro
	@echo "The report: $(CURDIR)/report/index.html"
	@echo "The runs:   make ui"

# Processes share a study, so that two of them use two cores; the others' output goes to .work/tune/process-*.log.
tune: install ## Search for better settings as params.yaml says (PROCESSES=2; TUNE="--trials 40" extends a search)
	@mkdir -p .work/tune
	@for number in $$(seq 2 $(PROCESSES)); do \
		$(BIN)/ccwm tune $(TUNE) > .work/tune/process-$$number.log 2>&1 & done; \
	$(BIN)/ccwm tune $(TUNE)

verify: install ## Run the smoke settings of the last commit again and compare with verify/smoke.json: minutes
	$(BIN)/ccwm verify --preset smoke

record: install ## Write down which machine made dvc.lock, and what the last commit's smoke settings give; commit verify/ after it
	$(BIN)/ccwm verify --record
	$(BIN)/ccwm verify --preset smoke --record

doctor: install ## Check that this machine is ready for params.yaml
	$(BIN)/ccwm doctor

# One thread a worker: workers on all cores would fight, and sums differ between thread counts. Three workers on two
# cores, since tests of processes wait much of their time. A file's tests run in one worker, so that what they share is
# made once; files run in the order of tests/conftest.py.
test: install ## Run the fast test suite, which covers every guarantee at least once
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

test-slow: install ## Run the long tests: kills, soak, browser sizes, a sweep over the presets
	$(BIN)/pytest -m slow --timeout 3600

fuzz: install ## Damage every kind of file at random for an hour (FUZZ_SECONDS=3600): the right value or a refusal, nothing else
	OMP_NUM_THREADS=1 FUZZ_SECONDS=$(or $(FUZZ_SECONDS),3600) FUZZ_SEED=$(or $(FUZZ_SEED),$(shell date +%s)) \
		$(BIN)/pytest -s tests/test_fuzz.py

lint: install ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: install ## Format the sources
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

ui: install ## Open the MLflow UI on 127.0.0.1 (PORT=5000)
	$(BIN)/ccwm ui --port $(PORT)

# torch comes in several builds, so neither it nor its CUDA packages are locked; `install` takes it by version alone.
# Only the public index is asked, so that the hashes are those which every other machine will see.
lock: ## Resolve pyproject.toml anew into requirements.lock (UPGRADE=1 also takes newer versions)
	@test -x $(BIN)/pip-compile || { echo "pip-compile is missing: run \`make install\` first."; exit 1; }
	env -u PIP_EXTRA_INDEX_URL PIP_CONFIG_FILE=/dev/null $(BIN)/pip-compile --quiet --no-config \
		--extra dev --generate-hashes --unsafe-package torch --strip-extras $(if $(UPGRADE),--upgrade) --no-header \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file requirements.lock pyproject.toml
	awk '/^[^ ]/ {cuda = /^(nvidia|cuda|triton)/} NF && !cuda && !/^# /' requirements.lock > requirements.lock.tmp
	mv requirements.lock.tmp requirements.lock

# Strict, because a package that could not be looked up is not one without faults.
audit: install ## Look the locked packages up in the vulnerability database
	$(BIN)/pip-audit --strict --disable-pip --require-hashes --requirement requirements.lock
	echo "$(TORCH)" | $(BIN)/pip-audit --strict --disable-pip --no-deps --requirement /dev/stdin

clean: ## Delete caches, resumable training and the slots of fleets (.work/train, .work/fleet); results, data, runs and what is still to be sent to MLflow stay
	rm -rf .work/train .work/fleet .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests pipeline benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## Also delete the virtual environment
	rm -rf $(VENV) src/*.egg-info

docker: ## Build the image (TORCH_BACKEND=cpu by default, cu130 for CUDA)
	docker build --build-arg TORCH_BACKEND=$(or $(TORCH_BACKEND),cpu) --tag $(IMAGE) .
