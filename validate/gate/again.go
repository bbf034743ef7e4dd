// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// LastLook looks at a node once more when it is about to be accepted: what began under
// load, or after it was looked at, keeps it out. Nodes without health checks are not
// looked at.
func LastLook(ctx context.Context, j *target.Job) error {
	n, run := j.Node, j.Run
	if !target.HasGates(n) {
		return nil
	}
	seen, printed, err := look.ReadNode(ctx, j.Nodes, n.Name, n.Hardware)
	if err != nil {
		return err
	}
	seen.Fabrics = fabricsUp(j)
	faults, _ := Judge(n.Hardware, target.AllowedGates(n), seen)
	if len(faults) == 0 {
		return nil
	}
	ref, err := run.Attach("gates-at-acceptance.txt", printed)
	if err != nil {
		return err
	}
	for _, f := range faults {
		if err := run.Blame(ctx, f.Finding(n.Name, ref)); err != nil {
			return err
		}
	}
	return result.RefuseNode(n.Name, "%s", faults[0].Cause)
}

// fabricsUp are the fabrics of a node that were brought up.
func fabricsUp(j *target.Job) (names []string) {
	for _, f := range fabric.Of(j.Node) {
		if _, up := target.ReadFact(j.Run, fabric.Ports(f.Name), subject.OfNode(j.Node.Name)); up {
			names = append(names, f.Name)
		}
	}
	return names
}
