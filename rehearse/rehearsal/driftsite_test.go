// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// siteChange is what somebody does to a site that was accepted, and what drift then says.
type siteChange struct {
	name     string
	do, undo func(*rehearsaltest.Later) error
	kinds    []string // that are looked at
	changes  string   // what each is about, its kind and part: "switch net/leaf-1 settings"
	says     string   // in one of them
	unknown  string   // what each is about, and its kind
	why      string   // in one of them
}

// subjects writes what is about no node as "pdu r01/a power outlet 3".
func subjects(d observe.Drift) (changes, unknown string) {
	var a, b []string
	for _, c := range d.Changes {
		a = append(a, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", c.Of, c.Node, c.Kind, c.Part)), " "))
	}
	for _, u := range d.Unknown {
		b = append(b, strings.TrimSpace(fmt.Sprintf("%s %s %s", u.Of, u.Node, u.Kind)))
	}
	return strings.Join(a, "|"), strings.Join(b, "|")
}

// checkSiteChanges does one after another on a site that was accepted whole.
func checkSiteChanges(t *testing.T, inv *inventory.Inventory, cases []siteChange) {
	t.Helper()
	sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 3, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		for _, c := range cases {
			if err := c.do(l); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			d, err := l.Drift(ctx, observe.DriftOptions{Kinds: c.kinds, BMCs: observe.BMCsNever})
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			changes, unknown := subjects(d)
			if changes != c.changes || !strings.Contains(fmt.Sprintf("%+v", d.Changes), c.says) {
				t.Errorf("%s: changes\n%s, want\n%s with %q: %+v", c.name, changes, c.changes, c.says, d.Changes)
			}
			if unknown != c.unknown || !strings.Contains(fmt.Sprint(d.Unknown), c.why) {
				t.Errorf("%s: unknown\n%s, want\n%s with %q: %+v", c.name, unknown, c.unknown, c.why, d.Unknown)
			}
			if c.undo != nil {
				if err := c.undo(l); err != nil {
					return fmt.Errorf("%s: undo: %w", c.name, err)
				}
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Accepted) != len(inv.Nodes) {
		t.Errorf("accepted %v", sum.Accepted)
	}
}

// TestDriftOfSwitches: a switch that somebody has set otherwise, a port that is not there any more, a cable
// between switches without a link, and a switch that does not answer are named, and nothing else.
func TestDriftOfSwitches(t *testing.T) {
	t.Parallel()
	slow(t)
	inv := readable(t)
	port, _ := firstTrunk(inv, 0)
	leaf := port[:strings.LastIndexByte(port, '/')]
	_, far := endsOf(inv, port)
	all := []string{"settings", "cables", "errors"}
	set := func(table, key, field, value string) func(*rehearsaltest.Later) error {
		return func(l *rehearsaltest.Later) error { return l.World.SetSwitch(leaf, table, key, field, value) }
	}
	cut := func(cut bool) func(*rehearsaltest.Later) error {
		return func(l *rehearsaltest.Later) error { return l.World.CutSwitch(leaf, cut) }
	}
	down := func(down bool) func(*rehearsaltest.Later) error {
		return func(l *rehearsaltest.Later) error { return l.World.SetTrunkDown(port, down) }
	}
	differs, silent := "switch "+leaf+" settings", "connection broke"
	checkSiteChanges(t, inv, []siteChange{
		{name: "nothing", do: nothing, kinds: all},
		{name: "MTU", do: set("PORT", "Ethernet0", "mtu", "1500"), undo: set("PORT", "Ethernet0", "mtu", "9100"), kinds: all, changes: differs, says: "PORT|Ethernet0 mtu: 1500 -> 9100"},
		{name: "PFC", do: set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3,4"), undo: set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3"), kinds: all, changes: differs, says: "pfc_enable: 3,4 -> 3"},
		{name: "a cable between switches without a link", do: down(true), undo: down(false), kinds: all,
			changes: "link " + port + " cables " + far + "|link " + port + " cables " + port, says: "Was:up Is:down Lower:true"},
		{name: "a switch that does not answer", do: cut(true), undo: cut(false), kinds: []string{"settings"}, unknown: differs, why: silent},
		{name: "a switch whose counters cannot be read", do: cut(true), undo: cut(false), kinds: []string{"errors"}, unknown: "switch " + leaf + " errors", why: silent},
		{name: "other ports", do: func(l *rehearsaltest.Later) error { return l.World.RemovePort(leaf, "Ethernet0") }, kinds: all,
			changes: differs, says: "has no port Ethernet0: it is another model than \"SN5600\", or its ports are split otherwise. Set the breakout mode"},
	})
}

// nothing leaves a site as it is.
func nothing(*rehearsaltest.Later) error { return nil }

// endsOf are both ends of the cable between switches whose lower end is in a port.
func endsOf(inv *inventory.Inventory, port string) (low, high string) {
	c := fault.FindTrunk(inv, port)
	return c.From.String(), c.To.String()
}

// TestDriftOfPDUs: an outlet that was switched, a plug that was moved, and a PDU that does not answer are
// named, and nothing else.
func TestDriftOfPDUs(t *testing.T) {
	t.Parallel()
	inv := load(t, "../../examples/mi300x-roce", nil)
	pdu, last := inv.Nodes[0].Feeds[0].PDU, 0
	for _, n := range inv.Nodes { // as a site that gives their numbers
		for i := range n.Feeds {
			if f := &n.Feeds[i]; f.PDU == pdu {
				last++
				f.Outlet = last
			}
		}
	}
	outlet := func(on bool) func(*rehearsaltest.Later) error {
		return func(l *rehearsaltest.Later) error { return l.World.SwitchOutlet(pdu.Name, 1, on) }
	}
	move := func(from, to int) func(*rehearsaltest.Later) error {
		return func(l *rehearsaltest.Later) error { return l.World.MovePlug(pdu.Name, from, to) }
	}
	kinds, at := []string{"power"}, "pdu "+pdu.Name+" power"
	checkSiteChanges(t, inv, []siteChange{
		{name: "nothing", do: nothing, kinds: kinds},
		{name: "an outlet is off", do: outlet(false), undo: outlet(true), kinds: kinds, changes: at + " outlet 1", says: "outlet 1 is off, and was on when its nodes were tested; it feeds " + inv.Nodes[0].Name},
		{name: "a plug is moved", do: move(2, last+1), undo: move(last+1, 2), kinds: kinds, changes: fmt.Sprintf("%s outlet %d", at, last+1), says: "carried nothing when its nodes were tested; the site has nothing on it"},
		{name: "it has no power", do: func(l *rehearsaltest.Later) error { return l.World.FeedPDU(pdu.Name, false) }, kinds: kinds, unknown: at, why: "no answer to SNMP"},
	})
}

// TestDriftOfInfiniBand: what the ends of a cable between InfiniBand switches count, and a cable that has
// no link any more, are named, and nothing else.
func TestDriftOfInfiniBand(t *testing.T) {
	t.Parallel()
	inv := fourRacks(t)
	port, _ := firstTrunk(inv, 16)
	_, far := endsOf(inv, port)
	kinds := []string{"settings", "cables", "errors"}
	cut := func(cut bool) func(*rehearsaltest.Later) error {
		return func(l *rehearsaltest.Later) error { return l.World.CutManager("compute", cut) }
	}
	checkSiteChanges(t, inv, []siteChange{
		{name: "nothing", do: nothing, kinds: kinds},
		{name: "errors", do: func(l *rehearsaltest.Later) error {
			if err := l.Plant(planted(t, "kind=trunk-errors,port="+port)[0]); err != nil {
				return err
			}
			l.World.CarryTraffic(1e13)
			return nil
		}, kinds: []string{"errors"}, changes: "link " + port + " errors " + far, says: "at most 10 an hour"},
		{name: "the subnet manager cannot be reached", do: cut(true), undo: cut(false), kinds: kinds,
			unknown: "fabric compute settings|fabric compute cables|fabric compute errors", why: "Failed to open '(null)' port '0'"},
		{name: "no link", do: func(l *rehearsaltest.Later) error { return l.World.SetTrunkDown(port, true) }, kinds: []string{"cables"}, changes: "link " + port + " cables", says: "has no link to"},
	})
}
