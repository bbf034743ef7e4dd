// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory/language"
	"github.com/ironrail/ironrail/inventory/unit"
)

// rackName is what a rack, PDU, switch or shelf may be called, and every other
// block but a node: it is part of
// scoped names, so it has no slash.
var rackName = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// nodeName is what a node may be called: it is its host name.
var nodeName = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (l *loader) rack(b *language.Body) *Rack {
	r := &Rack{
		Name: b.Name, Number: language.Get[int](b, "number"), Row: language.Get[string](b, "row"), Units: language.Get[int](b, "units"), MaxPower: language.Get[unit.Watts](b, "max_power"),
		Cooling: language.Get[unit.Watts](b, "cooling"), MaxWeight: language.Get[unit.Mass](b, "max_weight"), Orientation: language.Get[string](b, "orientation"), Decl: b.Decl,
		Position: language.Get[int](b, "position"), ScalableUnit: language.Get[int](b, "scalable_unit"), LiquidCooling: language.Get[unit.Watts](b, "liquid_cooling"),
		Ranges: RackRanges{Position: b.Range("position"), MaxPower: b.Range("max_power"), Cooling: b.Range("cooling"), LiquidCooling: b.Range("liquid_cooling"), MaxWeight: b.Range("max_weight")},
	}
	l.checkName(b, rackName)
	labels := map[string]*language.Body{}
	for _, p := range b.Blocks("pdu") {
		if l.scoped(p, r, labels) {
			r.PDUs = append(r.PDUs, l.pdu(r, p))
		}
	}
	for _, s := range b.Blocks("switch") {
		if l.scoped(s, r, labels) {
			r.Switches = append(r.Switches, l.rackSwitch(r, s))
		}
	}
	for _, s := range b.Blocks("shelf") {
		if l.scoped(s, r, labels) {
			r.Shelves = append(r.Shelves, l.shelf(r, s))
		}
	}
	l.rackNodes(r, b)
	return r
}

// scoped checks the name of a thing of a rack; false means that it has none of
// its own.
func (l *loader) scoped(b *language.Body, r *Rack, labels map[string]*language.Body) bool {
	l.checkName(b, rackName)
	if first := labels[b.Name]; first != nil {
		l.diags.Add("name.duplicate", b.Named, "Two things of this name in one rack",
			fmt.Sprintf("Rack %q has a %s and a %s called %q. Give one of them another name.", r.Name, first.Type, b.Type, b.Name)).Also("the first one", first.Named).In(b.Decl)
		return false
	}
	labels[b.Name] = b
	return true
}

func (l *loader) checkName(b *language.Body, form *lazyregexp.Regexp) {
	if !form.MatchString(b.Name) {
		rule := "letters, digits, dots, hyphens and underscores, up to 63"
		if form == nodeName {
			rule = "lower-case letters, digits and hyphens, up to 63, for it is the node's host name"
		}
		l.diags.Add("name.form", b.Named, fmt.Sprintf("Not a name for a %s", b.Type), fmt.Sprintf("%q cannot be the name of a %s: %s.", b.Name, b.Type, rule)).In(b.Decl)
	}
}

func (l *loader) buildingFeed(b *language.Body) *BuildingFeed {
	f := &BuildingFeed{Name: b.Name, Capacity: language.Get[unit.Watts](b, "capacity"), Derate: 1, Decl: b.Decl}
	if b.Given("derate") {
		f.Derate = l.derate(b)
	}
	return f
}

// derate is the usable share of what something carries.
func (l *loader) derate(b *language.Body) float64 {
	d := language.Get[float64](b, "derate")
	if b.Right("derate") && (d <= 0 || d > 1) {
		l.diags.Add("language.value", b.Range("derate"), "Wrong value of derate", "derate is the usable share of what it carries: more than 0, at most 1.").In(b.Decl)
	}
	return d
}

func (l *loader) pdu(r *Rack, b *language.Body) *PDU {
	p := &PDU{
		Name: r.Name + "/" + b.Name, Label: b.Name, Rack: r, Feed: language.Get[string](b, "feed"), Phases: language.Get[int](b, "phases"), Voltage: language.Get[unit.Volts](b, "voltage"),
		Current: language.Get[unit.Amps](b, "current"), Derate: 0.8, Outlets: language.Get[int](b, "outlets"), Wiring: language.Get[string](b, "wiring"), Decl: b.Decl,
		FeedRange: b.Range("feed"), OutletsRange: b.Range("outlets"),
	}
	if b.Given("derate") {
		p.Derate = l.derate(b)
	}
	if p.Phases == 2 {
		l.diags.Add("language.value", b.Range("phases"), "Wrong value of phases", "A PDU has 1 phase or 3.").In(b.Decl)
	}
	l.filled(b, "feed")
	l.positive(b, "voltage", float64(p.Voltage))
	l.positive(b, "current", float64(p.Current))
	if c := b.Block("control"); c != nil {
		p.Control = &PDUControl{
			Protocol: language.Get[string](c, "protocol"), Address: language.Get[netip.Addr](c, "address"), Model: language.Get[string](c, "model"), Community: language.Get[secret.Ref](c, "community"),
			Username: language.Get[string](c, "username"), Password: language.Get[secret.Ref](c, "password"), Decl: c.Decl,
		}
		l.checkControl(p, c)
		l.addresses.add(p.Control.Address, "PDU "+p.Name, c.Range("address"), "")
	}
	l.pdus[p.Name], l.bodies[p] = p, b
	return p
}

// positive reports a quantity that is nothing, where something is needed.
func (l *loader) positive(b *language.Body, name string, value float64) {
	if b.Right(name) && value <= 0 {
		l.diags.Add("language.value", b.Range(name), "Wrong value of "+name, fmt.Sprintf("%s is 0 here; it must be more.", name)).In(b.Decl)
	}
}

// filled reports texts of no letters.
func (l *loader) filled(b *language.Body, names ...string) {
	for _, name := range names {
		if b.Right(name) && strings.TrimSpace(language.Get[string](b, name)) == "" {
			l.diags.Add("language.value", b.Range(name), "Wrong value of "+name, fmt.Sprintf("%s is a text without letters here. Say what it is.", name)).In(b.Decl)
		}
	}
}

// checkControl reports a PDU that is spoken to without a login.
func (l *loader) checkControl(p *PDU, c *language.Body) {
	switch {
	case !c.Given("community") && !c.Given("username"):
		l.diags.Add("pdu.control", c.Decl, "PDU control without a login", fmt.Sprintf(`PDU %s is spoken to by SNMP, which wants a community (version 2c), such as community = secret("env:PDU_COMMUNITY"), or a username with its password (version 3).`, p.Name))
	case c.Given("community") && c.Given("username"):
		l.diags.Add("pdu.control", c.Range("username"), "PDU control with two logins", fmt.Sprintf("PDU %s has a community, of SNMP 2c, and a username, of SNMP 3. Remove one of them.", p.Name)).Also("the community", c.Range("community")).In(c.Decl)
	case c.Given("password") && !c.Given("username"):
		l.diags.Add("pdu.control", c.Range("password"), "Password without a username", fmt.Sprintf("PDU %s has a password, of SNMP 3, without the username that it belongs to.", p.Name)).In(c.Decl)
	}
}

func (l *loader) rackSwitch(r *Rack, b *language.Body) *Switch {
	s := &Switch{
		Name: r.Name + "/" + b.Name, Label: b.Name, Rack: r, Kind: language.Get[string](b, "kind"), Model: language.Get[string](b, "model"), Unit: language.Get[int](b, "unit"),
		Height: language.Get[int](b, "height"), Ports: language.Get[int](b, "ports"), OS: language.Get[string](b, "os"), Address: language.Get[netip.Addr](b, "address"), BMC: language.Get[netip.Addr](b, "bmc"),
		Power: language.Get[unit.Watts](b, "power"), Airflow: language.Get[string](b, "airflow"), Console: language.Get[string](b, "console"), Fabric: readRef(b, "fabric", l.fabrics), Decl: b.Decl,
		Weight: language.Get[unit.Mass](b, "weight"), Liquid: language.Get[unit.Percent](b, "liquid"), Tier: Tier(language.Get[string](b, "tier")), ScalableUnit: language.Get[int](b, "scalable_unit"), Rail: -1, Plane: -1,
	}
	if b.Given("rail") {
		s.Rail = language.Get[int](b, "rail")
	}
	if b.Given("plane") {
		s.Plane = language.Get[int](b, "plane")
	}
	l.switchLogin(s, b)
	s.Feeds = l.feeds(b, b, r, 2, s.Name)
	l.addresses.add(s.Address, "switch "+s.Name, b.Range("address"), "")
	l.addresses.add(s.BMC, "the BMC of switch "+s.Name, b.Range("bmc"), "")
	l.switches[s.Name], l.bodies[s] = s, b
	return s
}

func (l *loader) shelf(r *Rack, b *language.Body) *Shelf {
	s := &Shelf{
		Name: r.Name + "/" + b.Name, Label: b.Name, Rack: r, Unit: language.Get[int](b, "unit"), Height: language.Get[int](b, "height"), Count: language.Get[int](b, "count"),
		Capacity: language.Get[unit.Watts](b, "capacity"), Redundancy: language.Get[string](b, "redundancy"), Weight: language.Get[unit.Mass](b, "weight"), Decl: b.Decl,
	}
	s.Feeds = l.feeds(b, b, r, s.Count, s.Name)
	if c := b.Block("control"); c != nil {
		s.Control = &ShelfControl{Address: language.Get[netip.Addr](c, "address"), Username: language.Get[string](c, "username"), Password: language.Get[secret.Ref](c, "password"),
			TLS: l.trust(c, language.Get[string](c, "protocol"), TLSTrust{Mode: TLSPinFirstSeen}), Decl: c.Decl}
		l.addresses.add(s.Control.Address, "power shelf "+s.Name, c.Range("address"), "")
	}
	l.bodies[s] = b
	return s
}

// feeds connects supplies to PDUs: a list is taken in turn, a map says which
// supply goes where. owner says what has the supplies.
func (l *loader) feeds(b, owner *language.Body, r *Rack, supplies int, name string) []Feed {
	texts := language.Get[[]feedText](b, "feeds")
	if len(texts) == 0 {
		return nil
	}
	var out []Feed
	pdus := make([]*PDU, len(texts))
	for i, t := range texts {
		j := slices.IndexFunc(r.PDUs, func(p *PDU) bool { return p.Label == t.pdu })
		if j < 0 {
			l.unknownPDU(b, owner, r, i, t.pdu, name)
			return nil
		}
		pdus[i] = r.PDUs[j]
		if outlets := pdus[i].Outlets; outlets > 0 && t.outlet > outlets {
			l.diags.Add("outlet.range", b.ElementRange("feeds", i), "Outlet that the PDU lacks", fmt.Sprintf("%s feeds from outlet %d of PDU %s, which has %d.", name, t.outlet, pdus[i].Name, outlets)).In(owner.Decl).Of(name)
		}
		if t.supply > 0 {
			if supplies > 0 && t.supply > supplies {
				l.diags.Add("feed.supply", b.ElementRange("feeds", i), "Supply that is not there", fmt.Sprintf("%s has %d supplies; psu%d is not among them.", name, supplies, t.supply)).In(owner.Decl).Of(name)
			}
			out = append(out, Feed{Supply: fmt.Sprintf("psu%d", t.supply), PDU: pdus[i], Outlet: t.outlet})
		}
	}
	if texts[0].supply > 0 {
		return out
	}
	for i := range max(supplies, len(texts)) {
		f := Feed{Supply: supplyNames[i%len(supplyNames)], PDU: pdus[i%len(pdus)]}
		if i < len(texts) {
			f.Outlet = texts[i].outlet
		}
		out = append(out, f)
	}
	return out
}

// supplyNames spares formatting the same few names for each node.
var supplyNames = func() (out [100]string) {
	for i := range out {
		out[i] = fmt.Sprintf("psu%d", i+1)
	}
	return out
}()
