// Package slurm is the handover kind that writes the lines of Slurm's
// configuration which depend on nodes: nodes.conf, to be included from
// slurm.conf, and topology.conf. It writes files and runs no command: slurmctld
// acts on them when it is told to reconfigure.
package slurm

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/stage"
)

// Name is the kind's name in the language.
const Name = "slurm"

// settings are the attributes of the block.
type settings struct {
	controller, partition, topology string
}

// Slurm writes files below a folder: NAME/nodes.conf and NAME/topology.conf.
type Slurm struct{ dir string }

// New returns the kind. dir is made when it is needed.
func New(dir string) *Slurm { return &Slurm{dir: dir} }

// read returns the attributes. Load has checked their types.
func read(h *inventory.Handover) settings {
	return settings{h.Text("controller"), cmp.Or(h.Text("partition"), h.Name), cmp.Or(h.Text("topology"), "tree")}
}

// Check implements handover.Kind.
func (*Slurm) Check(h *inventory.Handover, nodes []*inventory.Node) hcl.Diagnostics {
	var diags hcl.Diagnostics
	add := func(attribute, summary, format string, args ...any) {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: h.Place(attribute).Ptr()})
	}
	s := read(h)
	if s.topology != "tree" && s.topology != "flat" {
		add("topology", "Topology is not supported", "Handover %q asks for topology %q; \"tree\" and \"flat\" are supported.", h.Name, s.topology)
		diags[0].Extra = stage.NotYet{}
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
func (*Slurm) Inputs(h *inventory.Handover, _ []*inventory.Node) []plan.Input {
	s := read(h)
	at := func(name string) plan.SourceRange {
		r := h.Place(name)
		return plan.SourceRange{File: r.Filename, Line: r.Start.Line, Column: r.Start.Column}
	}
	return []plan.Input{{Name: "partition", Value: s.partition, Decl: at("partition")}, {Name: "topology", Value: s.topology, Decl: at("topology")}}
}

// DrainLimit implements handover.Kind.
func (*Slurm) DrainLimit(*inventory.Handover) time.Duration { return time.Minute }

// Observe implements handover.Kind.
func (s *Slurm) Observe(_ context.Context, _ stage.Run, t handover.Target) (stage.Observation, error) {
	files, err := render(t)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	for _, f := range files {
		have, err := os.ReadFile(filepath.Join(s.dir, t.Name, f.name))
		switch {
		case os.IsNotExist(err):
			return stage.Observation{State: stage.Differs, Evidence: f.name + " is not written yet"}, nil
		case err != nil:
			return stage.Observation{State: stage.Unknown}, err
		case !bytes.Equal(have, f.content):
			return stage.Observation{State: stage.Differs, Evidence: f.name + " has other lines"}, nil
		}
	}
	return stage.Observation{State: stage.Conforms, Evidence: "the files hold these nodes"}, nil
}

// Apply implements handover.Kind.
func (s *Slurm) Apply(ctx context.Context, run stage.Run, t handover.Target) error {
	return s.write(ctx, run, t, string(handover.StepID(t.Name)))
}

// Drain implements handover.Kind. The files say DRAIN; which jobs run is known
// to slurmctld alone, and the note says so.
func (s *Slurm) Drain(ctx context.Context, run stage.Run, t handover.Target, node string) error {
	if err := s.write(ctx, run, t, string(handover.DrainID(node))); err != nil {
		return err
	}
	run.Emit(event.Event{Type: event.Note, Node: node, Text: fmt.Sprintf(
		"%s says State=DRAIN for %s; slurmctld follows with `scontrol reconfigure`, and only `squeue -w %s` tells whether jobs still run there", filepath.Join(s.dir, t.Name, "nodes.conf"), node, node)})
	return nil
}

func (s *Slurm) write(ctx context.Context, run stage.Run, t handover.Target, key string) error {
	files, err := render(t)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, t.Name)
	return run.Effect(ctx, stage.Effect{
		Key: fmt.Sprintf("%s/write-%d", key, run.Clock().Now().UnixNano()), Kind: plan.Config, Repeatable: true,
		Does: "write Slurm's node lines to " + dir,
		Do: func(context.Context) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			for _, f := range files {
				if err := replace(dir, f.name, f.content); err != nil {
					return errkind.New(errkind.Refused, "write %s: %w", filepath.Join(dir, f.name), err)
				}
				show(run, filepath.Join(dir, f.name), f.content)
			}
			return nil
		},
	})
}

// show tells what was written, a line at a time.
func show(run stage.Run, file string, content []byte) {
	run.Emit(event.Event{Type: event.Note, Text: "wrote " + file})
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "#") {
			run.Emit(event.Event{Type: event.Note, Text: "  " + strings.TrimSuffix(line, "\n")})
		}
	}
}

// replace puts content into dir/name, whole or not at all, and durably.
func replace(dir, name string, content []byte) error {
	f, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // when it was not renamed
	if _, err = f.Write(content); err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
