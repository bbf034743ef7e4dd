// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/examples/csv-12500/nodes"
)

// Of a large site: how many nodes and faults. `make large` has 1,024 with 20.
var (
	large  = flag.Int("large", 0, "`nodes` of a large site; 0: none is rehearsed")
	faults = flag.Int("faults", 20, "`faults` of a large site")
	lots   = flag.Uint64("lots", 1, "`seed` of the faults of a large site")
)

// Bounds of the test between pairs and of what it does to find bad parts, in simulated time.
const (
	mostRounds = 7
	mostTime   = 300 * time.Second
)

// writeLarge writes the site of the example csv-12500 with so many nodes, PDUs that are
// read, and the tests of GPUs.
func writeLarge(t *testing.T, count int) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/csv-12500/site.hcl")
	if err != nil {
		t.Fatal(err)
	}
	site := string(text)
	replace := func(old, with string) {
		if !strings.Contains(site, old) {
			t.Fatalf("the example has no %q any more", old)
		}
		site = strings.ReplaceAll(site, old, with)
	}
	replace("  quorum = \"90%\"\n", "  quorum  = \"90%\"\n  burn_in = \"10min\"\n")
	replace("[driver.rdma, driver.r580]", "[driver.rdma, driver.r580, driver.tools]")
	replace("fabric \"roce\" \"compute\" {", "driver \"tools\" \"tools\" {}\n\nfabric \"roce\" \"compute\" {")
	control := "    control {\n      protocol  = \"snmp\"\n      model     = \"apc-rpdu2\"\n      community = secret(\"env:PDU\")\n      address   = cidrhost(network.oob.cidr, %s)\n    }\n"
	for i, pdu := range []string{"a1", "a2", "b1", "b2"} {
		head := "  pdu \"" + pdu + "\" {\n"
		replace(head, head+fmt.Sprintf(control, fmt.Sprintf("100000 + %d + 4 * rack.number", i)))
	}
	for i, pdu := range []string{"a", "b"} {
		head := "  pdu \"" + pdu + "\" {\n"
		replace(head, head+fmt.Sprintf(control, fmt.Sprintf("120000 + %d + 2 * rack.number", i)))
	}
	var list bytes.Buffer
	if err := nodes.Write(&list, count); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"site.hcl": []byte(site), "nodes.csv": list.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// drawMany draws faults of as many kinds as there are faults, or of all kinds in turn, that
// share no node. Of what lies between switches there is one: two are distinguished by counters
// of switches, which nobody can read in this site.
func drawMany(s site, kinds []string, count int, lot *rand.Rand) run {
	r := run{site: s, seed: lot.Uint64N(1000) + 1}
	between := []string{"slow-trunk", "bad-spine", "bad-uplink"}
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == "trunk-errors" || k == "controller-kill" })
	lot.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for i := 0; len(r.faults) < count && i < 100*count; i++ {
		k := kinds[i%len(kinds)]
		f, ok := kindsOfFaults[k].place(s.inv, lot)
		f.Kind = k
		if !ok || slices.ContainsFunc(r.faults, func(o planted) bool {
			return o.meets(f) || slices.Contains(between, k) && slices.Contains(between, o.Kind)
		}) {
			continue
		}
		r.faults = append(r.faults, f)
	}
	return r
}

// pairs is what the pair test took, by the events of a rehearsal.
type pairs struct {
	rounds      int
	began, done time.Time
}

// readPairs reads it from the lines that a rehearsal prints.
func readPairs(t *testing.T, out []byte) (p pairs) {
	t.Helper()
	for line := range bytes.Lines(out) {
		var e struct {
			Time             time.Time
			Type, Step, Text string
		}
		if json.Unmarshal(line, &e) != nil || !strings.HasSuffix(e.Step, "/validate.pair") {
			continue
		}
		switch {
		case e.Type == "step-started":
			p.began = e.Time
		case e.Type == "step-done" || e.Type == "step-failed":
			p.done = e.Time
		case e.Type == "step-progress":
			if strings.HasPrefix(e.Text, "round ") || strings.HasPrefix(e.Text, "once more") {
				p.rounds++
			}
			t.Logf("%4.0f s: %s", e.Time.Sub(p.began).Seconds(), e.Text)
		}
	}
	return p
}

// TestLargeFaults: in a large site with many faults each is named to its part, no healthy
// node is lost, and the pair test has found its bad parts in few rounds.
func TestLargeFaults(t *testing.T) {
	if *large == 0 {
		t.Skip("a rehearsal of minutes: -args -large=1024, as `make large` does")
	}
	dir := writeLarge(t, *large)
	inv, err := loadSite(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := drawMany(site{dir, inv}, options{together: 2}.fitting(), *faults, rand.New(rand.NewPCG(*lots, 1024)))
	if len(r.faults) != *faults {
		t.Fatalf("%d of %d faults have a place", len(r.faults), *faults)
	}
	for _, f := range r.faults {
		t.Log(f.argument())
	}
	began := time.Now()
	out, got, err := rehearseAll(build(t), r)
	if err != nil {
		t.Fatal(err)
	}
	p := readPairs(t, out)
	t.Logf("%d nodes: %d rounds in %s, of %s in all; %s on the wall, %d MiB", *large, p.rounds, p.done.Sub(p.began).Round(time.Second), time.Duration(got.Simulated*float64(time.Second)).Round(time.Second),
		time.Since(began).Round(time.Second), got.Memory>>20)
	if p.rounds == 0 || p.rounds > mostRounds || p.done.Sub(p.began) > mostTime {
		t.Errorf("pairs and isolation take %d rounds and %s, want %d and %s at most", p.rounds, p.done.Sub(p.began), mostRounds, mostTime)
	}
	if v := judge(inv, r.faults, got); !v.whole() {
		t.Errorf("%s\n%s", r, v)
	}
}
