// SPDX-License-Identifier: Apache-2.0

// Package donesite makes a site of any size beside a state in which all of it was
// done, for measurements of planning: the example csv-12500, without the driver
// stack that is not planned yet, with PDUs that are asked, and with an image whose
// digest is given. Nothing of it exists, and nothing answers.
package donesite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/examples/csv-12500/nodes"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/install"
)

// Write writes the files of a site of so many nodes into dir. example is the folder of
// csv-12500. packages are more packages of the driver stack of its one role, as HCL,
// such as `"htop", `: a site with other ones is one whose role has changed.
func Write(dir, example string, count int, packages string) error {
	text, err := os.ReadFile(filepath.Join(example, "site.hcl"))
	if err != nil {
		return err
	}
	changes := [][2]string{
		{"[driver.rdma, driver.r580]", "[driver.rdma]"},
		{`packages = ["rdma-core", `, `packages = [` + packages + `"rdma-core", `},
		{`  release  = "bookworm"`, `  digest   = "sha256:` + strings.Repeat("ab", 32) + `"` + "\n" + `  release  = "bookworm"`},
	}
	for i, pdu := range []string{"a1", "a2", "b1", "b2"} {
		head := "  pdu \"" + pdu + "\" {\n"
		changes = append(changes, [2]string{head, head + "    control {\n      protocol  = \"snmp\"\n      model     = \"apc-rpdu2\"\n      community = secret(\"env:PDU\")\n" +
			"      address   = cidrhost(network.oob.cidr, 110000 + " + strconv.Itoa(i) + " + 4 * rack.number)\n    }\n"})
	}
	site := string(text)
	for _, c := range changes {
		if !strings.Contains(site, c[0]) {
			return fmt.Errorf("%q is not in %s any more", c[0], example)
		}
		site = strings.Replace(site, c[0], c[1], 1)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var list bytes.Buffer
	if err := nodes.Write(&list, count); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "nodes.csv"), list.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(site), 0o644)
}

// Open loads and opens the site of dir on a network where nobody answers.
func Open(dir string, net network.Network) (*provision.Site, error) {
	inv, diags, _ := provision.Load(dir, inventory.Options{Now: time.Now()})
	for _, d := range diags {
		if d.Severity == diag.Error {
			return nil, fmt.Errorf("%s: %s", d.Summary, d.Detail)
		}
	}
	return provision.Open(inv, provision.Options{Network: net})
}

// Fill makes the state that the site has once all of it was done: every step with
// its inputs, every fact that a step yields, every node accepted.
func Fill(ctx context.Context, dir string, site *provision.Site) error {
	p, diags, err := site.Plan(ctx, state.Empty{}, provision.PlanOptions{Now: time.Now()})
	if err == nil && diags.HasErrors() {
		err = diags
	}
	if err != nil {
		return err
	}
	store, err := state.Open(provision.StatePath(dir))
	if err != nil {
		return err
	}
	defer store.Close()
	fence, err := store.Claim(ctx, "donesite")
	if err != nil {
		return err
	}
	f := filler{ctx: ctx, store: store, fence: fence, now: time.Now().UTC()}
	for _, st := range p.Steps {
		f.step(st, p.ID)
	}
	for _, n := range site.Inv.Nodes {
		f.settings(site.Inv, n)
		f.putRecord(state.NodeKey(n.Name), state.Node{Name: n.Name, Accepted: true, AcceptedAt: f.now, AcceptedRun: "r1", Run: "r1"})
	}
	f.flush()
	return f.err
}

// filler collects objects and stores many at once. The first error ends it.
type filler struct {
	ctx   context.Context
	store state.Store
	fence state.Fence
	now   time.Time
	batch state.Batch
	err   error
}

func (f *filler) step(st plan.Step, planID string) {
	f.putRecord(state.StepKey(st.ID), state.Step{ID: st.ID, State: state.StepIsDone, Version: st.Version, Inputs: st.Inputs,
		Plan: planID, Run: "r1", Started: f.now, Ended: f.now})
	for _, k := range st.Yields {
		f.putRecord(state.FactKey(k), map[string]any{"key": k, "value": strings.Repeat("a fact of some length, ", 12), "step": st.ID, "observed": f.now})
	}
}

// settings are what the installation of a node wrote.
func (f *filler) settings(inv *inventory.Inventory, n *inventory.Node) {
	given := install.NewGiven(n.Name+"/configure", install.Settings(inv, n))
	learnt, err := install.SettingsFact.New(subject.OfNode(n.Name), given, "")
	if f.err == nil {
		f.err = err
	}
	f.putRecord(state.FactKey(learnt.Key), learnt)
}

func (f *filler) putRecord(k state.Key, v any) {
	one, err := state.PutOf(k, v)
	if f.err == nil {
		f.err = err
	}
	if f.err != nil {
		return
	}
	const together = 4096
	if f.batch.Puts = append(f.batch.Puts, one); len(f.batch.Puts) >= together {
		f.flush()
	}
}

func (f *filler) flush() {
	if f.err != nil {
		return
	}
	var wg sync.WaitGroup
	var mu sync.Mutex                                                // guards f.err meanwhile
	for puts := range slices.Chunk(f.batch.Puts, state.MaxEntries) { // together, so that they share a write
		wg.Go(func() {
			_, err := f.store.Append(f.ctx, f.fence, state.Batch{Puts: puts})
			mu.Lock()
			defer mu.Unlock()
			f.err = errors.Join(f.err, err)
		})
	}
	wg.Wait()
	f.batch = state.Batch{}
}
