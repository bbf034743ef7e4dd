// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"strings"

	"github.com/ironrail/ironrail/engine/why"
)

// MostChanges bounds the nodes of one Change: more are said to be all.
const MostChanges = 500

// Change is what is not as it was in a reading before.
type Change struct {
	Generation uint64       `json:"generation"`
	All        bool         `json:"all,omitempty"`    // too much has changed to name it
	Counts     bool         `json:"counts,omitempty"` // how many nodes are in which state
	Nodes      []NodeChange `json:"nodes,omitempty"`
}

// NodeChange is how a node stands now.
type NodeChange struct {
	Name  string     `json:"name"`
	State why.Status `json:"state"`
	Tone  Tone       `json:"tone"`
	Mark  string     `json:"mark"`
	Text  string     `json:"text"`
}

// ChangesSince compares a reading with one before.
func (s *Snapshot) ChangesSince(before *Snapshot) Change {
	c := Change{Generation: s.Generation}
	if len(before.nodes) != len(s.nodes) || before.Inv != s.Inv || before.Trouble != s.Trouble || before.review != s.review {
		c.All, c.Counts = true, true
		return c
	}
	for i, n := range s.nodes {
		was := before.nodes[i]
		if was.Node == n.Node && was.Status == n.Status && was.Since.Equal(n.Since) && was.Cause == n.Cause && textOf(was) == textOf(n) {
			continue
		}
		c.Counts = c.Counts || was.Status != n.Status
		c.Nodes = append(c.Nodes, NodeChange{n.Node, n.Status, ToneOf(n.Status), MarkOf(n.Status), textOf(n)})
	}
	if len(c.Nodes) > MostChanges {
		c.All, c.Nodes = true, nil
	}
	return c
}

// textOf is what a node does or why it is not up, without the times, which have fields of
// their own.
func textOf(n why.NodeSummary) string {
	text, _, _ := strings.Cut(n.Text, ", since ")
	return cmp.Or(n.Cause, text)
}
