// SPDX-License-Identifier: Apache-2.0

package result

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
)

// judgement is what a report means for each node. A report on thousands of nodes
// is read once, not once for each node.
type judgement struct {
	raw      []byte // of the fact that it was made from
	Digest   [sha256.Size]byte
	At       time.Time
	Members  map[string]bool
	suspects map[string]bool
	bad      map[string]Result // the first result that refuses a node
	judged   map[string]bool   // nodes that at least one result let through
	alone    bool              // one node was left, and nothing was measured
	// Provisional is that of the report.
	Provisional string
}

// Judgements keeps the last judgement of each report. It is safe for concurrent
// use.
type Judgements struct {
	mu   sync.Mutex // guards last
	last map[fact.Key]*judgement
}

// Of returns the judgement of the report as it stands in the run.
func (c *Judgements) Of(run stage.Run, name fact.Name[Report], key fact.Key) (*judgement, error) {
	f, ok := run.Fact(key)
	if !ok {
		return nil, noResult(key)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The same bytes at the same place are distinguished at no cost.
	if j := c.last[key]; j != nil && bytes.Equal(j.raw, f.Value) {
		return j, nil
	}
	rep, err := name.Get(f)
	if err != nil {
		return nil, noResult(key)
	}
	if c.last == nil {
		c.last = map[fact.Key]*judgement{}
	}
	j := judgeReport(rep)
	j.raw, j.Digest = f.Value, sha256.Sum256(f.Value)
	c.last[key] = j
	return j, nil
}

func noResult(key fact.Key) error {
	return errkind.New(errkind.NotFound, "%s of %s has no result", key.Name, key.Subject.Name).Do("Apply again: the test is run first.")
}

// judgeReport goes through a report. A bad result does not speak against a node when
// another one of its nodes is a suspect, which explains it, nor when a part that is
// no node does.
func judgeReport(rep Report) *judgement {
	j := &judgement{At: rep.At, Members: SetOf(rep.Members), suspects: SetOf(rep.Suspects), bad: map[string]Result{}, judged: map[string]bool{},
		alone: len(rep.Members) == 1 && len(rep.Results) == 0, Provisional: rep.Provisional}
	for _, r := range rep.Results {
		suspected := 0
		for _, n := range r.Nodes {
			if j.suspects[n] {
				suspected++
			}
		}
		for _, n := range r.Nodes {
			_, already := j.bad[n]
			switch {
			case r.Verdict == Pass:
				j.judged[n] = true
			case r.Explained != "":
			case !already && (suspected == 0 || suspected == 1 && j.suspects[n]):
				j.bad[n] = r
			}
		}
	}
	return j
}

// Passed returns why the report does not let a node through.
func (j *judgement) Passed(node string, name fact.Name[Report]) error {
	switch {
	case !j.Members[node]:
		return RefuseNode(node, "it was not among the nodes that were tested (%s)", name)
	case j.suspects[node]:
		return RefuseNode(node, "it is suspected in %s", name)
	case j.alone:
		return nil // the last one of its group, within the quorum; the report says so
	}
	if r, bad := j.bad[node]; bad {
		return RefuseNode(node, "%s of %s is %s: %s", r.Check, describeNodes(r), r.Verdict, r.Why)
	}
	if !j.judged[node] {
		return RefuseNode(node, "no result of %s is about it alone: all of its partners are suspected", name)
	}
	return nil
}

func describeNodes(r Result) string {
	text := "[" + strings.Join(r.Nodes, " ") + "]"
	if len(r.Nodes) > mostNamed {
		text = "[" + NameSome(r.Nodes) + "]"
	}
	if r.Part != "" {
		text += " " + r.Part
	}
	return text
}

// RefuseNode is why a node is not accepted.
func RefuseNode(node, format string, args ...any) error {
	return errkind.New(errkind.Refused, "%s is not accepted: "+format, append([]any{node}, args...)...).
		Do("Repair what the finding of the test names, then apply again.")
}
