// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/result"
)

// storageDevice is the number of the first RDMA device on the storage fabric.
const storageDevice = 10

// twoFabrics has n nodes with rails 0 and 1 on fabric rail, and rails 0 and 1 on
// fabric storage, at the given speeds in Gb/s; 0: not known.
func twoFabrics(n int, compute, storage unit.BitRate) *inventory.Inventory {
	inv := site(n, 2)
	hw := inv.Nodes[0].Hardware
	f := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "storage"}, Rails: 2}
	hw.NICs[0].Speed = compute * 1e9
	hw.NICs = append(hw.NICs, inventory.NIC{Name: "storage", Speed: storage * 1e9, Fabric: f, Ports: []inventory.NICPort{{Rail: 0, PCI: "0000:29:00.0"}, {Rail: 1, PCI: "0000:82:00.0"}}})
	inv.Fabrics = append(inv.Fabrics, f)
	return inv
}

// TestTwoFabrics: rail 0 of storage and rail 0 of the GPUs' fabric are distinguished.
func TestTwoFabrics(t *testing.T) {
	t.Parallel()
	only := func(node string, device int, rate float64) func(string, string, int, int) float64 {
		return func(from, to string, d, _ int) float64 {
			if d == device && (from == node || to == node || node == "") && from != to {
				return rate
			}
			return 12
		}
	}
	for _, c := range []struct {
		name             string
		compute, storage unit.BitRate
		speed            func(from, to string, device, try int) float64
		want, cause      string
		part             string // of a bad result
	}{
		{"storage is slow on one node", 400, 200, only("n2", storageDevice, 0.5), "n2 rail 0 of storage", "over n2 rail 0 of storage are slow", "rail 0 of storage"},
		{"the GPUs' rail is slow on one node", 400, 200, only("n2", 0, 0.5), "n2 rail 0", "over n2 rail 0 are slow", "rail 0"},
		{"it is unknown which is the GPUs' fabric", 0, 0, only("n3", 1, 0.5), "n3 rail 1 of rail", "over n3 rail 1 of rail are slow", "rail 1 of rail"},
		{"a switch of storage", 400, 200, only("", storageDevice+1, 0), "storage what rail 1 of storage of all nodes shares", "fail", "rail 1 of storage"},
		{"a path over storage", 400, 200, func(from, to string, d, _ int) float64 {
			if from == "n1" && to == "n2" && d == storageDevice {
				return 1
			}
			return 12
		}, "storage path between n1 and n2, rail 0 of storage", "both nodes are good with others", "rail 0 of storage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run := pairsOfTwo(t, twoFabrics(4, c.compute, c.storage), c.speed)
			if got := suspects(run.Findings); got != c.want || !strings.Contains(run.Findings[0].Cause, c.cause) {
				t.Errorf("suspects %q, want %q: %+v", got, c.want, run.Findings)
			}
			for _, r := range report(t, run, result.PairReport, "all").Results {
				if r.Verdict == result.Fail && r.Part != c.part {
					t.Errorf("%v: %s is bad, and only %s was spoiled", r.Nodes, r.Part, c.part)
				}
			}
		})
	}
}

// pairsOfTwo runs the pair test of a site with two fabrics, whose rails carry what
// speed says.
func pairsOfTwo(t *testing.T, inv *inventory.Inventory, speed func(from, to string, device, try int) float64) *onnodetest.Run {
	w := newWorld(inv)
	w.speed = speed
	run := newRun(t, w.inv)
	for _, n := range w.inv.Nodes {
		me, ports := subject.OfNode(n.Name), []fabric.Port{}
		for r := range 2 {
			ports = append(ports, fabric.Port{Rail: r, Netdev: fmt.Sprintf("storage%d", r), Device: fmt.Sprintf("rxe%d", storageDevice+r), GIDIndex: 1})
		}
		f, err := fabric.Ports("storage").New(me, ports, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Learn(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if err := validate.New(w.inv, w).Apply(t.Context(), run, steps(t, w.inv)["all/validate.pair"]); err != nil {
		t.Fatal(err)
	}
	return run
}

// TestTwoSpeeds: each rail has to carry what its own links can, where the site asks
// no less of those of the GPUs.
func TestTwoSpeeds(t *testing.T) {
	t.Parallel()
	const compute, storage = 45_000, 22_500 // MiB/s of good links at 400 and 200 Gb/s
	for _, c := range []struct {
		name, limit, slow string
		want              string
	}{
		{"no limit, all good", "", "", ""},
		{"no limit, a rail of the GPUs as slow as one of storage", "", "n2", "n2 rail 0"},
		{"a limit for the GPUs' rails, all good", "45GB/s", "", ""},
		{"a limit for the GPUs' rails, one slower", "45GB/s", "n2", "n2 rail 0"},
		{"a low limit, and one slower than its like", "3MB/s", "n2", "n2 rail 0"},
		{"a low limit, all good", "3MB/s", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := twoFabrics(4, 400, 200)
			v := inv.Nodes[0].Validation
			v.Limits = v.Limits[:1]
			if c.limit != "" {
				v.Limits = append(v.Limits, inventory.MeasureLimit{Name: "rdma.write_bw", AtLeast: floor(c.limit), Decl: line(51)})
			}
			run := pairsOfTwo(t, inv, func(from, to string, device, _ int) float64 {
				switch {
				case device >= storageDevice:
					return storage
				case device == 0 && (from == c.slow || to == c.slow) && from != to:
					return storage
				}
				return compute
			})
			if got := suspects(run.Findings); got != c.want {
				t.Errorf("suspects %q, want %q: %+v", got, c.want, run.Findings)
			}
			for _, r := range report(t, run, result.PairReport, "all").Results {
				if r.Limit == "" {
					t.Errorf("%v %s has no limit", r.Nodes, r.Part)
				}
			}
		})
	}
}

// TestAllReduceOverOneOfTwoFabrics: which fabric the all-reduce goes over is said where
// several would do, and not where one does.
func TestAllReduceOverOneOfTwoFabrics(t *testing.T) {
	t.Parallel()
	inv := twoFabrics(4, 0, 0)
	plans := func() string {
		_, diags := validate.New(inv, nil).Plan(onnodetest.NewRun())
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return diags.Error()
	}
	if text := plans(); strings.Contains(text, "storage") {
		t.Errorf("a fabric without addresses may carry it: %s", text)
	}
	inv.Fabrics[1].CIDR = netip.MustParsePrefix("10.78.0.0/20")
	if text := plans(); !strings.Contains(text, `goes over fabric "rail" alone, the first by name. No figure of it is of "storage"`) {
		t.Errorf("got %s", text)
	}
}
