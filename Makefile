# Everything is built static and without cgo; only the race detector uses it.
GO      ?= go
BIN     := bin
LDFLAGS := -s -w
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0

.PHONY: build demo test test-setup lint bench bench-plan bench-scale fuzz nightly crash hostile lab lab-image lab-full drivers-lab clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/ironrail ./cmd/ironrail-agent ./cmd/ironrail-lab

# A scalable unit of 32 DGX H100 that does not exist, from power-off to its
# scheduler, with four faults.
demo: build
	$(BIN)/ironrail -C examples/h100-su rehearse --faults examples/h100-su/faults/first-day.hcl

# As root, installs the packages that real peers need; else says what is left out.
test-setup: build
	@sh examples/lab/setup.sh test

# Rehearsals are ten times slower under the race detector: RACED run under it, the
# others without, as do tests that rehearse by the command line or do one thing only,
# and long ones that start no goroutine. The memory of rehearsals is small: collecting
# it less often saves a tenth of their time.
SLOW := provision/rehearsal cmd/ironrail docs tool/recognise examples/csv-12500/generate fabric/topology
RACED := ^TestExamples$$/^hgx-h100$$|^TestCrashAtRecords$$|^TestLateJoiners$$|^TestStopAfterTwo$$|^TestRebuildUnderJobs$$|^TestInfiniBand$$|^TestTripOfTheOnlyFeed$$|^TestLoopback

test: test-setup
	$(GO) test -race -timeout 30m $$($(GO) list ./... | grep -Fvx "$$($(GO) list $(SLOW:%=./%))")
	GOGC=400 $(GO) test -race -timeout 30m -run '$(RACED)' ./provision/rehearsal
	GOGC=400 $(GO) test -timeout 30m -skip '$(RACED)' $(SLOW:%=./%)

lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "gofmt: $$out"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags labfull ./examples/lab/...
	$(GO) vet -tags hostile ./provision
	$(GO) vet -tags driversfull ./images/driver/...
	$(GO) run $(STATICCHECK) ./...
	$(GO) test -count=1 .

bench: build
	$(GO) test -run '^$$' -bench . -benchtime 1s ./inventory/... ./fabric/... ./draw/... ./provision/...

# Plans of 12,500 nodes as processes; where OpenTofu can be built, its plans beside
# them, which do not end in their ten minutes at that size: give a smaller one.
PLAN_NODES ?= 12500
bench-plan: build
	@sh bench/opentofu.sh $(BIN)/ironrail $(PLAN_NODES)

# A rehearsal of 16 nodes with faults, stopped at every record of its journal, and
# 30 times by SIGKILL: about half an hour.
crash:
	$(GO) test -count=1 -timeout 90m -parallel 6 -run '^TestCrash' ./provision/rehearsal -args -crash=all

# Every fuzz target until it has tried 100,000 inputs (slow ones 10,000), a tenth of
# them with SHARE=3/10; it fails where one finds something or tries fewer.
SHARE ?= 1/1
INPUTS ?= 100000
fuzz:
	$(GO) run ./bench/fuzz -of $(SHARE) -inputs $(INPUTS)

# What CI has no time for: all fuzz targets, and a rehearsal that is killed at every
# record of its journal.
nightly: fuzz crash

# A hundred nodes boot over real sockets under floods of their neighbours: as root,
# a few minutes.
hostile:
	$(GO) test -tags hostile -count=1 -timeout 15m -v -run '^TestHostile$$' ./provision

# 128, 1,024 and 4,096 nodes from cold to accepted, and 1,024 with the driver of
# their GPUs and one all-reduce over all of these.
bench-scale: build
	@sh examples/scale/scale.sh $(BIN)/ironrail 128 1024 1024:gpu 4096

# Two machines from power-off to accepted, with real firmware, BMCs and Linux.
lab: build
	@sh examples/lab/lab.sh

# The lab's image and driver repository alone; they are kept by the digest of
# their recipe.
lab-image: build
	@sh examples/lab/setup.sh lab
	$(BIN)/ironrail -C examples/lab image build

# Every failure and every kill of the lab, one after another: about an hour.
lab-full: lab-image
	@sh examples/lab/full.sh

# Driver packages of Debian 12, really built, in root file systems: ten minutes or
# more, as root, with a Debian mirror in reach.
drivers-lab:
	$(GO) test -tags driversfull -count=1 -timeout 60m -v -run '^TestPeerDebian' ./images/driver/stack

clean:
	rm -rf $(BIN)
