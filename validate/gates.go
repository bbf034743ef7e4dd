package validate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
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

// GatesID returns the step that looks at the parts of a node.
func GatesID(node string) plan.StepID { return plan.StepID(node + "/validate.gates") }

// gpuDrivers are the kinds of drivers whose programs the gates ask.
var gpuDrivers = map[string]bool{"cuda": true, "rocm": true}

// gated reports whether a node has gates: it has GPUs, and the site installs
// their driver.
func gated(n *inventory.Node) bool {
	if n.Hardware == nil || n.Hardware.GPUCount() == 0 {
		return false
	}
	for _, d := range n.Drivers {
		if gpuDrivers[d.Kind] {
			return true
		}
	}
	return false
}

// gatesStep looks at a node's parts once its drivers run and its fabrics are set
// up, and before anything is measured.
func gatesStep(n *inventory.Node) plan.Step {
	st := plan.Step{ID: GatesID(n.Name), Stage: StageName, Action: plan.Read, Subject: subject.OfNode(n.Name), Title: "check the node's GPUs, links and memory",
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

// gpusOf is what the hardware says of its GPUs, as an input of the step.
func gpusOf(h *inventory.Hardware) string {
	var all []string
	for _, g := range h.GPUs {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d x %s %s %s", max(g.Count, 1), g.Vendor, g.Model, g.Interconnect)))
	}
	return strings.Join(all, ", ")
}

// gates looks at a node and blames each part that does not pass.
func (s *Stage) gates(ctx context.Context, run stage.Run, n *inventory.Node) error {
	seen, printed, err := gate.Look(ctx, s.nodes, n.Name, n.Hardware)
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
	s.chassisGates(ctx, run, n, &r)
	versions, err := s.versions(ctx, run, n, seen, &r)
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
