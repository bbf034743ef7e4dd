// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// check looks at what no block can know by itself. The order is that of the
// reader's day: the room, what it is called, how it is reached, what runs on it.
func (l *loader) check(kinds Kinds) {
	l.checkRacks()
	l.checkIdentities()
	l.checkNetworks()
	l.checkAddresses()
	l.checkOutlets()
	l.checkCables()
	l.checkLayouts()
	l.checkDiskless()
	l.checkTaggedPorts()
	l.checkInstallDisks()
	l.checkArchitectures()
	l.checkSecureBoot()
	l.checkMoves()
	l.checkRoles()
	l.exports(kinds)
	l.checkKinds(kinds)
	l.checkLogins()
	l.checkConsoles()
}

// checkNetworks compares networks with each other and with themselves.
func (l *loader) checkNetworks() {
	byVLAN := map[int]*Network{}
	for _, n := range l.inv.Networks {
		if first := byVLAN[n.VLAN]; n.VLAN != 0 && first != nil {
			l.diags.Add("vlan.duplicate", l.place(n, "vlan"), "VLAN used twice", fmt.Sprintf("Networks %q and %q both have VLAN %d.", first.Name, n.Name, n.VLAN)).Also("used first here", l.place(first, "vlan")).In(n.Decl)
		} else {
			byVLAN[n.VLAN] = n
		}
		l.checkNetwork(n)
	}
	l.checkOverlaps()
}

func (l *loader) checkNetwork(n *Network) {
	if !n.CIDR.IsValid() {
		return
	}
	second := func(a netip.Addr) bool { return n.CIDR6.IsValid() && n.CIDR6.Contains(a) }
	inside := func(a netip.Addr) bool { return n.CIDR.Contains(a) || second(a) }
	l.checkSecondPrefix(n)
	if g := n.Gateway; g.IsValid() {
		if second(g) {
			l.diags.Add("address.outside-network", l.place(n, "gateway"), "Gateway outside of its network", fmt.Sprintf("The gateway %s is of cidr6 of network %q: write it as gateway6. gateway is of cidr, %s.", g, n.Name, n.CIDR)).Also("the network", l.place(n, "cidr6")).In(n.Decl)
		} else if !inside(g) {
			l.diags.Add("address.outside-network", l.place(n, "gateway"), "Gateway outside of its network", fmt.Sprintf("The gateway %s is not in network %q, %s.", g, n.Name, n.CIDR)).Also("the network", l.place(n, "cidr")).In(n.Decl)
		} else if n.DHCP.Pool.Contains(g) {
			l.diags.Add("address.in-pool", l.place(n, "gateway"), "Gateway inside of the pool", fmt.Sprintf("The gateway %s is in the pool of network %q.", g, n.Name)).Also("the pool", l.poolPlace(n)).In(n.Decl)
		}
	}
	if p := n.DHCP.Pool; p.First.IsValid() && (!inside(p.First) || !inside(p.Last)) {
		l.diags.Add("address.outside-network", l.poolPlace(n), "Pool outside of its network", fmt.Sprintf("The pool %s-%s is not wholly in network %q, %s.", p.First, p.Last, n.Name, n.CIDR)).Also("the network", l.place(n, "cidr")).In(n.DHCP.Decl)
	}
}

// span is a prefix with its owner.
type span struct {
	prefix netip.Prefix
	owner  string
	at     hcl.Range
}

// checkOverlaps reports prefixes that contain each other: an address would belong
// to two networks.
func (l *loader) checkOverlaps() {
	var spans []span
	for _, n := range l.inv.Networks {
		spans = append(spans, span{n.CIDR, fmt.Sprintf("network %q", n.Name), l.place(n, "cidr")}, span{n.CIDR6, fmt.Sprintf("network %q", n.Name), l.place(n, "cidr6")})
	}
	for _, f := range l.inv.Fabrics {
		spans = append(spans, span{f.CIDR, fmt.Sprintf("fabric %q", f.Name), l.place(f, "cidr")})
	}
	spans = slices.DeleteFunc(spans, func(s span) bool { return !s.prefix.IsValid() })
	// Sorted by start, then by width, a prefix overlaps one before it exactly when
	// the widest still open one contains it.
	slices.SortStableFunc(spans, func(a, b span) int {
		if c := a.prefix.Addr().Compare(b.prefix.Addr()); c != 0 {
			return c
		}
		return a.prefix.Bits() - b.prefix.Bits()
	})
	for i := 1; i < len(spans); i++ {
		wide, s := spans[i-1], spans[i]
		if !wide.prefix.Overlaps(s.prefix) {
			continue
		}
		l.diags.Add("network.overlap", s.at, "Networks that overlap", fmt.Sprintf("%s of %s lies in %s of %s, so an address would belong to both.", s.prefix, s.owner, wide.prefix, wide.owner)).Also("the other one", wide.at)
		spans[i] = wide
	}
}

// checkAddresses reports addresses with two owners, and those of infrastructure
// in a pool.
func (l *loader) checkAddresses() {
	first := l.gateways()
	controllers := map[netip.Addr]bool{}
	for _, c := range l.inv.Controllers {
		controllers[c.Address] = true
	}
	placesAllowed := l.mentions("unit.overlap", "rack.number")
	for _, e := range l.addresses {
		was, taken := first[e.addr]
		if !taken {
			first[e.addr] = e
			continue
		}
		if controllers[e.addr] && strings.HasPrefix(e.owner, "controller") && strings.HasPrefix(was.owner, "the gateway") {
			continue // a controller may be the router of its network
		}
		if l.followsFrom(was, e) || !placesAllowed && l.onePlace(was, e) {
			continue // the unit, or the number of the rack, is what is wrong
		}
		d := l.diags.Add("address.duplicate", e.at, "Address used twice", fmt.Sprintf("%s belongs to %s and to %s. Give one of them another address.", e.addr, was.owner, e.owner)).Also("used first here", was.at)
		for _, name := range []string{was.node, e.node} {
			if name != "" {
				d.Of(name)
			}
		}
	}
	l.checkPools()
}

// onePlace reports whether both addresses follow from positions of one number and
// unit, which unit.overlap or rack.number says already.
func (l *loader) onePlace(a, b addressEntry) bool {
	m, n := l.nodes[a.node], l.nodes[b.node]
	return m != nil && n != nil && m.Unit == n.Unit && m.Rack.Number == n.Rack.Number && a.at == m.Ranges.Unit && b.at == n.Ranges.Unit
}

// mentions reports whether an allow or an override lowers one of the checks.
func (l *loader) mentions(checks ...string) bool {
	return slices.ContainsFunc(l.inv.Allows, func(a *Allow) bool { return slices.Contains(checks, a.Check) }) ||
		slices.ContainsFunc(l.inv.Overrides, func(o *Override) bool {
			return slices.ContainsFunc(o.Allow, func(c string) bool { return slices.Contains(checks, c) })
		})
}

// checkPools reports addresses of what is no node that lie in a pool; those of
// nodes were judged with their networks.
func (l *loader) checkPools() {
	for _, e := range l.addresses {
		if e.node != "" {
			continue
		}
		for _, n := range l.inv.Networks {
			if n.DHCP.Pool.Contains(e.addr) {
				l.diags.Add("address.in-pool", e.at, "Address inside of a pool", fmt.Sprintf("%s of %s is in the pool of network %q, whose addresses go to clients that are not in the inventory.", e.addr, e.owner, n.Name)).Also("the pool", l.poolPlace(n))
			}
		}
	}
}

// checkKinds asks the owners of kinds about their blocks, once nothing else is
// wrong with them.
func (l *loader) checkKinds(kinds Kinds) {
	if !l.complete() {
		return
	}
	for _, x := range l.inv.Fabrics {
		if design := kinds.Fabric[x.Kind].Design; design != nil {
			switches, cables, diags := design(l.inv, x)
			l.inv.Switches = append(l.inv.Switches, switches...)
			l.inv.Cables = append(l.inv.Cables, cables...)
			*l.diags = append(*l.diags, diags...)
		}
	}
	sortByName(l.inv.Switches)
	for _, x := range l.inv.Images {
		l.checkKind(kinds.Image, x.Block)
	}
	for _, x := range l.inv.Drivers {
		l.checkKind(kinds.Driver, x.Block)
	}
	for _, x := range l.inv.Fabrics {
		l.checkKind(kinds.Fabric, x.Block)
	}
	for _, x := range l.inv.Handovers {
		l.checkKind(kinds.Handover, x.Block)
	}
	for _, check := range l.opt.Checks {
		*l.diags = append(*l.diags, check(l.inv)...)
	}
}

// complete reports whether the model says what the files mean: with an error of
// the language, a name or a reference parts of it are missing, and what is
// computed from the rest would only repeat that.
func (l *loader) complete() bool { return Complete(*l.diags) }

func (l *loader) checkKind(kinds map[string]KindSpec, b Block) {
	if check := kinds[b.Kind].Check; check != nil {
		*l.diags = append(*l.diags, check(l.inv, b)...)
	}
}

// fixed are the checks that nothing lowers: without them the site means nothing,
// or the wrong disk would be erased.
var fixed = []string{"language.", "reference.", "name.", "secret.", "mac.", "serial.", "uuid.", "address.duplicate", "override.", "allow.", "lock.", "moved.", "nic.boot", "disk.serial", "disk.overlap"}

// lower makes warnings of the errors that an override or an allow block accepts.
func (l *loader) lower(diags diag.List, now time.Time) diag.List {
	var extra diag.List
	for _, o := range l.inv.Overrides {
		l.checkAllowed(&extra, o.Allow, func(i int) hcl.Range { return l.bodies[o].ElementRange("allow", i) }, o.Decl)
		if l.expired(l.bodies[o]) {
			extra.Add("override.expired", l.place(o, "expires"), "Override past its end", fmt.Sprintf("The override of %q (%s) ended on %s; it no longer holds. Remove it, or give it another end.", o.Node, o.Reason, o.Expires.AddDate(0, 0, -1).Format(time.DateOnly))).In(o.Decl).Warn()
		}
	}
	for _, a := range l.inv.Allows {
		l.checkAllowed(&extra, []string{a.Check}, func(int) hcl.Range { return l.bodies[a].Labels[0] }, a.Decl)
		if isPast(a.Expires, now) {
			extra.Add("allow.expired", l.place(a, "expires"), "Allow past its end", fmt.Sprintf("The allow of %q (%s) ended on %s; it no longer holds. Remove it, or give it another end.", a.Check, a.Reason, a.Expires.AddDate(0, 0, -1).Format(time.DateOnly))).In(a.Decl).Warn()
		}
	}
	for i := range diags {
		if diags[i].Severity == diag.Error && !isFixed(diags[i].Check) {
			l.accept(&diags[i], now)
		}
	}
	return append(diags, extra...)
}

func isFixed(check string) bool {
	return slices.ContainsFunc(fixed, func(prefix string) bool { return strings.HasPrefix(check, prefix) })
}

func (l *loader) checkAllowed(to *diag.List, checks []string, at func(int) hcl.Range, in hcl.Range) {
	for i, c := range checks {
		if len(l.opt.CheckNames) > 0 && !slices.Contains(l.opt.CheckNames, c) {
			to.Add("allow.unknown", at(i), "Allow of an unknown check", fmt.Sprintf("There is no check %q, so that nothing is allowed by this.%s", c, diag.DidYouMean(c, l.opt.CheckNames))).In(in).Warn()
			continue
		}
		if isFixed(c) {
			to.Add("allow.refused", at(i), "Check that cannot be allowed", fmt.Sprintf("What %q finds must be fixed; it cannot be lowered to a warning.", c)).In(in)
		}
	}
}

// accept lowers one diagnostic when something allows it.
func (l *loader) accept(d *Diagnostic, now time.Time) {
	for _, a := range l.inv.Allows {
		if a.Check == d.Check && !isPast(a.Expires, now) {
			d.Severity = diag.Warning
			d.Detail += fmt.Sprintf(" (Allowed: %s.)", strings.TrimSuffix(a.Reason, "."))
			return
		}
	}
	l.acceptOf(d)
}

// acceptOf lowers a diagnostic that overrides of its nodes allow. Of a collision
// between two nodes one may be the exception; what more nodes cause together is
// lowered when each of them allows it.
func (l *loader) acceptOf(d *Diagnostic) {
	var by *Override
	for _, name := range d.About {
		n := l.nodes[name]
		switch allowed := n != nil && n.Override != nil && slices.Contains(n.Override.Allow, d.Check); {
		case allowed && by == nil:
			by = n.Override
		case !allowed && len(d.About) > 2:
			return
		}
	}
	if by != nil {
		d.Severity = diag.Warning
		d.Detail += fmt.Sprintf(" (Allowed for %s: %s.)", by.Node, strings.TrimSuffix(by.Reason, "."))
	}
}

func isPast(end, now time.Time) bool { return !end.IsZero() && !now.IsZero() && !now.Before(end) }

// expired reports whether an override's end has come.
func (l *loader) expired(b *language.Body) bool {
	return isPast(language.Get[time.Time](b, "expires"), l.opt.Now)
}
