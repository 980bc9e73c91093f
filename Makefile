# Two commands: `make demo` shows the main job, `make test` passes the tests.
# Every target first installs what it needs, and is quick when nothing is missing.

SHELL := /bin/bash
PYTHON := .venv/bin/python
ARGS ?=

# Tests that measure have the machine to themselves, and lie in two folders. The others run a few at
# a time: most of them wait for servers, and keep half a processor busy (make test WORKERS=1).
NOT_LONG := not engines and not forks and not kills and not ci and not forge
WORKERS ?= 3

# What a machine needs to build and measure a fork.
PACKAGES := bubblewrap ca-certificates ccache cmake g++ gcc git make mariadb-server mold \
  ninja-build python3 python3-venv sysbench util-linux
# What the tests need besides.
TEST_PACKAGES := $(PACKAGES) chromium e2fsprogs fio mariadb-plugin-rocksdb postgresql rocksdb-tools valgrind
# Ubuntu has perf in packages of single kernels; tests that need it then say that it is missing.
ifneq ($(shell grep '^ID=debian' /etc/os-release),)
TEST_PACKAGES += linux-perf
endif
# What fetching engines and building RocksDB needs besides (make engines).
ENGINE_PACKAGES = $(TEST_PACKAGES) libaio1 libgflags-dev liblz4-dev libnuma1 maven xz-utils
# What MariaDB's own source needs besides (make test-forks).
FORK_PACKAGES = $(TEST_PACKAGES) bison dpkg-dev flex libgnutls28-dev libaio-dev libboost-dev \
  libcurl4-openssl-dev libevent-dev libfmt-dev liblz4-dev libncurses-dev libpcre2-dev libssl-dev \
  liburing-dev libxml2-dev pkg-config zlib1g-dev

.PHONY: help demo test check format bench bench-bisect bench-detectors bench-instrument bench-pages bench-service \
  bench-kills engines screenshots story test-ci test-engines test-forge test-forks test-kills lock clean

help: ## Say what the targets do.
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

demo: .stamps/packages .stamps/run ## Make a demo fork, follow it, find the slow commit, show pages.
	$(PYTHON) -m forkwatch demo $(ARGS)

test: .stamps/test-packages .stamps/dev .stamps/github-api .stamps/webhook-examples .stamps/axe-core ## Pass the tests (all but the long builds of test-forks).
	$(PYTHON) -m pytest -m "$(NOT_LONG) and not alone" -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)
	$(PYTHON) -m pytest -m "$(NOT_LONG) and alone" tests/runner tests/end_to_end $(ARGS)

check: .stamps/dev ## Format, lint, types, import directions, house rules.
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	$(PYTHON) -m pytest -q tests/house

format: .stamps/dev ## Format the sources and repair what can be repaired.
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

bench: .stamps/test-packages .stamps/dev ## Measure what the instrument itself costs.
	$(PYTHON) -m benchmarks.instrument --parts harness,suite $(ARGS)

bench-instrument: .stamps/test-packages .stamps/dev ## Measure noise, stopping and time of the instrument (an hour, alone).
	$(PYTHON) -m benchmarks.instrument $(ARGS)

bench-detectors: .stamps/dev ## Measure the detectors beside their peers (ARGS="--data FOLDER").
	$(PYTHON) -m benchmarks.detection $(ARGS)

bench-bisect: .stamps/dev ## Find slow commits in simulated histories, beside others' ways.
	$(PYTHON) -m benchmarks.bisect $(ARGS)

bench-pages: .stamps/test-packages .stamps/dev ## Measure how fast pages answer and draw.
	$(PYTHON) -m benchmarks.pages $(ARGS)

screenshots: .stamps/test-packages .stamps/dev ## Photograph every page, wide and narrow, light and dark.
	$(PYTHON) -m benchmarks.screenshots $(ARGS)

bench-kills: .stamps/test-packages .stamps/dev .stamps/github-api ## Kill the service at each step of each flow (ARGS="--points 1000").
	$(PYTHON) -m benchmarks.service_kills $(ARGS)

bench-service: .stamps/test-packages .stamps/dev ## Measure intake, pages and digests of a long history (ARGS="--history 10").
	$(PYTHON) -m benchmarks.service $(ARGS)

story: .stamps/test-packages .stamps/dev .stamps/github-api ## Tell the week of docs/story.md anew, and write it down.
	$(PYTHON) -m benchmarks.story $(ARGS)

test-ci: .stamps/test-packages .stamps/ci-tools .stamps/github-api ## Check the recipes for CI systems with those systems' own tools.
	$(PYTHON) -m pytest -m ci tests/ci -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-forge: .stamps/test-packages .stamps/dev ## Build Gitea and talk to it as to GitHub (ten minutes the first time).
	$(PYTHON) -m pytest -m forge -s --timeout 4000 tests/forge $(ARGS)

test-forks: .stamps/fork-packages .stamps/dev ## Build MariaDB from source and find a planted slowdown.
	$(PYTHON) -m pytest -m forks -s --timeout 18000 tests/forks $(ARGS)

engines: .stamps/engine-packages .stamps/dev ## Fetch real engines to measure (ARGS="my5722 my8031").
	$(PYTHON) -m tests.engines.fetch $(ARGS)

test-engines: .stamps/engine-packages .stamps/dev ## Run every engine that was fetched.
	$(PYTHON) -m pytest -m engines -s --timeout 5400 tests/engines $(ARGS)

test-kills: .stamps/test-packages .stamps/dev ## Kill service and runner at random moments of a demo run.
	$(PYTHON) -m pytest -m kills -s --timeout 5400 tests/end_to_end $(ARGS)

lock: .stamps/dev ## Pin the dependencies again, with hashes and without registry addresses.
	for set in "run" "dev --extra dev"; do set -- $$set; \
	  .venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url $${2:+$$2 $$3} pyproject.toml --output-file requirements/$$1.lock; done

clean: ## Remove what the targets made here.
	rm -rf .venv .stamps .forkwatch .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Stamps: made once, remade when their list changes.

define install_packages
	@mkdir -p .stamps
	@missing=$$(for name in $(1); do \
	  dpkg-query --show --showformat='$${Status}' $$name 2>/dev/null | grep -q '^install ok' || echo $$name; \
	done); \
	if [ -n "$$missing" ]; then \
	  echo "installing system packages:" $$missing; \
	  as_root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$as_root apt-get update -qq && \
	  $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing \
	    > .stamps/apt.log 2>&1 || { tail -20 .stamps/apt.log; exit 1; }; \
	fi
	@touch $@
endef

.stamps/packages: Makefile
	$(call install_packages,$(PACKAGES))

.stamps/test-packages: Makefile
	$(call install_packages,$(TEST_PACKAGES))

.stamps/engine-packages: Makefile
	$(call install_packages,$(ENGINE_PACKAGES))

.stamps/fork-packages: Makefile
	$(call install_packages,$(FORK_PACKAGES))

# A client of the npm registry may be there by another name than Debian's.
.stamps/npm: Makefile | .stamps/packages
	$(if $(shell command -v npm),@touch $@,$(call install_packages,npm))

.stamps/github-api: tests/fakes/github_api/description.py .stamps/dev .stamps/npm
	@echo "fetching GitHub's description of its API"
	@$(PYTHON) -m tests.fakes.github_api.description
	@touch $@

.stamps/webhook-examples: tests/fakes/webhook_examples.py .stamps/dev .stamps/npm
	@echo "fetching recorded webhooks of GitHub"
	@$(PYTHON) -m tests.fakes.webhook_examples
	@touch $@

.stamps/axe-core: tests/fakes/axe_core.py .stamps/dev .stamps/npm
	@echo "fetching axe-core"
	@$(PYTHON) -m tests.fakes.axe_core
	@touch $@

.stamps/ci-tools: tests/ci/tools.py tests/ci/golang.py tests/ci/tools.lock tests/ci/go.lock .stamps/dev .stamps/packages
	@echo "fetching and building the tools that recipes are checked with"
	@$(PYTHON) -m tests.ci.tools
	@touch $@

.venv/bin/uv: requirements/uv.lock | .stamps/packages
	@echo "making the Python environment"
	@python3 -m venv .venv
	@.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.lock
	@touch $@

.stamps/run: .venv/bin/uv requirements/run.lock pyproject.toml
	@echo "installing Python packages"
	@[ -e .stamps/dev ] || .venv/bin/uv pip sync --quiet --python $(PYTHON) --require-hashes requirements/run.lock
	@.venv/bin/uv pip install --quiet --python $(PYTHON) --no-deps --editable .
	@touch $@

.stamps/dev: .venv/bin/uv requirements/dev.lock pyproject.toml
	@echo "installing Python packages, the developer's too"
	@.venv/bin/uv pip sync --quiet --python $(PYTHON) --require-hashes requirements/dev.lock
	@.venv/bin/uv pip install --quiet --python $(PYTHON) --no-deps --editable .
	@touch $@ .stamps/run
