// SPDX-License-Identifier: Apache-2.0

// Package export writes files that list the nodes in service, for those who have no
// scheduler that is asked: the part that all kinds of export have in common. What
// stands in the files is each kind's own.
package export

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
)

// Render makes the files of an export. It lists the members in service and no others,
// is pure, and makes the same bytes of the same target.
type Render func(handover.Target) ([]handover.File, error)

// Describe writes what the files of an export follow from but for the attributes of its
// block: two targets that are described alike have the same files. It takes less time than
// to render them, since each plan asks for it.
type Describe func(io.Writer, handover.Target)

// Kind is a kind of export. It is safe for concurrent use for different handovers.
type Kind struct {
	dir        string
	render     Render
	describe   Describe
	attributes []string
}

// New returns a kind whose files are below dir, such as dir/NAME/hostfile. dir is made
// when it is needed. attributes are those of the block that the files depend on.
func New(dir string, render Render, describe Describe, attributes ...string) *Kind {
	return &Kind{dir, render, describe, attributes}
}

// Check implements handover.Kind: Load has checked all that there is.
func (*Kind) Check(*inventory.Handover, []*inventory.Node) hcl.Diagnostics { return nil }

// Inputs implements handover.Kind: what the files follow from where all nodes are in
// service, but for what only an inspection shows.
func (k *Kind) Inputs(inv *inventory.Inventory, h *inventory.Handover, nodes []*inventory.Node) []plan.Input {
	t := handover.Target{Handover: h, Site: inv.Site.Name, Inventory: inv, Members: make([]handover.Member, 0, len(nodes))}
	for _, n := range nodes {
		t.Members = append(t.Members, handover.Member{Node: n, InService: true})
	}
	sum := sha256.New()
	for _, name := range k.attributes {
		fmt.Fprintf(sum, "%s %q %d\n", name, h.Text(name), h.Number(name))
		for key, text := range h.Entries(name) {
			fmt.Fprintf(sum, " %q %q\n", key, text)
		}
	}
	w := bufio.NewWriterSize(sum, 64<<10)
	k.describe(w, t)
	_ = w.Flush() // a hash takes everything
	return []plan.Input{{Name: "nodes", Value: hex.EncodeToString(sum.Sum(nil)[:8]), Decl: stage.Source(h.Decl)}}
}

// DrainLimit implements handover.Kind.
func (*Kind) DrainLimit(*inventory.Handover) time.Duration { return time.Minute }

// Observe implements handover.Kind.
func (k *Kind) Observe(_ context.Context, _ stage.Run, t handover.Target) (stage.Observation, error) {
	files, err := k.render(t)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	return handover.ObserveFiles(filepath.Join(k.dir, t.Name), files)
}

// Apply implements handover.Kind.
func (k *Kind) Apply(ctx context.Context, run stage.Run, t handover.Target) error {
	return k.write(ctx, run, t, handover.StepID(t.Name), handover.SubjectOf(t.Name))
}

// Drain implements handover.Kind. What runs on the node is not known to a file.
func (k *Kind) Drain(ctx context.Context, run stage.Run, t handover.Target, node string) error {
	return k.write(ctx, run, t, handover.DrainID(node), subject.OfNode(node))
}

// write writes the files, as an effect of a step on a subject.
func (k *Kind) write(ctx context.Context, run stage.Run, t handover.Target, step plan.StepID, of subject.ID) error {
	files, err := k.render(t)
	if err != nil {
		return fmt.Errorf("handover %s: %w", t.Name, err)
	}
	wrote := func(path string, _ []byte) {
		run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("wrote %s: %d nodes", path, len(InService(t)))})
	}
	return handover.DoEffect(ctx, run, of, handover.WriteEffect(fmt.Sprintf("%s/list.%s", step, t.Name), "the nodes in service", filepath.Join(k.dir, t.Name), files, wrote))
}

// InService returns the members that an export lists, by name.
func InService(t handover.Target) []handover.Member {
	list := make([]handover.Member, 0, len(t.Members))
	for _, m := range t.Members {
		if m.InService {
			list = append(list, m)
		}
	}
	return list
}
