# candid's commands. `make demo` and `make test` work on a fresh Debian machine
# with only Go and make: they install what they need.

export CGO_ENABLED = 0
# Without paths in what is built, a new clone finds in Go's cache what another one has built and vetted.
export GOFLAGS = -buildvcs=auto -trimpath
CACHE ?= $(HOME)/.cache/candid-runtimes
export CANDID_RUNTIMES = $(CACHE)

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS := -s -w -X main.release=$(VERSION)
PLATFORMS := linux/amd64 linux/arm64 windows/amd64 windows/arm64 darwin/arm64

.PHONY: all candid zip demo quick test test-full check check-full vet tidy bench oracle fuzz vuln lint build generate check-generate web clean

all: candid

# The binary for this machine.
candid:
	go build -ldflags '$(LDFLAGS)' -o candid ./cmd/candid

# candid.exe with its licence and its pages, for people who use Windows.
zip:
	rm -rf dist/candid-windows-amd64 && mkdir -p dist/candid-windows-amd64
	GOOS=windows GOARCH=amd64 go build -ldflags '$(LDFLAGS)' -o dist/candid-windows-amd64/candid.exe ./cmd/candid
	cp LICENSE docs/windows.md docs/dotnet.md dist/candid-windows-amd64/
	cd dist && rm -f candid-windows-amd64.zip && python3 -m zipfile -c candid-windows-amd64.zip candid-windows-amd64

# Profile a real Java program (javac on the JDK's own sources), write a flame
# graph, print where the time went.
demo:
	scripts/demo.sh

# The inner loop: build, vet, and the unit tests of the packages that look at no process.
quick:
	go build ./...
	go vet ./...
	scripts/go-test.sh quick

# Install what the tests need and run every test, the long ones on a few configurations.
# If all of it is installed, a test that lacks something fails; otherwise the test is
# skipped and says what it lacks.
test:
	@if scripts/install-test-deps.sh; then export CANDID_TEST_INSTALLED=1; fi; $(MAKE) --no-print-directory check

# Every test on all configurations: each JDK with each of its flags, storms, soaks, the
# long run of the oracle.
test-full:
	@if scripts/install-test-deps.sh full; then export CANDID_TEST_INSTALLED=1; fi; $(MAKE) --no-print-directory check-full

# make test without installing anything.
check: vet tidy
	scripts/test-web.sh
	scripts/go-test.sh

check-full: vet tidy
	scripts/test-web.sh
	CANDID_FULL=1 scripts/go-test.sh

# go.mod and go.sum match the imports.
tidy:
	go mod tidy -diff

# The code is formatted, and compiles and is vetted for every platform.
vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	@for p in $(PLATFORMS); do echo "go vet for $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} go vet ./... || exit 1; done

# The figures of the README, measured here. BENCH takes flags: make bench BENCH='-only truth -quick'
bench: candid
	-scripts/install-test-deps.sh bench
	go run ./bench $(BENCH)
	go test -run '^$$' -bench ProgramCost -benchtime 2000x ./internal/capture/bpfcopy
	go test -run '^$$' -bench IdleThreads -benchtime 1x ./internal/capture/suspend

# The long run of the single-step oracle; with ORACLE=20000 it steps that many
# instructions of each configuration instead.
ORACLE ?= full
oracle:
	-scripts/install-test-deps.sh
	CANDID_ORACLE=$(ORACLE) go test -count=1 -timeout 120m -v -run 'Oracle|EveryInstruction' ./internal/hotspot ./internal/native

# Every fuzz target in turn, FUZZTIME each; FUZZ is an expression for their names. It ends with the
# sum of all runs so far.
FUZZTIME ?= 30s
FUZZ ?= .
fuzz:
	scripts/fuzz.sh $(FUZZTIME) '$(FUZZ)'

# Known vulnerabilities in what candid uses and calls; asks vuln.go.dev.
vuln:
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

lint: vet
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

# Every platform, into dist/.
build:
	@mkdir -p dist
	@for p in $(PLATFORMS); do \
	  out=dist/candid-$${p%/*}-$${p#*/}; case $$p in windows/*) out=$$out.exe;; esac; \
	  echo "$$out"; GOOS=$${p%/*} GOARCH=$${p#*/} go build -ldflags '$(LDFLAGS)' -o $$out ./cmd/candid || exit 1; done

# The BPF objects, from their C sources (needs clang).
generate:
	go generate ./internal/capture/...

# The committed objects are the ones that the sources produce.
check-generate: generate
	git diff --exit-code -- internal/capture

# The page, from web/ (needs node).
web:
	cd web && npm ci --no-audit --no-fund && npm run build

clean:
	rm -rf candid dist
