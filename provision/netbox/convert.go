// SPDX-License-Identifier: Apache-2.0

package netbox

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/natural"
)

// Options say what the things of NetBox are in the site.
type Options struct {
	Nodes    map[string]string // role of the site by the slug of a device role
	Switches map[string]string // by the slug of a device role that is a switch: its fabric in the site; empty: of none
	// Ports and SwitchPorts name the ports of nodes and switches by their interfaces.
	Ports, SwitchPorts []Template
}

// Template names a port by an interface: "ib{n}" and "rail/{n}"; {n} is a number.
type Template struct{ Interface, Port string }

// ParseTemplate reads INTERFACE=PORT.
func ParseTemplate(text string) (Template, error) {
	from, to, ok := strings.Cut(text, "=")
	t := Template{from, to}
	switch {
	case !ok || from == "" || to == "":
		return t, fmt.Errorf("%q is not INTERFACE=PORT, such as \"ib{n}=rail/{n}\"", text)
	case strings.Count(from, number) > 1 || strings.Contains(to, number) && !strings.Contains(from, number):
		return t, fmt.Errorf("%q: %s stands once in the interface, and in the port where it does there", text, number)
	}
	return t, nil
}

// number is what stands for a number in a template.
const number = "{n}"

// port returns the port of an interface; "" where the template is for others.
func (t Template) port(name string) string {
	before, after, numbered := strings.Cut(t.Interface, number)
	if !numbered {
		if name != t.Interface {
			return ""
		}
		return t.Port
	}
	rest, ok := strings.CutPrefix(name, before)
	digits, ok2 := strings.CutSuffix(rest, after)
	if !ok || !ok2 || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return strings.ReplaceAll(t.Port, number, digits)
}

// Site is what of NetBox the site's files have as well, by name.
type Site struct {
	Racks  []SiteRack
	Cables []SiteCable
}

// SiteRack is a rack with what stands in it, by unit.
type SiteRack struct {
	Name     string
	Number   int // its id in NetBox: unique, and the same with every import
	Units    int
	Nodes    []SiteNode
	Switches []SiteSwitch
}

// SiteNode is a node. Texts are empty where NetBox does not have them.
type SiteNode struct {
	Name, Role, Serial, BootMAC, Address, BMC string
	Unit                                      int
}

// SiteSwitch is a switch, by its name in the rack.
type SiteSwitch struct {
	Name, Model, Fabric, Address string
	Unit                         int
}

// SiteCable is a cable between ports as the language writes them. Over names the ports of
// patch panels between them, quoted.
type SiteCable struct{ From, To, Type, Length, Over string }

// Result is a converted export.
type Result struct {
	Site     Site
	Problems []string       // what cannot be taken over as it stands in NetBox, one sentence each
	Notes    []string       // which cables are to be written by hand, one sentence each
	LeftOut  map[string]int // how many objects were left out, by why
	Roles    map[string]int // devices in racks, by the slug of their role
}

// The forms of names in the language.
var (
	rackForm = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	nodeForm = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// gone are the states of devices and cables that do not stand in the room.
var gone = []string{"inventory", "decommissioning"}

// Convert makes the things of a site from those of NetBox. It is pure. Problems are in the
// order of the names in NetBox.
func Convert(e Export, o Options) Result {
	c := &converter{options: o, result: Result{LeftOut: map[string]int{}, Roles: map[string]int{}}, racks: map[int]*SiteRack{}, ends: map[string]end{}, macs: map[string]string{}, gone: map[[2]lane]bool{}, noted: map[string]bool{}}
	c.readMACs(e.Interfaces)
	c.readRacks(e.Racks)
	c.readDevices(e.Devices)
	c.readCables(e)
	for _, id := range slices.Sorted(maps.Keys(c.racks)) {
		r := c.racks[id]
		if len(r.Nodes)+len(r.Switches) == 0 {
			c.leave("racks without nodes and switches")
			continue
		}
		slices.SortFunc(r.Nodes, func(a, b SiteNode) int { return cmp.Compare(a.Unit, b.Unit) })
		slices.SortFunc(r.Switches, func(a, b SiteSwitch) int { return cmp.Compare(a.Unit, b.Unit) })
		c.result.Site.Racks = append(c.result.Site.Racks, *r)
	}
	slices.SortFunc(c.result.Site.Racks, func(a, b SiteRack) int { return natural.Compare(a.Name, b.Name) })
	slices.SortFunc(c.result.Site.Cables, func(a, b SiteCable) int {
		return cmp.Or(natural.Compare(a.From, b.From), natural.Compare(a.To, b.To))
	})
	return c.result
}

// end is a device that cables may end in.
type end struct {
	name string // as ports are written: the node's, or that of rack and switch
	node bool
}

// converter is the work on one export.
type converter struct {
	options Options
	result  Result
	racks   map[int]*SiteRack // by id
	ends    map[string]end    // by the name of the device
	macs    map[string]string // of the interface that boots, by the name of the device
	gone    map[[2]lane]bool  // ways of cables, from end to end
	noted   map[string]bool
}

func (c *converter) problem(format string, args ...any) {
	c.result.Problems = append(c.result.Problems, fmt.Sprintf(format, args...))
}

func (c *converter) leave(why string) { c.result.LeftOut[why]++ }

func (c *converter) readMACs(list []Interface) {
	for _, i := range list {
		if i.Device == nil || i.MAC == nil {
			continue
		}
		m, err := addr.ParseMAC(*i.MAC)
		if err != nil {
			c.problem("device %q: interface %q has %q as MAC address", i.Device.Name, i.Name, *i.MAC)
			continue
		}
		c.macs[i.Device.Name] = m.String()
	}
}

func (c *converter) readRacks(list []Rack) {
	for _, r := range list {
		switch {
		case !rackForm.MatchString(r.Name):
			c.problem("rack %q: a rack's name has letters, digits and . _ - only: rename it, in NetBox or here", r.Name)
			continue
		case r.Descending || r.StartingUnit > 1:
			c.problem("rack %q: its units are not counted from 1 at the bottom, as the site's are", r.Name)
			continue
		}
		c.racks[r.ID] = &SiteRack{Name: r.Name, Number: r.ID, Units: r.Units}
	}
}

func (c *converter) readDevices(list []Device) {
	for i := range list {
		d := &list[i]
		if d.Role == nil {
			d.Role = d.OldRole
		}
		switch {
		case d.Status != nil && slices.Contains(gone, d.Status.Value):
			c.leave("devices whose status is " + d.Status.Value)
		case d.Rack == nil || d.Position == nil:
			c.leave("devices without a rack or a position")
		case d.Role == nil:
			c.leave("devices without a role")
		default:
			c.result.Roles[d.Role.Slug]++
			c.place(d)
		}
	}
}

// place puts a device into its rack.
func (c *converter) place(d *Device) {
	role, isNode := c.options.Nodes[d.Role.Slug]
	fabric, isSwitch := c.options.Switches[d.Role.Slug]
	rack := c.racks[d.Rack.ID]
	name := ""
	if d.Name != nil {
		name = *d.Name
	}
	switch {
	case !isNode && !isSwitch:
		c.leave("devices of other roles")
		return
	case rack == nil:
		c.leave("devices in racks that are not taken over")
		return
	case *d.Position != math.Trunc(*d.Position):
		c.problem("device %q: it stands at unit %v of rack %s, and units of the site are whole", name, *d.Position, rack.Name)
		return
	}
	unit := int(*d.Position)
	if isSwitch {
		if !rackForm.MatchString(name) {
			c.problem("device %q: a switch's name has letters, digits and . _ - only", name)
			return
		}
		rack.Switches = append(rack.Switches, SiteSwitch{Name: name, Model: d.Type.Model, Fabric: fabric, Unit: unit, Address: c.addressOf(name, cmp.Or(d.Primary, d.OOB))})
		c.know(name, end{rack.Name + "/" + name, false})
		return
	}
	if !nodeForm.MatchString(name) {
		c.problem("device %q: a node's name is that of a host: small letters, digits and - only, 63 at most", name)
		return
	}
	rack.Nodes = append(rack.Nodes, SiteNode{Name: name, Role: role, Serial: d.Serial, BootMAC: c.macs[name], Unit: unit, Address: c.addressOf(name, d.Primary), BMC: c.addressOf(name, d.OOB)})
	c.know(name, end{name, true})
}

// know remembers what cables may end in. Of two devices of one name none is certain.
func (c *converter) know(name string, e end) {
	if _, twice := c.ends[name]; twice {
		c.problem("device %q: there are two of this name; give --site", name)
	}
	c.ends[name] = e
}

// addressOf returns an address without the length of its network.
func (c *converter) addressOf(device string, a *Address) string {
	if a == nil {
		return ""
	}
	p, err := netip.ParsePrefix(a.Address)
	if err != nil {
		c.problem("device %q: %q is no address with the length of its network", device, a.Address)
		return ""
	}
	return p.Addr().String()
}

// types are those of cables that the site has as well (dcim/choices.py).
var types = map[string]string{"dac-passive": "DAC", "dac-active": "ACC", "aoc": "AOC"}

// metres is the length of a unit.
var metres = map[string]float64{"km": 1000, "m": 1, "cm": 0.01, "mi": 1609.344, "ft": 0.3048, "in": 0.0254}

// readCables follows the cables from every interface of a node or switch.
func (c *converter) readCables(e Export) {
	p := newPanels(e)
	for i := range e.Cables {
		x := &e.Cables[i]
		if status := x.gone(); status != "" {
			c.leave("cables whose status is " + status)
			continue
		}
		left := map[string]bool{}
		between := false // nodes, switches and panels, of whatever else NetBox has
		for _, w := range x.ends() {
			e, known := c.endOf(w.termination())
			between = between || known || w.termination().panel()
			switch {
			case !known:
			case c.portOf(e, w.termination(), 0) == "":
				left[unnamed] = true
			default:
				c.follow(p, w, left)
			}
		}
		left[elsewhere] = left[elsewhere] || !between
		for why, is := range left {
			if is {
				c.leave(why)
			}
		}
	}
}

// follow takes over what an interface leads to. A way that has been gone from its other
// end is not gone again.
func (c *converter) follow(p *panels, w where, left map[string]bool) {
	for _, n := range w.lanes() {
		way, why := p.follow(w, n)
		there, back := lane{way.from.key(), way.fromLane}, lane{way.to.key(), way.toLane}
		if why != "" {
			c.dead(way, why)
		} else if !c.gone[[2]lane{back, there}] {
			c.gone[[2]lane{there, back}] = true
			c.cable(way, left)
		}
	}
}

// Why cables are left out.
const (
	unnamed   = "cables whose interfaces no --port or --switch-port names"
	elsewhere = "cables that do not end in two of the nodes and switches"
)

// dead notes, once of what it names, that a way ends before an interface.
func (c *converter) dead(way circuit, why string) {
	note := fmt.Sprintf("%s. Write a `cable` block for each port or lane in another file of the site", why)
	if len(way.over) > 0 {
		note = fmt.Sprintf("cable #%d from %s: %s", way.cables[0].ID, way.from, note)
	}
	if !c.noted[note] {
		c.noted[note] = true
		c.result.Notes = append(c.result.Notes, note)
	}
}

// lane is an end of a circuit.
type lane struct {
	key
	lane int
}

// cable takes a circuit over, or adds why it does not.
func (c *converter) cable(way circuit, left map[string]bool) {
	a, _ := c.endOf(way.from)
	b, known := c.endOf(way.to)
	if !known {
		left[elsewhere] = true
		return
	}
	from, to := c.portOf(a, way.from, way.fromLane), c.portOf(b, way.to, way.toLane)
	if from == "" || to == "" {
		left[unnamed] = true
		return
	}
	if !a.node && b.node {
		slices.Reverse(way.over)
		from, to = to, from
	}
	c.result.Site.Cables = append(c.result.Site.Cables, SiteCable{From: from, To: to, Type: way.kind(), Length: way.length(), Over: strings.Join(way.over, ", ")})
}

// endOf is the device that a cable ends in.
func (c *converter) endOf(t Termination) (end, bool) {
	if t.Type != anInterface || t.Object.Device == nil {
		return end{}, false
	}
	e, known := c.ends[t.Object.Device.Name]
	return e, known
}

// portOf is the port that an interface is, or a lane of it; "" where no template names it.
func (c *converter) portOf(e end, t Termination, lane int) string {
	list := c.options.SwitchPorts
	if e.node {
		list = c.options.Ports
	}
	for _, x := range list {
		port := x.port(t.Object.Name)
		switch {
		case port != "" && lane > 0:
			return e.name + "/" + port + "/" + strconv.Itoa(lane)
		case port != "":
			return e.name + "/" + port
		}
	}
	return ""
}
