// SPDX-License-Identifier: Apache-2.0

// Package slurm is the handover kind that writes the lines of Slurm's
// configuration which depend on nodes: nodes.conf, to be included from
// slurm.conf, gres.conf, and topology.conf or topology.yaml, in the form that the
// controller's own version reads. slurmctld acts on them when it is told to
// reconfigure. Where Slurm's programs can be run, it also asks which jobs run on a
// node, and has the node drained and resumed. Source: slurm.conf(5), gres.conf(5),
// topology.conf(5), topology.yaml(5) of Slurm 22.05 to 25.11.
package slurm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/place"
)

// Name is the kind's name in the language.
const Name = "slurm"

// settings are the attributes of the block.
type settings struct {
	controller, partition, topology string
	version                         string // of Slurm, where slurmctld cannot be asked
	gres                            string // "explicit", "autodetect" or "none"
	blockSize                       int    // nodes; 0: those of the smallest block
}

// Slurm writes files below a folder, such as NAME/nodes.conf.
type Slurm struct {
	dir      string
	programs Programs
}

// New returns the kind. dir is made when it is needed. With nil programs only files
// are written, and what runs on a node is not known.
func New(dir string, programs Programs) *Slurm { return &Slurm{dir, programs} }

// readSettings returns the attributes. Load has checked their types.
func readSettings(h *inventory.Handover) settings {
	return settings{controller: h.Text("controller"), partition: cmp.Or(h.Text("partition"), h.Name), topology: cmp.Or(h.Text("topology"), "tree"),
		version: h.Text("version"), gres: cmp.Or(h.Text("gres"), "explicit"), blockSize: h.Number("block_size")}
}

// isDefault reports whether the partition of a handover is the one that jobs go to which
// name none: as the block says, else when no other handover has its controller.
func isDefault(inv *inventory.Inventory, h *inventory.Handover) bool {
	if saysDefault(h) {
		return h.True("default")
	}
	return len(sharingHandovers(inv, h)) == 0
}

// saysDefault reports whether a handover has the attribute.
func saysDefault(h *inventory.Handover) bool {
	_, given := inventory.Attribute(h.Value, "default")
	return given
}

// sharingHandovers returns the other handovers to the same controller.
func sharingHandovers(inv *inventory.Inventory, h *inventory.Handover) (list []*inventory.Handover) {
	if inv == nil {
		return nil
	}
	for _, other := range inv.Handovers {
		if other.Kind == Name && other.Name != h.Name && other.Text("controller") == h.Text("controller") {
			list = append(list, other)
		}
	}
	return list
}

// Check implements handover.Kind.
func (*Slurm) Check(h *inventory.Handover, nodes []*inventory.Node) hcl.Diagnostics {
	var diags hcl.Diagnostics
	add := func(attribute, summary, format string, args ...any) {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: h.Place(attribute).Ptr()})
	}
	s := readSettings(h)
	if r, ok := parseRelease(s.version); ok && s.topology == "block" && r.before(blockSince) {
		add("topology", "Topology is not in this version", "Handover %q asks for topology \"block\", which Slurm has since %s, and its version is %s. Use topology = \"tree\", or a newer slurmctld.", h.Name, blockSince, r)
	}
	if !plainName(s.partition) {
		add("partition", "Partition name is not possible", "Slurm takes %q for a list or a comment: a partition's name has letters, digits, and the signs - _ . only.", s.partition)
	}
	for _, n := range nodes {
		switch {
		case !plainName(n.Name):
			add("", "Node name is not possible in Slurm", "Slurm takes %q for a list or a comment: a node's name has letters, digits, and the signs - _ . only.", n.Name)
		case n.Rack != nil && !plainName(n.Rack.Name):
			add("", "Rack name is not possible in Slurm", "Rack %q becomes a switch of Slurm's topology; its name has letters, digits, and the signs - _ . only.", n.Rack.Name)
		}
	}
	return diags
}

// plainName reports whether a name means itself in every Slurm file.
func plainName(s string) bool {
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return s != "" && len(s) <= 255 && s != "DEFAULT" && s != "ALL"
}

// Inputs implements handover.Kind.
func (*Slurm) Inputs(inv *inventory.Inventory, h *inventory.Handover, nodes []*inventory.Node) []plan.Input {
	s := readSettings(h)
	at := func(name string) plan.SourceRange {
		r := h.Place(name)
		return plan.SourceRange{File: r.Filename, Line: r.Start.Line, Column: r.Start.Column}
	}
	in := []plan.Input{{Name: "partition", Value: s.partition, Decl: at("partition")}, {Name: "topology", Value: s.topology, Decl: at("topology")}}
	if isDefault(inv, h) {
		in = append(in, plan.Input{Name: "default", Value: "yes", Decl: at("default")})
	}
	if s.topology == "tree" {
		in = append(in, plan.Input{Name: "switches", Value: digestOf(treeTopology(place.Of(inv, nodes))), Decl: at("topology")})
	}
	for _, o := range []plan.Input{{Name: "version", Value: s.version}, {Name: "gres", Value: h.Text("gres")}, {Name: "block_size", Value: formatNumber(s.blockSize)}} {
		if o.Value != "" {
			o.Decl = at(o.Name)
			in = append(in, o)
		}
	}
	return in
}

// formatNumber returns a number as an input; "" for 0.
func formatNumber(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// digestOf returns a short text that changes with the content.
func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// DrainLimit implements handover.Kind.
func (*Slurm) DrainLimit(*inventory.Handover) time.Duration { return time.Minute }

// Observe implements handover.Kind.
func (s *Slurm) Observe(ctx context.Context, _ stage.Run, t handover.Target) (stage.Observation, error) {
	d, err := s.daemon(ctx, t)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	files, err := renderFiles(t, d)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	return observeFiles(filepath.Join(s.dir, t.Name), files)
}

// Apply implements handover.Kind. Nodes in service whose drain ironrail made at
// slurmctld take jobs again.
func (s *Slurm) Apply(ctx context.Context, run stage.Run, t handover.Target) error {
	if err := s.write(ctx, run, t, handover.StepID(t.Name), handover.SubjectOf(t.Name)); err != nil {
		return err
	}
	drained := s.drained(ctx, t)
	var open []string
	for _, m := range t.Members {
		if m.InService && (isDrained(run, m.Node.Name) || drained[m.Node.Name]) {
			open = append(open, m.Node.Name)
		}
	}
	if len(open) == 0 {
		return nil
	}
	if err := s.Open(ctx, run, t, open...); err != nil {
		return err
	}
	return learnDrained(ctx, run, false, open...)
}

// Drain implements handover.Kind. The files say DRAIN, and so does slurmctld
// where it was asked.
func (s *Slurm) Drain(ctx context.Context, run stage.Run, t handover.Target, node string) error {
	if err := s.write(ctx, run, t, handover.DrainID(node), subject.OfNode(node)); err != nil {
		return err
	}
	n, err := s.readNode(ctx, t, node)
	if err == nil && n.known {
		return learnDrained(ctx, run, strings.HasPrefix(n.reason, ours), node)
	}
	if err != nil {
		run.Emit(event.Event{Type: event.Note, Node: node, Text: fmt.Sprintf(
			"%s says State=DRAIN for %s; slurmctld follows with `scontrol reconfigure`, and only `squeue -w %s` tells whether jobs still run there", filepath.Join(s.dir, t.Name, "nodes.conf"), node, node)})
	}
	return nil
}

// shutFact is learned where slurmctld was told to drain a node.
const shutFact = fact.Name[bool]("slurm.shut")

// isDrained reports whether ironrail has drained a node at slurmctld.
func isDrained(run stage.Run, node string) bool {
	f, ok := run.Fact(shutFact.Of(subject.OfNode(node)))
	if !ok {
		return false
	}
	is, err := shutFact.Get(f)
	return err == nil && is
}

// learnDrained learns whether nodes are drained at slurmctld by ironrail.
func learnDrained(ctx context.Context, run stage.Run, is bool, nodes ...string) error {
	var fs []fact.Fact
	for _, n := range nodes {
		f, err := shutFact.New(subject.OfNode(n), is, "")
		if err != nil {
			return err
		}
		fs = append(fs, f)
	}
	return run.Learn(ctx, fs...)
}
