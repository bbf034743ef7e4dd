// SPDX-License-Identifier: Apache-2.0

package statetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// fillStart is when the history of a filled store begins.
var fillStart = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// The run and the plan of a filled store.
const (
	FillRun  = "20260301T080000-FILLED"
	FillPlan = "20260301T075900-PLAN00"
)

// fillSteps are the steps of a node, and fillFacts what they learn beside
// node.hardware; fillEffects is how many effects each of the first steps had.
var (
	fillSteps = []string{"bmc", "install.netboot", "install.inspect", "install.write", "install.configure", "install.boot",
		"drivers.rdma", "drivers.gpu", "fabric.rail", "fabric.storage", "validate.gpu", "validate.accept"}
	fillFacts = []string{"bmc.identity", "bmc.product", "boot.attempt", "node.serial", "node.uuid", "install.disk", "install.image",
		"ssh.host_key", "driver.rdma", "driver.gpu", "fabric.rail"}
)

const fillEffects = 4

// Fill stores what a finished bring-up of nodes leaves behind, as n00000,
// n00001 and so on: for each 12 steps with their inputs and their records, 12
// facts of which node.hardware has 8 KiB, 4 effects, and the accepted node. It
// is for benchmarks: 12,500 nodes take about 700 MB in a file.
func Fill(ctx context.Context, s state.Store, f state.Fence, nodes int) error {
	hardware, err := json.Marshal(map[string]string{"product": "XE9680", "raw": strings.Repeat("8086:0db5 slot ", 540)})
	if err != nil {
		return err
	}
	run := state.Run{ID: FillRun, Plan: FillPlan, Started: fillStart, Ended: fillStart.Add(2 * time.Hour), Outcome: state.RunDone}
	if err := appendRun(ctx, s, f, state.RunStarted, run); err != nil {
		return err
	}
	err = inBatches(ctx, s, f, nodes, func(b *state.Batch, i int) error { return fillNode(b, fmt.Sprintf("n%05d", i), hardware) })
	if err != nil {
		return err
	}
	return appendRun(ctx, s, f, state.RunEnded, run)
}

// inBatches appends what add makes of 0 to n-1, one batch each. Many are appended at a time,
// so that they share a write, and their order is not that of their numbers; few are in order.
func inBatches(ctx context.Context, s state.Store, f state.Fence, n int, add func(b *state.Batch, i int) error) error {
	writers := 1
	if n > 64 {
		writers = 64
	}
	var next atomic.Int64
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				var b state.Batch
				if errs[w] = add(&b, i); errs[w] == nil {
					_, errs[w] = s.Append(ctx, f, b)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Done stores a good end of every step, as planned, so that a plan of the same
// steps has nothing to do.
func Done(ctx context.Context, s state.Store, f state.Fence, steps []plan.Step) error {
	const together = state.MaxEntries / 3 // a step has two records and an object
	return inBatches(ctx, s, f, (len(steps)+together-1)/together, func(b *state.Batch, i int) error {
		for _, st := range steps[i*together : min((i+1)*together, len(steps))] {
			if err := fillStep(b, st.ID, st.Subject, st.Version, st.Inputs); err != nil {
				return err
			}
		}
		return nil
	})
}

func appendRun(ctx context.Context, s state.Store, f state.Fence, kind state.RecordKind, r state.Run) error {
	p, err := state.PutOf(state.LastRun, r)
	if err != nil {
		return err
	}
	_, err = s.Append(ctx, f, state.Batch{Puts: []state.Put{p}, Records: []state.Record{state.Record{Kind: kind, Time: r.Started, Run: r.ID}.With(r)}})
	return err
}

func fillNode(b *state.Batch, name string, hardware json.RawMessage) error {
	of := subject.OfNode(name)
	for _, s := range fillSteps {
		id := plan.StepID(name + "/" + s)
		if err := fillStep(b, id, of, 3, fillInputs(name)); err != nil {
			return err
		}
	}
	for i := range fillEffects {
		e := state.Effect{Key: fmt.Sprintf("%s/%s-7f3a1c/%s", name, name, fillSteps[i]), State: state.EffectIsDone, Kind: plan.Power,
			Does: "switch " + name + " on", Step: plan.StepID(name + "/" + fillSteps[i]), Run: FillRun, At: fillStart}
		if err := fillPut(b, state.EffectKey(e.Key), e); err != nil {
			return err
		}
	}
	if err := fillFact(b, of, "node.hardware", hardware); err != nil {
		return err
	}
	for _, k := range fillFacts {
		if err := fillFact(b, of, k, json.RawMessage(`"`+name+" "+strings.Repeat(k, 6)+`"`)); err != nil {
			return err
		}
	}
	at := fillStart.Add(2 * time.Hour)
	return fillPut(b, state.NodeKey(name), state.Node{Name: name, Accepted: true, AcceptedAt: at, AcceptedRun: FillRun, Run: FillRun})
}

// fillInputs are as many and as long as those of a step in a real site.
func fillInputs(name string) []plan.Input {
	decl := plan.SourceRange{File: "racks.hcl", Line: 120, Column: 5}
	return []plan.Input{
		{Name: "image.os", Value: "sha256:5f0c3a9b7d11e2f4a6c8091b2d3e4f5061728394a5b6c7d8e9f00112233445566", Decl: decl},
		{Name: "disk", Value: "/dev/nvme0n1", Decl: decl},
		{Name: "kernel", Value: "iommu=pt pci=realloc=off", Decl: decl},
		{Name: "address", Value: "10.20." + name, Decl: decl},
		{Name: "mtu", Value: "9000", Decl: decl},
	}
}

func fillStep(b *state.Batch, id plan.StepID, of subject.ID, version int, in []plan.Input) error {
	s := state.Step{ID: id, State: state.StepIsDone, Version: version, Inputs: in, Plan: FillPlan, Run: FillRun,
		Started: fillStart, Ended: fillStart.Add(90 * time.Second)}
	r := state.Record{Kind: state.StepStarted, Time: s.Started, Run: FillRun, Step: string(id), Subject: of}
	end := r
	end.Kind, end.Time = state.StepDone, s.Ended
	b.Records = append(b.Records, r, end.With(s))
	return fillPut(b, state.StepKey(id), s)
}

func fillFact(b *state.Batch, of subject.ID, name string, value json.RawMessage) error {
	f := fact.Fact{Key: fact.Key{Subject: of, Name: name}, Value: value, Part: "SN-" + of.Name, Step: of.Name + "/install.inspect", Observed: fillStart}
	b.Records = append(b.Records, state.Record{Kind: state.FactLearned, Time: fillStart, Run: FillRun, Step: f.Step, Subject: of}.With(f))
	return fillPut(b, state.FactKey(f.Key), f)
}

func fillPut(b *state.Batch, k state.Key, v any) error {
	p, err := state.PutOf(k, v)
	b.Puts = append(b.Puts, p)
	return err
}
