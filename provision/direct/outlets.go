// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/pdu"
)

// outletsOff is how long all outlets of a node stay off: capacitors of supplies hold a BMC up for some
// seconds, and one that never lost its power has not started anew.
const outletsOff = 30 * time.Second

// outlet is one outlet of a node.
type outlet struct {
	supply string
	pdu    *inventory.PDU
	number int
	unit   pdu.Outlets
}

// String names the outlet: r01/a 3 (psu1).
func (o outlet) String() string { return fmt.Sprintf("%s %d (%s)", o.pdu.Name, o.number, o.supply) }

// listOutlets names outlets in a sentence.
func listOutlets(all []outlet) string {
	words := make([]string, len(all))
	for i, o := range all {
		words[i] = o.String()
	}
	return strings.Join(words, ", ")
}

// outletsOf finds all outlets of a node, by its files. It refuses a node of which one cannot be switched,
// as the node would not lose its power, and one that shares an outlet.
func (d *Desk) outletsOf(n *inventory.Node) (all []outlet, err error) {
	if len(n.Feeds) == 0 {
		return nil, errkind.New(errkind.Unsupported, "the files name no outlets that feed it").Do("Give its node block `feeds` with the outlet of each supply; what draws from power shelves has none.")
	}
	for _, f := range n.Feeds {
		switch {
		case f.PDU == nil || f.PDU.Control == nil:
			return nil, errkind.New(errkind.Unsupported, "supply %s hangs on what cannot be switched, so that the node would keep its power", f.Supply).
				Do("Give its PDU a control block, or pull the plugs.")
		case f.Outlet == 0:
			return nil, errkind.New(errkind.Unsupported, "the files do not say which outlet of PDU %s feeds %s", f.PDU.Name, f.Supply).
				Do("Give the feed its outlet, as the label on the cable says it.")
		}
		if other := d.sharesOutlet(n, f); other != "" {
			return nil, errkind.New(errkind.Refused, "outlet %d of PDU %s may feed %s as well", f.Outlet, f.PDU.Name, other).
				Do("Give every feed of that PDU its outlet in the files; an outlet with two plugs is switched by nobody.")
		}
		unit, err := d.cfg.Outlets(f.PDU)
		if err != nil {
			return nil, err
		}
		all = append(all, outlet{f.Supply, f.PDU, f.Outlet, unit})
	}
	return all, nil
}

// plug is what hangs on an outlet of a PDU; outlet 0 may be any.
type plug struct {
	pdu    *inventory.PDU
	outlet int
}

// owner is a node, a switch or a power shelf with a plug.
type owner struct {
	name string
	node *inventory.Node // nil: it is none
}

// listPlugs lists who hangs on which outlet, of the whole site.
func listPlugs(inv *inventory.Inventory) map[plug][]owner {
	plugs := map[plug][]owner{}
	add := func(o owner, feeds []inventory.Feed) {
		for _, f := range feeds {
			at := plug{f.PDU, f.Outlet}
			plugs[at] = append(plugs[at], o)
		}
	}
	for _, n := range inv.Nodes {
		add(owner{n.Name, n}, n.Feeds)
	}
	for _, s := range inv.Switches {
		add(owner{name: s.Name}, s.Feeds)
	}
	for _, r := range inv.Racks {
		for _, s := range r.Shelves {
			add(owner{name: "power shelf " + s.Name}, s.Feeds)
		}
	}
	return plugs
}

// sharesOutlet names what else hangs, or may hang, on an outlet; "": nothing.
func (d *Desk) sharesOutlet(n *inventory.Node, f inventory.Feed) string {
	for _, at := range []plug{{f.PDU, f.Outlet}, {f.PDU, 0}} {
		for _, o := range d.plugs()[at] {
			if o.node != n {
				return o.name
			}
		}
	}
	return ""
}

// readOutlets asks the PDUs how the outlets stand: on when all are on, off when one is off.
func readOutlets(ctx context.Context, all []outlet) (bmc.PowerState, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	now := bmc.PowerOn
	for _, o := range all {
		s, err := o.unit.Outlet(ctx, o.number)
		switch {
		case err != nil:
			return "", err
		case s == pdu.Unknown:
			return "", errkind.New(errkind.Unsupported, "pdu %s: outlet %d cannot be switched", o.pdu.Name, o.number).Do("Pull the plugs; a PDU that only measures cannot do it.")
		case s == pdu.Off:
			now = bmc.PowerOff
		}
	}
	return now, nil
}

// reachOutlets finds the outlets of a node and how they stand. A BMC that answers must be the node's; one
// that does not is what the outlets are for, and is said.
func (d *Desk) reachOutlets(ctx context.Context, n *inventory.Node) (all []outlet, now bmc.PowerState, note string, err error) {
	if all, err = d.outletsOf(n); err != nil {
		return nil, "", "", err
	}
	if now, err = readOutlets(ctx, all); err != nil {
		return nil, "", "", err
	}
	_, power, err := d.reach(ctx, n)
	switch {
	case err == nil:
		return all, now, "its BMC answers, and says that the node is " + string(power), nil
	case errkind.Of(err).Base() == errkind.Mismatch, ctx.Err() != nil:
		return nil, "", "", err
	}
	return all, now, "its BMC does not say whose it is (" + errkind.Line(err) + "): that these outlets are the node's is what the files say, and nothing else", nil
}

// planOutlets says what is done to the outlets of a node.
func (d *Desk) planOutlets(ctx context.Context, v verb, q control.DirectRequest, jobs *jobReader, n *inventory.Node) (st control.DirectStep, err error) {
	st.Node = n.Name
	all, now, note, err := d.reachOutlets(ctx, n)
	if err != nil {
		return st, err
	}
	st.Power = string(now)
	st.Does = fmt.Sprintf("switch outlets %s off, wait %s, and switch them on; %s", listOutlets(all), outletsOff, note)
	if now == bmc.PowerOff {
		st.Does = fmt.Sprintf("switch outlets %s on, of which some are off; %s", listOutlets(all), note)
	}
	if err := d.checkDoubt(ctx, v, q, n, now); err != nil {
		return st, err
	}
	if now != bmc.PowerOff {
		err = checkJobs(ctx, q, jobs, n.Name, &st)
	}
	return st, err
}

// cycleOutlets switches all outlets of a node off, reads back, waits, and switches them on. Where one
// does not go off, those that did go on again, as the node has not lost its power.
func cycleOutlets(ctx context.Context, clk clock.Clock, all []outlet, now bmc.PowerState) (out bmc.Outcome, err error) {
	if now == bmc.PowerOff {
		return switchOn(ctx, all, "some were off")
	}
	for i, o := range all {
		out.Sent++
		if err := o.unit.Switch(ctx, o.number, pdu.Off); err != nil {
			if held := context.Cause(ctx); held != nil {
				return bmc.Outcome{Sent: out.Sent, Evidence: "stopped; off, or may be: " + listOutlets(all[:i+1])}, held
			}
			// This one as well: it may follow late, or have followed where the answer was lost.
			back, berr := switchOn(ctx, all[:i+1], "")
			return bmc.Outcome{Sent: out.Sent + back.Sent, Evidence: fmt.Sprintf("outlet %s does not go off, so that the node has kept its power", o)}, errors.Join(err, berr)
		}
	}
	if err := clk.Sleep(ctx, outletsOff); err != nil {
		return bmc.Outcome{Sent: out.Sent, Evidence: "stopped; left off: " + listOutlets(all)}, err
	}
	on, err := switchOn(ctx, all, fmt.Sprintf("all were off for %s", outletsOff))
	on.Sent += out.Sent
	return on, err
}

// switchOn switches outlets on, all that it can.
func switchOn(ctx context.Context, all []outlet, before string) (out bmc.Outcome, err error) {
	var left []outlet
	for _, o := range all {
		out.Sent++
		if serr := o.unit.Switch(ctx, o.number, pdu.On); serr != nil {
			left, err = append(left, o), errors.Join(err, serr)
		}
	}
	if len(left) > 0 {
		out.Evidence = fmt.Sprintf("%s; not on: %s", before, listOutlets(left))
		return out, err
	}
	out.Verdict = bmc.Verified
	out.Evidence = strings.TrimPrefix(before+"; outlets read on: ", "; ") + listOutlets(all) + "; whether the node starts is its BMC's policy (`ironrail power status`)"
	return out, nil
}
