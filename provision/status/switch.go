// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision/looks"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/selection"
)

// ListSwitches are the names of all switches of a site.
func ListSwitches(inv *inventory.Inventory) []string {
	out := make([]string, len(inv.Switches))
	for i, s := range inv.Switches {
		out[i] = s.Name
	}
	return out
}

// FindSwitch finds a switch by its name (net/leaf-1), by its label where that is one
// switch's alone (leaf-1), or by a port (net/leaf-1/17); port is nil without one.
func FindSwitch(inv *inventory.Inventory, word string) (sw *inventory.Switch, port *int) {
	if sw = FindSwitchByName(inv, word); sw != nil {
		return sw, nil
	}
	i := strings.LastIndexByte(word, '/')
	if i < 0 {
		return nil, nil
	}
	if n, err := strconv.Atoi(word[i+1:]); err == nil {
		return FindSwitchByName(inv, word[:i]), &n
	}
	return nil, nil
}

// FindSwitchByName finds a switch by its name or by a label that is its alone; nil for none.
func FindSwitchByName(inv *inventory.Inventory, word string) (found *inventory.Switch) {
	for _, s := range inv.Switches {
		if s.Name == word {
			return s
		}
	}
	for _, s := range inv.Switches {
		if s.Label == word && found != nil {
			return nil
		} else if s.Label == word {
			found = s
		}
	}
	return found
}

// UnknownName says that a name is neither of a node nor of a switch.
func UnknownName(inv *inventory.Inventory, word string) error {
	return errkind.New(errkind.Refused, "%q is neither a node nor a switch of this site.%s", word, diag.DidYouMean(word, append(selection.ListNodes(inv), ListSwitches(inv)...))).
		Do("`ironrail status` lists the site's nodes, `ironrail show addresses` its switches too.")
}

// ListSwitchSteps are the steps that configure a switch.
func ListSwitchSteps(inv *inventory.Inventory, name string) (ids []plan.StepID) {
	if sw := FindSwitchByName(inv, name); sw != nil && sw.Fabric != nil {
		ids = append(ids, switchos.StepID(sw, sw.Fabric))
	}
	return ids
}

// ReadSwitch is what state and inventory know of a switch or of one of its ports: all
// but what is under way.
func ReadSwitch(ctx context.Context, inv *inventory.Inventory, r state.Reader, word string) (control.Switch, error) {
	sw, port := FindSwitch(inv, word)
	if sw == nil {
		return control.Switch{}, UnknownName(inv, word)
	}
	k := switchReader{Switch: describeSwitch(sw), of: sw}
	if err := k.cables(inv, reach.Facts(r), port); err != nil {
		return k.Switch, err
	}
	if f, ok := reach.Facts(r)(switchos.ObservedFact.Of(switchos.Of(sw))); ok {
		if v, err := switchos.ObservedFact.Get(f); err == nil {
			k.Read = &control.SwitchRead{At: f.Observed, Conforms: v.Conforms}
		}
	}
	if last, version, err := state.Get[state.Run](ctx, r, state.LastRun); err != nil {
		return k.Switch, err
	} else if version != state.Absent {
		k.Last = &last
	}
	if err := k.journal(ctx, r); err != nil {
		return k.Switch, err
	}
	if err := k.steps(ctx, inv, r); err != nil {
		return k.Switch, err
	}
	return k.Switch, k.looks(ctx, r)
}

// looks reads what was seen of the switch after its step had ended.
func (k *switchReader) looks(ctx context.Context, r state.Reader) error {
	for _, x := range k.Steps {
		l, version, err := looks.Read(ctx, r, x.ID)
		if err != nil {
			return err
		}
		if version != state.Absent && l.At.After(x.Ended) {
			k.Seen = &control.SwitchObservation{At: l.At, State: l.State, Evidence: l.Evidence}
		}
	}
	return nil
}

// switchReader is a switch's story as it is gathered.
type switchReader struct {
	control.Switch
	of *inventory.Switch
}

// describeSwitch is what the site's files say of a switch.
func describeSwitch(sw *inventory.Switch) control.Switch {
	s := control.Switch{Name: sw.Name, Tier: string(sw.Tier), Model: sw.Model, OS: sw.OS, Unit: sw.Unit,
		Steps: []state.Step{}, Skipped: []state.Record{}, Suspect: []stage.Finding{}, Near: []stage.Finding{}, Cables: []control.Port{}}
	if sw.Fabric != nil {
		s.Fabric, s.Kind = sw.Fabric.Name, sw.Fabric.Kind
	}
	if sw.Address.IsValid() {
		s.Address = sw.Address.String()
	}
	if sw.Login != nil {
		s.Login = sw.Login.Name
	}
	if sw.Rack != nil {
		s.Rack = sw.Rack.Name
	}
	return s
}

// cables are those that end in the switch, by port: all of them, or that of one port.
func (k *switchReader) cables(inv *inventory.Inventory, facts func(fact.Key) (fact.Fact, bool), port *int) error {
	if port != nil {
		k.Port = fmt.Sprintf("%s/%d", k.Name, *port)
	}
	type row struct {
		end inventory.CableEnd
		control.Port
	}
	var rows []row
	for _, c := range inv.Cables {
		for _, e := range [][2]inventory.CableEnd{{c.From, c.To}, {c.To, c.From}} {
			if e[0].Switch != k.of || port != nil && e[0].Port != *port {
				continue
			}
			p := control.Port{Port: e[0].String(), To: e[1].String()}
			if far := e[1]; far.Node != nil && far.NIC != nil && far.Port < len(far.NIC.Ports) {
				h := readNeighbours(far.Node.Name, facts)[strings.ToLower(far.NIC.Ports[far.Port].PCI)]
				p.Heard, p.HeardAt = h.text, h.at
			}
			rows = append(rows, row{e[0], p})
		}
	}
	if port != nil && len(rows) == 0 {
		return errkind.New(errkind.Refused, "no cable of the site ends in port %d of switch %s", *port, k.Name).Do(fmt.Sprintf("`ironrail why %s` lists its cables.", k.Name))
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Or(a.end.Port-b.end.Port, a.end.Lane-b.end.Lane) })
	for _, x := range rows {
		k.Cables = append(k.Cables, x.Port)
	}
	return nil
}

// journal reads the records about the switch.
func (k *switchReader) journal(ctx context.Context, r state.Reader) error {
	me := switchos.Of(k.of)
	choice := state.Choice{Subjects: []subject.ID{me}, Kinds: []state.RecordKind{state.RunStarted}}
	err := state.ReadChosen(ctx, r, choice, func(rec state.Record) error {
		switch {
		case rec.Kind == state.RunStarted:
			k.Skipped = k.Skipped[:0]
		case rec.Subject != me, rec.Kind == state.FactLearned:
		case rec.Kind == state.StepSkipped:
			k.Skipped = append(k.Skipped, rec)
		default:
			k.Journal = append(k.Journal, rec)
		}
		return nil
	})
	k.Journal = k.Journal[max(0, len(k.Journal)-control.MostRecords):]
	return err
}

// steps sorts the last ends of all steps: its own, the sweep of its fabric, and the
// findings of others that name it.
func (k *switchReader) steps(ctx context.Context, inv *inventory.Inventory, r state.Reader) error {
	all, err := state.ReadSteps(ctx, r)
	if err != nil {
		return err
	}
	own, sweep := ListSwitchSteps(inv, k.Name), plan.StepID("")
	if k.Kind == "infiniband" {
		sweep = fabric.PartID("site", k.Fabric, "cabling")
	}
	for id, s := range all {
		if s.ID != id {
			continue // of a plan that was split
		}
		if slices.Contains(own, id) {
			k.Steps = append(k.Steps, s)
		}
		if id == sweep {
			k.Sweep = &s
		}
		for _, f := range s.Blamed {
			f.Step = string(id)
			switch about := k.about(f); {
			case slices.Contains(own, id) && k.Port == "":
			case about && slices.ContainsFunc(f.Suspects, k.accused):
				k.Suspect = append(k.Suspect, f)
			case about:
				k.Near = append(k.Near, f)
			}
		}
	}
	order := func(a, b stage.Finding) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Cause, b.Cause))
	}
	slices.SortFunc(k.Suspect, order)
	slices.SortFunc(k.Near, order)
	slices.SortFunc(k.Steps, func(a, b state.Step) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

// accused reports whether a suspect is the switch, or the port of it that is asked
// about.
func (k *switchReader) accused(s stage.Suspect) bool {
	if s.Subject != switchos.Of(k.of) {
		return false
	}
	return k.Port == "" || slices.ContainsFunc(k.Cables, func(c control.Port) bool { return containsName(s.Part, c.To) })
}

// about reports whether a finding names the switch, or one of the cables that are
// asked about.
func (k *switchReader) about(f stage.Finding) bool {
	text, err := json.Marshal(f)
	if err != nil {
		return false // cannot be: texts
	}
	if k.Port == "" {
		return slices.ContainsFunc(f.Suspects, k.accused) || containsName(string(text), k.Name)
	}
	return slices.ContainsFunc(k.Cables, func(c control.Port) bool {
		return containsName(string(text), c.Port) || containsName(string(text), c.To)
	})
}

// containsName reports whether a text has a name as a word: leaf-1 is not in leaf-12 or
// spine-leaf-1.
func containsName(text, name string) bool {
	word := func(c byte) bool {
		return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		begin, end := at+i, at+i+len(name)
		if (begin == 0 || !word(text[begin-1])) && (end == len(text) || !word(text[end])) {
			return true
		}
		at = end
	}
}
