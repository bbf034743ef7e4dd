// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// load loads an example.
func load(t *testing.T, name string) *inventory.Inventory {
	t.Helper()
	inv, err := loadSite(filepath.Join("..", "..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// build builds the program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ironrail")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "../../cmd/ironrail").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestIndependent: what judges knows neither what simulates nor what detects.
func TestIndependent(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if strings.Contains(dep, "/ironrail/validate") || strings.Contains(dep, "/ironrail/rehearse") {
			t.Errorf("%s is imported", dep)
		}
	}
	if !strings.Contains(string(out), "/ironrail/inventory") {
		t.Errorf("no list of imports: %s", out)
	}
}

// TestKinds: the table of the documents and that of the scorer have the same kinds, and
// each has a place in one of the examples.
func TestKinds(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "rehearsal.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ = bytes.Cut(page, []byte("<!-- table faults -->"))
	page, _, _ = bytes.Cut(page, []byte("<!-- end -->"))
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` ").FindAllSubmatch(page, -1) {
		documented[string(m[1])] = true
		if _, ok := kindsOfFaults[string(m[1])]; !ok {
			t.Errorf("%s is documented and not scored", m[1])
		}
	}
	lot := rand.New(rand.NewPCG(1, 2))
	sites := []*inventory.Inventory{load(t, "hgx-h100"), load(t, "mi300x-roce"), load(t, "nvl72"), load(t, "h100-su")}
	secure := load(t, "mi300x-roce") // no example boots with Secure Boot
	for _, n := range secure.Nodes {
		n.Hardware.SecureBoot = true
	}
	tagged := load(t, "hgx-h100") // nor has a VLAN on its boot network
	for _, n := range tagged.Nodes {
		n.BootNetwork.VLAN = 20
	}
	sites = append(sites, secure, tagged)
	for k, kind := range kindsOfFaults {
		if !documented[k] {
			t.Errorf("%s is scored and not documented", k)
		}
		has := false
		for _, inv := range sites {
			_, ok := kind.place(inv, lot)
			has = has || ok
		}
		if !has {
			t.Errorf("%s has a place in no example", k)
		}
	}
}

// TestJudge: only the very part counts, and what no fault is in has to be accepted.
func TestJudge(t *testing.T) {
	t.Parallel()
	inv := load(t, "hgx-h100")
	others := `"accepted":["r01-u09","r01-u17","r01-u25"]`
	gpu := []planted{{Kind: "gpu-xid", Node: "r01-u01", GPU: "3"}}
	plugs := []planted{{Kind: "cable-swap", Node: "r01-u01", With: "r01-u09", Port: "rail/0"}}
	tests := []struct {
		name   string
		faults []planted
		json   string
		want   string // words of the verdict
	}{
		{"named", gpu, `{` + others + `,"quarantined":[{"node":"r01-u01","part":"GPU 3 at 0000:04:00.0, serial 165"}],"faults":[{"found":true}]}`, ""},
		{"another GPU", gpu, `{` + others + `,"quarantined":[{"node":"r01-u01","part":"GPU 31 at 0000:04:00.0"}],"faults":[{"found":false}]}`, "not named, blamed beside"},
		{"another node", gpu, `{"accepted":["r01-u01","r01-u17","r01-u25"],"quarantined":[{"node":"r01-u09","part":"GPU 3"}],"faults":[{"found":false}]}`, "not named, lost, blamed beside"},
		{"accepted in silence", gpu, `{"accepted":["r01-u01","r01-u09","r01-u17","r01-u25"],"faults":[{"found":false}]}`, "not named"},
		{"not judged", gpu, `{"accepted":["r01-u09"],"quarantined":[{"node":"r01-u01","part":"GPU 3"}],"waiting":[{"node":"r01-u17","cause":"quorum"}],"faults":[{"found":true}]}`, "lost, lost"},
		{"another verdict", gpu, `{` + others + `,"quarantined":[{"node":"r01-u01","part":"GPU 3"}],"faults":[{"found":false}]}`, "verdict"},
		{"both plugs", plugs, `{"accepted":["r01-u17","r01-u25"],"quarantined":[{"node":"r01-u01","part":"rail/0 (OSFP 1/1), r01-u09 rail/0 (OSFP 1/1)"},{"node":"r01-u09","part":"r01-u01 rail/0, rail/0"}],"faults":[{"found":true}]}`, ""},
		{"another port", plugs, `{"accepted":["r01-u17","r01-u25"],"quarantined":[{"node":"r01-u01","part":"rail/10"}],"faults":[{"found":false}]}`, "not named, blamed beside"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var s summary
			if err := json.Unmarshal([]byte(tt.json), &s); err != nil {
				t.Fatal(err)
			}
			v := judge(inv, tt.faults, s)
			got := v.String()
			for _, want := range strings.Split(tt.want, ", ") {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in %q", want, got)
				}
			}
			if tt.want == "" && !v.whole() || tt.want != "" && strings.Count(got, "\n") != len(strings.Split(tt.want, ", ")) {
				t.Errorf("said %q, want %q", got, tt.want)
			}
		})
	}
}

// TestMeets: no two faults of a run share a node.
func TestMeets(t *testing.T) {
	t.Parallel()
	lot := rand.New(rand.NewPCG(3, 4))
	s := site{"examples/hgx-h100", load(t, "hgx-h100")}
	for range 200 {
		r, ok := drawTogether(3, s, []string{"gpu-xid", "cable-swap", "bmc-swapped", "pdu-trip", "high-ber"}, lot)
		if !ok {
			continue
		}
		seen := map[string]bool{}
		for _, f := range r.faults {
			for _, n := range []string{f.Node, f.With} {
				if n != "" && seen[n] {
					t.Fatalf("%s is in two faults of %s", n, r)
				}
				seen[n] = true
			}
		}
	}
}

// TestInOne: all faults of a run are in one node, each in another part.
func TestInOne(t *testing.T) {
	t.Parallel()
	lot := rand.New(rand.NewPCG(5, 6))
	s := site{"examples/hgx-h100", load(t, "hgx-h100")}
	made := 0
	for range 50 {
		r, ok := drawInOne(4, s, []string{"gpu-xid", "slow-gpu", "less-hbm", "high-ber", "psu-lost"}, lot)
		if !ok {
			continue
		}
		made++
		parts := map[string]bool{}
		for _, f := range r.faults {
			if f.Node != r.faults[0].Node || parts[f.GPU+"/"+f.Port] {
				t.Fatalf("%s", r)
			}
			parts[f.GPU+"/"+f.Port] = true
		}
	}
	if made == 0 {
		t.Error("none was drawn")
	}
}

// halved copies an example with the two lower nodes of each rack: all racks, switches, rails
// and PDUs in half of the time.
func halved(t *testing.T, name string) string {
	t.Helper()
	from, dir := filepath.Join("..", "..", "examples", name), filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(from, "manifest.csv"))
	if err != nil {
		t.Fatal(err)
	}
	half := regexp.MustCompile(`(?m)^r\d+,(17|25),.*\n`).ReplaceAll(list, nil)
	if 2*bytes.Count(half, []byte("MADE")) != bytes.Count(list, []byte("MADE")) {
		t.Fatalf("not half of it: %s", half)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.csv"), half, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// hidesSupply reports whether a supply is lost in a rack whose PDU trips: without mains it
// cannot be told from one that is well.
func hidesSupply(faults []planted) bool {
	return slices.ContainsFunc(faults, func(pdu planted) bool {
		rack, _, _ := strings.Cut(pdu.PDU, "/")
		return pdu.Kind == "pdu-trip" && slices.ContainsFunc(faults, func(f planted) bool { return f.Kind == "psu-lost" && strings.HasPrefix(f.Node, rack+"-") })
	})
}

// TestLongSample judges forty rehearsals: faults alone, two and three of them together, and
// four in one node. All are named, no healthy node is lost, nothing is blamed beside them,
// and the rehearsal's own verdict is the same. make score has all kinds and hundreds.
func TestLongSample(t *testing.T) {
	t.Parallel()
	program := build(t)
	half := halved(t, "mi300x-roce")
	inv, err := loadSite(half)
	if err != nil {
		t.Fatal(err)
	}
	sites := []site{{filepath.Join("..", "..", "examples", "hgx-h100"), load(t, "hgx-h100")}, {half, inv}}
	const seed = 20261127
	for _, c := range []struct {
		options
		sites []site
	}{{options{together: 1, runs: 24}, sites}, {options{together: 4, runs: 4, one: true}, sites},
		{options{together: 2, runs: 8}, sites[1:]}, {options{together: 3, runs: 4}, sites[1:]}, // the other has four nodes, and three of them make its quorum
	} {
		o := c.options
		t.Run(fmt.Sprintf("%d together, in one node %v", o.together, o.one), func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				o.runs /= 4
			}
			for _, r := range draw(o, c.sites, rand.New(rand.NewPCG(seed, uint64(o.together)))) {
				if hidesSupply(r.faults) {
					continue
				}
				got, err := rehearse(program, r)
				if err != nil {
					t.Fatalf("%s: %v", r, err)
				}
				if v := judge(r.site.inv, r.faults, got); !v.whole() {
					t.Errorf("%s\n%s", r, v)
				}
			}
		})
	}
}
