// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// maxLanes is the most independent links of one port.
const maxLanes = 8

// cableEnd finds the port that a cable ends in: node/nic/index or
// rack/switch/port, either with the lane of a split port behind it.
func (l *loader) cableEnd(b *language.Body, name string) CableEnd {
	end := CableEnd{Text: language.Get[string](b, name)}
	if end.Text == "" && !b.Right(name) {
		return end // absent or wrong, which was said
	}
	if detail := l.findPort(&end); detail != "" {
		l.diags.Add("reference.unknown", b.Range(name), "Unknown end of a cable", detail).In(b.Decl)
	}
	return end
}

// findPort finds the port that the text of an end names; it returns what is wrong with
// the text, or nothing.
func (l *loader) findPort(e *CableEnd) (wrong string) {
	parts := strings.Split(e.Text, "/")
	if !e.numbers(parts) {
		return fmt.Sprintf(`%q is no port; it is written "node/nic/index", such as "r01-u01/rail/0", or "rack/switch/port", such as "r01/leaf-1/17", with "/1" or "/2" behind it for a lane of a split port.`, e.Text)
	}
	if n := l.nodes[parts[0]]; n != nil {
		return e.atNode(n, parts)
	}
	s := l.switches[parts[0]+"/"+parts[1]]
	if s == nil {
		return fmt.Sprintf("There is neither a node %q nor a switch %q.%s", parts[0], parts[0]+"/"+parts[1], nearEnd(l, parts))
	}
	return e.atSwitch(s)
}

// atNode puts the end into a port of a node's NIC.
func (e *CableEnd) atNode(n *Node, parts []string) (wrong string) {
	e.Node = n
	if n.Hardware == nil {
		return ""
	}
	nic, ok := n.Hardware.NIC(parts[1])
	if e.NIC = nic; !ok || e.Port >= len(nic.Ports) {
		return fmt.Sprintf("Node %s, hardware %q, has no port %q.%s", n.Name, n.Hardware.Name, parts[1]+"/"+parts[2], portsOf(n.Hardware))
	}
	if e.Lane > 0 && (nic.Fabric == nil || e.Lane > nic.Fabric.Planes) {
		return fmt.Sprintf("Port %s/%s of node %s has no lane %d: the ports of a node are split over the planes of their fabric, if it says planes.", parts[1], parts[2], n.Name, e.Lane)
	}
	return ""
}

// atSwitch puts the end into a port of a switch.
func (e *CableEnd) atSwitch(s *Switch) (wrong string) {
	e.Switch = s
	if s.Ports > 0 && (e.Port < 1 || e.Port > s.Ports) {
		return fmt.Sprintf("Switch %s has the ports 1 to %d, and no port %d.", s.Name, s.Ports, e.Port)
	}
	if split := splitOf(s); split > 0 && e.Lane > split {
		return fmt.Sprintf("Port %d of switch %s has no lane %d: fabric %q says split = %d.", e.Port, s.Name, e.Lane, s.Fabric.Name, split)
	}
	return ""
}

// numbers reads the port and the lane.
func (e *CableEnd) numbers(parts []string) bool {
	if len(parts) != 3 && len(parts) != 4 {
		return false
	}
	var err error
	if e.Port, err = strconv.Atoi(parts[2]); err != nil || e.Port < 0 {
		return false
	}
	if len(parts) == 3 {
		return true
	}
	e.Lane, err = strconv.Atoi(parts[3])
	return err == nil && e.Lane >= 1 && e.Lane <= maxLanes
}

// splitOf is how many links the fabric says that a port of the switch may be
// split into; 0: it does not say.
func splitOf(s *Switch) int {
	if s.Fabric == nil {
		return 0
	}
	own := map[Tier]SwitchModel{Spine: s.Fabric.Spine, Core: s.Fabric.Core}[s.Tier]
	if own.Split > 0 {
		return own.Split
	}
	return s.Fabric.Switch.Split
}

// portsOf says which ports a cable block can name.
func portsOf(h *Hardware) string {
	var list []string
	for _, n := range h.NICs {
		switch len(n.Ports) {
		case 0:
		case 1:
			list = append(list, n.Name+"/0")
		default:
			list = append(list, fmt.Sprintf("%s/0 to %s/%d", n.Name, n.Name, len(n.Ports)-1))
		}
	}
	if len(list) == 0 {
		return " It has none."
	}
	return " It has " + strings.Join(list, ", ") + "."
}

func nearEnd(l *loader, parts []string) string {
	rest := strings.Join(parts[2:], "/")
	if near := diag.Nearest(parts[0]+"/"+parts[1], hintNames(&l.switchNames, l.switches)); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near+"/"+rest)
	}
	if near := diag.Nearest(parts[0], hintNames(&l.nodeNames, l.nodes)); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near+"/"+parts[1]+"/"+rest)
	}
	return ""
}

// portKey is a port, whatever the text that names it.
type portKey struct {
	node *Node
	nic  *NIC
	sw   *Switch
	port int
}

func (e CableEnd) key() (portKey, bool) {
	return portKey{e.Node, e.NIC, e.Switch, e.Port}, e.NIC != nil || e.Switch != nil
}

// end is the end of c in a lane of a port that it ends in.
func (c *Cable) end(k portKey, lane int) *CableEnd {
	if from, _ := c.From.key(); from == k && c.From.Lane == lane {
		return &c.From
	}
	return &c.To
}

// ports is which cables end in a port: by lane; lane 0 is the whole port.
type ports map[portKey][maxLanes + 1]*Cable

// taken returns the cable that is where e would be: in the same lane, in the
// whole port, or, when e takes the whole port, in any lane; and its end there.
func (p ports) taken(e *CableEnd) (*Cable, *CableEnd) {
	k, ok := e.key()
	lanes, used := p[k]
	if !ok || !used {
		return nil, nil
	}
	for lane, other := range lanes {
		if other != nil && (lane == e.Lane || lane == 0 || e.Lane == 0) {
			return other, other.end(k, lane)
		}
	}
	return nil, nil
}

func (p ports) take(c *Cable, e *CableEnd) {
	if k, ok := e.key(); ok {
		lanes := p[k]
		lanes[e.Lane] = c
		p[k] = lanes
	}
}

// checkCables reports ports with two cables, and cables from a port to itself.
func (l *loader) checkCables() {
	used := make(ports, 2*len(l.inv.Cables))
	for _, c := range l.inv.Cables {
		from, known := c.From.key()
		if to, _ := c.To.key(); known && from == to && (c.From.Lane == c.To.Lane || c.From.Lane == 0 || c.To.Lane == 0) {
			l.diags.Add("port.duplicate", c.Place(&c.To), "Cable from a port to itself", fmt.Sprintf("Its ends, %q and %q, are one port.", c.From.Text, c.To.Text)).In(c.Decl)
			continue
		}
		var twin *Cable // whose twin this cable is
		for _, end := range []*CableEnd{&c.From, &c.To} {
			other, first := used.taken(end)
			if other != nil && other == twin {
				continue
			}
			twin = other
			if other == nil {
				used.take(c, end)
				continue
			}
			detail := fmt.Sprintf("Port %q has another cable already.", end.Text)
			if first.Lane != end.Lane {
				detail = fmt.Sprintf("%q and %q cannot both have a cable: one of them is the whole port, the other a lane of it.", end.Text, first.Text)
			}
			l.diags.Add("port.duplicate", c.Place(end), "Two cables in one port", detail).Also("the other one", other.Place(first)).In(c.Decl)
		}
	}
}
