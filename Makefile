# Convoke from a fresh clone: Python 3.11 or newer, Node 20.19 or newer, and make. `make help` lists the targets.
# Every step leaves a stamp, so a second run does only what has changed.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
PORT ?=
URL ?= http://127.0.0.1:$(or $(PORT),8000)
ARGS ?=
# Set REQUIRE_BROWSER=1 to let `make test` fail, not skip, where no Chromium is found.
REQUIRE_BROWSER ?=

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUNTIME := .venv/runtime.stamp
DEVELOPMENT := .venv/development.stamp
BENCHMARK := .venv/benchmark.stamp

WEB := app/web
NODE_MODULES := $(WEB)/node_modules/.package-lock.json
PAGE := $(WEB)/dist/index.html
PAGE_SOURCES := $(shell find $(WEB) \( -name node_modules -o -name dist -o -name e2e -o -name tests -o -name scripts \
	-o -name 'vitest*' \) -prune -o -type f -print 2>/dev/null)
HAS_NODE := $(shell node -e 'const [major, minor] = process.versions.node.split("."); \
	if (100 * major + +minor >= 2019) console.log("yes")' 2>/dev/null)
CHROMIUM = $(shell for b in chromium chromium-browser google-chrome google-chrome-stable; do \
	command -v "$$b" && break; done)

define PLAYWRIGHT_HAS_BROWSER
const { chromium } = require("playwright-core");
process.exit(require("node:fs").existsSync(chromium.executablePath()) ? 0 : 1);
endef
export PLAYWRIGHT_HAS_BROWSER

.PHONY: help serve page no-page test check test-page test-python format docs lock bench bench-service bench-page soak chaos fuzz example-photo example-digits screenshots browser clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: $(RUNTIME) $(if $(HAS_NODE),$(PAGE),no-page) ## install what is missing and serve on 127.0.0.1:8000 (PORT=..., ARGS="--workers 4")
	@exec $(BIN)/python -m app $(if $(PORT),--port $(PORT)) $(ARGS)

page: $(PAGE) ## build the page

no-page:
	@echo 'Node.js 20.19 or newer was not found: serving without the page.' >&2

test: check test-page test-python ## everything tested: style, types, imports, the page, its browser tests, Python

check: $(DEVELOPMENT) ## format, lint, strict types, direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy examples deploy docs benchmarks tests
	$(BIN)/lint-imports --no-cache

test-page: $(DEVELOPMENT) $(PAGE)
	cd $(WEB) && npm run --silent check
	cd $(WEB) && npm run --silent test
	@if [ -n "$(CHROMIUM)" ] || (cd $(WEB) && node -e "$$PLAYWRIGHT_HAS_BROWSER"); then \
		cd $(WEB) && CHROMIUM="$(CHROMIUM)" npm run --silent e2e; \
	elif [ -n "$(REQUIRE_BROWSER)" ]; then \
		echo 'No Chromium found, and REQUIRE_BROWSER is set.' >&2; exit 1; \
	else \
		echo '*** BROWSER TESTS SKIPPED: no chromium, google-chrome or Playwright browser was found. ***' >&2; \
	fi

test-python: $(DEVELOPMENT) $(PAGE)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

format: $(DEVELOPMENT) ## rewrite the Python sources in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(RUNTIME) ## write the tables of the documents that are made from the code
	$(BIN)/python -m docs.generated

LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header
lock: $(DEVELOPMENT) ## write requirements/*.txt anew from pyproject.toml (ARGS="--upgrade" for newer versions)
	$(LOCK) $(ARGS) requirements/build.in -o requirements/build.txt
	$(LOCK) $(ARGS) pyproject.toml -o requirements/base.txt
	$(LOCK) $(ARGS) pyproject.toml --extra dev --extra examples --extra onnx \
		-c requirements/base.txt -o requirements/dev.txt
	$(LOCK) $(ARGS) pyproject.toml --extra dev --extra bench -c requirements/dev.txt -o requirements/bench.txt

bench: $(BENCHMARK) ## the kernels against PyTorch, naive NumPy and this machine's limits (ARGS=--short)
	@mkdir -p docs/benchmarks
	$(BIN)/python -m benchmarks.kernels --json docs/benchmarks/kernels.json \
		--markdown docs/benchmarks/kernels.md --plot docs/benchmarks $(ARGS)

bench-service: $(DEVELOPMENT) ## the service under load, against an echo and the simplest server (ARGS=--short)
	$(BIN)/python -m benchmarks.service $(ARGS)

bench-page: $(DEVELOPMENT) $(PAGE) ## how long the page takes for a change and for a move of the pointer, in Chromium (ROUNDS=...)
	cd $(WEB) && CHROMIUM="$(CHROMIUM)" ROUNDS=$(or $(ROUNDS),8) npm run --silent bench

soak: $(DEVELOPMENT) ## mixed traffic with faults for ten minutes; fails if anything grows (ARGS="--minutes 60")
	$(BIN)/python -m benchmarks.soak $(ARGS)

chaos: $(DEVELOPMENT) ## workers, server and clients harmed at random for five minutes (ARGS="--minutes 60 --seed 1")
	$(BIN)/python -m benchmarks.chaos $(ARGS)

fuzz: $(DEVELOPMENT) ## a million mutants of the corpus for each format (FUZZ_EXECUTIONS=..., FUZZ_SEED=...)
	FUZZ_EXECUTIONS=$(or $(FUZZ_EXECUTIONS),1000000) FUZZ_SEED=$(or $(FUZZ_SEED),1) $(BIN)/python -m pytest tests/fuzz

check-kernel: $(DEVELOPMENT) ## a convolution of your own against a running service (KERNEL=my_kernel.py URL=...)
	$(BIN)/python examples/check_kernel.py --url $(URL) --kernel $(or $(KERNEL),examples/kernel.py)

example-photo: $(DEVELOPMENT) ## a photograph through the layers of a running service -> docs/photo.png (URL=...)
	$(BIN)/python examples/photo.py --url $(URL) --output docs/photo.png

example-digits: $(DEVELOPMENT) ## train a small CNN on a running service -> docs/train_digits.png (URL=...)
	$(BIN)/python examples/train_digits.py --url $(URL) --output docs/train_digits.png

browser: ## print the browser that the page's tests would use; fails without one
	@test -n "$(CHROMIUM)" && echo "$(CHROMIUM)"

screenshots: $(DEVELOPMENT) $(PAGE) ## pictures of the page of a running service -> docs/page-*.png (URL=...)
	cd $(WEB) && CHROMIUM="$(CHROMIUM)" npm run --silent screenshots -- $(URL)

clean: ## remove the environment, the built page and every cache
	rm -rf .venv $(WEB)/node_modules $(WEB)/dist $(WEB)/test-results $(WEB)/playwright-report dist build out \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNTIME): pyproject.toml requirements/base.txt requirements/build.txt
	@test -n "$(PYTHON)" || { echo 'Python 3.11 or newer is needed; name one with PYTHON=...' >&2; exit 1; }
	@test -x $(BIN)/python || { echo 'Creating .venv'; $(PYTHON) -m venv .venv; }
	@echo 'Installing the service into .venv'
	@$(PIP) install --require-hashes -r requirements/base.txt -r requirements/build.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(DEVELOPMENT): $(RUNTIME) requirements/dev.txt
	@echo 'Installing the tools of development into .venv'
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

$(BENCHMARK): $(DEVELOPMENT) requirements/bench.txt
	@echo 'Installing PyTorch, to be measured against, into .venv'
	@$(PIP) install --require-hashes -r requirements/bench.txt
	@touch $@

$(NODE_MODULES): $(WEB)/package.json $(WEB)/package-lock.json
	@test -n "$(HAS_NODE)" || { echo 'Node.js 20.19 or newer is needed to build the page.' >&2; exit 1; }
	@echo "Installing the page's packages"
	@cd $(WEB) && npm ci --silent --no-audit --no-fund
	@touch $@

$(PAGE): $(NODE_MODULES) $(PAGE_SOURCES)
	@echo 'Building the page'
	@cd $(WEB) && npm run --silent build
	@touch $@
