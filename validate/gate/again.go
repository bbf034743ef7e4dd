// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/gate/since"
	"github.com/ironrail/ironrail/validate/gate/traits"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/uniform"
)

// LastLook looks at a node once more when it is about to be accepted: what began under
// load, or after it was looked at, keeps it out, and so does what is not as it was tested: firmware,
// models, settings, and what its ports counted meanwhile. Nodes without health checks are
// not looked at.
func LastLook(ctx context.Context, j *target.Job) error {
	n, run := j.Node, j.Run
	if !target.HasGates(n) {
		return nil
	}
	seen, printed, err := look.ReadNode(ctx, j.Nodes, n.Name, n.Hardware)
	if err != nil {
		return err
	}
	seen.Fabrics = FabricsUp(j.Run, n)
	faults, _ := Judge(n.Hardware, target.AllowedGates(n), seen)
	changed, err := changedSince(ctx, j, seen)
	if err != nil {
		return err
	}
	for _, f := range changed { // what is found by itself is not named twice
		port, _, _ := strings.Cut(f.Part, " (")
		if !slices.ContainsFunc(faults, func(g judge.Fault) bool { return strings.HasPrefix(g.Part, port+" (") }) {
			faults = append(faults, f)
		}
	}
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

// Look returns what the health checks find of a node now, at rest, by what is known of it: what
// does not pass, and models and firmware that are not those that were tested. An error means
// that it could not be asked.
func Look(ctx context.Context, nodes onnode.Nodes, n *inventory.Node, k known) ([]judge.Fault, error) {
	seen, _, err := look.ReadNode(ctx, nodes, n.Name, n.Hardware)
	if err != nil {
		return nil, err
	}
	seen.Fabrics = FabricsUp(k, n)
	faults, _ := Judge(n.Hardware, target.AllowedGates(n), seen)
	was, _ := target.ReadFact(k, uniform.VersionsFact, subject.OfNode(n.Name))
	kept := func(list []uniform.Trait) []uniform.Trait {
		return slices.DeleteFunc(slices.Clone(list), func(t uniform.Trait) bool { return !slices.Contains(lasting, t.Key) })
	}
	return append(faults, since.CompareTraits(kept(was.Traits), kept(traits.Common(n.Name, seen, nil)))...), nil
}

// lasting are traits that nobody changes on a node in service without knowing, and that the
// agent's own items do not have.
var lasting = []string{uniform.Transceiver, uniform.GPUMemory, uniform.GPUVBIOS, uniform.GPUInfoROM, uniform.CPUModel, uniform.DIMM, uniform.DiskModel}

// changedSince compares a node with how it was at its health checks. Of one that did not report
// then, or does not now, nothing is known.
func changedSince(ctx context.Context, j *target.Job, seen look.Seen) ([]judge.Fault, error) {
	n, run := j.Node, j.Run
	record, told := target.ReadFact(run, uniform.VersionsFact, subject.OfNode(n.Name))
	before, looked := target.ReadFact(run, Fact, subject.OfNode(n.Name))
	if !told || !looked {
		return nil, nil
	}
	b, err := askVersions(ctx, j.Nodes, n.Name)
	if err != nil {
		return nil, ctx.Err()
	}
	counted := since.ComparePorts(before.Counts, since.CountsOf(b, run.Clock().Now().UTC()), since.NamePorts(n.Hardware, seen.Fabrics))
	return append(counted, since.CompareTraits(record.Traits, traits.Common(n.Name, seen, b.Items))...), nil
}

// known finds facts by their keys.
type known interface {
	Fact(fact.Key) (fact.Fact, bool)
}

// FabricsUp are the fabrics of a node that were brought up, by what is known of it.
func FabricsUp(k known, n *inventory.Node) (names []string) {
	for _, f := range fabric.Of(n) {
		if IsUp(k, f, n) {
			names = append(names, f.Name)
		}
	}
	return names
}

// IsUp reports whether a node was brought up on a fabric.
func IsUp(k known, f *inventory.Fabric, n *inventory.Node) bool {
	_, up := target.ReadFact(k, fabric.Ports(f.Name), subject.OfNode(n.Name))
	return up
}
