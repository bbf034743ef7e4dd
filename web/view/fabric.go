// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/draw"
	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/status"
)

// Suspected is the state of a cable that a test names: it is where it belongs, as far as is
// known, and something is wrong with it.
const Suspected = "suspected"

// cableStates are the states of cables, the most urgent first.
var cableStates = []string{string(cabling.Wrong), string(cabling.Missing), Suspected, string(cabling.Unknown), string(cabling.Conforms)}

// Others is the name under which cables of no fabric are.
const Others = "others"

// Cable is an intended cable, and how it was found.
type Cable struct {
	From    string `json:"from"`
	To      string `json:"to"`
	State   string `json:"state"`           // conforms, unknown, wrong, missing or suspected
	Found   string `json:"found,omitempty"` // where it ends, where that is elsewhere
	Why     string `json:"why,omitempty"`
	Finding string `json:"finding,omitempty"` // the name of what is wrong with it
	Type    string `json:"type,omitempty"`
	Length  string `json:"length,omitempty"`
	Speed   string `json:"speed,omitempty"`

	low, high string // names of what it connects
	rail      int    // -1: none
}

// CableCount is how many cables are in one state.
type CableCount struct {
	State  string `json:"state"`
	Cables int    `json:"cables"`
}

// FabricInRow is a fabric of the list.
type FabricInRow struct {
	Name     string       `json:"name"`
	Kind     string       `json:"kind,omitempty"` // empty: cables of no fabric
	Switches int          `json:"switches"`
	Cables   int          `json:"cables"`
	Counts   []CableCount `json:"counts"`
}

// Fabrics is the list of fabrics.
type Fabrics struct {
	Fabrics []FabricInRow `json:"fabrics"`
}

// CableFilter chooses cables of a fabric.
type CableFilter struct {
	State string // empty: all
	Text  string // in an end
	Page  int
}

// Fabric is one fabric with its cables.
type Fabric struct {
	FabricInRow
	Page
	Topology string   `json:"topology,omitempty"`
	Names    []string `json:"names"` // of its switches
	List     []Cable  `json:"list"`  // a page of its cables, what is wrong first
}

// Fabrics lists the fabrics of the site.
func (k *Keeper) Fabrics(ctx context.Context) (Fabrics, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return Fabrics{}, err
	}
	all, err := k.cablesOf(ctx, s)
	if err != nil {
		return Fabrics{}, err
	}
	out := Fabrics{Fabrics: []FabricInRow{}}
	for _, f := range s.Inv.Fabrics {
		out.Fabrics = append(out.Fabrics, s.fabricRow(f.Name, f.Kind, all[f.Name]))
	}
	if rest := all[Others]; len(rest) > 0 {
		out.Fabrics = append(out.Fabrics, s.fabricRow(Others, "", rest))
	}
	return out, nil
}

// Fabric is the page of a fabric, or of Others.
func (k *Keeper) Fabric(ctx context.Context, name string, f CableFilter) (Fabric, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return Fabric{}, err
	}
	all, err := k.cablesOf(ctx, s)
	if err != nil {
		return Fabric{}, err
	}
	out := Fabric{Names: []string{}}
	kind := ""
	of := slices.IndexFunc(s.Inv.Fabrics, func(f *inventory.Fabric) bool { return f.Name == name })
	if of < 0 && (name != Others || len(all[Others]) == 0) {
		return out, errkind.New(errkind.NotFound, "%q is not a fabric of this site", name)
	}
	if of >= 0 {
		kind, out.Topology = s.Inv.Fabrics[of].Kind, s.Inv.Fabrics[of].Topology
	}
	out.FabricInRow = s.fabricRow(name, kind, all[name])
	for _, sw := range s.Inv.Switches {
		if sw.Fabric != nil && sw.Fabric.Name == name {
			out.Names = append(out.Names, sw.Name)
		}
	}
	chosen := slices.DeleteFunc(slices.Clone(all[name]), func(c Cable) bool {
		return f.State != "" && c.State != f.State || !strings.Contains(strings.ToLower(c.From+" "+c.To), strings.ToLower(f.Text))
	})
	out.List, out.Page = pageOf(chosen, f.Page, CablesPerPage)
	out.List = append([]Cable{}, out.List...)
	return out, nil
}

func (s *Snapshot) fabricRow(name, kind string, cables []Cable) FabricInRow {
	out := FabricInRow{Name: name, Kind: kind, Cables: len(cables), Counts: []CableCount{}}
	for _, sw := range s.Inv.Switches {
		if sw.Fabric != nil && sw.Fabric.Name == name {
			out.Switches++
		}
	}
	for _, st := range cableStates {
		n := 0
		for _, c := range cables {
			if c.State == st {
				n++
			}
		}
		if n > 0 {
			out.Counts = append(out.Counts, CableCount{st, n})
		}
	}
	return out
}

// cablesOf are the cables of the site by fabric, what is wrong first.
func (k *Keeper) cablesOf(ctx context.Context, s *Snapshot) (map[string][]Cable, error) {
	found, err := k.findingsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	return k.cables.get(s, k.Now(), func() (out map[string][]Cable, err error) {
		err = k.withState(ctx, s, func(r state.Reader) (err error) {
			out, err = readCables(ctx, s.Inv, r, found.all)
			return err
		})
		return out, err
	})
}

// readCables compares the cables with what nodes heard and sweeps found.
func readCables(ctx context.Context, inv *inventory.Inventory, r state.Reader, found []stage.Finding) (map[string][]Cable, error) {
	out := map[string][]Cable{}
	heard := map[string][]wire.Neighbour{}
	facts := reach.Facts(r)
	for _, n := range inv.Nodes {
		if f, ok := facts(cabling.NeighboursFact.Of(subject.OfNode(n.Name))); ok {
			if list, err := cabling.NeighboursFact.Get(f); err == nil {
				heard[n.Name] = list
			}
		}
	}
	blamed := blamedCables(found)
	for _, x := range cabling.CompareCables(inv, heard).Results {
		name, kind := Others, ""
		if f := x.Cable.NIC.Fabric; f != nil {
			name, kind = f.Name, f.Kind
		}
		if kind == "infiniband" {
			continue // swept, below
		}
		c := newCable(x.Cable)
		c.State, c.Why = string(x.State), x.Why
		if x.State == cabling.Wrong {
			c.Found = x.Found.String()
		}
		blamed.judge(&c)
		out[name] = append(out[name], c)
	}
	for _, f := range inv.Fabrics {
		if f.Kind != "infiniband" {
			continue
		}
		sweep, version, err := state.Get[state.Step](ctx, r, state.StepKey(fabric.PartID("site", f.Name, "cabling")))
		if err != nil {
			return nil, err
		}
		for _, x := range cabling.IntendedOf(inv, f) {
			c := newCable(x)
			c.State, c.Why = string(cabling.Unknown), "the fabric was not swept yet"
			if version != state.Absent && !sweep.Ended.IsZero() {
				c.State, c.Why = string(cabling.Conforms), ""
			}
			blamed.judge(&c)
			out[f.Name] = append(out[f.Name], c)
		}
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b Cable) int {
			return cmp.Compare(slices.Index(cableStates, a.State), slices.Index(cableStates, b.State))
		})
	}
	return out, nil
}

func newCable(c cabling.Cable) Cable {
	out := Cable{From: c.Name(), To: fmt.Sprintf("%s/%d", c.Switch.Name, c.Number), low: c.Low.Switch, high: c.Switch.Name, rail: -1}
	if c.Node != nil {
		out.low, out.rail = c.Node.Name, c.NIC.Ports[c.Port].Rail
	}
	if b := c.Block; b != nil {
		out.Type = b.Type
		if b.Length > 0 {
			out.Length = b.Length.String()
		}
		if b.Speed > 0 {
			out.Speed = b.Speed.String()
		}
	}
	return out
}

// blames are findings by the ends of cables that they name.
type blames map[string][]stage.Finding

// blamedCables finds the ends that findings suspect: r04-u01/rail/0 of suspect r04-u01,
// part "rail/0 (OSFP 1/1)" or "rail 0".
func blamedCables(found []stage.Finding) blames {
	out := blames{}
	for _, f := range found {
		for _, x := range f.Suspects {
			port, _, _ := strings.Cut(x.Part, " (")
			for _, end := range []string{x.Subject.Name, x.Subject.Name + "/" + port, x.Subject.Name + "/" + strings.ReplaceAll(port, " ", "/")} {
				out[end] = append(out[end], f)
			}
		}
	}
	return out
}

// judge names what a finding says of a cable: one of a comparison of cables before others.
func (b blames) judge(c *Cable) {
	for _, f := range slices.Concat(b[c.From], b[c.To]) {
		ofCabling := isOfCabling(f.Step)
		if c.Finding != "" && !ofCabling {
			continue
		}
		c.Why, c.Finding = f.Cause, newFinding(f, time.Time{}).ID
		if ofCabling {
			c.State = string(cabling.Wrong)
			return
		}
		if c.State != string(cabling.Wrong) {
			c.State = Suspected
		}
	}
}

// isOfCabling reports whether a step compares cables.
func isOfCabling(step string) bool {
	return strings.HasSuffix(step, ".cabling") || step == string(cabling.StepID)
}

// Map draws a fabric as SVG, with the cables that are wrong, missing or suspected in red.
func (k *Keeper) Map(ctx context.Context, name string) ([]byte, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return nil, err
	}
	all, err := k.cablesOf(ctx, s)
	if err != nil {
		return nil, err
	}
	type link struct {
		low, high string
		rail      int
	}
	marked := map[link]bool{}
	for _, c := range all[name] {
		if c.State != string(cabling.Conforms) && c.State != string(cabling.Unknown) {
			marked[link{c.low, c.high, c.rail}] = true
		}
	}
	d := draw.New(s.Inv, power.New(s.Inv), draw.Options{Marks: func(low, high string, rail int) bool {
		return marked[link{low, high, rail}] || marked[link{low, high, -1}]
	}})
	if !slices.Contains(d.FabricNames(), name) {
		return nil, errkind.New(errkind.NotFound, "%q is not a fabric that is drawn", name)
	}
	var b bytes.Buffer
	err = svg.WriteSheets(&b, "Fabric "+name, d.Maps(name), d.Defs())
	return b.Bytes(), err
}

// Switch is the page of a switch.
func (k *Keeper) Switch(ctx context.Context, word string) (why.SwitchExplanation, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return why.SwitchExplanation{}, err
	}
	if sw, _ := status.FindSwitch(s.Inv, word); sw == nil {
		return why.SwitchExplanation{}, errkind.New(errkind.NotFound, "%q is not a switch of this site", word)
	}
	var y control.Switch
	y, running, err := k.records(s).Switch(ctx, word)
	return why.ExplainSwitch(y, running, s.At), err
}
