# Everything the project needs is installed by these targets into .venv; nothing is taken from the machine but Python and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH := .venv-bench
SEED ?= 0
USERS ?= 5000

.PHONY: demo reproduce test browser browsers firefox screenshots faults kills load mutants lint format bench docs coverage site pythons vectors lock clean

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "faircount needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $(STAMP)

demo: $(STAMP)  ## two surveys over a network on this machine: two servers, 300 devices, then 60 peers; PAGE=1: answer one yourself in a browser
	$(BIN)/faircount demo $(if $(PAGE),--page)

reproduce: $(STAMP)  ## every figure and table of the paper, into out/report.html
	$(BIN)/faircount reproduce all --out out

test: $(STAMP) lint browser  ## every test, on two processes
	$(BIN)/python -m pytest -n 2 --dist worksteal $(PYTEST_ARGS)

browser:  ## find Chromium and Node for the tests of the page, or install Debian's
	@if command -v chromium >/dev/null && command -v node >/dev/null; then \
	  echo "Chromium and Node found: $$(command -v chromium), $$(command -v node)"; \
	else \
	  echo "Chromium or Node is missing: installing Debian's packages chromium and nodejs"; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium nodejs; \
	fi

browsers: $(STAMP) browser  ## a survey of 20 browsers and 30 Python clients, instead of the 4 and 8 of make test
	FAIRCOUNT_BROWSERS=20 FAIRCOUNT_CLIENTS=30 $(BIN)/python -m pytest tests/browser/test_page.py -k together

firefox: $(STAMP) browser  ## the page in Firefox, outside make test: every known answer, and a survey with real servers; installs Debian's firefox-esr where it is missing
	@command -v firefox-esr >/dev/null || { \
	  echo "Firefox is missing: installing Debian's package firefox-esr"; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends firefox-esr; }
	node --experimental-websocket tests/browser/firefox.mjs
	$(BIN)/python -m pytest -q tests/browser/firefox_survey.py

screenshots: $(STAMP) browser  ## pictures of every view of page and dashboard, into out/screenshots; two go into the documentation
	mkdir -p out/screenshots docs/images
	FAIRCOUNT_SCREENSHOTS=out/screenshots $(BIN)/python -m pytest -q tests/browser/test_page_looks.py tests/browser/test_dashboard_looks.py
	cp out/screenshots/readme.png docs/images/question.png
	cp out/screenshots/dashboard.png docs/images/dashboard.png

faults: $(STAMP)  ## 100,000 random fault schedules (make faults SEED=1: others) instead of the 1,000 of make test: half an hour
	FAIRCOUNT_SCHEDULES=100000 FAIRCOUNT_SEED=$(SEED) $(BIN)/python -m pytest -n 2 --dist worksteal tests/faults/test_schedules.py

kills: $(STAMP)  ## 100 surveys of all topologies on each database while both servers and devices are killed at random moments (make kills SEED=1: others): half an hour
	FAIRCOUNT_KILLS=100 FAIRCOUNT_SEED=$(SEED) $(BIN)/python -m pytest -n 4 --dist worksteal tests/service/test_kills.py

load: $(STAMP)  ## submissions per second beside an empty handler, and a survey end to end (make load USERS=100000 POSTGRESQL=1)
	PYTHONPATH=tests/support $(BIN)/python benchmarks/service_load.py --users $(USERS) $(if $(POSTGRESQL),--postgresql)

mutants: $(STAMP)  ## remove one security check after the other: a test must notice each (ONLY=word)
	$(BIN)/python tests/mutants.py $(ONLY)

vectors: $(STAMP)  ## write test_vectors/ again
	$(BIN)/python test_vectors/make.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

site: $(STAMP)  ## the documentation as a site, into out/site/index.html; needs no network
	$(BIN)/python docs/site_builder.py out/site

pythons: $(STAMP)  ## the wheel, without extras, on every Python from 3.11 on that is found here
	$(BIN)/python .ci/pythons.py

docs: $(STAMP)  ## write again what the documentation prints
	$(BIN)/python docs/make.py

coverage: $(STAMP)  ## compute every line of docs/coverage.md again and compare: minutes; make test does it for a part of them
	$(BIN)/python docs/make_coverage.py --check --whole

bench: $(STAMP)  ## side by side with peers, into benchmarks/RESULTS.md
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet -r benchmarks/requirements.txt
	$(BENCH)/bin/python -m pip install --quiet -e .
	$(BENCH)/bin/python benchmarks/run.py

lock:  ## after changing dependencies; needs uv
	uv lock --upgrade
	uv export --format requirements.txt --no-emit-project --no-header --all-extras --all-groups -o requirements.lock

clean:
	rm -rf $(VENV) $(BENCH) .pytest_cache .mypy_cache .ruff_cache .hypothesis out
