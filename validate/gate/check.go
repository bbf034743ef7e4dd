// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/gate/bought"
	"github.com/ironrail/ironrail/validate/gate/host"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/link"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/gate/since"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/uniform"
)

// Report is what the gates of a node found.
type Report struct {
	At       time.Time       `json:"at"`
	Faults   []judge.Fault   `json:"faults,omitempty"`
	Notes    []string        `json:"notes,omitempty"`    // worth knowing, and no fault
	Gates    []judge.Outcome `json:"gates,omitempty"`    // what each of them made of the node
	Near     bool            `json:"near,omitempty"`     // each GPU has a rail below a PCIe bridge that both share
	Evidence []string        `json:"evidence,omitempty"` // what the programs printed
	// GPUs are what the GPUs are called, by PCI address: number, address, serial.
	GPUs map[string]string `json:"gpus,omitempty"`
	// Parts are what is in the node, with serial numbers.
	Parts []Fitted `json:"parts,omitempty"`
	// Counts are what its ports had counted; nil: they did not report.
	Counts *since.Counts `json:"counts,omitempty"`
}

// Fact is the fact of a node's last gates.
const Fact = fact.Name[Report]("validate.gates")

// Check looks at each node with GPUs before anything is measured on it.
var Check = target.Check{Name: "gates", Scope: target.EachNode, Needs: []string{}, For: target.Node(target.HasGates), Plan: planGates, Run: runGates,
	Duration: target.Duration{Low: 2 * time.Second, Mid: 8 * time.Second, High: 30 * time.Second, Source: "estimate: nvidia-smi -q of eight GPUs takes seconds"},
	Report:   target.Section{Title: "Parts of each node", Read: readReport, Untested: "the parts of GPU nodes were not looked at"},
	Docs:     target.Docs{Says: "the parts of a node with GPUs, at rest", Page: "gates.md"}}

func readReport(f fact.Fact, of string) (result.Report, error) {
	r, err := Fact.Get(f)
	return r.Report(of), err
}

// planGates looks at a node's parts once its drivers run and its fabrics are set
// up, and before anything is measured.
func planGates(r target.Request) plan.Step {
	n := r.Node
	st := plan.Step{ID: r.ID, Stage: target.StageName, Action: plan.Read, Subject: subject.OfNode(n.Name), Title: "check the node's GPUs, links and memory",
		Yields: []fact.Key{Fact.Of(subject.OfNode(n.Name)), uniform.VersionsFact.Of(subject.OfNode(n.Name))}, Decl: stage.Source(n.Hardware.Decl), Version: 2, Renewed: true, Examines: true,
		Deadline: plan.Budget{Expected: 10 * time.Second, Limit: 8 * time.Minute}}
	for _, d := range n.Drivers {
		st.Needs = append(st.Needs, plan.Need{Step: plan.StepID(n.Name + "/drivers." + d.Name), On: plan.Success, Triggers: true})
	}
	for _, f := range fabric.Of(n) {
		st.Needs = append(st.Needs, plan.Need{Step: fabric.StepID(n.Name, f.Name), On: plan.Settled})
	}
	st.Inputs = []plan.Input{{Name: "gpus", Value: target.GPUsOf(n.Hardware), Decl: stage.Source(n.Hardware.Decl)}}
	if parts := bought.Declared(n.Hardware); parts != "" {
		st.Inputs = append(st.Inputs, plan.Input{Name: "parts", Value: parts, Decl: stage.Source(n.Hardware.Decl)})
	}
	st.Inputs = append(st.Inputs, target.AllowedInputs(n)...)
	return st
}

// runGates looks at a node and blames each part that does not pass.
func runGates(ctx context.Context, j *target.Job) error {
	n, run := j.Node, j.Run
	seen, printed, err := look.ReadNode(ctx, j.Nodes, n.Name, n.Hardware)
	if err != nil {
		return err
	}
	ref, err := run.Attach("gates.txt", printed)
	if err != nil {
		return err
	}
	r := Report{At: run.Clock().Now().UTC(), Evidence: []string{ref}, GPUs: judge.PartNames(n.Hardware, seen), Parts: listFitted(seen)}
	seen.Fabrics = FabricsUp(run, n)
	r.Faults, r.Notes, r.Gates = JudgeEach(n.Hardware, target.AllowedGates(n), seen)
	r.Near = link.HasNearRails(n.Hardware, seen)
	parts := chassisGates(ctx, j, &r)
	versions, err := readVersions(ctx, j, seen, parts, &r)
	if err != nil {
		return err
	}
	later := comparesBlock(j)
	for _, f := range r.Faults {
		if f.Unlike {
			versions.Unlike = append(versions.Unlike, uniform.Unlike{Part: f.Part, Cause: f.Cause, Evidence: append(f.Evidence[:len(f.Evidence):len(f.Evidence)], ref), Action: f.Action, Of: f.Of})
		}
		if f.Unlike && later {
			continue // the comparison of the role says whether it is this node's
		}
		if err := run.Blame(ctx, f.Finding(n.Name, ref)); err != nil {
			return err
		}
	}
	if err := target.LearnFact(ctx, run, uniform.VersionsFact, subject.OfNode(n.Name), versions); err != nil {
		return err
	}
	return target.LearnFact(ctx, run, Fact, subject.OfNode(n.Name), r)
}

// comparesBlock reports whether the comparison of the role finds who is at fault that a node is
// not what its hardware block says. A node of a few, or one that another tool
// installed, is judged by itself.
func comparesBlock(j *target.Job) bool {
	n := j.Node
	if n.Foreign || n.Role == nil || j.Inv == nil {
		return false
	}
	about := func(o *inventory.Node) bool { return o.Role == n.Role && target.HasGates(o) }
	return len(target.ByRole(j.Inv, uniform.Fewest, about)) > 0
}

// Report is what the gates of a node found, as the tests of groups have theirs.
func (r Report) Report(node string) result.Report {
	rep := result.Report{At: r.At, Members: []string{node}, Proves: "Each part of the node is there, well and linked as it was bought, at rest. It says nothing of speed, nor of load."}
	for _, g := range r.Gates {
		rep.Results = append(rep.Results, result.Result{Check: "gate." + g.Gate, Nodes: []string{node}, Verdict: result.Verdict(g.Verdict), Why: g.Why, Params: g.Covered, Evidence: r.Evidence})
	}
	if len(r.Gates) == 0 {
		rep.NotJudged = []string{"its gates were recorded without what each of them saw"}
	}
	return rep
}

// chassisGates adds to the report of a node's gates what its BMC has to say, and returns the
// parts that it tells of.
func chassisGates(ctx context.Context, j *target.Job, r *Report) []chassis.Part {
	n := j.Node
	if j.BMCs == nil {
		return nil
	}
	c, _ := host.AskChassis(ctx, j, host.ChassisWait)
	faults, notes := host.JudgeChassis(n.Hardware, c)
	r.Faults, r.Notes, r.Gates = append(r.Faults, faults...), append(r.Notes, notes...), append(r.Gates, host.ChassisOutcomes(n.Hardware, c)...)
	return c.Parts
}
