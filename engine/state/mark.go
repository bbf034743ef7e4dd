// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// HoldNode stops all automation on a node. While apply runs, its executor's
// Hold is used instead: it also stops what is under way. A node that is held
// already stays held as it was when no reason is given: who typed it twice has no
// better one.
func HoldNode(ctx context.Context, s Store, f Fence, name string, h Hold) error {
	return changeNode(ctx, s, f, name, Record{Kind: Held, Time: h.At}.With(h), func(n *Node) error {
		if !h.Repeats(n.Hold) {
			n.Hold = &h
		}
		return nil
	})
}

// Repeats reports whether a hold says nothing that the one before it, if there is
// any, did not.
func (h Hold) Repeats(was *Hold) bool { return was != nil && h.Reason == "" }

// ReleaseNode lets a held node go again, and takes it out of quarantine: the
// operator says that it is in order. A run releases holds only.
func ReleaseNode(ctx context.Context, s Store, f Fence, name string, h Hold) error {
	return changeNode(ctx, s, f, name, Record{Kind: Released, Time: h.At}.With(h), func(n *Node) error {
		if n.Hold == nil && n.Quarantine == nil {
			return errkind.New(errkind.Refused, "node %s is neither held nor quarantined", name).Do("`ironrail status` says where every node stands.")
		}
		n.Hold, n.Quarantine, n.Doubt = nil, nil, ""
		return nil
	})
}

// AdoptNode records that a node is taken as it is found. Nothing was installed
// by ironrail, and nothing about it is verified.
func AdoptNode(ctx context.Context, s Store, f Fence, name string, at time.Time) error {
	return changeNode(ctx, s, f, name, Record{Kind: Adopted, Time: at}, func(n *Node) error {
		if n.Accepted {
			return errkind.New(errkind.Refused, "node %s is accepted already", name)
		}
		n.Adopted, n.AdoptedAt = true, at
		return nil
	})
}

// changeNode reads, changes and writes a node with its record; a node that
// moved in between is refused.
func changeNode(ctx context.Context, s Store, f Fence, name string, r Record, change func(*Node) error) error {
	n, version, err := Get[Node](ctx, s, NodeKey(name))
	if err != nil {
		return err
	}
	n.Name = name
	if err := change(&n); err != nil {
		return err
	}
	p, err := PutOf(NodeKey(name), n)
	if err != nil {
		return err
	}
	p.Want, r.Subject = version, subject.OfNode(name)
	if _, err := s.Append(ctx, f, Batch{Records: []Record{r}, Puts: []Put{p}}); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	return nil
}

// Removed is the Data of the note about an object that an operator took out.
type Removed struct {
	Removed string          `json:"removed"` // its key
	Version uint64          `json:"version"`
	By      string          `json:"by"`
	Value   json.RawMessage `json:"value,omitempty"` // as it was; left out above 64 KiB
}

// NewRemoved describes o as removed by somebody.
func NewRemoved(o Object, by string) Removed {
	r := Removed{Removed: o.Key.String(), Version: o.Version, By: by, Value: o.Value}
	if len(r.Value) > 64<<10 {
		r.Value = nil
	}
	return r
}
