# Everything is built static and without cgo; only the race detector uses it. Programs,
# tests and linters share what is compiled, so that all are built with the same flags.
# Nothing for debuggers is compiled, since nothing of it is linked: stack traces have
# their lines without it, and an eighth of the compiler's time goes with it.
GO      ?= go
GOFLAGS := $(filter-out -trimpath -gcflags%,$(shell $(GO) env GOFLAGS)) -trimpath -gcflags=all=-dwarf=false
CGO_ENABLED := 0
export GOFLAGS CGO_ENABLED
BIN     := bin
# The version of the last tag, with the commits since; nothing before the first tag or
# outside of a repository. It follows from the commit and its tags alone: the same
# commit gives the same bytes.
VERSION := $(shell git describe --tags --match 'v[0-9]*' --abbrev=12 2>/dev/null)
LDFLAGS := -s -w $(VERSION:%=-X main.release=%)
# Nodes may have other processors than the controller: their agent is ironrail-agent-ARCH.
OTHER   := $(filter-out $(shell $(GO) env GOARCH),amd64 arm64)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0

.PHONY: build demo docs packages check check-tests tests race long peers peers-tests test test-setup lint vet staticcheck bench bench-plan bench-scale bench-boot bench-write fuzz nightly race-whole large crash repeats score hostile lab lab-image lab-short lab-full lab-real drivers-lab stay disaster clean

build:
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/ironrail ./cmd/ironrail-agent ./cmd/ironrail-lab
	GOARCH=$(OTHER) $(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/ironrail-agent-$(OTHER) ./cmd/ironrail-agent

# A scalable unit of 32 DGX H100 that does not exist, from power-off to its
# scheduler, with four faults.
demo: build
	$(BIN)/ironrail -C examples/h100-su rehearse --faults examples/h100-su/faults/first-day.hcl

# What documents have of the program, made anew: tables, pictures, outputs, pages of checks.
docs: build
	$(GO) test -vet=off ./draw ./docs ./docs/checks -args -update
	$(GO) test -vet=off -run '^TestPeerReview$$' ./web/server -args -shots $(CURDIR)/docs/serve

# What users install, in a new folder: packages of dpkg and rpm, archives, an OCI image,
# checksums. KEY=FILE signs them with a secret key of minisign.
DIST ?= dist
packages:
	$(GO) run ./cmd/ironrail-release -out $(DIST) $(KEY:%=-key %)

# As root, installs the packages that real peers need; else says what is left out.
test-setup: build
	@sh examples/lab/setup.sh test

# Tests have three tiers. None decides by wall time; the time of each is printed.
#
#   check   formats, vet, staticcheck, the rules of the sources, and every test that
#           neither rehearses nor needs a program of others; long ones shorten themselves
#   tests   what check left out or shortened (TestLong... by name), and under the race
#           detector, shortened, the engine, the services of a run and the clients of
#           hardware, with one rehearsal, which is ten times slower under it; make
#           nightly has all of it
#   peers   tests that ask programs of others: TestPeer... by name
#
# The memory of rehearsals is small: collecting it less often saves a tenth of their time.
# Tests that wait leave the processors to others: more run at once than there are. The
# compiler obeys GOGC as well: a seventh of its time goes with it.
TIER   := sh bench/tier.sh
GOTEST  = env GOGC=400 $(GO) test -vet=off -ldflags='-s -w' -timeout 60m -p 4 -parallel 8
BELOW  := ./internal ./engine $(addprefix ./provision/,adopt agent bmc drift handover hub install netboot observe pdu remote) ./rehearse/integration ./rehearse/virtual ./validate ./cmd/ironrail-lab
WHOLE  := ./provision $(BELOW:%=%/...) ./fabric/cabling ./images/store ./images/internal/tool
# The folders of files in which something is found.
with    = $(sort $(dir $(addprefix ./,$(shell git grep --untracked -lE '$(1)' -- '$(2)'))))
SHARED := ./provision/ ./internal/% ./engine/% $(addprefix ./provision/,adopt/% agent/% bmc/% hub/% netboot/% observe/% pdu/% remote/% services/%) ./rehearse/integration/bmc/
RACE    = $(filter $(SHARED),$(call with,"sync(/atomic)?"|"testing/synctest"|\bgo func,*.go))
LONG    = $(call with,^func TestLong,*_test.go)
PEERS   = $(call with,^func TestPeer,*_test.go)
BESIDE := ./provision/bmc/ ./provision/remote/
SHARING := ^TestExamples$$/^hgx-h100$$

check:
	@$(TIER) check $(MAKE) --no-print-directory -j2 staticcheck check-tests

check-tests: vet
	$(GOTEST) -short -skip '^TestPeer' $$($(GO) list ./... | grep -vFx "$$($(GO) list . ./rehearse/rehearsal)")

tests:
	@$(TIER) tests $(MAKE) --no-print-directory race long

# PART=1/2 takes the rehearsals and the packages under the race detector by halves, for a
# machine that has no time for all of them.
PART ?= 1/1
part = $(shell $(1) | sh bench/part.sh $(PART))
REHEARSALS = $(call part,git grep --untracked -hoE '^func Test[A-Za-z0-9_]+' -- 'rehearse/rehearsal/*_test.go' | sed 's/^func //; /^TestMain$$/d; /^TestPeer/d')
none  :=
space := $(none) $(none)

race: export CGO_ENABLED := 1
race:
	$(GOTEST) -race -short -skip '^TestPeer' $(call part,printf '%s\n' $(RACE))
	$(GOTEST) -race -run '$(SHARING)' ./rehearse/rehearsal

long:
	$(GOTEST) -run '^TestLong' $(LONG)
	$(GOTEST) -parallel 4 -run '^($(subst $(space),|,$(REHEARSALS)))$$' ./rehearse/rehearsal

peers: test-setup
	@$(TIER) peers $(MAKE) --no-print-directory peers-tests

peers-tests:
	CGO_ENABLED=1 $(GOTEST) -race -run '^TestPeer' $(BESIDE)
	$(GOTEST) -run '^TestPeer' $(filter-out $(BESIDE),$(PEERS))

test: check tests peers

lint: vet staticcheck

vet: export GOGC = 400
vet:
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "gofmt: $$out"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags labfull ./examples/lab/...
	$(GO) vet -tags hostile ./provision
	$(GO) vet -tags driversfull ./images/compile ./images/driver/... ./images/rhel ./images/ubuntu
	$(GO) test -count=1 .

# It compiles nothing of what it reads, so that tests are compiled beside it.
staticcheck: vet
	GOGC=800 $(GO) run $(STATICCHECK) ./...

bench: build
	$(GO) test -run '^$$' -bench . -benchtime 1s ./inventory/... ./fabric/... ./draw/... ./engine/... ./provision/... ./tool/recognise ./rehearse/... ./bench/...

# Plans of 12,500 nodes as processes; where OpenTofu can be built, its plans beside
# them, which do not end in their ten minutes at that size: give a smaller one.
PLAN_NODES ?= 12500
bench-plan: build
	@sh bench/opentofu.sh $(BIN)/ironrail $(PLAN_NODES)

# Processor time of writing an image and reading it back, beside that of version one.
bench-write:
	@sh bench/write.sh

# CPU time of the boot services beside nginx (HTTP), dnsmasq (TFTP) and Kea (DHCP): as root, with
# nginx-light, dnsmasq-base and kea-dhcp4-server, five minutes.
bench-boot:
	@sh bench/bootservers.sh

# A rehearsal of 16 nodes with faults, stopped at every record of its journal, and
# 30 times by SIGKILL; and one of 64 nodes whose controller is lost 20 times beside a second
# one, with the state in etcd: about an hour.
crash:
	$(GO) test -count=1 -timeout 120m -parallel 6 -run '^(TestCrash|TestPeerControllersLost)' ./rehearse/rehearsal -args -crash=all

# Faults at random places, judged by a scorer that knows neither what simulates nor what
# detects: each kind alone at two places of four sites, 100 pairs and 50 triples. It names
# each run that is not whole. SEED=7 draws others.
SEED ?= 1
score: build
	$(GO) run ./bench/score -seed $(SEED) -sites examples/hgx-h100,examples/mi300x-roce,examples/h100-su,examples/nvl72
	$(GO) run ./bench/score -seed $(SEED) -together 2 -runs 100 -sites examples/mi300x-roce,examples/h100-su
	$(GO) run ./bench/score -seed $(SEED) -together 3 -runs 50 -sites examples/mi300x-roce,examples/h100-su

# Two rehearsals, 20 times and more, on busy processors and on idle ones.
repeats:
	$(GO) test -count=1 -timeout 90m -run '^TestSameSeed' ./rehearse/rehearsal -args -repeats=all

# Every fuzz target until it has tried 100,000 inputs (slow ones 10,000), a tenth of
# them with SHARE=3/10; it fails where one finds something or tries fewer.
SHARE ?= 1/1
INPUTS ?= 100000
fuzz:
	$(GO) run ./bench/fuzz -of $(SHARE) -inputs $(INPUTS)

# What CI has no time for: all fuzz targets, a rehearsal that is killed at every
# record of its journal, two that are repeated with the same seed, large ones, and
# what is shortened under the race detector, whole.
nightly: fuzz crash repeats large race-whole stay disaster

# The disk of the controller is lost at 28 records of a bring-up of 128 nodes and at 2 of one
# of 1,024, and its state put back from a copy.
disaster:
	$(GO) test -count=1 -timeout 120m -v -run '^TestDiskLost$$' ./rehearse/rehearsal -args -losses=28 -loss-nodes=128
	$(GO) test -count=1 -timeout 120m -v -run '^TestDiskLost$$' ./rehearse/rehearsal -args -losses=2 -loss-nodes=1024

# An hour of serve on a virtual rack, four weeks by its clock: nothing grows.
stay:
	$(GO) test -count=1 -timeout 90m -v -run '^TestLongServeStays$$' ./cmd/ironrail -args -stay=1h

# 1,024 nodes with 20 faults of different kinds, judged by the scorer; an all-reduce over
# 512 nodes, each kind of fault in whole example sites, a bad image for 128 nodes, and each
# sample of a tool cut at 40 places and in 21 documents.
large:
	$(GO) test -count=1 -timeout 90m -v -run '^TestLargeFaults$$' ./bench/score -args -large=1024 -faults=20
	$(GO) test -count=1 -timeout 90m -run '^TestLargeAllReduce$$' ./rehearse/rehearsal -args -large=512
	$(GO) test -count=1 -timeout 90m -run '^Test(ExampleFaults|NVL72|BadImageCostsOneNode)$$' ./rehearse/rehearsal -args -whole
	$(GO) test -count=1 -timeout 90m -run '^Test(Torn|Long)Samples$$' ./tool/recognise -args -cuts=all

race-whole:
	CGO_ENABLED=1 $(GOTEST) -race -skip '^TestPeer' $(WHOLE)
	CGO_ENABLED=1 $(GOTEST) -race -short -skip '^Test(Peer|LongScripts$$|FirstSites$$)' ./cmd/ironrail ./inventory/language

# A hundred nodes boot over real sockets under floods of their neighbours: as root,
# a few minutes.
hostile:
	$(GO) test -tags hostile -count=1 -timeout 15m -v -run '^TestHostile$$' ./provision

# 128, 1,024 and 4,096 nodes from cold to accepted, and 1,024 with the driver of
# their GPUs and one all-reduce over all of these. SCALE="1024 12500" rehearses others.
SCALE ?= 128 1024 1024:gpu 4096
bench-scale: build
	@sh examples/scale/scale.sh $(BIN) $(SCALE)

# Two machines from power-off to accepted, with real firmware, BMCs and Linux.
lab: build
	@sh examples/lab/lab.sh

# The lab's image and driver repository alone; they are kept by the digest of
# their recipe.
lab-image: build
	@sh examples/lab/setup.sh lab
	$(BIN)/ironrail -C examples/lab image build

# Two cases of the lab: one kill amid a write, and two BMCs that are exchanged.
# Debian 12 on one ext4 disk; with CUT=TestCut on a mirror of two with XFS, swap and a data disk.
CUT ?= TestKill
lab-short: lab-image
	$(GO) test -count=1 -v -timeout 60m -tags labfull -run '^($(CUT)|TestSwappedBMCs)$$/^write$$' ./examples/lab

# Every failure, every kill and every system of the lab, one after another: some hours.
# LAB_RESUME=1 leaves out what has passed with the same programs.
lab-full: lab-image
	@sh examples/lab/full.sh

# Disk images as vendors publish them for clouds, from power-off to accepted: those that
# the environment names, by LAB_REAL_UBUNTU and LAB_REAL_UBUNTU_CHECKSUM and others of
# docs/raw.md.
lab-real:
	@env | grep -q '^LAB_REAL_[A-Z]*=.' || { echo "no image is named: set LAB_REAL_UBUNTU and LAB_REAL_UBUNTU_CHECKSUM, or others of docs/raw.md" >&2; exit 1; }
	@$(MAKE) --no-print-directory lab-image
	@sh examples/lab/full.sh -run '^TestReal$$'

# Driver packages of Debian 12, really built, in root file systems: ten minutes or
# more, as root, with a Debian mirror in reach.
drivers-lab:
	$(GO) test -tags driversfull -count=1 -timeout 60m -v -run '^TestPeer(Debian|LikeRHEL)' ./images/driver/stack
	$(GO) test -tags driversfull -count=1 -timeout 60m -v -run '^TestPeerCompile|^TestPeerModules' ./images/compile
	$(GO) test -tags driversfull -count=1 -timeout 60m -v -run '^TestPeerLikeUbuntu' ./images/ubuntu
	$(GO) test -tags driversfull -count=1 -timeout 60m -v -run '^TestPeerLikeRHEL' ./images/rhel
	$(GO) test -tags driversfull -count=1 -timeout 60m -v -run '^TestPeerChecksum' ./images/driver/tools

clean:
	rm -rf $(BIN)
