# What people type. `make run` and `make test` need only Python 3.11 or later; `make run PYTHON=python3.12` chooses one.
# Every path is relative: the checkout may lie under a path with spaces, which make cannot quote.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# pytest processes; two cores are the reference machine. A third one makes tests with bounds of seconds fail now and then.
JOBS ?= 2
PACKAGES := controlplane adsserver xdscore xdsclient xdsctl bench

.DEFAULT_GOAL := help
.PHONY: help run test demo bench bench-guard bench-beside check test-fast test-protocol test-e2e fuzz soak lock golden codes states differential openapi rest-client clean install install-dev test-search nightly api-search mutation screenshots tour audit release xdsctl

help:  ## Show what can be made
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -e 's/:.*## /\t/' | while IFS='	' read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done

run: install  ## Start everything on this machine; Ctrl-C stops it
	@exec $(BIN)/python manage.py up

test: install-dev  ## Run the whole test suite
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

demo: install-dev  ## Start everything with demo resources, a real Envoy and a gRPC client
	@exec $(BIN)/python manage.py demo

bench: install-dev  ## Measure, and write bench/out/latest.json; SCENARIO=… [CLIENTS=…] [SET="name=number …"] runs one
	$(BIN)/python -m bench $(SCENARIO) $(if $(CLIENTS),clients=$(CLIENTS)) $(SET)

# Small enough for every night, large enough that a change costs more than starting it.
GUARDED := fan-out fan-out-delta audiences extras rollout clients=500 clusters=500 rounds=5

bench-guard: install-dev  ## Measure the ratios in bench/ratios.json; fails when one is worse by a quarter, and by a tenth beside the commit that had it
	$(BIN)/python -m bench $(GUARDED)
	$(BIN)/python -m bench.guard

bench-beside: install-dev  ## Measure the same here and at BASE=… in turn; fails when a ratio is worse by a tenth
	$(BIN)/python -m bench.beside $(or $(BASE),HEAD~1) $(GUARDED)

# The static security scanner: ruff's S rules, which are bandit's, over everything that is shipped or run by developers.
# Without the project's configuration, so that no folder and no rule can be left out; a line says for itself why it may.
SCAN := $(BIN)/python -m ruff check --isolated --select S --target-version py311 $(PACKAGES) manage.py scripts deploy

check: install-dev  ## Lint, types, import contracts, migrations, module length, citations, words, docstrings: the gate before a push
	$(BIN)/python -m ruff check .
	$(SCAN)
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy $(PACKAGES) manage.py scripts deploy/docker/healthcheck.py tests
	$(BIN)/lint-imports
	$(BIN)/python manage.py check
	@mkdir -p $(VENV)/home
	PARLEY_HOME=$(VENV)/home $(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python scripts/module_length.py $(PACKAGES) scripts tests
	$(BIN)/python scripts/complexity.py $(PACKAGES) scripts
	$(BIN)/python scripts/protocol_table.py
	$(BIN)/python scripts/citations.py
	$(BIN)/python scripts/words.py
	$(BIN)/python scripts/docstrings.py $(PACKAGES) manage.py scripts deploy

test-fast: install-dev  ## Tests of pure code
	$(BIN)/python -m pytest tests/unit

test-protocol: install-dev  ## The protocol engine: scenarios, machines, transcripts
	$(BIN)/python -m pytest tests/protocol tests/golden

test-e2e: install-dev  ## The product as a whole, with a real Envoy and grpcio
	$(BIN)/python -m pytest tests/e2e tests/faults

api-search: install-dev  ## Send requests made from the API's schema that nobody tried yet, for some twenty minutes
	API_EXAMPLES=$(or $(EXAMPLES),100) $(BIN)/python -m pytest tests/api/test_generated_requests.py

test-search: install-dev  ## Generated tests with examples nobody tried yet; what it finds becomes a test
	$(BIN)/python -m pytest -n $(JOBS) --hypothesis-profile=search tests/unit tests/protocol tests/services

nightly: install-dev  ## Tests that take minutes: everything around 200 clients fails in turn, every page in a browser; prints figures; then bench-guard
	$(BIN)/python -m pytest -m nightly -rP --no-header
	@$(MAKE) bench-guard

fuzz: install-dev  ## Send what no client would to the protocol engine, for a minute (Linux)
	mkdir -p .fuzz
	$(BIN)/python -m tests.protocol.fuzz.run .fuzz tests/protocol/fuzz/corpus -max_total_time=60 -max_len=2000 -artifact_prefix=.fuzz/found-

soak: install-dev  ## Break a running Parley every 20 s for 45 minutes; MINUTES=… SEED=… (the same faults again); writes soak/soak.md
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),45) $(if $(SEED),--seed $(SEED))

MUTMUT := env HYPOTHESIS_EXAMPLES=quick PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/mutmut

# Scenarios kill most mutants in milliseconds; only what survives them meets the generated tests.
mutation: install-dev  ## Nightly: change the engine in some two thousand ways; its tests must notice 85 % of them
	PYTEST_ADDOPTS='-m "not hypothesis"' $(MUTMUT) run --max-children $(JOBS)
	$(MUTMUT) results | sed -n 's/^ *\(.*\): survived$$/\1/p' | xargs $(MUTMUT) run --max-children $(JOBS)
	$(BIN)/python scripts/mutation_score.py 85

golden: install-dev  ## Rewrite the expected files and show what changed
	GOLDEN_REWRITE=1 $(BIN)/python -m pytest tests/golden
	git --no-pager diff --stat -- tests/golden

differential: install-dev  ## Ask a real Envoy about 2,000 generated mutations and every spelling, not only a part; COUNT=… about more, SHIFT=1… about others
	DIFFERENTIAL=$(or $(COUNT),2000) DIFFERENTIAL_SHIFT=$(or $(SHIFT),0) $(BIN)/python -m pytest tests/golden/test_differential.py tests/golden/test_spellings.py

codes: install-dev  ## Write the reference page of the codes
	$(BIN)/python scripts/codes_page.py > docs/reference/codes.md

states: install-dev  ## Write the reference page of the states of a name
	$(BIN)/python scripts/states_page.py > docs/reference/protocol-states.md

clients: install-dev  ## Write the reference page of clients and features, from the marks of the tests
	$(BIN)/python scripts/clients_page.py > docs/reference/clients-and-features.md

openapi: install-dev  ## Write the API's schema; fails when it differs from the reviewed one
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --file docs/reference/openapi.yaml
	git --no-pager diff --exit-code -- docs/reference/openapi.yaml

screenshots: install-dev  ## Pictures of every page, wide and narrow, light and dark; needs `make demo` running elsewhere, and Chromium
	$(BIN)/python scripts/screenshots.py $${PARLEY_PUBLIC_URL:-http://127.0.0.1:8000} "$$(cat $${PARLEY_HOME:-.parley}/admin.password)" screenshots

lock: install  ## Turn requirements*.in into hashed locks
	$(BIN)/uv pip compile -q --generate-hashes --no-annotate --no-header --python-version 3.11 --universal requirements.in -o requirements.txt
	$(BIN)/uv pip compile -q --generate-hashes --no-annotate --no-header --python-version 3.11 --universal requirements-dev.in -o requirements-dev.txt
	$(BIN)/uv pip compile -q --generate-hashes --no-annotate --no-header --python-version 3.11 --universal requirements-deep.in -o requirements-deep.txt
	$(BIN)/uv pip compile -q --generate-hashes --no-annotate --no-header --python-version 3.11 --universal requirements-generator.in -o requirements-generator.txt
	$(BIN)/uv pip compile -q --generate-hashes --no-annotate --no-header --python-version 3.11 --universal requirements-xdsctl.in -o requirements-xdsctl.txt
	$(BIN)/uv pip compile -q --generate-hashes --no-annotate --no-header --python-version 3.11 --universal requirements-uv.in -o deploy/docker/requirements-uv.txt

rest-client: install-dev  ## The wheel of the typed REST client, in dist/
	$(BIN)/python scripts/rest_client.py dist

xdsctl:  ## Install the command line, alone, into .xdsctl/bin
	@sh scripts/install.sh "$(PYTHON)" .xdsctl requirements-xdsctl.txt
	@.xdsctl/bin/python -m compileall -q xdsctl xdscore xdsclient  # a start waits a third of a second without, each time where nothing may be written
	@printf '#!/bin/sh\nPYTHONPATH="$(CURDIR)" exec "$(CURDIR)/.xdsctl/bin/python" -m xdsctl "$$@"\n' >.xdsctl/bin/xdsctl
	@chmod +x .xdsctl/bin/xdsctl

tour: install-dev  ## The pictures of docs/tour.md, or PICTURES="…" of them; needs `make demo` running elsewhere, and Chromium
	$(BIN)/python -m scripts.tour $${PARLEY_PUBLIC_URL:-http://127.0.0.1:8000} $${PARLEY_HOME:-.parley} docs/images/tour $(PICTURES)

audit: install-dev  ## Licences of all that is locked, and its known vulnerabilities, which need the network; says what it could not reach
	$(BIN)/python scripts/audit.py

release: install-dev  ## Check, build and tag VERSION=x.y.z in this checkout, and push nothing; DRY_RUN=1 changes nothing
	@$(BIN)/python -m scripts.release $(VERSION) $(if $(DRY_RUN),--dry-run)

clean:  ## Remove the environment and caches; the home (.parley) stays
	rm -rf $(VENV) $(VENV)-generator .xdsctl .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .fuzz htmlcov .coverage
	find $(PACKAGES) tests -name __pycache__ -type d -prune -exec rm -rf {} +

install:
	@sh scripts/install.sh "$(PYTHON)" $(VENV) requirements.txt

install-dev:
	@sh scripts/install.sh "$(PYTHON)" $(VENV) requirements-dev.txt
	@sh scripts/install.sh "$(PYTHON)" $(VENV)-generator requirements-generator.txt
