// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// nodes names n nodes and gives them one profile.
func nodes(n int, p Profile) (map[string]Profile, func(int) string) {
	name := func(i int) string { return fmt.Sprintf("n%04d", i+1) }
	out := map[string]Profile{}
	for i := range n {
		out[name(i)] = p
	}
	return out, name
}

func TestBottleneck(t *testing.T) {
	t.Parallel()
	oneU := Profile{Hardware: "1u", NIC: 25e9, Disk: "nvme"}
	image := map[string]Image{"os": {Wire: 1181116006, Disk: 4 * gib}}
	cases := []struct {
		name     string
		n, rack  int
		node     Profile
		link     unit.BitRate
		capacity map[string]int
		parallel int
		want     string // resource
		text     string // beginning of the text
	}{
		{"one stream", 64, 8, oneU, 100e9, map[string]int{streams: 1}, 0, streams, "image streams: 1 at a time"},
		{"a slow uplink", 64, 8, oneU, 1e9, limits, 0, uplink, "uplink 1Gbps: 64 images, together 70.4 GiB"},
		{"one rack, few at once", 64, 64, oneU, 100e9, map[string]int{"inrush/": 2}, 0, "inrush/", "inrush: 2 nodes of a rack at a time"},
		{"few steps at once", 256, 8, oneU, 100e9, limits, 32, stepSlots, "steps: 32 at once"},
		{"nothing but the nodes themselves", 8, 8, Profile{GPUs: 8, Memory: 2 * tib}, 100e9, limits, 0, "", "reboot and self-test: 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			profiles, name := nodes(c.n, c.node)
			got, err := Estimate(sitePlan(c.n, c.rack, name), Options{Table: withChecks, Profiles: profiles, Images: image, Capacity: c.capacity, Parallel: c.parallel, Uplink: c.link})
			if err != nil {
				t.Fatal(err)
			}
			b := got.Bottleneck
			if b.Resource != c.want || !strings.HasPrefix(b.Text, c.text) {
				t.Errorf("%+v, want %q: %q", b, c.want, c.text)
			}
			if (b.Without > 0) != (c.want != "") || b.Without > got.Expected {
				t.Errorf("without it %s of %s", b.Without, got.Expected)
			}
		})
	}
}

// TestSpread checks that many nodes together are as slow as their slowest, and
// that one node is the median one.
func TestSpread(t *testing.T) {
	t.Parallel()
	wall := func(n int) Prediction {
		profiles, name := nodes(n, Profile{})
		p := &plan.Plan{}
		for i := range n {
			b := &builder{p}
			b.node(name(i), fmt.Sprint(i))
		}
		for i := range p.Steps {
			p.Steps[i].Needs = slices.DeleteFunc(p.Steps[i].Needs, func(n plan.Need) bool { return strings.HasPrefix(string(n.Step), "site/") })
		}
		got, err := Estimate(p, Options{Table: withChecks, Profiles: profiles})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	var sum time.Duration
	for _, k := range wall(1).Kinds {
		sum += k.Expected
	}
	one, many := wall(1), wall(400)
	if one.Expected != sum {
		t.Errorf("one node takes %s, its steps %s", one.Expected, sum)
	}
	if many.Expected < one.Expected*11/10 || many.Expected > one.Expected*14/10 {
		t.Errorf("400 nodes take %s, one takes %s", many.Expected, one.Expected)
	}
	for _, p := range []Prediction{one, many} {
		if p.Low >= p.Expected || p.Expected >= p.High {
			t.Errorf("%s, %s, %s", p.Low, p.Expected, p.High)
		}
	}
	if again := wall(400); !reflect.DeepEqual(again, many) {
		t.Error("the same plan gives another prediction")
	}
}

func TestQuantilesMeetEveryNodeOnce(t *testing.T) {
	t.Parallel()
	for n := 1; n < 300; n++ {
		seen := map[int]bool{}
		s := strideOf("install.write/dgx", n)
		for i := range n {
			seen[i*s%n] = true
		}
		if len(seen) != n {
			t.Fatalf("%d of %d", len(seen), n)
		}
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	b := NewTally()
	sec := func(n int) time.Duration { return time.Duration(n) * time.Second }
	for _, x := range []struct {
		stage    string
		from, to int
	}{{"b", 5, 6}, {"a", 0, 10}, {"a", 2, 4}, {"a", 8, 12}, {"a", 20, 25}} {
		b.Add(x.stage, plan.Step{}.Subject, sec(x.from), sec(x.to))
	}
	want := []Stage{{Name: "a", Steps: 4, End: sec(25), Active: sec(17), Busy: sec(21), Each: sec(21)},
		{Name: "b", Steps: 1, Start: sec(5), End: sec(6), Active: sec(1), Busy: sec(1), Each: sec(1)}}
	if got := b.Stages(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	for _, r := range withChecks {
		if r.Planned && r.High == 0 && r.Source != "" {
			continue
		}
		if r.Low <= 0 || r.Low > r.Mid || r.Mid > r.High || r.Source == "" || r.Hold < 0 || r.Hold > 1 {
			t.Errorf("row %s %+v: %s, %s, %s from %q", r.Kind, r.Match, r.Low, r.Mid, r.High, r.Source)
		}
	}
	got, err := Estimate(labPlan(), Options{Table: withChecks, Profiles: labProfiles, Capacity: limits})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range got.Kinds {
		if k.Source != "table" {
			t.Errorf("%s is from %q", k.Kind, k.Source)
		}
	}
}

func TestOneHardwareOnTwoDisks(t *testing.T) {
	t.Parallel()
	p := Profile{Hardware: "dgx", NIC: 100e9, Disk: "nvme"}
	slow := p
	slow.Disk = "sas"
	got, err := Estimate(labPlan(), Options{Table: withChecks, Profiles: map[string]Profile{"n1": p, "n2": slow}, Images: map[string]Image{"os": {Wire: gib, Disk: 4 * gib}}})
	if err != nil {
		t.Fatal(err)
	}
	var writes []time.Duration
	for _, k := range got.Kinds {
		if k.Kind == "install.write" {
			writes = append(writes, k.Expected.Round(time.Second))
		}
	}
	if want := []time.Duration{7 * time.Second, 41 * time.Second}; !slices.Equal(writes, want) {
		t.Errorf("writes take %v, want %v", writes, want)
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	big := Profile{GPUs: 8, Memory: 2 * tib, Boot: "uefi", Disk: "nvme"}
	for _, c := range []struct {
		kind string
		of   Profile
		want time.Duration // median; zero: no row
	}{
		{"install.netboot", big, 11 * time.Minute},
		{"install.netboot", Profile{GPUs: 8, Memory: 256 * gib}, 8 * time.Minute},
		{"install.netboot", Profile{}, 4 * time.Minute},
		{"install.boot", big, 12 * time.Minute},
		{"install.boot", Profile{GPUs: 8, Memory: 2 * tib, NoFirmware: true}, 40 * time.Second},
		{"install.firmware", big, 12 * time.Minute},
		{"install.netboot", labProfiles["n1"], 12 * time.Second},
		{"install.netboot", labProfiles["n2"], 17 * time.Second},
		{"drivers.anything.at.all", big, 8 * time.Minute},
		{"install.unheard", big, 0},
	} {
		if r, ok := lookupRow(Table, c.kind, c.of); r.Mid != c.want || ok != (c.want > 0) {
			t.Errorf("%s of %+v: %s, want %s", c.kind, c.of, r.Mid, c.want)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	profiles, name := nodes(64, Profile{Hardware: "1u", Disk: "nvme", NIC: 1e9})
	got, err := Estimate(sitePlan(64, 8, name), Options{Table: withChecks, Profiles: profiles, Capacity: limits, Images: map[string]Image{"os": {Wire: gib, Disk: 3 * gib}}})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(got.Text(), "\n") + "\n"
	golden(t, "64.txt", text)
	if lines := strings.Count(text, "\n"); lines > 5+mostLines {
		t.Errorf("%d lines", lines)
	}
	for _, c := range []struct {
		d    time.Duration
		want string
	}{{300 * time.Millisecond, "0.3s"}, {45 * time.Second, "45s"}, {59900 * time.Millisecond, "1m 0s"}, {725 * time.Second, "12m 5s"}, {2*time.Hour + 14*time.Minute, "2h 14m"}} {
		if s := FormatDuration(c.d); s != c.want {
			t.Errorf("%s is said %q, want %q", c.d, s, c.want)
		}
	}
	none, err := Estimate(&plan.Plan{}, Options{})
	if err != nil || len(none.Text()) != 1 {
		t.Errorf("%q %v", none.Text(), err)
	}
}

var update = flag.Bool("update", false, "write golden files")

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	got, err := Estimate(labPlan(), Options{Table: withChecks, Profiles: labProfiles, Capacity: limits, Uplink: 10e9})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var back Prediction
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, got) {
		t.Errorf("%v\n%+v\n%+v", err, back, got)
	}
	if len(got.Nodes) != 2 || got.Nodes["n2"] > got.Expected || got.Nodes["n2"] <= 0 {
		t.Errorf("nodes end at %v of %s", got.Nodes, got.Expected)
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	h := &inventory.Hardware{Name: "dgx", Vendor: "NVIDIA", Product: "DGX", Boot: inventory.BootUEFIHTTP, Memory: inventory.Memory{Size: 2 * tib},
		GPUs: []inventory.GPU{{Count: 8}}, Disks: []inventory.Disk{{Name: "os", Type: "nvme"}}, NICs: []inventory.NIC{{Name: "rail", Speed: 400e9}, {Name: "mgmt", Speed: 10e9, Boot: true}}}
	inv := &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1", Hardware: h, Disks: &inventory.DiskLayout{On: "os"}}, {Name: "head"}}}
	want := map[string]Profile{"n1": {Hardware: "dgx", Vendor: "NVIDIA", Product: "DGX", Boot: "uefi-http", GPUs: 8, Memory: 2 * tib, NIC: 10e9, Disk: "nvme"}}
	if got := Profiles(inv); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if h.Kexec = true; !Profiles(inv)["n1"].NoFirmware {
		t.Error("a system that the ramdisk starts waits for the firmware")
	}
	m := manifest.Manifest{Blob: 10, Chunks: []manifest.Chunk{{Length: 10, Plain: 40}, {Plain: 99}}}
	if got := ImageOf(m); got != (Image{Wire: 10, Disk: 40}) {
		t.Errorf("%+v", got)
	}
}
