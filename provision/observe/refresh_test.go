// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/host"
	"github.com/ironrail/ironrail/validate"
)

// TestIsUnrecorded: what a node in service may have without having been given it is looked at,
// but for tests, of which nothing is to be seen.
func TestIsUnrecorded(t *testing.T) {
	t.Parallel()
	prior := plan.Prior{Nodes: map[string]plan.NodeState{"n1": {Accepted: true}}, Steps: map[plan.StepID]plan.LastSuccess{"n1/done": {}}}
	for _, c := range []struct {
		id        plan.StepID
		stage     string
		inherited bool
		node      string
		want      bool
	}{
		{"n1/host.settings", host.Name, true, "n1", true},
		{"n1/host.settings", host.Name, false, "n1", false},
		{"n1/done", host.Name, true, "n1", false},
		{"n2/host.settings", host.Name, true, "n2", false},
		{"n1/validate.speed", validate.StageName, true, "n1", false},
	} {
		st := plan.Step{ID: c.id, Stage: c.stage, Inherited: c.inherited, Subject: subject.OfNode(c.node)}
		if got := isUnrecorded(prior, &st); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
