# Targets are for people and for .ci/run alike. Go is all they need; tests against Redis and a browser need
# scripts/services too, and say so when they are skipped.

GO ?= go

# The workloads of `go run ./bench`, each with its own flags beside these defaults.
BENCHES := ingest lookup loaded disk surge

# Packages whose goroutines share memory.
RACE := ./internal/ring/... ./internal/eventlog/... ./internal/state/... ./internal/counter/... \
	./internal/api/... ./internal/resp/... ./server/...

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## run a node with generated ad traffic on a temporary folder
	bin/weir demo

.PHONY: build
build: ## build bin/weir
	$(GO) build -trimpath -o bin/weir ./cmd/weir

.PHONY: test
test: ## all tests; the rules of internal/lint, vet and staticcheck are among them
	$(GO) vet ./...
	$(GO) test -timeout 20m ./...

.PHONY: race
race: ## the tests of packages whose goroutines share memory, under the race detector
	$(GO) test -race -timeout 30m $(RACE)

.PHONY: check
check: ## the rules alone, in seconds once built: format, vet, staticcheck, internal/lint
	$(GO) test -count=1 ./internal/lint

.PHONY: fmt
fmt: ## format all Go files
	gofmt -w .

.PHONY: soak
soak: ## the long loops: crashes, surges, random histories; takes hours
	WEIR_SOAK=1 $(GO) test -count=1 -timeout 24h ./...

.PHONY: bench
bench: ## measure this machine; the figures to compare with are in bench/results
	@set -e; for workload in $(BENCHES); do $(GO) run ./bench $$workload; done
