// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/sonic"
	"github.com/ironrail/ironrail/rehearse/virtual/wiring"
)

// newSwitches makes the management side of the SONiC switches that the site has a
// login for.
func (w *World) newSwitches() {
	w.switches = map[string]*sonic.Switch{}
	lanes := w.splits()
	for _, s := range w.inv.Switches {
		if s.Login == nil || !strings.EqualFold(s.OS, "sonic") || !s.Address.IsValid() {
			continue
		}
		of, _ := w.cables.Switch(s.Name)
		cfg := sonic.Config{Name: s.Name, SKU: "Virtual-" + s.Model, MAC: of.MAC.String(), User: s.Login.Username, Seed: w.opt.Seed, Clock: w.opt.Clock,
			Password: w.password(s.Login.Password),
			Show:     map[string]func() string{"interfaces counters": func() string { return w.cables.ShowCounters(s.Name) }, "lldp table": func() string { return w.cables.ShowLLDP(s.Name) }}}
		for n := 1; n <= max(s.Ports, of.Ports); n++ {
			ends := lanes[wiring.End{Switch: s.Name, Number: n}]
			if len(ends) == 0 {
				ends = []wiring.End{{Switch: s.Name, Number: n}}
			}
			for _, end := range ends {
				name, alias, count := w.cables.SonicPort(end)
				cfg.Ports = append(cfg.Ports, sonic.Port{Name: name, Alias: alias, Index: n, Lanes: count, Speed: speedOf(s)})
			}
		}
		w.switches[s.Name] = sonic.New(cfg)
	}
}

// countTrunk is what a port has counted whose cable leads to another switch.
func (w *World) countTrunk(end wiring.End) (wiring.Counters, bool) {
	c, ok := w.model.SwitchCounters(model.SwitchPort{Switch: end.Switch, Number: end.Number, Lane: end.Lane})
	return wiring.Counters{RxFrames: c.RcvPackets, RxErrors: c.RcvErrors, RxBytes: c.RcvBytes, TxFrames: c.XmitPackets, TxBytes: c.XmitBytes, Down: c.Down}, ok
}

// speedOf is that of the ports of a switch, Mb/s.
func speedOf(s *inventory.Switch) int {
	if s.Fabric != nil && s.Fabric.Switch.Speed > 0 {
		return int(s.Fabric.Switch.Speed / 1e6)
	}
	return 400_000
}

// splits are the ends of ports that are split, by the whole port: somebody has set
// their breakout mode.
func (w *World) splits() map[wiring.End][]wiring.End {
	out := map[wiring.End][]wiring.End{}
	for _, c := range w.inv.Cables {
		for _, e := range []inventory.CableEnd{c.From, c.To} {
			if e.Switch == nil || e.Lane == 0 {
				continue
			}
			whole, end := wiring.End{Switch: e.Switch.Name, Number: e.Port}, wiring.End{Switch: e.Switch.Name, Number: e.Port, Lane: e.Lane}
			if !slices.Contains(out[whole], end) {
				out[whole] = append(out[whole], end)
			}
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b wiring.End) int { return a.Lane - b.Lane })
	}
	return out
}

// Switch returns the management side of a switch.
func (w *World) Switch(name string) (*sonic.Switch, bool) {
	s, ok := w.switches[name]
	return s, ok
}

// openSwitches opens the SSH sockets of switches.
func (w *World) openSwitches(ctx context.Context) error {
	for _, s := range w.inv.Switches {
		sw := w.switches[s.Name]
		if sw == nil {
			continue
		}
		ln, err := w.opt.Board.At(s.Address).Listen(ctx, "tcp", fmt.Sprintf("%s:%d", s.Address, s.Login.Port))
		if err != nil {
			return fmt.Errorf("switch %s: %w", s.Name, err)
		}
		w.parts = append(w.parts, func(ctx context.Context) error { return sw.Serve(ctx, ln) })
	}
	return nil
}

// pauseAtSwitch lets the switch at the far end of a cable pause one more priority
// than it is told.
func (w *World) pauseAtSwitch(f fault.Fault) error {
	n, ok := w.nodes[f.Node]
	if !ok {
		return errkind.New(errkind.NotFound, "there is no virtual node %s", f.Node)
	}
	id, err := n.port(f.Port)
	if err != nil {
		return err
	}
	end, up := w.cables.Far(wiring.Port(id))
	sw := w.switches[end.Switch]
	if !up || sw == nil {
		return errkind.New(errkind.NotFound, "%s is in no port of a switch that has a login", id)
	}
	if name, _, _ := w.cables.SonicPort(end); !sw.StickPause(name, stuckPriority) {
		return errkind.New(errkind.Internal, "%s has no port %s", end.Switch, name)
	}
	return nil
}
