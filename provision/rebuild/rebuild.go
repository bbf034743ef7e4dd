// SPDX-License-Identifier: Apache-2.0

// Package rebuild owns the request to install nodes again: what it may ask for, who the
// chassis is that was put in the place of another, and what becomes durable of it.
package rebuild

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/selection"
)

// The records of a rebuild in the journal.
const (
	RequestRecord state.RecordKind = "rebuild" // Request, of each node
)

// Request is an operator's request to rebuild nodes, and what came of preparing it.
// Prepare it with provision's Site.PrepareRebuild, plan with Nodes as PlanOptions.Replace
// and Targets, record it when the plan is approved, then apply the plan.
type Request struct {
	Nodes  []string  `json:"nodes"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
	// Of the chassis that is there now, where it is another one: as typed. Only a
	// serial number says that it is.
	Serial  string   `json:"serial,omitempty"`
	UUID    string   `json:"uuid,omitempty"`
	BootMAC addr.MAC `json:"boot_mac,omitzero"`
	// Disk is the serial number or WWN of the disk that is installed on, where it is not
	// that of the last install. Whatever lies on it is erased. It goes into
	// PlanOptions.Disks.
	Disk string `json:"disk,omitempty"`

	Notes       []string               `json:"-"` // what the operator should know before approving; set by Prepare
	replacement *overrides.Replacement // set by Prepare
	certificate string                 // that the BMC of the new chassis showed
}

// Prepare checks what is requested of the site as it is desired. Where the chassis is
// another one, it asks the BMC who that is, and who its NICs are, and returns the
// replacement that plans are to be made for; else nil. Nothing is changed, in the state
// or in the world.
func Prepare(ctx context.Context, r state.Reader, access reach.Access, desired *overrides.Desired, o *Request) (*overrides.Replacement, error) {
	if err := o.check(ctx, r, desired.Inv); err != nil || o.Serial == "" {
		return nil, err
	}
	if err := o.learnChassis(ctx, r, access, desired); err != nil {
		return nil, err
	}
	return o.replacement, nil
}

// check refuses a rebuild of nodes that are on hold or not named, and words about a
// chassis that fit none.
func (o *Request) check(ctx context.Context, r state.Reader, inv *inventory.Inventory) error {
	if _, err := selection.CheckNames(inv, o.Nodes); err != nil {
		return err
	}
	for _, name := range o.Nodes {
		n, _, err := state.Get[state.Node](ctx, r, state.NodeKey(name))
		if err != nil {
			return err
		}
		if n.Hold != nil {
			return errkind.New(errkind.Refused, "%s is on hold (%s%s): automation is paused for this node", name, n.Hold.By, strings.TrimSuffix(": "+n.Hold.Reason, ": ")).
				Do(fmt.Sprintf("Ask %s; then `ironrail release %s`, and rebuild it.", n.Hold.By, name))
		}
	}
	if o.Disk != "" && len(o.Nodes) != 1 {
		return errkind.New(errkind.Refused, "a disk is in one node, and %d nodes are to be rebuilt", len(o.Nodes)).Do("Rebuild one node at a time with --disk.")
	}
	if o.Disk != "" {
		if n, known := inv.Node(o.Nodes[0]); known && n.Diskless() {
			return errkind.New(errkind.Refused, "%s keeps its system in memory: nothing is installed on a disk", n.Name).Do("Leave --disk out.")
		}
	}
	if o.Serial == "" {
		if o.UUID != "" || !o.BootMAC.IsZero() {
			return errkind.New(errkind.Refused, "a UUID or a boot MAC without a serial number says nothing of which chassis this is").Do("Give --serial as well, from the label of the chassis.")
		}
		return nil
	}
	if len(o.Nodes) != 1 {
		return errkind.New(errkind.Refused, "a serial number is of one chassis, and %d nodes are to be rebuilt", len(o.Nodes)).Do("Rebuild one node at a time with --serial.")
	}
	return nil
}

// Disks is the disk that is named, by node, as PlanOptions.Disks has it; nil: none is.
func (o *Request) Disks() map[string]string {
	if o.Disk == "" {
		return nil
	}
	return map[string]string{o.Nodes[0]: o.Disk}
}

// Record makes a prepared and approved rebuild durable, before its plan is
// applied: the reason, the new chassis, and that nothing that was learned from the
// old one is believed of it. Nodes come out of quarantine: they get a new chance.
// The plan is told the versions of what is changed here.
func Record(ctx context.Context, store state.Store, fence state.Fence, o *Request, p *plan.Plan) error {
	var parts []state.Batch // one of each node, that of its chassis first
	at := o.At.UTC()
	moved := map[string]uint64{}
	for _, name := range o.Nodes {
		me := subject.OfNode(name)
		parts = append(parts, state.Batch{Records: []state.Record{state.Record{Kind: RequestRecord, Time: at, Subject: me}.With(o)},
			// A boot attempt of before was of hardware that somebody has touched since.
			Puts: []state.Put{{Key: state.FactKey(install.AttemptFact.Of(me)), Want: state.Any}}})
		b := &parts[len(parts)-1]
		n, version, err := state.Get[state.Node](ctx, store, state.NodeKey(name))
		if err != nil {
			return err
		}
		if n.Quarantine == nil {
			continue
		}
		n.Quarantine = nil
		put, err := state.PutOf(state.NodeKey(name), n)
		if err != nil {
			return err
		}
		put.Want = version
		b.Puts, b.Records = append(b.Puts, put), append(b.Records, state.Record{Kind: state.Cleared, Time: at, Subject: me})
		moved[name] = version
	}
	var chassis state.Batch
	if err := o.recordChassis(ctx, store, &chassis); err != nil {
		return err
	}
	if err := state.AppendParts(ctx, store, fence, append([]state.Batch{chassis}, parts...)...); err != nil {
		return err
	}
	for name := range moved {
		_, version, err := state.Get[state.Node](ctx, store, state.NodeKey(name))
		if err != nil {
			return err
		}
		if _, ok := p.Versions[subject.OfNode(name)]; ok {
			p.Versions[subject.OfNode(name)] = version
		}
	}
	return nil
}

// ofChassis are the facts that were read from a chassis and prove who answers, or
// say what stands on its disks. The hardware is not among them: the scheduler's
// lines are made of it until the new one is inspected.
func ofChassis(node string) []fact.Key {
	me := subject.OfNode(node)
	return []fact.Key{oob.ReportFact.Of(me), oob.CertificateFact.Of(me), install.IdentityFact.Of(me),
		install.DiskFact.Of(me), install.DisksFact.Of(me), install.WriteFact.Of(me), install.HostKeyFact.Of(me), install.SystemFact.Of(me), cabling.NeighboursFact.Of(me), install.SettingsFact.Of(me)}
}

// recordChassis adds the new chassis to a batch, and takes out what was learned
// from the old one.
func (o *Request) recordChassis(ctx context.Context, r state.Reader, b *state.Batch) error {
	if o.replacement == nil {
		return nil
	}
	x := *o.replacement
	me := subject.OfNode(x.Node)
	if err := x.Put(b); err != nil {
		return err
	}
	for _, k := range ofChassis(x.Node) {
		if k.Name == string(oob.CertificateFact) && o.certificate != "" {
			continue
		}
		if _, ok, err := r.Object(ctx, state.FactKey(k)); err != nil {
			return err
		} else if ok {
			b.Puts = append(b.Puts, state.Put{Key: state.FactKey(k), Want: state.Any})
		}
	}
	for _, gone := range drift.Forget(x.Node) { // how the old chassis was when it was accepted
		if _, ok, err := r.Object(ctx, gone.Key); err != nil {
			return err
		} else if ok {
			b.Puts = append(b.Puts, gone)
		}
	}
	if o.certificate == "" {
		return nil
	}
	f, err := oob.CertificateFact.New(me, o.certificate, x.Serial)
	if err != nil {
		return err
	}
	f.Observed = x.At
	put, err := state.PutOf(state.FactKey(f.Key), f)
	if err != nil {
		return err
	}
	b.Puts = append(b.Puts, put)
	b.Records = append(b.Records, state.Record{Kind: state.FactLearned, Time: x.At, Subject: me}.With(f))
	return nil
}
