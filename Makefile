# SPDX-License-Identifier: Apache-2.0
# What people type. Each target sets up what it needs (scripts/system.sh, scripts/environment.sh) and is quick
# about it when nothing has changed.
.PHONY: help demo test bench lint format docs clean

help:
	@echo "make demo                train and serve MNIST on two Spark executors of this machine"
	@echo "make test                lint and every test; the C tests under sanitizers"
	@echo "make bench [BENCH=name]  compare with the original and with the machine's limits"
	@echo "make lint                layers, exports, banned calls, format, clang-tidy, ruff"
	@echo "make format              clang-format and ruff, in place"
	@echo "make docs                HTML from docs/, the headers and the docstrings"
	@echo "make clean               remove build/ and the virtual environments"

demo:
	@scripts/demo.sh

test:
	@scripts/test.sh

bench:
	@scripts/bench.sh $(BENCH)

lint:
	@scripts/lint.sh

format:
	@scripts/format.sh

docs:
	@scripts/docs.sh

clean:
	rm -rf build .venv .venv-old .venv-lint .venv-docs
