// SPDX-License-Identifier: Apache-2.0

// Command score rehearses sites with faults at random places and judges what was found
// by rules of its own: it reads the faults that it planted and the JSON that the
// rehearsal ends with, and nothing of what simulates or detects. Each kind of fault is
// planted alone, or two and three of them together.
//
//	go run ./bench/score                     # every kind, at two places, in each site
//	go run ./bench/score -together 2 -runs 100 -seed 7
//	go run ./bench/score -runs 40            # a sample
//
// A fault counts as named when a finding says its very part, or one of the parts that
// nobody could tell from it. It prints each run that is not whole, and exits with 1 when a
// part was not named, a node without a fault was lost, something else was blamed, or the
// rehearsal's own verdict differs.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// limit is how long one rehearsal may take before it counts as one that hangs: so long, and
// a few seconds for each node, on a busy machine.
const (
	limit   = 20 * time.Minute
	perNode = 5 * time.Second
)

// options are those of the command line.
type options struct {
	program  string
	together int  // faults of a run
	one      bool // all of them in one node
	runs     int  // 0: every kind, at places places
	places   int
	seed     uint64
	kinds    []string
}

func main() {
	var o options
	var sites, kinds string
	flag.StringVar(&o.program, "ironrail", "bin/ironrail", "the `program`")
	flag.StringVar(&sites, "sites", "examples/hgx-h100,examples/mi300x-roce,examples/h100-su", "`folders` of sites, with commas")
	flag.StringVar(&kinds, "kinds", "", "only these `kinds` of faults, with commas")
	flag.IntVar(&o.together, "together", 1, "`faults` that are planted in one run, each in a node of its own")
	flag.BoolVar(&o.one, "one", false, "with -together: all of them in one node, of the kinds that tests find on an installed node")
	flag.IntVar(&o.runs, "runs", 0, "`runs` with kinds and sites by lot; 0: every kind in each site")
	flag.IntVar(&o.places, "places", 2, "random `places` of each kind in each site")
	flag.Uint64Var(&o.seed, "seed", 1, "`number` that all chance follows from")
	flag.Parse()
	if kinds != "" {
		o.kinds = strings.Split(kinds, ",")
	}
	for _, k := range o.kinds {
		if _, ok := kindsOfFaults[k]; !ok {
			fmt.Fprintf(os.Stderr, "score: %q is no kind of fault\n", k)
			os.Exit(64)
		}
	}
	whole, err := score(o, strings.Split(sites, ","))
	if err != nil {
		fmt.Fprintln(os.Stderr, "score:", err)
		os.Exit(1)
	}
	if !whole {
		os.Exit(1)
	}
}

// site is one that faults are planted in.
type site struct {
	dir string
	inv *inventory.Inventory
}

// loadSite loads a site with the cables that its fabrics come to.
func loadSite(dir string) (*inventory.Inventory, error) {
	kinds := inventory.DefaultKinds()
	for name, design := range map[string]func(*inventory.Inventory, *inventory.Fabric) ([]*inventory.Switch, []*inventory.Cable, diag.List){
		infiniband.Name: infiniband.Design, roce.Name: roce.Design,
	} {
		spec := kinds.Fabric[name]
		spec.Design = design
		kinds.Fabric[name] = spec
	}
	inv, diags, _ := inventory.Load(dir, inventory.Options{Now: time.Now(), Kinds: &kinds})
	if diags.HasErrors() {
		return nil, fmt.Errorf("%s: %v", dir, diags)
	}
	return inv, nil
}

// score makes all runs and prints them; false where one is not whole.
func score(o options, dirs []string) (bool, error) {
	var sites []site
	for _, dir := range dirs {
		inv, err := loadSite(dir)
		if err != nil {
			return false, err
		}
		sites = append(sites, site{dir, inv})
	}
	lot := rand.New(rand.NewPCG(o.seed, uint64(o.together)))
	var sum tally
	runs, began := draw(o, sites, lot), time.Now()
	for i, r := range runs {
		if i > 0 && i%progressEvery == 0 {
			fmt.Fprintf(os.Stderr, "%d of %d runs in %s: %s\n", i, len(runs), time.Since(began).Round(time.Second), sum)
		}
		report, err := rehearse(o.program, r)
		if err != nil {
			return false, fmt.Errorf("%s: %w", r, err)
		}
		v := judge(r.site.inv, r.faults, report)
		sum.add(len(r.faults), v)
		if !v.whole() {
			fmt.Printf("%s\n%s", r, v)
		}
	}
	fmt.Println(sum)
	return sum.whole == sum.runs, nil
}

// progressEvery is after how many runs a line says how far it is.
const progressEvery = 25

// run is one rehearsal.
type run struct {
	site   site
	faults []planted
	seed   uint64
}

func (r run) String() string {
	var words []string
	for _, f := range r.faults {
		words = append(words, "--fault "+f.argument())
	}
	return fmt.Sprintf("ironrail -C %s rehearse --seed %d %s", r.site.dir, r.seed, strings.Join(words, " "))
}

// fitting are the kinds of faults that such runs can have.
func (o options) fitting() (kinds []string) {
	for k, kind := range kindsOfFaults {
		if o.one && kind.tested || !o.one && (o.together == 1 || !kind.alone) {
			kinds = append(kinds, k)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// draw decides what is planted where.
func draw(o options, sites []site, lot *rand.Rand) (all []run) {
	kinds := o.kinds
	if kinds == nil {
		kinds = o.fitting()
	}
	if o.runs > 0 {
		for len(all) < o.runs {
			draw := drawTogether
			if o.one {
				draw = drawInOne
			}
			if r, ok := draw(o.together, sites[lot.IntN(len(sites))], kinds, lot); ok {
				all = append(all, r)
			}
		}
		return all
	}
	for _, s := range sites {
		for _, k := range kinds {
			for range o.places {
				if f, ok := kindsOfFaults[k].place(s.inv, lot); ok {
					f.Kind = k
					all = append(all, run{s, []planted{f}, lot.Uint64N(1000) + 1})
				}
			}
		}
	}
	return all
}

// drawTogether draws faults that share no node; false where a kind has no place in the
// site.
func drawTogether(n int, s site, kinds []string, lot *rand.Rand) (run, bool) {
	r := run{site: s, seed: lot.Uint64N(1000) + 1}
	for range n {
		k := kinds[lot.IntN(len(kinds))]
		f, ok := kindsOfFaults[k].place(s.inv, lot)
		if f.Kind = k; !ok || slices.ContainsFunc(r.faults, func(o planted) bool { return o.meets(f) }) {
			return run{}, false
		}
		r.faults = append(r.faults, f)
	}
	return r, true
}

// drawInOne draws faults of several parts of one node; false where a kind has no place in
// the site, or not so many parts.
func drawInOne(n int, s site, kinds []string, lot *rand.Rand) (run, bool) {
	r := run{site: s, seed: lot.Uint64N(1000) + 1}
	for tries := 0; len(r.faults) < n && tries < 100*n; tries++ {
		k := kinds[lot.IntN(len(kinds))]
		f, ok := kindsOfFaults[k].place(s.inv, lot)
		if f.Kind = k; !ok {
			return run{}, false
		}
		if len(r.faults) > 0 && f.Node != r.faults[0].Node || slices.ContainsFunc(r.faults, func(o planted) bool { return o.Kind == f.Kind || o.GPU == f.GPU && o.Port == f.Port }) {
			continue
		}
		r.faults = append(r.faults, f)
	}
	return r, len(r.faults) == n
}

// rehearse runs one rehearsal and returns what it ends with.
func rehearse(program string, r run) (summary, error) {
	_, s, err := rehearseAll(program, r)
	return s, err
}

// rehearseAll runs one rehearsal and returns what it prints, and what it ends with.
func rehearseAll(program string, r run) ([]byte, summary, error) {
	dir, err := os.MkdirTemp("", "score-")
	if err != nil {
		return nil, summary{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var text strings.Builder
	for _, f := range r.faults {
		text.WriteString(f.block())
	}
	file := filepath.Join(dir, "faults.hcl")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, summary{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Duration(len(r.site.inv.Nodes))*perNode)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-C", r.site.dir, "rehearse", "--json", "--seed", fmt.Sprint(r.seed), "--faults", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, summary{}, err
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var s summary
	if err := json.Unmarshal(lines[len(lines)-1], &s); err != nil || s.Type != "summary" {
		return nil, summary{}, fmt.Errorf("no summary: %w: %s", err, stderr.Bytes())
	}
	return out, s, nil
}

// tally counts.
type tally struct{ runs, whole, faults, named, lost, beside, verdict int }

func (t *tally) add(faults int, v verdict) {
	t.runs++
	t.faults += faults
	t.named += faults - len(v.unnamed)
	t.lost += len(v.lost)
	t.beside += len(v.beside)
	if v.differs {
		t.verdict++
	}
	if v.whole() {
		t.whole++
	}
}

func (t tally) String() string {
	return fmt.Sprintf("%d of %d runs whole: %d of %d faults named, %d healthy nodes lost, %d parts blamed beside, %d verdicts of the rehearsal differ",
		t.whole, t.runs, t.named, t.faults, t.lost, t.beside, t.verdict)
}
