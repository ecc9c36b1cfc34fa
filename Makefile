# `make` prints this file's targets. Scripts of more than a line are in integration/.

# netgo and osusergo omit libc's lookups of names and users, which a static program must not use.
# Everything has the same tags and flags, so that Go compiles each package once (integration/lib.sh).
TAGS := seccomp,urfave_cli_no_docs,netgo,osusergo,runc_nocriu
# Builds are the same from a clone, a tarball and another user's folder.
GOBUILD := go build -trimpath -buildvcs=false
# Static: a launch starts clove twice, and would pay for dynamic linking each time.
STATIC := -tags $(TAGS) -ldflags "-linkmode external -extldflags -static $(if $(VERSION),-s -w -X main.version=$(VERSION))"
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: quickstart
quickstart: build ## install what is missing, build, and run a first agent
	@integration/install.sh run
	$(SUDO) bin/clove run examples/agent.py --memory 256M

.PHONY: build
build: ## bin/clove, bin/cloved, bin/clove-oci, bin/clove-init, bin/clove-gate, bin/clove-loop, bin/clove-mcp, bin/clove-models, bin/clove-swap, bin/clove-upstream, and the tests' program of attacks
	@integration/install.sh build
	@$(MAKE) --no-print-directory programs
	integration/probe/build.sh bin/clove-probe

# What is installed, into $(BIN).
BIN := bin
.PHONY: programs
programs:
	CGO_ENABLED=1 $(GOBUILD) $(STATIC) -o $(BIN)/clove ./cmd/clove
	CGO_ENABLED=1 $(GOBUILD) $(STATIC) -o $(BIN)/cloved ./cmd/cloved
	CGO_ENABLED=1 $(GOBUILD) $(STATIC) -o $(BIN)/clove-oci ./cmd/clove-oci
	CGO_ENABLED=0 $(GOBUILD) -tags $(TAGS) -ldflags "-s -w" -o $(BIN)/clove-init ./cmd/clove-init
	CGO_ENABLED=0 $(GOBUILD) -tags $(TAGS) -ldflags "-s -w" -o $(BIN)/clove-loop ./cmd/clove-loop
	CGO_ENABLED=0 $(GOBUILD) -tags $(TAGS) -ldflags "-s -w" -o $(BIN)/clove-gate ./cmd/clove-gate
	CGO_ENABLED=0 $(GOBUILD) -tags $(TAGS) -ldflags "-s -w" -o $(BIN)/clove-models ./cmd/clove-models
	CGO_ENABLED=0 $(GOBUILD) -tags $(TAGS) -ldflags "-s -w" -o $(BIN)/clove-mcp ./cmd/clove-mcp
	CGO_ENABLED=0 $(GOBUILD) -tags $(TAGS) -ldflags "-s -w" -o $(BIN)/clove-upstream ./cmd/clove-upstream
	CGO_ENABLED=0 $(GOBUILD) -tags $(TAGS) -ldflags "-s -w" -o $(BIN)/clove-swap ./cmd/clove-swap

.PHONY: deb
deb: ## build/clove_VERSION_amd64.deb, checked by lintian and systemd-analyze (VERSION=1.2.3)
	@integration/install.sh build deb
	@integration/package/build.sh $(or $(VERSION),0.0.0~dev) build
	@integration/package/check.sh build/clove_$(or $(VERSION),0.0.0~dev)_amd64.deb

.PHONY: tags
tags: ## the build tags, for go commands that you type
	@echo $(TAGS)

.PHONY: failpoints
failpoints: build ## bin/failpoints.tar: clove and cloved with points at which they fail or die, for the lanes root, v2 and vm
	@integration/failpoints/build.sh

.PHONY: tests
tests: failpoints
	@integration/prebuild.sh

.PHONY: test
test: ## what CI checks: lint, and a sample of every test in the lanes unit, root and v2 (as root; RUN=Pattern for some tests)
	@integration/test.sh

.PHONY: test-all
test-all: ## everything but the lane vm: long modes, fuzzing, root tests under the race detector (FROM=part goes on)
	@LONG=1 integration/test.sh

.PHONY: quick
quick: build ## for the work in between: lint, unit, and the root tests of packages changed since BASE (main)
	@integration/install.sh lint unit types
	@integration/quick.sh

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, shellcheck
	@integration/install.sh build lint
	@integration/lint.sh

.PHONY: unit
unit: ## tests that need no privilege, under the race detector (RUN=Pattern for some, LONG=1 for the whole of each)
	@integration/install.sh build unit types
	@integration/lane.sh unit

.PHONY: root
root: ## tests that need root, on this machine (RUN=Pattern for some, LONG=1 for the whole of each)
	@integration/install.sh build test engines runc libraries mcp $(if $(LONG),agents browser)
	@$(MAKE) --no-print-directory tests
	@$(if $(LONG),RACE=1 integration/prebuild.sh)
	@integration/lane.sh root
	@integration/lane.sh alone

.PHONY: v2
v2: ## those root tests that cgroup v2 or systemd can decide otherwise, in a virtual machine
	@integration/install.sh build vm deb runc
	@$(MAKE) --no-print-directory tests
	@integration/lane.sh v2

.PHONY: vm
vm: ## every root test in that virtual machine: two hours without KVM (RUN=Pattern for some)
	@integration/install.sh build vm deb runc
	@$(MAKE) --no-print-directory tests
	@LONG=1 integration/lane.sh vm

.PHONY: flaky
flaky: ## the tests that match RUN=Pattern, TIMES (100) times beside busy processors and a busy disk: how often each fails
	@integration/install.sh build test engines runc libraries mcp agents browser
	@$(MAKE) --no-print-directory tests
	@integration/flaky.sh

.PHONY: generate
generate: ## the clients in sdk/ and docs/api.md, from the table of methods
	@integration/install.sh build
	go run -tags $(TAGS) ./internal/generate

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (10s)
	@integration/install.sh build
	@integration/fuzz.sh

.PHONY: bench
bench: build ## clove beside its peers, as root: tables, and build/bench.json (ONLY=runs, oci, docker, network, daemon, kernel, mail, models or policies for a part; BEFORE=PATH of an earlier clove)
	@integration/install.sh bench gateway
	go build -tags $(TAGS) -o build/bench/bench ./integration/bench
	$(SUDO) env "PATH=$$PATH" build/bench/bench $(if $(ONLY),-only $(ONLY)) $(if $(BEFORE),-before $(BEFORE))

.PHONY: microbench
microbench: build ## the benchmarks of single packages, as root
	CLOVE_BIN_DIR=$(CURDIR)/bin go test -tags $(TAGS),root -run '^$$' -bench . -benchmem -p=1 ./...

.PHONY: ci
ci: ## what CI runs, as CI runs it
	CI=true .ci/run

.PHONY: clean
clean: ## remove what the build and the lanes made (not the vm image in the cache)
	rm -rf bin build
