# Everything here works on a machine that has Python 3.11 or newer, git and make. Environments are created on
# the first use and again when pyproject.toml or the tested versions change.

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name) 2>/dev/null)))
VENV ?= .venv
VENV36 ?= .venv-triton-3.6
PIP_FLAGS ?= --quiet --disable-pip-version-check

.PHONY: demo test test-newest test-oldest bench docs check lint types format clean

demo: $(VENV)/ready
	$(VENV)/bin/twillgpu schedule examples/attention_fwd.py --machine h100

test: test-newest test-oldest

test-newest: $(VENV)/ready
	$(VENV)/bin/python -m pytest

test-oldest: $(VENV36)/ready
	$(VENV36)/bin/python -m pytest -m "triton and (versions or not slow)"

bench: $(VENV)/ready
	$(VENV)/bin/python bench/search.py

docs: $(VENV)/ready
	$(VENV)/bin/mkdocs build --strict --quiet

check: lint types docs

lint: $(VENV)/ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/ready
	$(VENV)/bin/mypy

format: $(VENV)/ready
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

clean:
	rm -rf $(VENV) $(VENV36) bench/out

$(VENV)/ready: pyproject.toml .ci/constraints-triton-3.9.txt
	$(call environment,$(VENV),.ci/constraints-triton-3.9.txt)

$(VENV36)/ready: pyproject.toml .ci/constraints-triton-3.6.txt
	$(call environment,$(VENV36),.ci/constraints-triton-3.6.txt)

# $(call environment,FOLDER,CONSTRAINTS): an environment with the package, Triton and the development tools.
define environment
@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and none is on the PATH" >&2; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "Python 3.11 or newer is needed; $(PYTHON) is older: make PYTHON=..." >&2; exit 1; }
$(PYTHON) -m venv $(1)
$(1)/bin/python -m pip install $(PIP_FLAGS) --constraint $(2) --editable '.[triton,dev]'
@touch $@
endef
