// SPDX-License-Identifier: Apache-2.0

package cable_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/fabric/cable"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
)

// planes connects the first port of every node to both planes with one splitter
// cable, but that of the last node, whose switches have no place.
func planes(inv *inventory.Inventory, f *inventory.Fabric) ([]*inventory.Switch, []*inventory.Cable, diag.List) {
	var cables []*inventory.Cable
	at := [2]*inventory.Switch{}
	for _, s := range inv.Switches {
		for i, name := range []string{"s/p0", "s/p1"} {
			if s.Name == name {
				at[i] = s
			}
		}
	}
	lost := &inventory.Switch{Name: "planes/leaf-u1-r0-p1", Fabric: f, Tier: inventory.Leaf}
	for i, n := range inv.Nodes {
		nic, _ := n.Hardware.NIC("north")
		var first *inventory.Cable
		for p, s := range at {
			if i == len(inv.Nodes)-1 && p == 1 {
				s = lost
			}
			c := &inventory.Cable{From: inventory.CableEnd{Node: n, NIC: nic}, To: inventory.CableEnd{Switch: s, Port: i/2 + 1, Lane: i%2 + 1},
				Fabric: f, Speed: 400e9, Splitter: first, Decl: f.Decl}
			cables = append(cables, c)
			if first == nil {
				first = c
			}
		}
	}
	return []*inventory.Switch{lost}, cables, nil
}

// golden is the site of the golden files.
func golden(t *testing.T) *inventory.Inventory {
	t.Helper()
	kinds := inventory.DefaultKinds()
	kinds.Fabric["roce"] = inventory.KindSpec{Spec: kinds.Fabric["roce"].Spec, Design: planes}
	inv, diags, _ := inventory.Load("testdata/site", inventory.Options{Kinds: &kinds, Checks: []inventory.Check{cable.Check}})
	for _, d := range diags {
		t.Errorf("%s %s: %s", d.Severity, d.Check, d.Detail)
	}
	return inv
}

func TestWriters(t *testing.T) {
	t.Parallel()
	runs := cable.ListRuns(golden(t))
	for name, write := range map[string]func(io.Writer) error{
		"schedule.csv": func(w io.Writer) error { return cable.WriteSchedule(w, runs) },
		"labels.csv":   func(w io.Writer) error { return cable.WriteLabels(w, runs) },
		"bill.csv":     func(w io.Writer) error { return cable.WriteBill(w, cable.CountBill(runs)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			if err := write(&got); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name)
			if flag.Lookup("update").Value.String() == "true" {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s differs; see it with -update:\n%s", path, got.Bytes())
			}
		})
	}
}

// TestBillCounts counts by hand what the site of the golden files needs.
func TestBillCounts(t *testing.T) {
	t.Parallel()
	runs := cable.ListRuns(golden(t))
	if got, want := len(runs), 24+6+6+4+2; got != want {
		t.Errorf("runs: got %d, want %d (24 rails, 6 splitters, 6 of management, 4 and 2 between switches)", got, want)
	}
	got := map[string]int{}
	for _, i := range cable.CountBill(runs) {
		if want := (i.Count + 49) / 50; i.Spares != want {
			t.Errorf("%s: got %d spares of %d, want %d", i.Part, i.Spares, i.Count, want)
		}
		if i.Type == "optic" {
			got[i.Part] += i.Count
		} else {
			got[i.Type] += i.Count
		}
	}
	want := map[string]int{
		// 12 in leaf r01 (24 ports), 12 in nodes (2 cages each), 2 + 2 of the spine
		// links (two ports a cage), 1 + 1 of the links between leaves.
		"optic multimode 2x400Gbps": 12 + 12 + 2 + 2 + 1 + 1 + 6 + 5, // and of the planes ports 1, 2 and 3 of both, and the ports of 5 nodes
		"fibre":                     24 + 4 + 2 + 5,
		"copper":                    6,
		"":                          1, // the splitter whose plane has no place
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%q: got %d, want %d", k, got[k], n)
		}
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	inv := golden(t)
	seen := map[string]bool{}
	before := map[string]string{}
	for _, r := range cable.ListRuns(inv) {
		if seen[r.Label] {
			t.Errorf("label %s is used twice", r.Label)
		}
		seen[r.Label] = true
		if len(r.Label) > 22 {
			t.Errorf("label %s has %d characters", r.Label, len(r.Label))
		}
		if strings.ContainsAny(r.Label[len(r.Label)-10:], "ILOU") {
			t.Errorf("label %s has letters that are misread", r.Label)
		}
		before[r.Cables[0].From.String()+r.Cables[0].To.String()] = r.Label
	}
	less := *inv
	less.Cables = less.Cables[7:]
	for _, r := range cable.ListRuns(&less) {
		if was := before[r.Cables[0].From.String()+r.Cables[0].To.String()]; was != r.Label {
			t.Errorf("label %s was %s before other cables went", r.Label, was)
		}
	}
}

func TestFormulasAreText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"} {
		c := &inventory.Cable{Rail: -1, From: inventory.CableEnd{Text: text}, To: inventory.CableEnd{Text: "ok"}}
		var b bytes.Buffer
		if err := cable.WriteSchedule(&b, []cable.Run{{Cables: []*inventory.Cable{c}, Label: "l", Rail: -1, Length: unit.Length(1)}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "'"+text) {
			t.Errorf("%q is a formula in %q", text, b.String())
		}
	}
}
