# SPDX-License-Identifier: Apache-2.0
# What people type. Each target sets up what it needs (scripts/system.sh, scripts/environment.sh) and is quick
# about it when nothing has changed.
.PHONY: help demo check test test-all bench lint format docs dist hadoop-cluster clean

help:
	@echo "make demo                train and serve MNIST on two Spark executors of this machine"
	@echo "make check               after each edit: lint, C tests under sanitizers, Python tests, one run through Spark"
	@echo "make test                what tells whether the tree works: check, the docs, and the tests on Spark executors"
	@echo "make test-all            test, and the rest: TSan, long tests, the oldest Spark and TensorFlow"
	@echo "make bench [BENCH=name]  compare with the original and with the machine's limits"
	@echo "make lint                layers, exports, banned calls, format, clang-tidy, ruff"
	@echo "make format              clang-format and ruff, in place"
	@echo "make docs                HTML from docs/, the headers and the docstrings"
	@echo "make dist                a release in dist/: wheels, source, jar, SBOM; scripts/check_release.sh dist tries it"
	@echo "make hadoop-cluster      HDFS and YARN on this machine to play with; Ctrl-C stops them"
	@echo "make clean               remove build/ and the virtual environments"

demo:
	@scripts/demo.sh

check:
	@scripts/test.sh check

test:
	@scripts/test.sh test

test-all:
	@scripts/test.sh test rest

bench:
	@scripts/bench.sh $(BENCH)

lint:
	@scripts/lint.sh

format:
	@scripts/format.sh

docs:
	@scripts/docs.sh

dist:
	@scripts/dist.sh

hadoop-cluster:
	@scripts/hadoop_cluster.sh

clean:
	rm -rf build .venv .venv-old .venv-lint .venv-docs .venv-dist
