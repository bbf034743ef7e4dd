// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
)

// absent stands for what is not there.
const absent = "absent"

// Sets finds lists by their digest; nil for one that is lost.
type Sets func(digest string) Set

// Compare tells what of a node is not as it was. Nothing is said of a kind that
// one of the two could not see. A chassis with another serial is one change, and
// the only one: the rest is that of another chassis.
func Compare(was, now Snapshot, sets Sets) []Change {
	c := comparison{was: was, now: now}
	if was.Serial != "" && now.Serial != "" && was.Serial != now.Serial {
		c.change(wire.ItemHardware, "", "serial", was.Serial, now.Serial)
		return c.done()
	}
	c.items()
	c.sets(sets)
	c.counters()
	return c.done()
}

// comparison is one comparison under way.
type comparison struct {
	was, now Snapshot
	changes  []Change
}

func (c *comparison) change(kind, part, name, was, is string) *Change {
	c.changes = append(c.changes, Change{Node: c.now.Node, Kind: kind, Part: part, Name: name, Was: was, Is: is, Since: c.was.At, Action: actionOf(kind, c.now.Node)})
	if kind == wire.ItemNetwork && part == partBMC && name == vlanName { // it is read and never set
		c.changes[len(c.changes)-1].Action = "set it back from the node itself, such as by `ipmitool lan set 1 vlan id`, or in the firmware's setup, before the switch port is changed: over its network the BMC would be cut off"
	}
	return &c.changes[len(c.changes)-1]
}

// bothKnow reports whether both know something of a kind.
func (c *comparison) bothKnow(kind string) bool {
	_, before := c.was.unseen(kind)
	_, today := c.now.unseen(kind)
	return !before && !today
}

// key names an item within its snapshot.
type key struct{ kind, part, name string }

func byKey(items []wire.Item) map[key]string {
	m := make(map[key]string, len(items))
	for _, i := range items {
		m[key{i.Kind, i.Part, i.Name}] = i.Value
	}
	return m
}

// items compares what both have, then what only one of them has.
func (c *comparison) items() {
	was, now := byKey(c.was.Items), byKey(c.now.Items)
	moved := map[string]bool{} // parts with a link that changed
	for _, i := range c.was.Items {
		is, ok := now[key{i.Kind, i.Part, i.Name}]
		if !ok || is == i.Value || !c.bothKnow(i.Kind) {
			continue
		}
		x := c.change(i.Kind, i.Part, i.Name, i.Value, is)
		if i.Kind == wire.ItemLink {
			moved[i.Part] = true
			x.Lower = isLower(i.Value, is)
		}
	}
	if c.was.Plain || c.now.Plain {
		return // what one of them does not report is not gone
	}
	c.plugged(c.was.Items, now, func(part string) { c.change(wire.ItemHardware, part, "part", "there", absent) })
	c.plugged(c.now.Items, was, func(part string) { c.change(wire.ItemHardware, part, "part", absent, "there") })
	for _, i := range c.was.Items { // a link without light has no speed
		if _, ok := now[key{i.Kind, i.Part, i.Name}]; !ok && i.Kind == wire.ItemLink && !moved[i.Part] && c.partIn(now, i.Part) && c.bothKnow(i.Kind) {
			moved[i.Part] = true
			c.change(i.Kind, i.Part, i.Name, i.Value, absent).Lower = true
		}
	}
	c.untrusted(now)
}

// untrusted lists certificates that firmware and shim have lost, where the node shows any. One that
// was added says nothing: firmware updates bring some.
func (c *comparison) untrusted(now map[key]string) {
	shown := slices.ContainsFunc(c.now.Items, func(i wire.Item) bool { return i.Kind == wire.ItemSecureBoot && i.Part != "" })
	for _, i := range c.was.Items {
		if _, ok := now[key{i.Kind, i.Part, i.Name}]; !ok && shown && i.Kind == wire.ItemSecureBoot && i.Part != "" && c.bothKnow(i.Kind) {
			c.change(i.Kind, i.Part, i.Name, i.Value, absent)
		}
	}
}

// plugged tells parts with a kind of their own in items of which nothing is left
// in others. What an older program did not look at at all is not told.
func (c *comparison) plugged(items []wire.Item, others map[key]string, tell func(part string)) {
	looked := map[string]bool{}
	for k := range others {
		if k.kind == wire.ItemHardware {
			looked[k.name] = true
		}
	}
	reported := map[string]bool{}
	for _, i := range items {
		if i.Kind == wire.ItemHardware && i.Part != "" && !reported[i.Part] && (looked[i.Name] || c.only(i.Name)) && !c.partIn(others, i.Part) && c.bothKnow(i.Kind) {
			reported[i.Part] = true
			tell(i.Part)
		}
	}
}

// only reports whether a name is one that every version of the agent looks at, so
// that the last part of its kind may vanish as well.
func (c *comparison) only(name string) bool {
	return slices.Contains([]string{"GPU", "NIC", "NVMe", "MAC", "model", "module"}, name) && len(c.was.Items) > 0 && len(c.now.Items) > 0
}

// partIn reports whether anything is known of a part.
func (c *comparison) partIn(items map[key]string, part string) bool {
	for k := range items {
		if k.part == part && k.kind == wire.ItemHardware {
			return true
		}
	}
	return false
}

// isLower reports whether a link is slower, narrower or down.
func isLower(was, is string) bool {
	a, b := versionNumber(was), versionNumber(is)
	if a > 0 && b > 0 {
		return b < a
	}
	return is == "down" || is == "DOWN"
}

// versionNumber returns the number that a text begins with; 0 for none.
func versionNumber(s string) float64 {
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	n, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return 0
	}
	return n
}

// sets compares long lists name by name.
func (c *comparison) sets(find Sets) {
	for _, kind := range []string{BIOS, wire.ItemPackages} {
		a, b := c.was.Sets[kind], c.now.Sets[kind]
		if a == "" || b == "" || a == b || !c.bothKnow(kind) {
			continue
		}
		was, now := find(a), find(b)
		if was == nil || now == nil {
			c.change(kind, "", "list", a, b)
			continue
		}
		c.set(kind, was, now)
	}
}

// set compares two lists of a kind. A setting that a firmware has not had before, or
// has no more, comes with its version and says nothing by itself.
func (c *comparison) set(kind string, was, now Set) {
	for name, old := range was {
		if is, ok := now[name]; ok && is != old {
			c.change(kind, "", name, old, is)
		} else if !ok && kind == wire.ItemPackages {
			c.change(kind, "", name, old, absent)
		}
	}
	for name, is := range now {
		if _, ok := was[name]; !ok && kind == wire.ItemPackages {
			c.change(kind, "", name, absent, is)
		}
	}
}

// done returns the changes in the order in which they are shown.
func (c *comparison) done() []Change {
	Sort(c.changes)
	return c.changes
}

// Sort orders changes by node, kind, part and name; what is no node comes after the nodes.
func Sort(list []Change) {
	slices.SortStableFunc(list, func(a, b Change) int {
		return cmp.Or(strings.Compare(string(a.Of), string(b.Of)), strings.Compare(a.Node, b.Node), cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind)),
			strings.Compare(a.Part, b.Part), strings.Compare(a.Name, b.Name))
	})
}

// actionOf says what a person does about a kind of change.
func actionOf(kind, node string) string {
	take := "`ironrail drift --accept " + node + " --reason WHY` if it is meant to be so"
	plan := "`ironrail plan --refresh --target " + node + "`"
	switch kind {
	case wire.ItemPackages, wire.ItemDrivers:
		return plan + " shows what the site's steps would fix; " + take
	case wire.ItemNetwork, Settings:
		return plan + " shows the step that puts it right"
	case wire.ItemSecureBoot:
		return "switch Secure Boot on in the firmware's setup, with its keys; a certificate of the site is enrolled again by `ironrail rebuild " + node + "`, or by hand; " + take
	case BIOS:
		return "put it into `bios` of the hardware block and apply, or set it back; " + take
	case wire.ItemFirmware:
		return "compare with the other nodes, then update or go back; " + take
	case wire.ItemImage, wire.ItemKernel:
		return "`ironrail rebuild " + node + "` installs it anew; " + take
	case wire.ItemLink, Errors:
		return "reseat and clean the link, then `ironrail apply`; when it stays so, replace the cable or the part"
	case Cables:
		return "put the plug back where the cable list has it"
	}
	return "find out who exchanged it; " + take
}
