# Everything a developer or a newcomer runs. `make help` lists it.
# The environment is .venv, made on first use from Python 3.11+ and the package index alone.
.DEFAULT_GOAL := help
.PHONY: help demo test chaos search fuzz mutants check fmt reference lock sbom release rehearsal audit pictures diagrams site control-plane cluster deploy-tools karpenter prometheus test-blackbox test-deploy test-e2e on-call kind kind-image kind-e2e kind-stories kind-conformance kind-down bench clean
PYTHON ?= python3
# Bytecode is kept, also where the surroundings ask for none: without it every process of pytest, and every command that a
# test starts, compiles all modules that it imports, which takes seconds of CPU.
export PYTHONDONTWRITEBYTECODE :=
# Another control plane for the end-to-end tests: a version in tests/controlplane/versions.
export KUBERNETES ?=
# How many processes run the tests that need no cluster; with 0 they run in the process of pytest itself.
WORKERS ?= auto
# The same for the end-to-end tests, which wait for most of their time. Each process has control planes of its own.
E2E_WORKERS ?= $(if $(findstring --kubeconfig,$(ARGS)),0,3)
ATHERIS_VERSION := 3.0.0
MUTMUT_VERSION := 3.8.1
MERMAID_VERSION := 11.16.0
TARGET ?= annotation
SECONDS ?= 600
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV := deploy/uv.txt
RUNTIME := $(CURDIR)/.cache/runtime
# What the image installs: kopf imports more where development has installed more.
INSTALL_RUNTIME = UV_PROJECT_ENVIRONMENT=$(RUNTIME) $(BIN)/uv sync --quiet --frozen --no-default-groups --no-editable --compile-bytecode --python $(PYTHON)
SBOM := dist/taintwarden.cdx.json

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(READY): pyproject.toml uv.lock $(UV) packages/localcluster/pyproject.toml packages/demo/pyproject.toml packages/publisher/pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Taintwarden needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..." >&2; rm -rf $(VENV); exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(UV)
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv sync --quiet --frozen --active --inexact
	@touch $@

demo: $(READY) ## an SLA drop on a cluster inside the process, as a live timeline (under a minute)
	@$(BIN)/taintwarden demo $(ARGS)

test: $(READY) ## unit, property and simulation tests (no cluster needed)
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal $(ARGS)

search: $(READY) ## the property tests with new cases, chosen at random
	@$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=search $(ARGS)

fuzz: $(READY) ## fuzz what parses foreign data: make fuzz TARGET=annotation SECONDS=600 (see tests/fuzz/targets.py)
	@mkdir -p .cache/fuzz/$(TARGET)
	@cd .cache/fuzz && PYTHONPATH=$(CURDIR)/tests VIRTUAL_ENV=$(VENV) $(BIN)/uv run --quiet --active --no-sync --project $(CURDIR) \
	  --with atheris==$(ATHERIS_VERSION) python -m fuzz $(TARGET) -max_total_time=$(SECONDS) $(ARGS) $(CURDIR)/.cache/fuzz/$(TARGET)

mutants: $(READY) ## changes of the code that no test finds: make mutants ARGS="FILES --tests TESTS" (docs/development.md)
	@PYTHONPATH=tests VIRTUAL_ENV=$(VENV) $(BIN)/uv run --quiet --active --no-sync --with mutmut==$(MUTMUT_VERSION) \
	  python -m mutants $(ARGS)

check: $(READY) ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: $(READY) ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

reference: $(READY) ## write docs/reference, the chart's README and the dashboard from what they describe
	@PYTHONPATH=tools $(BIN)/python -m reference

lock: $(READY) ## lock what pyproject.toml asks for, and write the hashes of uv itself
	@$(BIN)/uv lock
	@$(BIN)/uv export --quiet --frozen --only-group uv --no-header --output-file $(UV)

sbom: $(READY) ## the bill of materials of what the image installs, with licences (CycloneDX), into dist
	@mkdir -p $(dir $(SBOM))
	@$(INSTALL_RUNTIME)
	@$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file $(SBOM) $(RUNTIME)

release: $(READY) deploy-tools ## the files of a release, into dist: wheels, images, chart, bill of materials, checksums (needs Docker or Podman, Go)
	@deploy/release

rehearsal: $(READY) deploy-tools ## a release from its files alone on a kind cluster: installed, removed, upgraded (ARGS=FOLDER: these files)
	@tests/kind/rehearsal $(ARGS)

audit: $(READY) ## known vulnerabilities of what is locked (asks osv.dev)
	@$(BIN)/uv audit --frozen --preview-features audit-command

pictures: $(READY) control-plane prometheus ## draw docs/pictures from real commands on clusters to try (six minutes)
	@PYTHONPATH=tools $(BIN)/python -m pictures $(ARGS)

diagrams: $(READY) ## draw docs/pictures/diagrams from the Mermaid of the documents (needs npm and Chromium)
	@npm install --silent --no-audit --no-fund --prefix .cache/mermaid mermaid@$(MERMAID_VERSION)
	@PYTHONPATH=tools $(BIN)/python -m reference.diagrams

site: $(READY) ## build all documents as a web site into .cache/site; dead links are errors
	@PYTHONPATH=tools $(BIN)/python -m properdocs build

control-plane: ## build etcd, kube-apiserver and friends once, into .cache/control-plane and .cache/kubelet (needs Go)
	@tests/controlplane/build
	@tests/controlplane/build-kubelet

deploy-tools: ## build helm, kind and actionlint once, into .cache/deploy-tools (needs Go)
	@tests/deploy/tools/build

karpenter: ## build what asks Karpenter's scheduler once, into .cache/karpenter (needs Go)
	@tests/karpenter/build > /dev/null

prometheus: ## build promtool and prometheus once, into .cache/prometheus (needs Go)
	@tests/monitoring/tools/build

test-deploy: $(READY) control-plane deploy-tools prometheus ## lint and render what deploy/ ships, build and try the wheel
	@$(BIN)/python -m pytest tests/deploy $(ARGS)

cluster: $(READY) control-plane $(if $(findstring --slo,$(ARGS)),prometheus) ## the real control plane with six nodes and the operator, to try things on, until Ctrl-C (ARGS=--slo: docs/slo-tutorial.md)
	@PYTHONPATH=tests $(BIN)/python -m controlplane $(ARGS)

test-blackbox: $(READY) control-plane ## promises, judged by the API and the command line alone (four minutes)
	@$(BIN)/python -m pytest tests/blackbox --numprocesses 2 --dist loadfile $(ARGS)

test-e2e: $(READY) control-plane deploy-tools karpenter prometheus ## end-to-end tests on the real control plane (KUBERNETES=v1.30.14)
	@$(BIN)/python -m pytest tests/e2e --numprocesses $(E2E_WORKERS) $(ARGS)

chaos: $(READY) control-plane ## faults on the real control plane, judged by its audit log (ARGS=--list, docs/reliability.md)
	@PYTHONPATH=tests $(BIN)/python -m chaos $(ARGS)

on-call: $(READY) control-plane prometheus ## all incidents of docs/runbooks on the real control plane (five minutes)
	@INCIDENTS=all $(BIN)/python -m pytest tests/e2e/test_incidents.py $(ARGS)

kind: ## a kind cluster with this operator in it, and no built-in taint eviction (needs Docker or Podman, Go)
	@deploy/kind/up

kind-image: control-plane deploy-tools ## build kind's images where no registry can be reached (needs Debian, root, Go)
	@DOCKER_HOST=$$(tests/kind/engine start) tests/kind/image

kind-e2e: $(READY) control-plane deploy-tools prometheus ## the end-to-end tests on a kind cluster; starts an engine if none runs
	@tests/kind/e2e $(ARGS)

kind-stories: $(READY) control-plane deploy-tools prometheus ## of these only the ones that need real kubelets
	@tests/kind/e2e stories $(ARGS)

kind-conformance: $(READY) control-plane deploy-tools ## Kubernetes' own tests for NoExecute taints, on that cluster
	@tests/kind/e2e conformance $(ARGS)

kind-down: ## remove that cluster, and end the engine that was started for it
	@tests/kind/e2e down

bench: $(READY) control-plane ## compare with the built-in controller on the real control plane
	@$(INSTALL_RUNTIME)
	@TAINTWARDEN=$(RUNTIME)/bin/taintwarden PYTHONPATH=tools $(BIN)/python -m bench $(ARGS)

clean: ## remove the environment and test caches (the control plane's cache stays)
	rm -rf $(VENV) $(RUNTIME) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
