// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

func hw(serial, disk string, dimms ...string) wire.Hardware {
	h := wire.Hardware{Identity: wire.Identity{Serial: serial, Vendor: "V", Product: "P"}, Disks: []wire.Disk{{Name: "nvme0n1", Serial: disk}, {Name: "nvme1n1", Serial: "0000000000"}},
		NICs: []wire.NIC{{MAC: addr.MAC{2, 0, 0, 0, 0, 7}, PCI: "0000:18:00.0"}, {}}}
	for i, s := range dimms {
		h.Memory.Modules = append(h.Memory.Modules, wire.Module{Slot: fmt.Sprintf("A%d", i+1), Serial: s})
	}
	return h
}

func TestList(t *testing.T) {
	t.Parallel()
	var got []string
	for _, f := range List(hw("CH01", "DISK1", "D001", "TWICE", "TWICE", "Not Specified", "")) {
		got = append(got, f.Kind+" "+f.Serial+" "+f.Slot)
	}
	if s := strings.Join(got, "; "); s != "chassis CH01 ; dimm D001 A1; disk DISK1 nvme0n1; nic 02:00:00:00:00:07 0000:18:00.0" {
		t.Error(s)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	n := &inventory.Node{Hardware: &inventory.Hardware{NICs: []inventory.NIC{
		{Name: "rail", Fabric: &inventory.Fabric{}, Ports: []inventory.NICPort{{Rail: 0, PCI: "0000:aa:00.0"}, {Rail: 1, PCI: "0000:18:00.0"}}}}}}
	fits := List(hw("CH01", "DISK1", "D001", "D002"))
	for part, want := range map[string]string{
		"disk nvme0n1 (SAMSUNG DISK1)": "DISK1", "disk os": "DISK1", "DIMM A2": "D002", "DIMM": "CH01", "GPU": "CH01",
		"boot NIC 02:00:00:00:00:07": "02:00:00:00:00:07", "rail 1, sending": "02:00:00:00:00:07", "rail 1": "02:00:00:00:00:07",
		"rail 0": "", "nic rail/1 (port 2)": "02:00:00:00:00:07", "rail 11": "", "identity": "", "BMC": "", "": "", "all rails": "", "what rail 1 of all nodes shares": "",
	} {
		if s := serials(Resolve(fits, part, n)); s != want {
			t.Errorf("%q is %q, want %q", part, s, want)
		}
	}
}

func serials(fits []Fit) string {
	var got []string
	for _, f := range fits {
		got = append(got, f.Serial)
	}
	return strings.Join(got, " ")
}

// TestResolveRailOfTwoFabrics: the NIC of a rail that two fabrics have is not that of
// the fabric that stands first.
func TestResolveRailOfTwoFabrics(t *testing.T) {
	t.Parallel()
	nic := func(fabric, pci string) inventory.NIC {
		f := &inventory.Fabric{}
		f.Name = fabric
		return inventory.NIC{Name: fabric + "-nic", Fabric: f, Ports: []inventory.NICPort{{Rail: 1, PCI: pci}}}
	}
	n := &inventory.Node{Hardware: &inventory.Hardware{NICs: []inventory.NIC{nic("compute", "0000:18:00.0"), nic("storage", "0000:aa:00.0")}}}
	fits := []Fit{{Part: Part{Kind: NIC, Serial: "C1"}, Slot: "0000:18:00.0"}, {Part: Part{Kind: NIC, Serial: "S1"}, Slot: "0000:aa:00.0"}}
	for part, want := range map[string]string{
		"rail 1": "", "rail 1, sending": "", "rail 1 of compute": "C1", "rail 1 of storage": "S1", "rail 1 of storage, receiving": "S1",
		"rail 1 of storage (mlx5_1 at 0000:aa:00.0)": "S1", "rail 1 of other": "", "rail 2 of storage": "", "nic storage-nic/0": "S1",
	} {
		if s := serials(Resolve(fits, part, n)); s != want {
			t.Errorf("%q is %q, want %q", part, s, want)
		}
	}
}

// journal appends records, as a run does.
type journal struct {
	t     *testing.T
	store state.Store
	fence state.Fence
	at    time.Time
}

func (j *journal) add(r state.Record) {
	j.t.Helper()
	j.at = j.at.Add(time.Hour)
	r.Time = j.at
	if _, err := j.store.Append(context.Background(), j.fence, state.Batch{Records: []state.Record{r}}); err != nil {
		j.t.Fatal(err)
	}
}

func (j *journal) inspect(node string, h wire.Hardware) {
	f, err := hardware.New(subject.OfNode(node), h, h.Identity.Serial)
	if err != nil {
		j.t.Fatal(err)
	}
	j.add(state.Record{Kind: state.FactLearned, Subject: f.Key.Subject}.With(f))
}

func (j *journal) blame(node, part string) {
	j.add(state.Record{Kind: state.FindingMade}.With(stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(node), Part: part}}, Cause: "it is bad", Step: node + "/x"}))
}

// TestCatchUp: whatever the journal is cut into, and however often it is read, the
// history is the same.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	for _, every := range []int{1, 2, 100} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			t.Parallel()
			s := state.NewMemory()
			f, err := s.Claim(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			j := &journal{t: t, store: s, fence: f, at: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
			inv := &inventory.Inventory{}
			for i, do := range []func(){
				func() { j.inspect("n3", hw("CH03", "DISK1", "D001")) },
				func() { j.inspect("n7", hw("CH07", "DISK7", "D007")) },
				func() { j.blame("n3", "DIMM A1") },
				func() { j.add(state.Record{Kind: state.FactLearned, Data: []byte(`"damaged"`)}) },
				func() { j.inspect("n3", hw("CH03", "DISK1", "D002")) },
				func() { j.inspect("n7", hw("CH07", "DISK7", "D007", "D001")) },
				func() { j.blame("n7", "disk os") },
			} {
				do()
				for range 2 {
					if (i+1)%every == 0 {
						if err := CatchUp(t.Context(), s, f, inv); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if err := CatchUp(t.Context(), s, f, inv); err != nil {
				t.Fatal(err)
			}
			all, err := ReadAll(t.Context(), s)
			if err != nil || len(all) != 2 {
				t.Fatal(all, err)
			}
			d := all[0]
			if d.Serial != "D001" || len(d.Findings) != 1 || len(d.Seen) != 2 || d.Seen[0].Node != "n3" || d.Seen[0].To.Hour() != 5 || d.Seen[1].Node != "n7" || d.Seen[1].Slot != "A2" || !d.Seen[1].To.IsZero() {
				t.Errorf("%+v", d)
			}
			fits, err := In(t.Context(), s, "n7")
			if err != nil {
				t.Fatal(err)
			}
			bad, err := Suspects(t.Context(), s, fits.Parts)
			if err != nil || len(bad) != 2 || !bad[0].Elsewhere("n7") || bad[1].Elsewhere("n7") {
				t.Fatal(bad, err)
			}
			if got := bad[0].Sentence(); got != "DIMM serial D001 (A2) was found bad on n3 (A1) on 2026-11-01: it is bad" {
				t.Error(got)
			}
		})
	}
}
