package provision

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/parts"
)

// notesOf is what the state knows of a node that the site's files do not say: that
// another chassis stands in its place, that it is pinned to an earlier image, and
// which of its parts were found bad on another node. A sentence each, in that order.
func notesOf(ctx context.Context, inv *inventory.Inventory, r state.Reader, node string) (notes []string, err error) {
	x, version, err := state.Get[Replacement](ctx, r, state.Key{Kind: replacementKind, Name: node})
	if err != nil {
		return nil, err
	}
	if n, ok := inv.Node(node); ok && version != state.Absent && x.inPlaceOf(n) {
		notes = append(notes, x.note())
	}
	p, version, err := state.Get[Pin](ctx, r, state.Key{Kind: pinKind, Name: node})
	if err != nil {
		return nil, err
	}
	if version != state.Absent {
		notes = append(notes, p.Warning())
	}
	fitted, err := parts.In(ctx, r, node)
	if err != nil {
		return nil, err
	}
	suspects, err := parts.Suspects(ctx, r, fitted.Parts)
	if err != nil {
		return nil, err
	}
	for _, s := range suspects {
		if s.Elsewhere(node) {
			notes = append(notes, s.Sentence())
		}
	}
	return notes, nil
}

// notesAll are the notes of all nodes that have some. What was found of the parts of a
// node elsewhere is told while the node is not up: of one that was accepted since, and
// so tested with them, it is for why to tell.
func notesAll(ctx context.Context, inv *inventory.Inventory, r state.Reader, nodes []state.Node) (map[string][]string, error) {
	told := map[string]bool{}
	for _, kind := range []string{replacementKind, pinKind} {
		os, err := r.Objects(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, o := range os {
			told[o.Key.Name] = true
		}
	}
	out := map[string][]string{}
	for _, n := range nodes {
		if n.Accepted && n.Quarantine == nil && !told[n.Name] {
			continue
		}
		notes, err := notesOf(ctx, inv, r, n.Name)
		if err != nil {
			return nil, err
		}
		if len(notes) > 0 {
			out[n.Name] = notes
		}
	}
	return out, nil
}

// inPlaceOf reports whether the replacement says something of a node, be it laid
// over the inventory already or not. Files that name a third serial number count,
// and so does what they say once they have caught up.
func (r Replacement) inPlaceOf(n *inventory.Node) bool {
	now, stands := r.over(chassisOf(n))
	return stands || now.Serial == r.Serial && r.Was.Serial != r.Serial
}

func (r Replacement) note() string {
	text := fmt.Sprintf("its chassis was replaced on %s: serial %s, before it %s", r.At.UTC().Format(time.DateOnly),
		cmp.Or(r.Serial, "not known"), cmp.Or(r.Was.Serial, "none in the files"))
	if why := strings.Trim(r.Reason+", by "+r.By, ", "); r.By != "" {
		return text + " (" + why + ")"
	} else if r.Reason != "" {
		return text + " (" + r.Reason + ")"
	}
	return text
}
