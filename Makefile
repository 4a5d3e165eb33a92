# Every target works with nothing in the environment but PATH and HOME.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Options of `kith serve`: make run ARGS="--addr 127.0.0.1:9090"
ARGS ?=
# What to measure: make bench runs kith bench, with its flags (ARGS="--engines sqlite");
# make bench PKG=./storage/... BENCH=Followings runs Go benchmarks.
PKG ?=
BENCH ?= .

# In a checkout that belongs to another user (a CI volume), git refuses to work, and then
# the go command fails. So the revision is linked in below, if git knows it.
# No data for debuggers: without them the compiler takes a tenth less. Stack traces and profiles do not need them.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -buildvcs=false -gcflags=all=-dwarf=false)

# What the program reports as its version (kith version): from git if there is git, or as given.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null | sed 's/^v//')
REVISION ?= $(shell git describe --always --abbrev=12 --exclude '*' --dirty 2>/dev/null)
LDFLAGS = -s -w -X kith/cli.version=$(VERSION) -X kith/cli.revision=$(REVISION)

GOLANGCI_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.3.0
GOLANGCI := bin/golangci-lint-$(GOLANGCI_VERSION)
GORELEASER_VERSION := v2.16.0
GORELEASER := bin/goreleaser-$(GORELEASER_VERSION)/goreleaser
CYCLONEDX_VERSION := v1.10.0
CYCLONEDX := bin/cyclonedx-$(CYCLONEDX_VERSION)/cyclonedx-gomod

.PHONY: help run up build assets web ready test test-race test-clients test-all test-engines stress mutate bench fuzz generate verify lint vulncheck picture release release-check clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## the gateway on the embedded store, with a demo graph (ARGS="--addr HOST:PORT")
	@GOGC=400 go build $(QUICK) -ldflags "$(LDFLAGS) -X 'kith/web.checkout=$(CURDIR)/web/assets'" -o bin/ .
	@scripts/web.sh & exec bin/kith serve --demo --admin-addr 127.0.0.1:8081 $(ARGS)

up: build ## two gateways, a replicator, an auditor, two MariaDB, Redis and Prometheus, until Ctrl-C (PORT=8080 of the first, FOLDER= for the data)
	@exec env PORT='$(PORT)' FOLDER='$(FOLDER)' scripts/up.sh

build: assets ## the program, as bin/kith, and what kith bench needs beside it
	$(BUILD) .
	$(BUILD_BENCH)

# The compiler spends a fifth of its time collecting garbage if nothing is said.
BUILD := GOGC=400 go build -ldflags "$(LDFLAGS)" -o bin/
BUILD_BENCH := GOGC=400 go build -C bench -ldflags "$(LDFLAGS)" -o ../bin/ ./kith-bench
# What tests and checks see: every module of the tree.
MODULES := GOWORK="$(CURDIR)/tests.work"

# make run compiles in half the time what the demo asks little of: Kith without inlining, and three libraries without any optimisation
# (docs/inside/adr/0069-what-a-build-takes.md).
QUICK := -gcflags=all=-dwarf=false $(foreach p,github.com/redis/go-redis/v9 google.golang.org/protobuf go.opentelemetry.io/otel, \
	-gcflags='$(p)/...=-N -l -dwarf=false') -gcflags='./...=-l -dwarf=false'

# GraphiQL and the app, if npm can get them; without them Kith serves plain pages.
assets:
	@if [ -x scripts/web.sh ]; then scripts/web.sh || true; fi

web: ## GraphiQL and the app at /app, from npm; fails without it
	scripts/web.sh --require

test: ready ## everything a change must pass, on real servers
	@scripts/test.sh

# What tests need. The first time, the libraries are compiled while all of that comes over the network.
ready:
	@[ -d bin/test ] || (GOGC=400 $(MODULES) go build $$($(MODULES) go list -deps -test -f $(LIBRARIES) work)) >/dev/null 2>&1 & \
	$(MAKE) --no-print-directory assets && scripts/install-test-deps.sh; status=$$?; wait; exit $$status
LIBRARIES := '{{with .Module}}{{if not (or .Main (eq $$.Name "main"))}}{{$$.ImportPath}}{{end}}{{end}}'

test-race: ready ## the tests of concurrent packages once more, under the race detector
	@scripts/test.sh race

test-clients: ready ## Kith with large programs from npm: routers of Federation 2, tools that write manifests, the schema by graphql-eslint and -inspector, recipes for Relay and Hive, axe on the app (a minute or two the first time)
	@scripts/test.sh clients

test-all: ready ## test and test-race, with the long tests (TIMEOUT=120m for a package)
	@KITH_TEST_LONG=1 TIMEOUT=$(or $(TIMEOUT),120m) scripts/test.sh
	@KITH_TEST_LONG=1 TIMEOUT=$(or $(TIMEOUT),120m) scripts/test.sh race

# What to stress, and how often: make stress N=30 PKG=./gateway/...
stress: ## tests that fail by chance: each package N times (30), two runs at once, on 1, 2 and 8 processors
	@scripts/stress.sh $(or $(N),30) $(or $(PKG),work)

test-engines: ## what depends on the database server, on MySQL, MariaDB 11.8 and TiDB, too (SHORT=1, ENGINES="mysql", SUITES="plans")
	@scripts/install-test-deps.sh
	@ENGINES="$(ENGINES)" SUITES="$(SUITES)" scripts/test-engines.sh $(if $(SHORT),short)

mutate: ## breaks 100 places at random, one at a time, and lists those that no test notices (an hour)
	go run ./internal/mutate -n 25 -seed $(or $(SEED),1) ./social ./storage/cache/localcache ./storage/sqlstore ./replication

bench: ## kith bench (ARGS="--output json"); Go benchmarks (PKG=./storage/... BENCH=regexp)
ifeq ($(PKG),)
	$(BUILD) .
	$(BUILD_BENCH)
	bin/kith bench $(ARGS)
else
	$(MODULES) go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m $(PKG)
endif

fuzz: ## every fuzz test, one after another, each for FUZZTIME (30s)
	@scripts/fuzz.sh

generate: ## writes the generated code
	scripts/generate.sh

verify: ## generated code, gofmt, go.mod, files of deploy/
	@scripts/verify.sh

lint: $(GOLANGCI) ## go vet, staticcheck and more, by golangci-lint, built once (a minute or two)
	$(MODULES) $(GOLANGCI) run ./... ./bench/...

# Not in internal/tools/go.mod: it would add several hundred modules.
$(GOLANGCI):
	GOGC=400 GOBIN="$(CURDIR)/bin" go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv bin/golangci-lint $@

# Not there either: it needs newer modules than the other tools.
vulncheck: ## known vulnerabilities in what the code calls; asks vuln.go.dev
	$(MODULES) go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) ./... ./bench/...

picture: web ## takes the pictures of GraphiQL and of the app again (needs Chromium)
	KITH_TEST_PICTURE=1 go test ./docs -run '^TestPictureOfGraphiQL$$' -count=1
	KITH_TEST_PICTURE=1 go test ./internal/app -run '^TestPicturesForTheDocuments$$' -count=1

release: $(GORELEASER) $(CYCLONEDX) ## what .github/workflows/release.yml publishes for a tag: archives, packages, SBOMs, checksums, the chart
	PATH="$(RELEASE_PATH)" goreleaser release --clean

release-check: $(GORELEASER) $(CYCLONEDX) ## makes all of a release twice, compares, looks into it and runs it (VERSION=1.0.0); publishes nothing
	@PATH="$(RELEASE_PATH)" VERSION='$(if $(filter file,$(origin VERSION)),,$(VERSION))' scripts/release-check.sh

RELEASE_PATH = $(CURDIR)/$(dir $(GORELEASER)):$(CURDIR)/$(dir $(CYCLONEDX)):$$PATH

# Built once, like the linter.
$(GORELEASER):
	GOBIN="$(CURDIR)/$(@D)" go install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)

$(CYCLONEDX):
	GOBIN="$(CURDIR)/$(@D)" go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION)

clean: ## removes what was built; the stores in data/ stay
	rm -rf bin dist web/assets/graphiql web/assets/app
