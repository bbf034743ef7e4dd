package validate

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/gate"
)

// GateReport is what the gates of a node found.
type GateReport struct {
	At       time.Time      `json:"at"`
	Faults   []gate.Fault   `json:"faults,omitempty"`
	Notes    []string       `json:"notes,omitempty"`    // worth knowing, and no fault
	Gates    []gate.Outcome `json:"gates,omitempty"`    // what each of them made of the node
	Near     bool           `json:"near,omitempty"`     // each GPU has a rail below a PCIe bridge that both share
	Evidence []string       `json:"evidence,omitempty"` // what the programs printed
	// GPUs are what the GPUs are called, by PCI address: number, address, serial.
	GPUs map[string]string `json:"gpus,omitempty"`
}

// GatesFact is the fact of a node's last gates.
const GatesFact = fact.Name[GateReport]("validate.gates")

// planGates looks at a node's parts once its drivers run and its fabrics are set
// up, and before anything is measured.
func planGates(r Request) plan.Step {
	n := r.Node
	st := plan.Step{ID: r.ID, Stage: StageName, Action: plan.Read, Subject: subject.OfNode(n.Name), Title: "check the node's GPUs, links and memory",
		Yields: []fact.Key{GatesFact.Of(subject.OfNode(n.Name)), VersionsFact.Of(subject.OfNode(n.Name))}, Decl: stage.Source(n.Hardware.Decl), Version: 1,
		Deadline: plan.Budget{Expected: 10 * time.Second, Limit: 8 * time.Minute}}
	for _, d := range n.Drivers {
		st.Needs = append(st.Needs, plan.Need{Step: plan.StepID(n.Name + "/drivers." + d.Name), On: plan.Success, Renews: true})
	}
	for _, f := range fabric.Of(n) {
		st.Needs = append(st.Needs, plan.Need{Step: fabric.StepID(n.Name, f.Name), On: plan.Settled})
	}
	st.Inputs = []plan.Input{{Name: "gpus", Value: gpusOf(n.Hardware), Decl: stage.Source(n.Hardware.Decl)}}
	st.Inputs = append(st.Inputs, allowedInputs(n)...)
	return st
}

// runGates looks at a node and blames each part that does not pass.
func runGates(ctx context.Context, j *Job) error {
	n, run := j.Node, j.Run
	seen, printed, err := gate.Look(ctx, j.Nodes, n.Name, n.Hardware)
	if err != nil {
		return err
	}
	ref, err := run.Attach("gates.txt", printed)
	if err != nil {
		return err
	}
	r := GateReport{At: run.Clock().Now().UTC(), Evidence: []string{ref}, GPUs: gate.Names(n.Hardware, seen)}
	for _, f := range fabric.Of(n) {
		if _, up := read(run, fabric.Ports(f.Name), subject.OfNode(n.Name)); up {
			seen.Fabrics = append(seen.Fabrics, f.Name)
		}
	}
	r.Faults, r.Notes, r.Gates = gate.Verdicts(n.Hardware, allowed(n), seen)
	r.Near = gate.Near(n.Hardware, seen)
	chassisGates(ctx, j, &r)
	versions, err := versions(ctx, j, seen, &r)
	if err != nil {
		return err
	}
	for _, f := range r.Faults {
		err := run.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: f.Part}},
			Cause: f.Cause, Evidence: append(f.Evidence[:len(f.Evidence):len(f.Evidence)], ref), Action: f.Action})
		if err != nil {
			return err
		}
	}
	if err := learn(ctx, run, VersionsFact, subject.OfNode(n.Name), versions); err != nil {
		return err
	}
	return learn(ctx, run, GatesFact, subject.OfNode(n.Name), r)
}

// Report is what the gates of a node found, as the tests of groups have theirs.
func (r GateReport) Report(node string) Report {
	rep := Report{At: r.At, Members: []string{node}, Proves: "Each part of the node is there, well and linked as it was bought, at rest. It says nothing of speed, nor of load."}
	for _, g := range r.Gates {
		rep.Results = append(rep.Results, Result{Check: "gate." + g.Gate, Nodes: []string{node}, Verdict: Verdict(g.Verdict), Why: g.Why, Params: g.Saw, Evidence: r.Evidence})
	}
	if len(r.Gates) == 0 {
		rep.NotJudged = []string{"its gates were recorded without what each of them saw"}
	}
	return rep
}

// chassisGates adds to the report of a node's gates what its BMC has to say.
func chassisGates(ctx context.Context, j *Job, r *GateReport) {
	n := j.Node
	if j.BMCs == nil {
		return
	}
	c, _ := askChassis(ctx, j, chassisWait)
	faults, notes := gate.JudgeChassis(n.Hardware, c)
	r.Faults, r.Notes, r.Gates = append(r.Faults, faults...), append(r.Notes, notes...), append(r.Gates, gate.ChassisOutcomes(n.Hardware, c)...)
}
