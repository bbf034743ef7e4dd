// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// Report is the last measurement of a node.
type Report struct {
	At       time.Time `json:"at"`
	Evidence []string  `json:"evidence,omitempty"`
	Record
}

// Fact is the fact of a node's last measurement.
const Fact = fact.Name[Report]("validate.speed")

// measures are the limits that are held.
var measures = []string{floor.HostMemory, floor.HostCPU, floor.DiskRead}

// What a node is asked for, twice: the better figure of each part counts.
const (
	memoryTimes = 2       // of a second each
	cpuTimes    = 3       // of a second each
	diskSeconds = 2       // at most
	diskBytes   = 2 << 30 // at most: a third of a second of an NVMe disk of PCIe 4.0
)

// Check measures the host of a node.
var Check = target.Check{Name: "speed", Scope: target.EachNode, Needs: []string{"gates", "bandwidth"}, For: target.Node(target.HasHost), Plan: planSpeed, Run: runSpeed,
	Asks:     target.Asks{Limits: measures},
	Duration: target.Duration{AsPlanned: true, Source: "what a node is told, twice: 5 s of memory and CPUs, and of each disk a second, or two where it is no NVMe disk"},
	Report:   target.Section{Title: "Memory, CPUs and disks", Read: readReport, Untested: "memory, CPUs and disks of hosts were not measured"},
	Docs:     target.Docs{Says: "the memory, the CPUs and the disks of a node's host", Page: "speed.md"}}

func readReport(f fact.Fact, of string) (result.Report, error) {
	r, err := Fact.Get(f)
	return r.Report(of), err
}

// expected is how long both measurements take: arrays are filled before each time that the
// memory is measured.
func expected(h *inventory.Hardware) time.Duration {
	long := (memoryTimes+cpuTimes)*time.Second + time.Second
	for _, d := range h.Disks {
		each := diskSeconds * time.Second
		if d.Type == "nvme" || d.Type == "" {
			each = time.Second
		}
		long += time.Duration(max(d.Count, 1)) * each
	}
	return 2 * long
}

// planSpeed measures a host once its parts were looked at, or once the node can be tested
// where it has none that are.
func planSpeed(r target.Request) plan.Step {
	n := r.Node
	st := plan.Step{ID: r.ID, Stage: target.StageName, Action: plan.Read, Examines: true, Subject: subject.OfNode(n.Name), Title: "measure the memory, the CPUs and the disks of the host",
		Needs: r.After(nil, n), Yields: []fact.Key{Fact.Of(subject.OfNode(n.Name))},
		May: plan.Effects(plan.Load), Decl: stage.Source(n.Hardware.Decl), Version: 1, Deadline: plan.Budget{Expected: expected(n.Hardware)}}
	if len(st.Needs) == 0 {
		st.Needs = target.ReadyNeeds(n)
	}
	st.Deadline.Limit = 5*st.Deadline.Expected + 3*time.Minute
	for _, d := range n.Hardware.Disks {
		st.Inputs = append(st.Inputs, plan.Input{Name: "disks " + d.Name, Value: fmt.Sprintf("%d x %s %s", max(d.Count, 1), d.Type, d.Model), Decl: stage.Source(n.Hardware.Decl)})
	}
	st.Inherited = true // a node in service is not loaded because this ironrail measures more than the one before
	if r.Group != nil {
		for _, name := range measures {
			if l, ok := r.Group.Validation.Limit(name); ok {
				st.Inherited = false // but because the site asks for it
				st.Inputs = append(st.Inputs, plan.Input{Name: "limit " + name, Value: describeLimit(l), Decl: stage.Source(l.Decl)})
			}
		}
	}
	return st
}

func describeLimit(l inventory.MeasureLimit) string {
	if l.AtMost != nil {
		return "<= " + l.AtMost.String()
	}
	return ">= " + l.AtLeast.String()
}

// limitsOf is what the site asks for; g may be nil.
func limitsOf(g *target.Group) Limits {
	all := Limits{text: map[string]string{}}
	if g == nil {
		return all
	}
	all.memory, all.text[floor.HostMemory] = g.Floor(floor.HostMemory)
	all.disk, all.text[floor.DiskRead] = g.Floor(floor.DiskRead)
	if l, ok := g.Validation.Limit(floor.HostCPU); ok && l.AtMost != nil {
		all.cpu, all.text[floor.HostCPU] = l.AtMost.Value/1e9, describeLimit(l)
	}
	return all
}

// runSpeed measures the host of a node, and blames each part that is slow by itself.
func runSpeed(ctx context.Context, j *target.Job) error {
	n, run := j.Node, j.Run
	l := limitsOf(j.Group)
	seen, evidence, err := measureTwice(ctx, j)
	if err != nil {
		return err
	}
	r := Report{At: run.Clock().Now().UTC(), Evidence: evidence, Record: NewRecord(seen, l)}
	if err := r.missing(l, n.Name); err != nil {
		return err
	}
	for _, text := range r.Notes {
		run.Emit(event.Event{Type: event.Note, Text: text})
	}
	for _, f := range r.Faults {
		if err := run.Blame(ctx, f.Finding(n.Name, evidence...)); err != nil {
			return err
		}
	}
	return target.LearnFact(ctx, run, Fact, subject.OfNode(n.Name), r)
}

// missing is an error where the site has a limit of what was not measured.
func (r Report) missing(l Limits, node string) error {
	unread := slices.ContainsFunc(r.Disks, func(d Disk) bool { return d.Rate == 0 && !r.hasFault(d.Part) })
	for _, m := range []struct {
		name   string
		asked  float64
		absent bool
	}{{floor.HostMemory, l.memory, len(r.Memory) == 0}, {floor.HostCPU, l.cpu, len(r.CPUs) == 0}, {floor.DiskRead, l.disk, len(r.Disks) == 0 || unread}} {
		if m.asked > 0 && m.absent {
			return errkind.New(errkind.Unsupported, "node %s: the site has a limit of %s, and that was not measured: %v", node, m.name, append(r.Notes, "the node shows none")[0]).
				Do("Repair that, or take the limit out of the validation block.")
		}
	}
	return nil
}
