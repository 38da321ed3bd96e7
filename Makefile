# SPDX-License-Identifier: MIT
# For people: each target is a line or two over cmake and tools/. Variables: JOBS, PREFIX, DESTDIR,
# MINUTES; of `make bench` also SCALE, VMA, OFFSET_ALLOCATOR and NOTE (bench/README.md).

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
MINUTES ?= 30

FUZZ_OPS = fuzz/CMakeFiles/fuzz_ops.dir/fuzz_ops.c.o

# What `make run` shows once the program is built: a GPT-2 training run, recorded on a GPU.
RECORDED = tests/data/snapshots/gpt2_varlen.pickle.gz

MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.PHONY: help setup build run test test-plain test-viewer test-models test-msan bench lint format
.PHONY: sanitize coverage fuzz prove mutation nightly docs install packages clean
.PHONY: setup-build setup-test setup-lint setup-sanitize

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

setup: setup-build setup-test ## install what building and testing needs (apt)

build: build/release/build.ninja ## the release program, build/tarn; installs nothing
	@cmake --build --preset release -j $(JOBS)

run: setup-build ## install what is missing, build, then replay a recorded training run
	@$(MAKE) build
	@echo "build/tarn replay $(RECORDED) --measured tests/data/measured.json --summary"
	@build/tarn replay $(RECORDED) --measured tests/data/measured.json --summary
	@echo
	@echo "What each setting would have cost: build/tarn tune $(RECORDED) --each"
	@build/tarn tune $(RECORDED) --each
	@echo "Next: build/tarn tune $(RECORDED)"
	@echo "Watch a simulated server: build/release/examples/watched & build/tarn watch"

test: setup-test build/check/build.ninja ## all tests, with every internal check on
	@$(MAKE) build
	@cmake --build --preset check -j $(JOBS)
	@tools/run_tests.sh build/check -j $(JOBS)

test-plain: setup-test build/plain/build.ninja ## all tests on the allocator without its fast path
	@cmake --build --preset plain -j $(JOBS)
	@tools/run_tests.sh build/plain -j $(JOBS)

test-models: ## models of the locks and quotas, in all interleavings
	@tools/setup.sh models || echo "test-models: Spin is not here"
	@tools/models.sh

test-viewer: build ## the viewer's page in headless Chromium; pictures of it in build/viewer
	@tests/viewer/run.sh build/tarn build/viewer

bench: ## tarn and other allocators, recorded runs, recording, scale: to bench/results/
	@tools/setup.sh bench || echo "bench: goes on without them"
	@$(MAKE) build
	@cmake --build --preset release -j $(JOBS) --target bench_programs
	@bench/take.sh build/release tests/data/snapshots/gpt2_varlen.pickle.gz \
	    tests/data/snapshots/resnet_sizes.pickle.gz tests/data/snapshots/multistream.pickle.gz

lint: setup-lint ## format, static analysis, layers, warnings of gcc and clang
	@JOBS=$(JOBS) tools/lint.sh

sanitize: build/asan/build.ninja build/tsan/build.ninja build/fuzz/build.ninja
sanitize: setup-sanitize ## tests under asan and tsan
	@cmake --build --preset fuzz --target $(FUZZ_OPS) # the tests have the others; make fuzz links it
	@cmake --build --preset asan -j $(JOBS)
	@tools/run_tests.sh build/asan -j $(JOBS)
	@cmake --build --preset tsan -j $(JOBS)
	@tools/run_tests.sh build/tsan -j $(JOBS)

# The others call zlib, libdw, jansson, regcomp or cmocka's strings, which are not instrumented.
test-msan: setup-sanitize build/msan/build.ninja ## the tests that the memory sanitizer can judge
	@cmake --build --preset msan -j $(JOBS)
	@tools/run_tests.sh build/msan -j $(JOBS) \
	    -R '^(alloc|analysis|base|device|history|pinned|property|replay|report|stress|torture)/' \
	    -E "$$(echo '(cuda|cxx_name|input|contract|sim_memory|rules|selection|where|' \
	        'flame_report|trace_text|expression|history|stats_walk|replay/replay|scale|' \
	        'verify|adds_up|summary_text|torture/tools)' | tr -d ' ')"

coverage: setup-test ## lines and branches of src/ that the tests reach
	@JOBS=$(JOBS) tools/coverage.sh

fuzz: ## every fuzz target for MINUTES (30), on all processors: a job for the night
	@tools/fuzz.sh -m $(MINUTES)

prove: ## contracts of sizes, bins, counters and pages, by Frama-C
	@tools/setup.sh proofs || echo "prove: Frama-C or a prover is not here"
	@tools/prove.sh

mutation: ## how many small mistakes in src/ the tests notice, for MINUTES (30)
	@tools/setup.sh mutation
	@JOBS=$(JOBS) tools/mutation.sh build
	@tools/mutation.sh run --seconds $$(($(MINUTES) * 60)) --jobs $(JOBS) --seed $${SEED:-1}

nightly: setup-sanitize ## the long jobs: proofs, random programs, schedules, mutants, fuzzing
	@JOBS=$(JOBS) MINUTES=$(MINUTES) tools/nightly.sh

docs: ## the reference of the C headers (Doxygen), in build/docs
	@tools/setup.sh docs
	@tools/docs.sh

format: ## lay out the sources with clang-format 14
	@git ls-files -co --exclude-standard -- '*.c' '*.h' ':!tests/layers' | \
	    xargs $$(command -v clang-format-14 || echo clang-format) -i

install: build ## to DESTDIR and PREFIX (/usr/local)
	@cmake --install build/release --prefix $(PREFIX)

packages: build ## .deb and .tar.gz of libtarn0, libtarn-dev and tarn, in build/release/packages
	@cd build/release && cpack

clean: ## remove build/
	@rm -rf build

setup-build setup-test setup-lint setup-sanitize: setup-%:
	@tools/setup.sh $*

# Where there is no build folder yet, or the presets changed.
build/check/build.ninja build/plain/build.ninja: | setup-test
build/asan/build.ninja build/tsan/build.ninja build/msan/build.ninja: | setup-test
build/fuzz/build.ninja: | setup-sanitize
build/%/build.ninja: CMakePresets.json
	@echo "configuring build/$*" && cmake --preset $* >/dev/null
