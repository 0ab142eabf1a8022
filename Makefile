# These targets install what they need into .venv. The machine provides only Python and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What make demo needs, and only that: a first look should not wait for tools of development. The
# others are installed beside it, as pip uses one core.
DEMO := "faircount[service]" hatchling editables
DEMO_STAMP := $(VENV)/.installed-demo
OTHERS_STAMP := $(VENV)/.installed-others
STAMP := $(DEMO_STAMP) $(OTHERS_STAMP)
BENCH := .venv-bench
SEED ?= 0
USERS ?= 5000
# Two more than the cores of a small machine: a third of the tests' time passes while they wait for
# browsers, servers and deadlines.
TEST_PROCESSES ?= 4
# The tests start hundreds of Python processes, and where nothing may be written each of them would
# compile the source anew; an empty value is like none.
export PYTHONDONTWRITEBYTECODE :=
# What NumPy frees stays with the process. By default the C library gives every large array back at
# once and asks for the next: in tests that compute much, a quarter of the time.
KEEP_MEMORY := MALLOC_MMAP_THRESHOLD_=268435456 MALLOC_TRIM_THRESHOLD_=268435456
# Modules are compiled when they are first loaded, and most of what is installed never is.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile

.PHONY: demo reproduce test browser browsers firefox screenshots faults kills load mutants lint
.PHONY: compiled format bench docs coverage site pythons vectors lock clean

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "faircount needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(DEMO_STAMP): requirements.lock pyproject.toml deploy/locked_requirements.py | $(BIN)/pip
	$(BIN)/python deploy/locked_requirements.py $(DEMO) > $(VENV)/demo.txt
	$(INSTALL) --require-hashes -r $(VENV)/demo.txt
	$(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

$(OTHERS_STAMP): requirements.lock deploy/locked_requirements.py | $(BIN)/pip
	$(BIN)/python deploy/locked_requirements.py --others $(DEMO) > $(VENV)/others.txt
	$(INSTALL) --no-deps --require-hashes -r $(VENV)/others.txt
	touch $@

demo: $(DEMO_STAMP)  ## a questionnaire among 300 people with two servers, then a survey of 60 peers, over a network on this machine; PAGE=1: answer the questionnaire in your browser
	$(BIN)/faircount demo $(if $(PAGE),--page)

reproduce: $(STAMP)  ## compute every figure and table of the paper, into out/report.html
	$(BIN)/faircount reproduce all --out out

# What takes time without using the cores, or only one of them, is done beside something else.
test:  ## run every test, in four processes (TEST_PROCESSES=6: on a larger machine)
	$(MAKE) --no-print-directory -j 3 $(STAMP) browser
	$(MAKE) --no-print-directory -j 2 lint compiled
	$(KEEP_MEMORY) $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal $(PYTEST_ARGS)

# Before the first run, one process compiles the tests for all while the types are checked: four
# would each do it for themselves.
compiled: $(STAMP)
	@[ -d tests/__pycache__ ] || $(BIN)/python -m pytest -qq --collect-only >/dev/null || true  # the run itself tells why

browser:  ## find Chromium and Node for the tests of the pages, or install them
	@if command -v chromium >/dev/null && command -v node >/dev/null; then \
	  echo "Chromium and Node found: $$(command -v chromium), $$(command -v node)"; \
	else \
	  echo "Chromium or Node is missing: installing Debian's packages chromium and nodejs"; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium nodejs; \
	fi
	@command -v chromium-headless-shell >/dev/null || { \
	  echo "installing Debian's package chromium-headless-shell: tests of the pages take two fifths less CPU"; \
	  apt-get install -y -qq --no-install-recommends -o Acquire::http::Timeout=10 \
	    chromium-headless-shell >/dev/null 2>&1 || echo "it cannot be installed: they run in Chromium"; }

browsers: $(STAMP) browser  ## a sheet of three questions, answered by 20 browsers and 30 Python clients
	FAIRCOUNT_BROWSERS=20 FAIRCOUNT_CLIENTS=30 \
	  $(BIN)/python -m pytest tests/browser/test_page.py -k together

firefox: $(STAMP) browser  ## test the page in Firefox: known answers, and a survey
	@command -v firefox-esr >/dev/null || { \
	  echo "Firefox is missing: installing Debian's package firefox-esr"; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends firefox-esr; }
	node --experimental-websocket tests/browser/firefox.mjs
	$(BIN)/python -m pytest -q tests/browser/firefox_survey.py

screenshots: $(STAMP) browser  ## take pictures of all views, into out/screenshots
	mkdir -p out/screenshots docs/images
	FAIRCOUNT_SCREENSHOTS=out/screenshots $(BIN)/python -m pytest -q \
	  tests/browser/test_page_looks.py tests/browser/test_dashboard_looks.py
	cp out/screenshots/readme.png docs/images/question.png
	cp out/screenshots/dashboard.png docs/images/dashboard.png

faults: $(STAMP)  ## run 100,000 random fault schedules; half an hour (SEED=1: others)
	FAIRCOUNT_SCHEDULES=100000 FAIRCOUNT_SEED=$(SEED) \
	  $(BIN)/python -m pytest -n 2 --dist worksteal tests/faults/test_schedules.py

kills: $(STAMP)  ## run 100 surveys while processes are killed; half an hour (SEED=1: others)
	FAIRCOUNT_KILLS=100 FAIRCOUNT_SEED=$(SEED) \
	  $(BIN)/python -m pytest -n 4 --dist worksteal tests/end_to_end/test_kills.py

load: $(STAMP)  ## measure reports per second (USERS=100000 POSTGRESQL=1 QUESTIONS="1 10" CLUSTER=2 WORKERS=2)
	PYTHONPATH=tests/support $(BIN)/python benchmarks/service_load.py \
	  --users $(USERS) $(if $(POSTGRESQL),--postgresql) $(if $(QUESTIONS),--questions $(QUESTIONS)) \
	  $(if $(CLUSTER),--cluster $(CLUSTER)) $(if $(WORKERS),--workers $(WORKERS))

mutants: $(STAMP)  ## remove one security check after the other: a test must fail (ONLY=word)
	$(BIN)/python tests/mutants.py $(ONLY)

vectors: $(STAMP)  ## regenerate test_vectors/
	$(BIN)/python test_vectors/make.py

lint: $(STAMP)  ## check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

site: $(STAMP)  ## build the documentation as a site, out/site/index.html: needs no network, and search works from the folder
	$(BIN)/python docs/generate/site_builder.py out/site

pythons: $(STAMP)  ## try the wheel on every Python from 3.11 on that is found
	$(BIN)/python .ci/pythons.py

docs: $(STAMP)  ## rewrite every page that shows computed output
	$(BIN)/python docs/generate/make.py

coverage: $(STAMP)  ## recompute every line of docs/explanation/coverage.md and protocol-figures.md and compare: takes minutes; make test does a part
	$(BIN)/python docs/generate/make_coverage.py --check --whole
	$(BIN)/python docs/generate/make_protocol_figures.py --check --whole

bench: $(STAMP)  ## compare with other libraries, into benchmarks/RESULTS.md
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet -r benchmarks/requirements.txt
	$(BENCH)/bin/python -m pip install --quiet -e ".[service]"
	$(BENCH)/bin/python benchmarks/run.py

lock:  ## update requirements.lock after changing dependencies; needs uv
	uv lock --upgrade
	uv export --format requirements.txt --no-emit-project --no-header \
	  --all-extras --all-groups -o requirements.lock

clean:  ## remove everything that these targets made
	rm -rf $(VENV) $(BENCH) .pytest_cache .mypy_cache .ruff_cache .hypothesis out
	find src tests docs -name __pycache__ -prune -exec rm -rf {} +
