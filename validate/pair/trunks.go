// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/transfer"
	"github.com/ironrail/ironrail/validate/trunk"
)

// blameTrunks looks between the leaves for what explains bad transfers between nodes that
// are good with others, and blames cables that counted errors under load. It returns the
// transfers that are left.
func (v verdict) blameTrunks(ctx context.Context, rep *result.Report, between []isolate.Measurement) ([]isolate.Measurement, error) {
	byFabric := map[string][]isolate.Measurement{}
	var left []isolate.Measurement
	for _, m := range between {
		if m.Crosses() {
			byFabric[v.fabricOf(m.Fabric).Name] = append(byFabric[v.fabricOf(m.Fabric).Name], m)
		} else {
			left = append(left, m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.watches)) {
		bad := byFabric[name]
		found := v.searchTrunks(ctx, name, bad)
		if len(found.Suspects) > 0 {
			if err := v.reportTrunks(ctx, rep, found, name, bad); err != nil {
				return nil, err
			}
		}
		for _, m := range bad {
			if !found.Explains(m) {
				left = append(left, m)
			}
		}
		for _, f := range trunk.WornFindings(v.loads[name].Worn, found.Suspects) {
			if err := v.p.Rec.Blame(ctx, f); err != nil {
				return nil, err
			}
		}
	}
	return left, nil
}

// searchTrunks finds what is at fault between the leaves of one fabric.
func (v verdict) searchTrunks(ctx context.Context, name string, bad []isolate.Measurement) trunk.Found {
	if len(bad) == 0 {
		return trunk.Found{}
	}
	var good []isolate.Measurement
	for _, m := range v.p.measurements() {
		if !m.Bad && m.Crosses() && v.fabricOf(m.Fabric).Name == name {
			good = append(good, m)
		}
	}
	v.p.Rec.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("%d transfers between leaves of fabric %s are bad, and their nodes are good with others: looking for the cable or the spine", len(bad), name)})
	s := trunk.Search{Watch: v.watches[name], Worn: v.loads[name].Worn, Run: v.runAlone}
	return s.Find(ctx, bad, good)
}

// runAlone runs one transfer with nothing beside it.
func (v verdict) runAlone(ctx context.Context, m isolate.Measurement) (bad bool, packets uint64, text string) {
	was := v.transferOf(m)
	t := &transfer.Transfer{From: was.From, To: was.To, FromLeaf: was.FromLeaf, ToLeaf: was.ToLeaf, Usual: was.Usual, Pace: was.Bw}
	v.p.Rec.Emit(event.Event{Type: event.StepProgress, Text: "alone, for its way: " + t.Name()})
	v.p.Runner.Run(ctx, t)
	sent := uint64(t.Writes) * uint64(transfer.MessageSize(v.p.Test)) / trunk.PacketSize
	return t.Bad(), sent, t.Name() + ": " + t.Outcome()
}

// reportTrunks blames what was found, and notes at the bad results that it is at fault.
func (v verdict) reportTrunks(ctx context.Context, rep *result.Report, found trunk.Found, name string, bad []isolate.Measurement) error {
	explained := slices.DeleteFunc(slices.Clone(bad), func(m isolate.Measurement) bool { return !found.Explains(m) })
	if len(explained) == 0 {
		return nil
	}
	t := v.transferOf(explained[0])
	f := found.Finding(fmt.Sprintf("%d transfers between leaves are bad, such as %s: %s", len(explained), t.Name(), t.Outcome()), v.loads[name].Worn)
	ref, err := v.p.Rec.Attach("bad-transfers.txt", v.texts(func(t *transfer.Transfer) bool { return t.Bad() && t.FromLeaf != t.ToLeaf }))
	if err != nil {
		return err
	}
	f.Evidence = append(append(f.Evidence, found.Notes...), ref)
	for _, m := range explained {
		v.explainTransfer(rep, m, found.Names())
	}
	return v.p.Rec.Blame(ctx, f)
}

// explainTransfer notes at the bad result of a transfer what is at fault for it.
func (v verdict) explainTransfer(rep *result.Report, m isolate.Measurement, what string) {
	rep.Results[v.indexOf(m)].Explain(what)
}

// blameCrossings blames what all leaves of a fabric share, when every transfer between
// leaves is bad; it reports whether it is so.
func (v verdict) blameCrossings(ctx context.Context, rep *result.Report, parts []isolate.Part) (bool, error) {
	bad := isolate.AllCrossings(v.p.measurements())
	if len(bad) == 0 || !isolate.OnlyLeaves(parts) {
		return false, nil
	}
	name, t := v.fabricOf(bad[0].Fabric).Name, v.transferOf(bad[0])
	ref, err := v.p.Rec.Attach("bad-transfers.txt", v.texts((*transfer.Transfer).Bad))
	if err != nil {
		return false, err
	}
	for _, m := range bad {
		v.explainTransfer(rep, m, "what all leaves of fabric "+name+" share")
	}
	f := trunk.CrossingsFinding(name, len(bad), t.Name()+": "+t.Outcome())
	f.Evidence = append(f.Evidence, ref)
	return true, v.p.Rec.Blame(ctx, f)
}
