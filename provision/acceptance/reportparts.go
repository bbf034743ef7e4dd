// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/cable"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/validate/bundle"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/uniform"
)

// describer says of suspects what they are and where they stand.
type describer struct {
	inv   *inventory.Inventory
	prior plan.Prior
	made  []found                        // of the last run
	runs  map[*inventory.Cable]cable.Run // by each of their cables; nil: not made yet
}

// finding describes a finding's suspects.
func (d *describer) finding(f found) report.Finding {
	out := makeFinding(f.Finding, f.at)
	for _, s := range f.Suspects {
		out.Suspects = append(out.Suspects, d.suspect(s))
		if s.Subject.Kind == subject.Node {
			d.bundles(&out, s, f.Step)
		}
	}
	return out
}

// bundles adds what vendors' programs collected of a suspect when it was found.
func (d *describer) bundles(out *report.Finding, s stage.Suspect, step string) {
	all, _, _ := factOf(d.prior, bundle.Fact, s.Subject.Name)
	for _, c := range all {
		if c.Step != step || c.Part != s.Part && strings.HasPrefix(c.Program, "mlxlink") {
			continue
		}
		out.Bundles = append(out.Bundles, report.Bundle{Program: c.Program, Ref: c.Ref, Bytes: c.Bytes, Why: c.Why})
		if m, last := c.Module, len(out.Suspects)-1; m != nil {
			out.Suspects[last].Parts = append(out.Suspects[last].Parts, report.Part{What: "transceiver or cable end", Model: m.Model, Serial: m.Serial, Firmware: m.Firmware, Note: m.Power})
		}
	}
}

func (d *describer) suspect(s stage.Suspect) report.Suspect {
	out := report.Suspect{Kind: string(s.Subject.Kind), Name: s.Subject.Name, Part: s.Part}
	if s.Subject.Kind == subject.Node {
		if n, ok := d.inv.Node(s.Subject.Name); ok {
			d.ofNode(&out, n)
		}
		return out
	}
	name, port, _ := strings.Cut(s.Subject.Name+" "+s.Part, " ")
	if sw := d.switchOf(name); sw != nil {
		d.ofSwitch(&out, sw, strings.TrimSpace(port))
		return out
	}
	for _, r := range d.inv.Racks {
		for _, p := range r.PDUs {
			if p.Name == name {
				out.Place = []string{fmt.Sprintf("PDU %s is in rack %s, and on feed %s", p.Name, r.Name, p.Feed)}
				model := ""
				if p.Control != nil {
					model = p.Control.Model
				}
				out.Parts = []report.Part{{What: "PDU " + p.Name, Model: model}}
			}
		}
	}
	return out
}

func (d *describer) switchOf(name string) *inventory.Switch {
	for _, r := range d.inv.Racks {
		for _, s := range r.Switches {
			if s.Name == name {
				return s
			}
		}
	}
	return nil
}

// ofSwitch describes a switch; port is what of it is meant, in words.
func (d *describer) ofSwitch(out *report.Suspect, sw *inventory.Switch, port string) {
	out.Place = []string{switchPlace(sw)}
	out.Parts = []report.Part{{What: "switch " + sw.Name, Model: modelOfSwitch(sw), Slot: port}}
}

// switchPlace says where a switch stands.
func switchPlace(sw *inventory.Switch) string {
	if sw.Rack == nil {
		return sw.Name + " has no place in the site's files"
	}
	return fmt.Sprintf("%s is in rack %s, unit %d", sw.Name, sw.Rack.Name, sw.Unit)
}

func modelOfSwitch(sw *inventory.Switch) string {
	if sw.Model == "" && sw.Fabric != nil {
		return sw.Fabric.Switch.Model
	}
	return sw.Model
}

// ofNode describes a node, or the part of it that a finding names.
func (d *describer) ofNode(out *report.Suspect, n *inventory.Node) {
	if n.Rack != nil {
		out.Place = append(out.Place, fmt.Sprintf("%s is in rack %s, %s", n.Name, n.Rack.Name, unitsOf(n)))
	}
	gates, _, _ := factOf(d.prior, gate.Fact, n.Name)
	for _, p := range gates.Parts {
		if p.Kind != gate.FittedTransceiver && isMeant(p, out.Part) {
			out.Parts = append(out.Parts, report.Part{What: cmp.Or(nameOf(p), p.Kind), Model: p.Model, Serial: p.Serial, Firmware: p.Firmware, Slot: p.At})
		}
	}
	if n.Hardware != nil {
		for k := range n.Hardware.NICs {
			nic := &n.Hardware.NICs[k] // cables name it by its address
			for i := range nic.Ports {
				if isPort(out.Part, nic, i) {
					d.ofPort(out, n, nic, i, gates)
				}
			}
		}
	}
	hw, _, _ := factOf(d.prior, install.HardwareFact, n.Name)
	node := report.Part{What: "node " + n.Name, Model: strings.TrimSpace(hw.Identity.Vendor + " " + hw.Identity.Product), Serial: seenSerial(d.prior, n.Name), Firmware: hw.BIOS}
	if node.Serial == "" && n.Serial != "" {
		node.Serial = n.Serial + " (declared, not seen)"
	}
	out.Parts = append(out.Parts, node)
}

// unitsOf are the rack units of a node, in words.
func unitsOf(n *inventory.Node) string {
	if h := n.Height(); h > 1 {
		return fmt.Sprintf("units %d to %d", n.Unit, n.Unit+h-1)
	}
	return fmt.Sprintf("unit %d", n.Unit)
}

// nameOf is what findings call a part, without its address and its serial number, which
// stand beside it.
func nameOf(p gate.Fitted) string {
	name, _, _ := strings.Cut(p.Name, " at ")
	return name
}

// isMeant reports whether a finding about some part means a fitted one: by its name, its
// address or its serial number.
func isMeant(p gate.Fitted, part string) bool {
	if part == "" {
		return false
	}
	named := p.Name != "" && (part == p.Name || strings.HasPrefix(p.Name, part+" at ") || strings.HasPrefix(part, p.Name+" "))
	return named || holdsWord(part, p.At) || len(p.Serial) >= 4 && holdsWord(part, p.Serial)
}

// holdsWord reports whether a text has a word in it.
func holdsWord(text, word string) bool {
	return word != "" && slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '(' || r == ')' }), word)
}

// isPort reports whether a finding about some part means a port of a NIC: by its rail, its
// name or its address.
func isPort(part string, nic *inventory.NIC, i int) bool {
	p := nic.Ports[i]
	part = strings.TrimPrefix(part, "NIC ")
	names := []string{fmt.Sprintf("%s/%d", nic.Name, i)}
	if p.Rail >= 0 && nic.Fabric != nil {
		names = append(names, fmt.Sprintf("rail %d of %s", p.Rail, nic.Fabric.Name))
		if !strings.Contains(part, " of ") {
			names = append(names, fmt.Sprintf("rail %d", p.Rail))
		}
	}
	for _, name := range names {
		if part == name || strings.HasPrefix(part, name+" ") || strings.HasPrefix(part, name+",") {
			return true
		}
	}
	return holdsWord(part, p.PCI)
}

// ofPort describes a port of a node with all that may be at fault for its link: NIC,
// transceiver, cable, and the port at the other end.
func (d *describer) ofPort(out *report.Suspect, n *inventory.Node, nic *inventory.NIC, i int, gates gate.Report) {
	p := nic.Ports[i]
	where := fmt.Sprintf("port %s/%d", nic.Name, i)
	if p.Panel != "" {
		where += fmt.Sprintf(", printed %s", p.Panel)
	}
	out.Place = append(out.Place, fmt.Sprintf("%s of %s, PCI %s", where, n.Name, p.PCI))
	hw, _, _ := factOf(d.prior, install.HardwareFact, n.Name)
	out.Parts = append(out.Parts, report.Part{What: fmt.Sprintf("NIC %s/%d", nic.Name, i), Model: nic.Model, Serial: cmp.Or(macOf(hw, p.PCI), d.guidOf(n.Name, nic, i)), Firmware: d.nicFirmware(n.Name, p.PCI), Slot: p.PCI})
	for _, f := range gates.Parts {
		if f.Kind == gate.FittedTransceiver && f.At == p.PCI {
			out.Parts = append(out.Parts, report.Part{What: "transceiver or cable end", Model: f.Model, Serial: f.Serial, Firmware: f.Firmware, Slot: cmp.Or(p.Panel, p.PCI), Note: f.Power})
		}
	}
	for _, c := range d.inv.Cables {
		for _, e := range []inventory.CableEnd{c.From, c.To} {
			if e.Node == n && e.NIC == nic && e.Port == i {
				d.ofCable(out, c)
			}
		}
	}
}

// macOf is the MAC address of a NIC, which stands for its serial number; "" where none was
// seen.
func macOf(hw wire.Hardware, pci string) string {
	for _, n := range hw.NICs {
		if n.PCI == pci && !n.MAC.IsZero() {
			return "MAC " + n.MAC.String()
		}
	}
	return ""
}

// guidOf is the GUID of a port of InfiniBand, which has no MAC address; "" where none was
// read.
func (d *describer) guidOf(node string, nic *inventory.NIC, port int) string {
	if nic.Fabric == nil {
		return ""
	}
	ports, _, _ := factOf(d.prior, infiniband.Identities(nic.Fabric.Name), node)
	for _, p := range ports {
		if p.NIC == nic.Name && p.Port == port {
			return "GUID " + p.GUID.String()
		}
	}
	return ""
}

// nicFirmware is what a NIC runs, as it was read for the comparison of its role.
func (d *describer) nicFirmware(node, pci string) string {
	versions, _, _ := factOf(d.prior, uniform.VersionsFact, node)
	all := ""
	for _, t := range versions.Traits {
		if t.Key != uniform.NICFirmware {
			continue
		}
		if slices.ContainsFunc(t.Parts, func(part string) bool { return holdsWord(part, pci) }) {
			return t.Value
		}
		if all != "" && all != t.Value {
			return "" // they differ, and nobody says which has which
		}
		all = t.Value
	}
	return all
}

// ofCable describes a cable with its far end.
func (d *describer) ofCable(out *report.Suspect, c *inventory.Cable) {
	if d.runs == nil {
		d.runs = map[*inventory.Cable]cable.Run{}
		for _, r := range cable.ListRuns(d.inv) {
			for _, one := range r.Cables {
				d.runs[one] = r
			}
		}
	}
	r := d.runs[c]
	text := r.Type
	if r.Length > 0 {
		text = strings.TrimSpace(text + " " + r.Length.String())
	}
	out.Parts = append(out.Parts, report.Part{What: "cable", Model: cmp.Or(r.Part, text), Slot: r.Label})
	for _, e := range []inventory.CableEnd{c.From, c.To} {
		if e.Switch != nil {
			out.Place = append(out.Place, fmt.Sprintf("cable %s, %s, goes into %s%s; %s", r.Label, text, e, printed(e), switchPlace(e.Switch)))
		}
	}
}

// printed is what stands at a switch port, where that is not its number.
func printed(e inventory.CableEnd) string {
	if m, ok := topology.FindModel(modelOfSwitch(e.Switch)); ok && m.Cage > 1 {
		return ", printed " + topology.PortLabel(m.Cage, e.Port, e.Lane)
	}
	return ""
}
