// SPDX-License-Identifier: Apache-2.0

package supply

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/pdu"
)

// site is a rack with one PDU of 32 A that feeds two nodes.
func site(model string) *inventory.Inventory {
	r := &inventory.Rack{Name: "r1"}
	p := &inventory.PDU{Name: "r1/a", Rack: r, Phases: 3, Current: 32, Control: &inventory.PDUControl{Model: model}}
	r.PDUs = []*inventory.PDU{p}
	inv := &inventory.Inventory{Racks: []*inventory.Rack{r}}
	for _, name := range []string{"n1", "n2"} {
		n := &inventory.Node{Name: name, Rack: r, Image: &inventory.Image{}, Feeds: []inventory.Feed{{Supply: "psu1", PDU: p}, {Supply: "psu2", PDU: p}}}
		inv.Nodes = append(inv.Nodes, n)
	}
	inv.Nodes[1].Validation = &inventory.Validation{}
	return inv
}

// meter answers with readings one after another.
type meter struct {
	readings []pdu.Reading
	err      error
}

func (m *meter) Meter(*inventory.PDU) (pdu.Meter, error) { return m, nil }

func (m *meter) Shelf(*inventory.Shelf) (Shelf, error) { return nil, errors.New("there is none") }

func (m *meter) Read(context.Context) (pdu.Reading, error) {
	if m.err != nil {
		return pdu.Reading{}, m.err
	}
	r := m.readings[0]
	m.readings = m.readings[1:]
	return r, nil
}

// run is a stage.Run that remembers.
type run struct {
	facts map[fact.Key]fact.Fact
	found []stage.Finding
}

func (r *run) Members() []subject.ID                 { return nil }
func (r *run) Examined() []subject.ID                { return nil }
func (r *run) Fact(k fact.Key) (fact.Fact, bool)     { f, ok := r.facts[k]; return f, ok }
func (r *run) Release(string)                        {}
func (r *run) Emit(event.Event)                      {}
func (r *run) Clock() clock.Clock                    { return clock.Wall{} }
func (r *run) Attach(string, []byte) (string, error) { return "", nil }
func (r *run) Effect(context.Context, stage.Effect) error {
	return errors.New("a reading has no effect")
}

func (r *run) Learn(_ context.Context, fs ...fact.Fact) error {
	for _, f := range fs {
		r.facts[f.Key] = f
	}
	return nil
}

func (r *run) Blame(_ context.Context, f stage.Finding) error {
	r.found = append(r.found, f)
	return nil
}

func TestPlan(t *testing.T) {
	t.Parallel()
	steps, diags := New(site("apc-rpdu2"), nil).Plan(nil)
	if diags.HasErrors() || len(steps) != 2 || steps[0].ID != "r1/a/supply.before" || steps[1].ID != "r1/a/supply.check" {
		t.Fatalf("%v %v", steps, diags)
	}
	var needs []string
	for _, n := range steps[1].Needs {
		if n.On != plan.Settled {
			t.Errorf("%s must not keep the reading away", n.Step)
		}
		needs = append(needs, string(n.Step))
	}
	if got := strings.Join(needs, " "); got != "r1/a/supply.before n1/install.boot n2/validate.accept" {
		t.Errorf("needs %s", got)
	}
	if _, diags := New(site("no-such"), nil).Plan(nil); !diags.HasErrors() || !strings.Contains(diags.Error(), "no-such") {
		t.Errorf("an unknown model: %v", diags)
	}
}

// TestWithoutNodes: PDUs that feed no installed node are read too, the first once all nodes
// were worked on, and the others after it.
func TestWithoutNodes(t *testing.T) {
	t.Parallel()
	inv := site("apc-rpdu2")
	net := &inventory.Rack{Name: "net"}
	for _, name := range []string{"net/a", "net/b", "net/c"} {
		net.PDUs = append(net.PDUs, &inventory.PDU{Name: name, Rack: net, Phases: 3, Current: 32, Control: &inventory.PDUControl{Model: "apc-rpdu2"}})
	}
	net.PDUs[2].Control = nil // left alone
	inv.Racks = append(inv.Racks, net)
	inv.Switches = []*inventory.Switch{{Name: "net/leaf-1", Rack: net, Feeds: []inventory.Feed{{PDU: net.PDUs[0]}}}}
	dead := pdu.Reading{Breakers: []pdu.Breaker{{Number: 1, State: pdu.BreakerOpen}, {Number: 2, State: pdu.BreakerOpen}}}
	s := New(inv, &meter{readings: []pdu.Reading{dead, dead}})
	steps, diags := s.Plan(nil)
	var got []string
	for _, st := range steps[2:] {
		text := string(st.ID)
		for _, n := range st.Needs {
			text += " " + string(n.Step)
		}
		got = append(got, text)
	}
	want := "net/a/supply.before; net/a/supply.check net/a/supply.before n1/install.boot n2/validate.accept; net/b/supply.before; net/b/supply.check net/b/supply.before net/a/supply.check"
	if strings.Join(got, "; ") != want || diags.HasErrors() {
		t.Errorf("planned %s", strings.Join(got, "; "))
	}
	r := &run{facts: map[fact.Key]fact.Fact{}}
	for _, i := range []int{3, 5} {
		if err := s.Apply(t.Context(), r, steps[i]); err == nil {
			t.Errorf("%s: nothing was found", steps[i].ID)
		}
	}
	if len(r.found) != 2 || !strings.Contains(r.found[0].Evidence[0], "it feeds net/leaf-1") || !strings.Contains(r.found[1].Evidence[0], "it feeds nothing that the site says") {
		t.Errorf("found %+v", r.found)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	banks := func(state pdu.BreakerState, amps ...float64) (r pdu.Reading) {
		for i, a := range amps {
			r.Breakers = append(r.Breakers, pdu.Breaker{Number: i + 1, Amps: a, State: state})
			r.Phases = append(r.Phases, pdu.Phase{Number: i + 1, Amps: a, Volts: 230})
		}
		return r
	}
	one := banks(pdu.BreakerClosed, 0, 9)
	one.Breakers[0].State = pdu.BreakerOpen
	dead := banks(pdu.BreakerClosed, 5, 5)
	dead.Phases[1].Volts = 0
	tests := []struct {
		name        string
		before, now pdu.Reading
		part, cause string
	}{
		{"all is well", banks(pdu.BreakerClosed, 1, 1), banks(pdu.BreakerClosed, 9, 8), "", ""},
		{"a breaker says that it is open", banks(pdu.BreakerClosed, 1, 1), one, "breaker 1", "open"},
		{"all breakers say that they are open", banks(pdu.BreakerClosed, 1, 1), banks(pdu.BreakerOpen, 0, 0), "", "every breaker"},
		{"nothing flows any more", banks(pdu.BreakerUnknown, 1, 1, 1), banks(pdu.BreakerUnknown, 9, 0, 9), "breaker 2", "open"},
		{"nothing flows, and never did, while the others carry", pdu.Reading{}, banks(pdu.BreakerUnknown, 9, 9, 0), "breaker 3", "open"},
		{"nothing flows and little else does", pdu.Reading{}, banks(pdu.BreakerUnknown, 0.2, 0.2, 0), "", ""},
		{"two banks, one unused", pdu.Reading{}, banks(pdu.BreakerUnknown, 9, 0), "", ""},
		{"nothing flowed before, and nothing does", banks(pdu.BreakerUnknown, 0, 0, 0), banks(pdu.BreakerUnknown, 0, 0, 0), "", "nothing flows through it"},
		{"a phase above its limit", pdu.Reading{}, banks(pdu.BreakerClosed, 26, 9), "phase 1", "more than its limit"},
		{"a phase without voltage", pdu.Reading{}, dead, "input", "no voltage"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inv := site("apc-rpdu2")
			s := New(inv, &meter{readings: []pdu.Reading{tt.before, tt.now}})
			steps, _ := s.Plan(nil)
			r := &run{facts: map[fact.Key]fact.Fact{systemFact.Of(subject.OfNode("n2")): {}}}
			if err := s.Apply(t.Context(), r, steps[0]); err != nil || len(r.found) > 0 {
				t.Fatalf("the first reading: %v %v", err, r.found)
			}
			err := s.Apply(t.Context(), r, steps[1])
			if (err != nil) != (tt.cause != "") {
				t.Fatalf("error %v", err)
			}
			if tt.cause == "" {
				return
			}
			f := r.found[0]
			if f.Suspects[0] != (stage.Suspect{Subject: subject.ID{Kind: subject.PDU, Name: "r1/a"}, Part: tt.part}) || !strings.Contains(f.Cause, tt.cause) || f.Action == "" || len(f.Evidence) == 0 {
				t.Errorf("finding %+v", f)
			}
		})
	}
}

// TestUnusedBreaker: a PDU with fewer plugs than breakers has one that carries nothing.
func TestUnusedBreaker(t *testing.T) {
	t.Parallel()
	inv := site("apc-rpdu2")
	inv.Nodes = inv.Nodes[:1] // two supplies
	r := &run{facts: map[fact.Key]fact.Fact{}}
	now := pdu.Reading{}
	for i, amps := range []float64{9, 9, 0} {
		now.Breakers = append(now.Breakers, pdu.Breaker{Number: i + 1, Amps: amps})
	}
	s := New(inv, &meter{readings: []pdu.Reading{now}})
	steps, _ := s.Plan(nil)
	if err := s.Apply(t.Context(), r, steps[1]); err != nil || len(r.found) > 0 {
		t.Errorf("%v %+v", err, r.found)
	}
}

func TestSilentPDU(t *testing.T) {
	t.Parallel()
	s := New(site("apc-rpdu2"), &meter{err: errors.New("nobody answers")})
	steps, _ := s.Plan(nil)
	r := &run{facts: map[fact.Key]fact.Fact{}}
	if err := s.Apply(t.Context(), r, steps[1]); err == nil || len(r.found) != 1 || r.found[0].Suspects[0].Subject.Name != "r1/a" {
		t.Errorf("%v %v", err, r.found)
	}
}

// TestLook: what was switched or moved at a PDU since its nodes were tested is reported by outlet; what
// nobody can know is not reported.
func TestLook(t *testing.T) {
	t.Parallel()
	// Outlets 1 to 4 feed the two nodes of the site; 5 is free.
	reading := func(states string, amps ...float64) (r pdu.Reading) {
		for i, a := range amps {
			r.Outlets = append(r.Outlets, pdu.Outlet{Number: i + 1, State: pdu.On, Metered: a >= 0, Amps: a})
			if states[i] == 'x' {
				r.Outlets[i].State = pdu.Off
			}
		}
		r.Breakers = []pdu.Breaker{{Number: 1, Amps: 4, State: pdu.BreakerClosed}}
		r.Phases = []pdu.Phase{{Number: 1, Amps: 4, Volts: 230}}
		return r
	}
	good := reading("-----", 1, 1, 1, 1, 0)
	open, high := reading("x----", 1, 1, 1, 1, 0), reading("x----", 1, 1, 1, 1, 0)
	open.Breakers[0].State, high.Phases[0].Amps = pdu.BreakerOpen, 30
	for _, c := range []struct {
		name     string
		was, now pdu.Reading
		numbers  bool
		want     string // parts
	}{
		{"nothing", good, good, true, ""},
		{"idle", good, reading("-----", 0.6, 0.6, 0.6, 0.6, 0), true, ""},
		{"off", good, reading("-x---", 1, 0, 1, 1, 0), true, "outlet 2"},
		{"on that was off", reading("----x", 1, 1, 1, 1, 0), good, true, "outlet 5"},
		{"a plug is moved", good, reading("-----", 0, 1, 1, 1, 1), true, "outlet 5"},
		{"a plug is moved, and no numbers are in the site", good, reading("-----", 0, 1, 1, 1, 1), false, ""},
		{"outlets are not metered", reading("-----", -1, -1, -1, -1, -1), reading("-----", -1, -1, -1, -1, -1), true, ""},
		{"supplies take turns", reading("-----", 1, 0, 1, 0, 0), reading("-----", 0, 1, 0, 1, 0), true, ""},
		{"behind an open breaker", good, open, true, "breaker 1"},
		{"beside a phase above its limit", good, high, true, "phase 1; outlet 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := site("apc-rpdu2")
			for i, n := range inv.Nodes {
				for j := range n.Feeds {
					if c.numbers {
						n.Feeds[j].Outlet = 1 + 2*i + j
					}
				}
			}
			m := &meter{readings: []pdu.Reading{c.now}}
			s, p := New(inv, m), inv.Racks[0].PDUs[0]
			r := &run{facts: map[fact.Key]fact.Fact{}}
			if before, err := s.Look(t.Context(), r, p); before || err != nil {
				t.Fatalf("a PDU that was never read: %t, %v", before, err)
			}
			f, err := readingFact.New(Of(p), c.was, "")
			if err != nil {
				t.Fatal(err)
			}
			r, m.readings = &run{facts: map[fact.Key]fact.Fact{f.Key: f}}, []pdu.Reading{c.now}
			before, err := s.Look(t.Context(), r, p)
			var parts []string
			for _, x := range r.found {
				parts = append(parts, x.Suspects[0].Part)
				if x.Suspects[0].Subject != Of(p) || x.Cause == "" || x.Action == "" || len(x.Evidence) == 0 {
					t.Errorf("%+v", x)
				}
			}
			if got := strings.Join(parts, "; "); !before || err != nil || got != c.want {
				t.Errorf("%t, %v, %q, want %q: %+v", before, err, got, c.want, r.found)
			}
		})
	}
	inv := site("apc-rpdu2")
	if _, err := New(inv, &meter{err: errors.New("nobody answers")}).Look(t.Context(), &run{}, inv.Racks[0].PDUs[0]); err == nil {
		t.Error("a PDU that does not answer was read")
	}
}

// shelfOf answers with one reading of a power shelf.
type shelfOf struct {
	meter
	reading ShelfReading
	err     error
}

func (s *shelfOf) Shelf(*inventory.Shelf) (Shelf, error) { return s, nil }

func (s *shelfOf) ReadShelf(context.Context) (ShelfReading, error) { return s.reading, s.err }

// TestShelf: a power shelf is read once the nodes that draw from it were under load, and
// what is wrong with it is blamed on what is at fault: what feeds it, or each supply.
func TestShelf(t *testing.T) {
	t.Parallel()
	well := func(names ...string) (list []ShelfSupply) {
		for _, n := range names {
			list = append(list, ShelfSupply{Name: n, Says: "Enabled, OK"})
		}
		return list
	}
	with := func(list []ShelfSupply, i int, change func(*ShelfSupply)) []ShelfSupply {
		change(&list[i])
		return list
	}
	dark := func(p *ShelfSupply) { p.NoInput = true }
	for _, tt := range []struct {
		name     string
		supplies []ShelfSupply
		feeds    string // of its supplies, PDU by PDU
		err      error
		want     string // suspects and causes
	}{
		{"well", well("1", "2"), "ww", nil, ""},
		{"all dark", with(with(well("1", "2"), 0, dark), 1, dark), "ww", nil, "pdu/r1/w: no supply of power shelf r1/ps1 has input: nothing comes through r1/w"},
		{"all dark on two feeds", with(with(well("1", "2"), 0, dark), 1, dark), "wx", nil, "shelf/r1/ps1 supply 1, shelf/r1/ps1 supply 2: supply 1, supply 2 of power shelf r1/ps1 have no input"},
		{"all dark, nobody knows the feed", with(with(well("1", "2"), 0, dark), 1, dark), "", nil, "shelf/r1/ps1 supply 1, shelf/r1/ps1 supply 2: supply 1, supply 2 of power shelf r1/ps1 have no input"},
		{"one dark", with(well("1", "2"), 1, dark), "ww", nil, "shelf/r1/ps1 supply 2: supply 2 of power shelf r1/ps1 has no input"},
		{"dark and failed", with(with(well("1", "2"), 1, dark), 0, func(p *ShelfSupply) { p.Failed, p.Says = true, "Enabled, Critical" }), "ww", nil,
			"shelf/r1/ps1 supply 2: supply 2 of power shelf r1/ps1 has no input; shelf/r1/ps1 supply 1: it has failed: Enabled, Critical"},
		{"off", with(well("1", "2"), 0, func(p *ShelfSupply) { p.Off = true }), "ww", nil, "shelf/r1/ps1 supply 1: it is switched off"},
		{"empty bay", with(well("1", "2"), 0, func(p *ShelfSupply) { p.Absent = true }), "ww", nil, "shelf/r1/ps1 supplies: 1 of its 2 supplies are there"},
		{"bay that is not named", well("1"), "ww", nil, "shelf/r1/ps1 supplies: 1 of its 2 supplies are there"},
		{"silent", nil, "ww", errors.New("connection refused"), "shelf/r1/ps1: the power shelf cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inv := site("apc-rpdu2")
			r := inv.Racks[0]
			sh := &inventory.Shelf{Name: "r1/ps1", Rack: r, Count: 2, Control: &inventory.ShelfControl{}}
			r.Shelves = []*inventory.Shelf{sh, {Name: "r1/ps2", Rack: r, Count: 2}}
			pdus := map[rune]*inventory.PDU{'w': {Name: "r1/w"}, 'x': {Name: "r1/x"}}
			for _, f := range tt.feeds {
				sh.Feeds = append(sh.Feeds, inventory.Feed{PDU: pdus[f]})
			}
			inv.Nodes[0].Feeds = nil // draws from the shelves
			r.Nodes = inv.Nodes
			s := New(inv, &shelfOf{reading: ShelfReading{Supplies: tt.supplies, Certificate: "ab"}, err: tt.err})
			steps, _ := s.Plan(nil)
			st := steps[len(steps)-1]
			if st.ID != "r1/ps1/supply.shelf" || len(st.Needs) != 1 || st.Needs[0].Step != "n1/install.boot" {
				t.Fatalf("planned %s after %v", st.ID, st.Needs)
			}
			run := &run{facts: map[fact.Key]fact.Fact{}}
			err := s.Apply(t.Context(), run, st)
			var found []string
			for _, f := range run.found {
				var of []string
				for _, x := range f.Suspects {
					of = append(of, strings.TrimSpace(x.Subject.String()+" "+x.Part))
				}
				found = append(found, strings.Join(of, ", ")+": "+f.Cause)
				if f.Action == "" && tt.err == nil || len(f.Evidence) == 0 {
					t.Errorf("without an action or evidence: %+v", f)
				}
			}
			if got := strings.Join(found, "; "); got != tt.want || (err != nil) != (tt.want != "") {
				t.Errorf("found %q, want %q; %v", got, tt.want, err)
			}
			if _, learned := run.Fact(ShelfCertificateFact.Of(OfShelf(sh))); learned != (tt.err == nil) {
				t.Errorf("its certificate is known: %t", learned)
			}
		})
	}
}
