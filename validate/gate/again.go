// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
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

// What of a node could be read before is read several times in the last look, with a pause
// between: a program of the driver that hangs once, and an agent that starts slowly, answer then.
const (
	lookTries = 3
	lookPause = 20 * time.Second
)

// LastLook looks at a node once more when it is about to be accepted: what began under
// load, or after it was looked at, keeps it out, and so does what is not as it was tested: firmware,
// models, settings, and what its ports counted meanwhile. So does what could be read then and
// cannot be read now. Nodes without health checks are not looked at.
func LastLook(ctx context.Context, j *target.Job) error {
	n, run := j.Node, j.Run
	if !target.HasGates(n) {
		return nil
	}
	seen, err := lookPatiently(ctx, j)
	if err != nil {
		return err
	}
	if len(seen.faults) == 0 && len(seen.outside) > 0 { // nobody knows by one node whose it is: it waits, whatever else cannot be read for it
		x := seen.outside[0]
		return &stage.BlockedError{Err: errkind.New(errkind.Refused, "%s is not accepted: %s, and that was not so at its health checks", n.Name, x.Cause).
			Do(x.Action + " Then run `ironrail apply` again: the node is tested again.")}
	}
	if len(seen.faults) == 0 && len(seen.unread) > 0 { // beside a fault it is likely to be the fault's
		seen.faults = []judge.Fault{since.UnreadFault(seen.unread, lookTries)}
	}
	if len(seen.faults) == 0 {
		return nil
	}
	ref, err := run.Attach("gates-at-acceptance.txt", seen.printed)
	if err != nil {
		return err
	}
	for _, f := range seen.faults {
		if err := run.Blame(ctx, f.Finding(n.Name, ref)); err != nil {
			return err
		}
	}
	return result.RefuseNode(n.Name, "%s", seen.faults[0].Cause)
}

// lookPatiently looks until a fault is found, or nothing is unread any more, or it has looked as often as it may.
func lookPatiently(ctx context.Context, j *target.Job) (seen lastSeen, err error) {
	for try := range lookTries {
		if try > 0 {
			if err := j.Run.Clock().Sleep(ctx, lookPause); err != nil {
				return seen, err
			}
		}
		if seen, err = lookOnce(ctx, j); err != nil || len(seen.faults) > 0 || len(seen.unread) == 0 {
			return seen, err
		}
	}
	return seen, nil
}

// lastSeen is what one last look at a node shows.
type lastSeen struct {
	faults  []judge.Fault
	outside []judge.Fault // that may be the node's or the site's
	unread  []string      // what could be read at the health checks, and cannot be read now
	printed []byte
}

// lookOnce looks at a node and compares it with its health checks.
func lookOnce(ctx context.Context, j *target.Job) (s lastSeen, err error) {
	n, run := j.Node, j.Run
	seen, printed, err := look.ReadNode(ctx, j.Nodes, n.Name, n.Hardware)
	if err != nil {
		return s, err
	}
	seen.Fabrics = FabricsUp(run, n)
	faults, _, outcomes := JudgeEach(n.Hardware, target.AllowedGates(n), seen)
	s.outside, s.faults, s.printed = outsideOf(faults), withoutUnlike(faults), printed
	before, _ := target.ReadFact(run, Fact, subject.OfNode(n.Name))
	s.unread = since.UnreadGates(before.Gates, outcomes, gateNames())
	changed, unread, err := changedSince(ctx, j, seen, before)
	if err != nil {
		return s, err
	}
	s.unread = append(s.unread, unread...)
	for _, f := range changed { // what is found by itself is not named twice
		port, _, _ := strings.Cut(f.Part, " (")
		if !slices.ContainsFunc(s.faults, func(g judge.Fault) bool { return strings.HasPrefix(g.Part, port+" (") }) {
			s.faults = append(s.faults, f)
		}
	}
	return s, nil
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
	all, _, _ := JudgeEach(n.Hardware, target.AllowedGates(n), seen)
	faults := append(outsideOf(all), withoutUnlike(all)...)
	was, _ := target.ReadFact(k, uniform.VersionsFact, subject.OfNode(n.Name))
	kept := func(list []uniform.Trait) []uniform.Trait {
		return slices.DeleteFunc(slices.Clone(list), func(t uniform.Trait) bool { return !slices.Contains(lasting, t.Key) })
	}
	return append(faults, since.CompareTraits(kept(was.Traits), kept(traits.Common(n.Name, seen, nil)))...), nil
}

// lasting are traits that nobody changes on a node in service without knowing, and that the
// agent's own items do not have.
var lasting = []string{uniform.Transceiver, uniform.GPUMemory, uniform.GPUVBIOS, uniform.GPUInfoROM, uniform.CPUModel, uniform.DIMM, uniform.DiskModel}

// changedSince compares a node with how it was at its health checks, and names what was read then and
// is not now. Of one that did not report then nothing is known.
func changedSince(ctx context.Context, j *target.Job, seen look.Seen, before Report) (changed []judge.Fault, unread []string, err error) {
	n, run := j.Node, j.Run
	record, told := target.ReadFact(run, uniform.VersionsFact, subject.OfNode(n.Name))
	if !told {
		return nil, nil, nil
	}
	b, err := askVersions(ctx, j.Nodes, n.Name)
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case err != nil && !slices.ContainsFunc(record.Traits, func(t uniform.Trait) bool { return t.Key == uniform.Kernel }):
		return nil, nil, nil // nor did the agent tell then
	case err != nil:
		return nil, []string{"firmware, drivers, kernel and what its ports counted (" + err.Error() + ")"}, nil
	}
	counts, names, now := since.CountsOf(b, run.Clock().Now().UTC()), since.NamePorts(n.Hardware, seen.Fabrics), traits.Common(n.Name, seen, b.Items)
	changed = append(since.ComparePorts(before.Counts, counts, names), since.CompareTraits(record.Traits, now)...)
	return changed, append(since.UnreadPorts(before.Counts, counts, names), since.UnreadTraits(record.Traits, now)...), nil
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
