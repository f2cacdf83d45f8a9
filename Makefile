# Everything a clone needs: `make demo` shows the program, `make test` checks it.
# The environment is .venv in this folder. It is made by make alone and used again until
# pyproject.toml or constraints.txt changes.
#
#   make demo PYTHON=python3.12        another interpreter
#   make test PYTEST='-k attention'    arguments for pytest
#   make fuzz FUZZ='--seed 7'          arguments for tests/data/fuzzing.py

PYTHON ?= python3
PYTEST ?= -n auto
BIN := .venv/bin
INSTALLED := .venv/installed

.DELETE_ON_ERROR:
.PHONY: help demo test test-slow test-exhaustive fuzz format constraints clean

help:
	@echo "make demo         train, judge, export and predict on embedded data"
	@echo "make test         ruff, mypy, pytest"
	@echo "make test-slow    the tests that take half a minute or more each"
	@echo "make test-exhaustive  every kind of model file there is, of which the tests make a sample (an hour)"
	@echo "make fuzz         ten thousand spoilt files: cases or a clear error, never anything else (minutes)"
	@echo "make format       let ruff format and mend"
	@echo "make constraints  write down the versions now in .venv"
	@echo "make clean        remove the environment and everything built"

demo: $(INSTALLED)
	$(BIN)/tsattn demo

test: $(INSTALLED)
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest $(PYTEST)

test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -m slow $(PYTEST)

test-exhaustive: $(INSTALLED)
	$(BIN)/python -m pytest -m exhaustive $(PYTEST)

fuzz: $(INSTALLED)
	$(BIN)/python tests/data/fuzzing.py $(FUZZ)

format: $(INSTALLED)
	$(BIN)/python -m ruff format .
	$(BIN)/python -m ruff check --fix .

# torch's local version (+cpu, +cu130) depends on where the wheel came from, so it is cut off.
# The two onnxruntime wheels go by the same version; pip takes the one for the platform.
constraints: $(INSTALLED)
	@( sed -n '/^#/p' constraints.txt; \
	   $(BIN)/python -m pip freeze --all --exclude-editable --exclude pip | grep '==' | sed 's/+[a-z0-9]*$$//' \
	   | awk '{print} sub(/^onnxruntime-gpu==/, "onnxruntime==") {print}' ) > constraints.new
	@mv constraints.new constraints.txt

$(INSTALLED): pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "tsattn needs Python 3.11 or newer; '$(PYTHON)' is not. Name another: make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -m venv .venv
	@echo "Installing into .venv (some minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
