# What a contributor runs. `make test` is the one that counts.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
TOOL := go tool -modfile=tools.mod

# Directories whose packages have goroutines or share memory.
RACY := $(wildcard engine store destination receive spool server sandbox drill semeltest probe)

.PHONY: test
test: install ## install what is missing, run all tests, compare the stores
	go test -timeout 20m -v ./... | awk -f .ci/report.awk

.PHONY: install
install: ## install PostgreSQL and what else the tests run, if missing
	@.ci/install

.PHONY: race
race: install ## run the tests of concurrent packages under the race detector
	go test -race -short $(patsubst %,./%/...,$(RACY))

.PHONY: lint vet fix-check fmt-check linters
lint: vet fix-check fmt-check linters ## find what the tests cannot
vet:
	go vet ./...
fix-check:
	go fix -diff ./...
fmt-check:
	@unformatted=$$($(TOOL) gofumpt -l .) && [ -z "$$unformatted" ] || { echo "make fmt would change: $$unformatted"; exit 1; }
linters:
	$(TOOL) golangci-lint run ./...

.PHONY: fmt
fmt: ## format and modernise the source
	go fix ./...
	$(TOOL) gofumpt -w .

.PHONY: corpus
corpus: ## break the engine in 28 ways, and see the drill tell of each
	go run ./mutants drill

FUZZTIME ?= 10s
.PHONY: fuzz
fuzz: install ## run each fuzz test for FUZZTIME
	@go list ./... | while read -r package; do \
		for target in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" || exit 1; \
		done; \
	done

OPERATIONS ?= 20000
RUNS ?= 3000
SEED ?= 0
.PHONY: soak
soak: install ## break 20,000 operations in every way for a quarter of an hour, and count
	go test -count=1 -timeout=0 -v -skip SoakRuns ./soak -operations $(OPERATIONS) -during 5m -seed $(SEED) -results results

.PHONY: soak-runs
soak-runs: install ## break 3,000 runs in every way for ten minutes, and count
	go test -count=1 -timeout=0 -v -run SoakRuns ./soak -runs $(RUNS) -during 4m -seed $(SEED) -results results

.PHONY: soak-short
soak-short: install ## do the same with 1,000 operations and 200 runs in two minutes
	go test -count=1 -v ./soak -operations 1000 -runs 200 -during 20s -seed $(SEED)

.PHONY: bench
bench: install ## measure
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: generate
generate: ## rebuild generated files
	go generate ./...

.PHONY: tidy-check
tidy-check: ## fail when go.mod or go.sum is not what the source needs
	go mod tidy -diff

.PHONY: help
help: ## list these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14
