# What one can do here. `make help` lists the targets; .ci/run calls the same ones.
# There are two wheels: `make test` and `make demo` install the quick one, which is what `cargo test` compiles anyway; everything
# that is measured or shipped is the optimised one of `make wheel`.
# Needs Rust, a C compiler, a CPython 3.10 or later and make; everything else goes into .venv and .venvs.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first Python that is new enough and can make environments.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.14 python3.11 python3.10; do \
  $$p -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && command -v $$p && break; done)
BENCH ?= full
GPU ?=
SEEDS ?=
SOAK ?=
CPYTHON ?=
PYTEST ?=
BASE ?=

TOOLS := .venvs/tools/bin
# The same for every build: with another Python, whatever stands on PyO3 would be compiled again.
export PYO3_PYTHON := $(CURDIR)/$(TOOLS)/python
PIP := -m pip --quiet --disable-pip-version-check
SOURCES := $(shell find crates python -type f \( -name '*.rs' -o -name '*.toml' -o -name '*.py' -o -name '*.pyi' -o -name py.typed \
  -o -name '*.js' -o -name '*.css' -o -name '*.html' -o -name '*.csv' \) \
  -not -path '*/tests/*') Cargo.toml Cargo.lock pyproject.toml setup.py README.md

.PHONY: help
help: ## List these targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: .venvs/quick/installed ## Record the example service, print its summary, say where trace and report are.
	PATH="$(CURDIR)/.venvs/quick/bin:$$PATH" inferscope run -- examples/service.py
	.venvs/quick/bin/inferscope analyze
	@echo
	@echo "The trace is in $$(ls -dt inferscope-traces/*/ | head -n 1): open report.html in there, or read report.md."
	@echo "One problem is planted in examples/service.py: the answer names it. Without it: "
	@echo "  PATH=.venvs/quick/bin:\$$PATH inferscope run examples/service.py --fixed"

.PHONY: check
check: $(TOOLS)/installed ## Format, lints and the tests of what changed: for every day. BASE=main compares with another commit
	$(TOOLS)/python tests/check.py $(if $(BASE),--base $(BASE))

# What `make test` runs, without running it.
.PHONY: test-programs
test-programs: $(TOOLS)/installed
	cargo test --locked --workspace --no-run

# What the Pythons need is downloaded while Rust compiles.
.PHONY: test
test: $(TOOLS)/installed ## Run every test that needs no framework: Rust, then Python on each CPython found.
	@$(TOOLS)/python tests/every_python.py --prepare & prepared=$$!; \
	cargo test --locked --workspace --no-run && $(MAKE) --no-print-directory dist/quick/built && \
	cargo test --locked --workspace && wait $$prepared
	$(TOOLS)/python tests/every_python.py "$$(cat dist/quick/built)" -- $(PYTEST)

.PHONY: test-wheel
test-wheel: .venv/installed ## Look at the wheel that is shipped: its size, what it needs, what is in it, and that it records.
	.venv/bin/python $(PIP) install -r tests/requirements.txt
	PATH="$(CURDIR)/.venv/bin:$$PATH" TEST_WHEEL="$$(cat dist/built)" .venv/bin/python -m pytest -q -p no:cacheprovider tests/wheel tests/end_to_end/test_alone.py tests/end_to_end/test_kills.py $(PYTEST)

.PHONY: soak
soak: .venv/installed ## Kill workload, recorder, supervisor and all at random, 10,000 times, and account for every record. SOAK="--kills 500 --seed 7"
	.venv/bin/python $(PIP) install -r tests/requirements.txt
	.venv/bin/python tests/soak/soak.py $(SOAK)

.PHONY: test-frameworks
test-frameworks: .venvs/frameworks/installed ## Record PyTorch, transformers, JAX, Keras, TensorFlow, ONNX Runtime, scikit-learn (on the CPU) and web services. Downloads 6 GB once.
	PATH="$(CURDIR)/.venvs/frameworks/bin:$$PATH" .venvs/frameworks/bin/python -m pytest -q -p no:cacheprovider tests/frameworks $(PYTEST)

.PHONY: test-cpython
test-cpython: .venv/installed $(TOOLS)/installed ## Run CPython's own tests plain and recorded: no outcome may differ. CPYTHON="--quick", "--calls", "--only 3.12 test_gc"
	cd tests/cpython && ../../$(TOOLS)/python -m unittest -q
	$(TOOLS)/python tests/cpython/run.py --command .venv/bin/inferscope $(CPYTHON)

.PHONY: test-cupti-headers
test-cupti-headers: $(TOOLS)/installed ## Hold the GPU decoder to NVIDIA's headers of every supported CUDA version. Downloads 200 MB once.
	$(TOOLS)/python tests/cupti_headers/check.py

.PHONY: test-browser
test-browser: .venvs/browser/installed ## Use the HTML report as a person does, in a real browser (Chromium and its driver).
	.venvs/browser/bin/python -m pytest -q -p no:cacheprovider tests/browser $(PYTEST)

.PHONY: hostile
hostile: ## Run the reading commands on 20,000 hostile folders and files. HOSTILE_SEED=N begins elsewhere.
	HOSTILE_SEED=$(or $(HOSTILE_SEED),1000) HOSTILE_CASES=$(or $(HOSTILE_CASES),10000) cargo test --locked --release -p inferscope-cli --test hostile

# The examples are chosen beside the command, so that Parquet and the like get the features that the wheel gave them: alone, they would all be compiled again.
.PHONY: bench
bench: dist/built ## Measure every promised figure beside the peers. BENCH=quick takes a few minutes.
	cargo build --locked --release -p inferscope-trace --example ring_speed
	cargo build --locked --release -p inferscope-cli -p inferscope-timeline -p inferscope-telemetry --example generate --example generate_gpu --example generate_kineto --example telemetry_speed
	$(TOOLS)/python benches/run.py "$$(cat dist/built)" $(if $(filter quick,$(BENCH)),--quick)

.PHONY: lint
lint: $(TOOLS)/installed ## Check formatting, warnings, types and the house rules.
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(TOOLS)/ruff check
	$(TOOLS)/ruff format --check
	$(TOOLS)/mypy
	$(TOOLS)/python tests/house_rules.py

.PHONY: wheel
wheel: dist/built ## Build the one wheel that serves CPython 3.10 and later into dist/.
	@cat dist/built

.PHONY: gpu-programs
gpu-programs: dist/built ## Build what gpu-test and gpu-bench need and a GPU machine may be unable to build, into dist/.
	$(TOOLS)/python benches/floor_build.py

.PHONY: gpu-test
gpu-test: ## On a machine with an NVIDIA GPU and PyTorch: check counts, links, layers, clock and bad endings. GPU="--only clock --minutes 5"
	$(PYTHON) tests/gpu/run.py $(GPU)

.PHONY: gpu-bench
gpu-bench: ## On a machine with an NVIDIA GPU and PyTorch: what recording costs, beside the floor and torch.profiler. GPU="--models mlp"
	$(PYTHON) benches/gpu.py $(GPU)

.PHONY: gpu-quick
gpu-quick: ## As gpu-bench, only how much slower models get, in a few minutes. GPU="--models gpt2 --rounds 5"
	$(PYTHON) benches/gpu_quick.py $(GPU)

.PHONY: gpu-suite
gpu-suite: ## On a machine with an NVIDIA GPU and PyTorch: record planted bottlenecks, judge verdicts and gains. GPU="--only unaligned", or SEEDS=0-39 of generated programs
	$(PYTHON) $(if $(SEEDS),tests/suite/seeds.py --seeds $(SEEDS),tests/suite/run.py) $(GPU)

.PHONY: suite-replay
suite-replay: .venv/installed ## Hold the diagnosis to recordings of the suite, of real and of generated programs, and to the gains measured with them.
	cd tests/suite && ../../$(TOOLS)/python -m unittest -q
	$(TOOLS)/python tests/suite/replay.py --command .venv/bin/inferscope
	$(TOOLS)/python tests/suite/ranges.py
	$(TOOLS)/python tests/suite/programs_replay.py --command .venv/bin/inferscope
	$(TOOLS)/python tests/suite/seeds_replay.py tests/traces/seeds --command .venv/bin/inferscope \
	  --hold --least steps_right_percent=100 --none steps_of_a_library --none healthy_blamed
	$(TOOLS)/python tests/suite/memory_replay.py tests/traces/memory --command .venv/bin/inferscope --hold

.PHONY: suite-reliability
suite-reliability: .venv/installed ## How often verdicts of a confidence are right, on the suite's recordings, whole and cut.
	.venv/bin/python tests/suite/reliability.py --command .venv/bin/inferscope

# Each crate's own tests must notice: what another crate's tests see comes too late. Needs `cargo install cargo-mutants`; hours, and no part of CI.
.PHONY: mutants
mutants: ## Which changes of steps, ranking, confidence, replay and gains the crates' tests do not notice. MUTANTS="--shard 0/8"
	cargo mutants --package inferscope-analysis --file 'crates/analysis/src/steps/**/*.rs' $(MUTANTS)
	cargo mutants --package inferscope-replay --file 'crates/replay/src/**/*.rs' $(MUTANTS)
	cargo mutants --package inferscope-diagnosis $(foreach name,rank relation confidence certainty action considered leading measures/confidence calibration/mod calibration/misses,--file crates/diagnosis/src/$(name).rs) $(MUTANTS)

.PHONY: gpu-bursts
gpu-bursts: ## As gpu-bench, only how much slower models get, by short bursts of loaded processes in turn: the most exact. GPU="--models mlp"
	$(PYTHON) benches/gpu_bursts.py $(GPU)

.PHONY: gpu-cycles
gpu-cycles: ## As gpu-bench, only what recording and an overhead budget cost a model, by turns within one process. GPU="--models gpt2 --variants 2%"
	$(PYTHON) benches/gpu_cycles.py $(GPU)

.PHONY: gpu-memory
gpu-memory: ## On a machine with an NVIDIA GPU and PyTorch: what CUPTI keeps of a program's memory for each launch. GPU="--programs captured"
	$(PYTHON) benches/gpu_memory.py $(GPU)

.PHONY: clean
clean: ## Remove what the other targets made, except Cargo's target folder.
	rm -rf .venv .venvs build dist python/*.egg-info

# --- what the targets above stand on ---

$(TOOLS)/installed: tests/requirements-tools.txt
	@test -n "$(PYTHON)" || { echo "no CPython 3.10 or later with venv found: install one, or say PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv .venvs/tools
	$(TOOLS)/python $(PIP) install -r $<
	touch $@

# setuptools keeps what it once copied into build/: a module that was deleted since would come back.
dist/built: $(SOURCES) | $(TOOLS)/installed
	rm -rf build
	@mkdir -p dist && find dist -mindepth 1 -maxdepth 1 -not -name quick -exec rm -rf {} +
	$(TOOLS)/python $(PIP) wheel --no-deps --wheel-dir dist/plain .
	PATH="$(CURDIR)/$(TOOLS):$$PATH" auditwheel repair --wheel-dir dist dist/plain/*.whl || \
	  { echo "not a manylinux wheel: it is good for this machine and its like" >&2; cp dist/plain/*.whl dist; }
	ls dist/*.whl > $@

# For this machine only, so nothing has to be repaired.
dist/quick/built: $(SOURCES) | $(TOOLS)/installed
	rm -rf build dist/quick
	INFERSCOPE_BUILD=quick $(TOOLS)/python $(PIP) wheel --no-deps --wheel-dir dist/quick .
	ls dist/quick/*.whl > $@

.venvs/quick/installed: dist/quick/built
	$(PYTHON) -m venv .venvs/quick
	.venvs/quick/bin/python $(PIP) install 'numpy>=1.26'
	.venvs/quick/bin/python $(PIP) install --no-deps --force-reinstall "$$(cat dist/quick/built)"
	touch $@

.venv/installed: dist/built
	$(PYTHON) -m venv .venv
	.venv/bin/python $(PIP) install 'numpy>=1.26'
	.venv/bin/python $(PIP) install --no-deps --force-reinstall "$$(cat dist/built)"
	touch $@

# Apart from the wheel, so that it can be downloaded while that is built.
.venvs/%/downloaded: tests/%/requirements.txt tests/requirements.txt
	$(PYTHON) -m venv .venvs/$*
	.venvs/$*/bin/python $(PIP) install -r tests/requirements.txt -r tests/$*/requirements.txt
	touch $@

.venvs/%/installed: dist/built .venvs/%/downloaded
	.venvs/$*/bin/python $(PIP) install --no-deps --force-reinstall "$$(cat dist/built)"
	touch $@

# What an interrupted run made is not thrown away.
.PRECIOUS: .venvs/%/installed .venvs/%/downloaded
