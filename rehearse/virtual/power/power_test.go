// SPDX-License-Identifier: Apache-2.0

package power

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// site is a grid of nodes that draw what watts says, with PDUs r01/a and r01/b.
type site struct {
	*Grid
	watts map[string]float64
	mains map[string][]bool // of each node's supplies
}

func newSite(t *testing.T, outlets int, feeds map[string][]inventory.Feed, names ...string) *site {
	t.Helper()
	s := &site{watts: map[string]float64{}, mains: map[string][]bool{}}
	c := Config{PDUs: []*inventory.PDU{pduOf("r01/a", outlets), pduOf("r01/b", outlets)}}
	for _, n := range names {
		s.watts[n], s.mains[n] = 2300, make([]bool, len(feeds[n]))
		for i := range s.mains[n] {
			s.mains[n][i] = true
		}
		c.Loads = append(c.Loads, Load{Name: n, Feeds: feeds[n], Max: 2300, Draw: func(on bool) float64 {
			if !on {
				return 0
			}
			return s.watts[n]
		}, Mains: func(i int, live bool) { s.mains[n][i] = live }})
	}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Grid = g
	return s
}

func pduOf(name string, outlets int) *inventory.PDU {
	return &inventory.PDU{Name: name, Phases: 3, Voltage: 400, Current: 32, Outlets: outlets}
}

func feed(pdu string, outlet int) inventory.Feed {
	return inventory.Feed{Supply: "psu1", PDU: &inventory.PDU{Name: pdu}, Outlet: outlet}
}

// single gives each node one feed, in the order of outlets of r01/a.
func single(n int) (map[string][]inventory.Feed, []string) {
	feeds, names := map[string][]inventory.Feed{}, []string(nil)
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		feeds[name], names = []inventory.Feed{feed("r01/a", i+1)}, append(names, name)
	}
	return feeds, names
}

func near(got, want float64) bool { return math.Abs(got-want) < want*0.01+0.01 }

func TestLoadByOutletAndPhase(t *testing.T) {
	t.Parallel()
	feeds, names := single(7)
	s := newSite(t, 9, feeds, names...)
	p, _ := s.PDU("r01/a")
	r := p.Read()
	// 2300 W at 400/sqrt(3) V are 9.96 A; outlets 1, 4, 7 are on phase 1.
	if !near(r.Watts, 7*2300) || !near(r.Outlets[0].Amps, 9.96) || !near(r.Lines[0], 3*9.96) || !near(r.Lines[1], 2*9.96) {
		t.Errorf("%+v", r)
	}
	if r.Outlets[6].Load != "n7" || r.Outlets[6].Breaker != 1 || r.Outlets[8].Load != "" || r.Outlets[8].Watts != 0 {
		t.Errorf("%+v", r.Outlets)
	}
}

func TestDelta(t *testing.T) {
	t.Parallel()
	spec := &inventory.PDU{Name: "r01/a", Phases: 3, Voltage: 208, Current: 30, Outlets: 3}
	var loads []Load
	for i := range 3 {
		loads = append(loads, Load{Name: fmt.Sprint(i), Max: 2080, Feeds: []inventory.Feed{feed("r01/a", i+1)}})
	}
	g, err := New(Config{PDUs: []*inventory.PDU{spec}, Loads: loads})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := g.PDU("r01/a")
	for _, a := range p.Read().Lines {
		if !near(a, 10*math.Sqrt(3)) {
			t.Errorf("a line of a balanced delta carries %.2f A", a)
		}
	}
}

func TestTripCutsWhatHangsThere(t *testing.T) {
	t.Parallel()
	feeds, names := single(6)
	feeds["d"], names = []inventory.Feed{feed("r01/a", 7), feed("r01/b", 1)}, append(names, "d")
	feeds["d"][1].Supply = "psu2"
	s := newSite(t, 9, feeds, names...)
	if err := s.Trip("r01/a", 1); err != nil {
		t.Fatal(err)
	}
	if s.Live("n1") || s.Live("n4") || !s.Live("n2") || !s.Live("d") || s.mains["n1"][0] || !s.mains["n2"][0] {
		t.Errorf("after the trip: %v", s.mains)
	}
	if !slices.Equal(s.mains["d"], []bool{false, true}) {
		t.Errorf("d: %v", s.mains["d"])
	}
	b, _ := s.PDU("r01/b")
	if got := b.Read().Outlets[0].Watts; !near(got, 2300) {
		t.Errorf("the other supply of d carries %.0f W, want all", got)
	}
	a, _ := s.PDU("r01/a")
	if r := a.Read(); !r.Breakers[0].Open || r.Breakers[0].Amps != 0 || !r.Outlets[0].On {
		t.Errorf("%+v", r)
	}
	if err := s.Close("r01/a", 0); err != nil || !s.Live("n1") {
		t.Errorf("after closing: %v, %v", err, s.mains)
	}
	if err := s.Trip("r01/a", 4); err == nil {
		t.Error("phase 4 was tripped")
	}
}

// TestOverload: 45 A on a breaker of 32 A trip it after minutes, not at once; the
// nodes' own reaction is not needed.
func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feeds, names := single(12) // four nodes a phase: 39.8 A
		s := newSite(t, 12, feeds, names...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Run(ctx)
		time.Sleep(time.Hour)
		synctest.Wait()
		if trips := s.Trips(); len(trips) != 0 {
			t.Fatalf("1.24 times the rating tripped: %+v", trips)
		}
		s.watts["n1"] = 6000 // phase 1 now 55.9 A, 1.75 times
		began := time.Now()
		s.Changed("n1")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		trips := s.Trips()
		if len(trips) != 1 || trips[0].Breaker != 1 || trips[0].Why != "overload" || !near(trips[0].Amps, 55.9) {
			t.Fatalf("%+v", trips)
		}
		if d := trips[0].At.Sub(began); d < time.Second || d > time.Minute {
			t.Errorf("it took %v, from warm", d)
		}
		if s.mains["n1"][0] || s.mains["n10"][0] || !s.mains["n2"][0] {
			t.Errorf("%v", s.mains)
		}
	})
}

// TestCurve: the breaker keeps to IEC 60898-1, from cold.
func TestCurve(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		times    float64
		min, max time.Duration // 0: never
	}{{1.13, 0, 0}, {1.45, time.Second, time.Hour}, {2.55, time.Second, 60 * time.Second}, {5, 100 * time.Millisecond, 20 * time.Second}} {
		ci := circuit{rating: 32, amps: 32 * c.times}
		at := ci.tripsAt()
		if c.max == 0 {
			if !at.IsZero() {
				t.Errorf("%.2f times trips after %v", c.times, at.Sub(ci.at))
			}
			continue
		}
		if d := at.Sub(ci.at); at.IsZero() || d < c.min || d > c.max || ci.trips(at) != "overload" {
			t.Errorf("%.2f times trips after %v (%q)", c.times, d, ci.trips(at))
		}
	}
	at10, at5 := circuit{rating: 32, amps: 320}, circuit{rating: 32, amps: 160}
	if at10.trips(time.Time{}) != "surge" || at5.trips(time.Time{}) != "" {
		t.Errorf("10 times: %q, 5 times: %q", at10.trips(time.Time{}), at5.trips(time.Time{}))
	}
}

// TestCascade: what one PDU drops falls on the other, which trips in its turn.
func TestCascade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feeds, names := map[string][]inventory.Feed{}, []string(nil)
		for i := range 6 {
			n := fmt.Sprintf("n%d", i)
			feeds[n], names = []inventory.Feed{feed("r01/a", i*3+1), feed("r01/b", i*3+1)}, append(names, n)
			feeds[n][1].Supply = "psu2"
		}
		s := newSite(t, 18, feeds, names...)
		go s.Run(t.Context())
		if err := s.Input("r01/a", false); err != nil {
			t.Fatal(err)
		}
		if !s.Live("n0") {
			t.Fatal("b tripped at once")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if trips := s.Trips(); len(trips) != 1 || trips[0].PDU != "r01/b" || s.Live("n0") {
			t.Errorf("59.8 A on 32 A: %+v", trips)
		}
	})
}

// runs is a board that runs until its power ends.
type runs struct{}

func (runs) Run(ctx context.Context, _ bool) chassis.Exit {
	<-ctx.Done()
	return chassis.Halt
}

// TestSurge: a chassis on its own breaker starts; too many together trip it, and
// lose their power.
func TestSurge(t *testing.T) {
	for _, c := range []struct{ nodes, trips int }{{5, 0}, {7, 1}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cfg := Config{PDUs: []*inventory.PDU{{Name: "r01/a", Phases: 1, Voltage: 230, Current: 32}}}
			var all []*chassis.Chassis
			for i := range c.nodes {
				ch := chassis.New(chassis.Config{Node: fmt.Sprint(i), Supplies: 1})
				all = append(all, ch)
				cfg.Loads = append(cfg.Loads, Load{Name: fmt.Sprint(i), Max: 2000, Feeds: []inventory.Feed{feed("r01/a", 0)}, Mains: ch.Mains,
					Draw: func(on bool) float64 { return DrawnWatts(inventory.Power{Typical: 1000, Max: 2000}, on, 0) }})
			}
			g, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			for i, ch := range all {
				ch.SetBoard(g.Board(fmt.Sprint(i), runs{}))
				go ch.Run(ctx)
				if err := ch.Press(chassis.PressOn); err != nil {
					t.Fatal(err)
				}
			}
			go g.Run(ctx)
			time.Sleep(time.Minute)
			synctest.Wait()
			if trips := g.Trips(); len(trips) != c.trips || c.trips > 0 && trips[0].Why != "surge" {
				t.Errorf("%d nodes at once: %+v", c.nodes, trips)
			}
			if all[0].Live() != (c.trips == 0) {
				t.Errorf("%d nodes: live is %v", c.nodes, all[0].Live())
			}
			p, _ := g.PDU("r01/a")
			if got, want := p.Read().Watts, 400*float64(c.nodes)*float64(1-c.trips); !near(got, want) {
				t.Errorf("%d nodes draw %.0f W, want %.0f", c.nodes, got, want)
			}
			if c.trips == 0 {
				_ = all[0].Press(chassis.ForceOff)
				time.Sleep(time.Minute)
				if got, want := p.Read().Watts, 400*float64(c.nodes-1)+20; !near(got, want) {
					t.Errorf("one off: %.0f W, want %.0f", got, want)
				}
			}
			cancel()
			synctest.Wait()
		})
	}
}

func TestPlugs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		feeds []inventory.Feed
		fails bool
	}{
		{"fixed and loose", []inventory.Feed{feed("r01/a", 0), feed("r01/a", 1)}, false},
		{"two in one", []inventory.Feed{feed("r01/a", 1), feed("r01/a", 1)}, true},
		{"not there", []inventory.Feed{feed("r01/a", 3)}, true},
		{"too many", []inventory.Feed{feed("r01/a", 0), feed("r01/a", 0), feed("r01/a", 0)}, true},
		{"unknown PDU", []inventory.Feed{feed("r02/a", 0)}, true},
	} {
		_, err := New(Config{PDUs: []*inventory.PDU{pduOf("r01/a", 2)}, Loads: []Load{{Name: "n", Feeds: c.feeds}}})
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// BenchmarkStart: all nodes of a large site start, each by itself, on four PDUs a
// rack.
func BenchmarkStart(b *testing.B) {
	const nodes, perRack = 4096, 16
	var c Config
	for i := range nodes {
		if i%perRack == 0 {
			for _, l := range "abcd" {
				c.PDUs = append(c.PDUs, &inventory.PDU{Name: fmt.Sprintf("r%d/%c", i/perRack, l), Phases: 3, Voltage: 415, Current: 63})
			}
		}
		l := Load{Name: fmt.Sprint(i), Max: 10200, Off: true, Draw: func(on bool) float64 { return DrawnWatts(inventory.Power{Typical: 8000, Max: 10200}, on, 0) }}
		for s := range 6 {
			l.Feeds = append(l.Feeds, inventory.Feed{Supply: fmt.Sprintf("psu%d", s+1), PDU: c.PDUs[len(c.PDUs)-4+s%4]})
		}
		c.Loads = append(c.Loads, l)
	}
	for b.Loop() {
		g, err := New(c)
		if err != nil {
			b.Fatal(err)
		}
		for _, l := range c.Loads {
			g.set(g.loads[l.Name], true, false)
		}
		if len(g.Trips()) > 0 {
			b.Fatal(g.Trips()[0])
		}
	}
}
