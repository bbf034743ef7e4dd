// SPDX-License-Identifier: Apache-2.0

// Command same writes what every example site comes to: its plan, its state after a
// rehearsal, and its report, as JSON with a value a line. Two versions of ironrail
// that behave alike write the same; what may differ is blank: texts for people, and
// what is drawn by lot or by the clock.
//
//	go run ./bench/same -out /tmp/before    # in one checkout
//	go run ./bench/same -out /tmp/after     # in the other
//	diff -r /tmp/before /tmp/after
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// kinds are those of a state's objects.
var kinds = []string{"step", "fact", "effect", "frozen", "run", "plan", "node", "identity", "accepted", "declared", "fitted", "part", "seen", "pin", "replacement",
	"drift-baseline", "drift-asked", "drift-set"}

// texts are the fields that are words for people: they may be said better.
var texts = []string{"why", "detail", "action", "error", "message"}

// measured are the fields that hold how long something took, what a watch of some
// minutes counted, and the random name of a state.
var measured = []string{"took_ms", "duration_ms", "seconds", "uptime", "looks", "count", "mean", "least", "lineage"}

// drawn is what differs from one rehearsal to the next: times of the clock, numbers
// of runs, plans and attempts, keys, certificates, and digests that these go into.
var drawn = regexp.MustCompile(strings.Join([]string{
	`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`,
	`p?\d{8}T\d{6}-[A-Z0-9]{6}`,
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
	`-[0-9a-f]{16}\b`,
	`\b[0-9a-f]{64}\b`,
	`\b[0-9a-f]{32}\b`,
	`^[0-9a-f]{12}$`, // a cohort of drift
	`-\d{9,}\b`,
	`\d+ looks, \d+ W and \d+ MHz`,
	`/tmp/ironrail-rehearsal-\d+`,
	`sha256:[0-9a-f]{64}`,
	`SHA256:[A-Za-z0-9+/]{43}`,
	`ssh-ed25519 [A-Za-z0-9+/=]+`,
}, "|"))

func main() {
	out := flag.String("out", "", "`folder` to write to, which is made")
	examples := flag.String("examples", "examples", "`folder` of the example sites")
	only := flag.String("only", "", "the `name` of one example; empty: all")
	flag.Parse()
	if *out == "" {
		flag.Usage()
		os.Exit(64)
	}
	sites, err := filepath.Glob(filepath.Join(*examples, "*", "site.hcl"))
	if err == nil && len(sites) == 0 {
		err = fmt.Errorf("no example in %s", *examples)
	}
	for _, site := range sites {
		dir := filepath.Dir(site)
		if err != nil || *only != "" && filepath.Base(dir) != *only {
			continue
		}
		began := time.Now()
		err = writeAll(dir, filepath.Join(*out, filepath.Base(dir)))
		fmt.Printf("%-12s %s\n", filepath.Base(dir), time.Since(began).Round(time.Second))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "same:", err)
		os.Exit(1)
	}
}

// writeAll rehearses one site and writes what it came to.
func writeAll(dir, out string) error {
	vars := map[string]string{}
	if filepath.Base(dir) == "scale" {
		vars["nodes"] = "20"
	}
	inv, diags, _ := provision.Load(dir, inventory.Options{Variables: vars, Now: time.Now()})
	if diags.HasErrors() {
		return fmt.Errorf("%s: %v", dir, diags)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var planned *plan.Plan
	_, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 2,
		OnPlan: func(p *plan.Plan, _ predict.Prediction) { planned = p },
		Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
			if err := keepFile(filepath.Join(out, "plan.json"), planned); err != nil {
				return err
			}
			if err := keepState(ctx, filepath.Join(out, "state.json"), r.Store); err != nil {
				return err
			}
			in, err := r.Site.Report(ctx, r.Store, "same", time.Now())
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := report.JSON(&b, in); err != nil {
				return err
			}
			return keepFile(filepath.Join(out, "report.json"), json.RawMessage(b.Bytes()))
		}})
	return err
}

// keepState writes all objects of a state, and how many records of each kind its
// journal has.
func keepState(ctx context.Context, file string, r state.Reader) error {
	records := map[string]int{}
	objects := map[string]json.RawMessage{}
	err := r.Read(ctx, 0, func(x state.Record) error {
		records[string(x.Kind)]++
		return nil
	})
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		list, err := r.Objects(ctx, kind)
		if err != nil {
			return err
		}
		for _, o := range list {
			objects[blankText(o.Key.String())] = o.Value
		}
	}
	return keepFile(file, map[string]any{"records": records, "objects": objects})
}

// keepFile writes a value as JSON, in the order of its keys, with blanks.
func keepFile(file string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return err
	}
	if b, err = json.MarshalIndent(blankValue(tree), "", " "); err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

// blankValue returns a JSON value without texts and without what is drawn by lot.
func blankValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			if slices.Contains(texts, k) || slices.Contains(measured, k) {
				x = ""
			}
			out[blankText(k)] = blankValue(x)
		}
		return out
	case []any:
		for i := range v {
			v[i] = blankValue(v[i])
		}
		if slices.ContainsFunc(v, func(x any) bool { return idOf(x) == "" }) {
			return v
		}
		slices.SortStableFunc(v, func(a, b any) int { return strings.Compare(idOf(a), idOf(b)) }) // in the order of the clock
		return v
	case string:
		return blankText(v)
	}
	return v
}

// idOf is the id of an object; empty where it has none.
func idOf(v any) string {
	m, _ := v.(map[string]any)
	id, _ := m["id"].(string)
	return id
}

// turn is the number of a write into the scheduler, whose order is that of the clock.
var turn = regexp.MustCompile(`(/handover\.[^/]+/.*)-\d+$`)

func blankText(s string) string {
	return turn.ReplaceAllString(drawn.ReplaceAllString(s, "*"), "$1-*")
}
