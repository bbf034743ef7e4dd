# Everything is built static and without cgo; only the race detector uses it.
GO      ?= go
BIN     := bin
LDFLAGS := -s -w
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0

.PHONY: build demo test test-setup lint bench bench-scale crash lab lab-image lab-full clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/ironrail ./cmd/ironrail-agent ./cmd/ironrail-lab

# Two racks that do not exist, from power-off to accepted, with three faults.
demo: build
	$(BIN)/ironrail -C examples/demo rehearse --faults examples/demo/faults/three.hcl

# As root, installs the packages that real peers need; else says what is left out.
test-setup: build
	@sh examples/lab/setup.sh test

test: test-setup
	$(GO) test -race -timeout 30m ./...

lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "gofmt: $$out"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags labfull ./examples/lab/...
	$(GO) run $(STATICCHECK) ./...
	$(GO) test -count=1 .

bench: build
	$(GO) test -run '^$$' -bench . -benchtime 1s ./inventory/... ./fabric/... ./draw/... ./provision/...

# A rehearsal of 16 nodes with faults, stopped at every record of its journal, and
# 30 times by SIGKILL: about half an hour.
crash:
	$(GO) test -count=1 -timeout 90m -parallel 6 -run '^TestCrash' ./provision/rehearsal -args -crash=all

# 128, 1,024 and 4,096 nodes from cold to accepted.
bench-scale: build
	@sh examples/scale/scale.sh $(BIN)/ironrail 128 1024 4096

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

clean:
	rm -rf $(BIN)
