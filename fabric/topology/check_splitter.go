package topology

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
)

// splitters compares the halves of splitter cables: the lanes of a switch port,
// and the planes of a node port.
func (k *checker) splitters() {
	type socketUse struct {
		whole, first, further *edge
	}
	use := map[socket]*socketUse{}
	var faults []fault
	note := func(e *edge, end *inventory.CableEnd) {
		if end.Switch == nil {
			return
		}
		s := socket{end.Switch, end.Port}
		u := use[s]
		if u == nil {
			u = &socketUse{}
			use[s] = u
		}
		switch {
		case end.Lane == 0:
			u.whole = e
		case end.Lane == 1:
			u.first = e
		case u.further == nil:
			u.further = e
		}
	}
	for i := range k.cables {
		e := &k.cables[i]
		if half := e.cable.Splitter; half != nil {
			if text := unlike(e, half); text != "" {
				faults = append(faults, fault{text, e.end.Range, names(e)})
			}
		}
		if e.cable.Computed() {
			continue // laid lane by lane, from the first
		}
		note(e, &e.cable.From)
		note(e, &e.cable.To)
	}
	for i := range k.cables { // in the order of the cables
		e := &k.cables[i]
		for _, end := range [2]*inventory.CableEnd{&e.cable.From, &e.cable.To} {
			u := use[socket{end.Switch, end.Port}]
			if e.cable.Computed() || u == nil || u.further != e || end.Switch == nil {
				continue
			}
			if text := halves(u.whole, u.first, e, *end); text != "" {
				faults = append(faults, fault{text, endRange(*end, e), names(e)})
			}
		}
	}
	k.report("fabric.splitter", "Halves of a splitter that disagree", "A splitter cable is one plug at one end: list all of its halves, from lane 1, to things of one kind.", faults)
}

func endRange(end inventory.CableEnd, e *edge) hcl.Range {
	if end.Range.Filename != "" {
		return end.Range
	}
	return e.cable.Decl
}

func names(e *edge) []string {
	if e.node == nil {
		return nil
	}
	return []string{e.node.Name}
}

// halves says what is wrong with a split port that has a further lane.
func halves(whole, first, further *edge, end inventory.CableEnd) string {
	port := inventory.CableEnd{Switch: end.Switch, Port: end.Port}.String()
	switch {
	case whole != nil:
		return fmt.Sprintf("port %s has a cable of its own, and lane %d of it another", port, end.Lane)
	case first == nil:
		return fmt.Sprintf("lane %d of port %s has a cable, and lane 1, the first half of the splitter, has none", end.Lane, port)
	case (first.node == nil) != (further.node == nil):
		return fmt.Sprintf("lanes of port %s go to a node and to a switch", port)
	}
	return ""
}

// unlike says how a further half differs from the first: the halves of a node's
// port go to the same leaf of different planes, those of a switch's port to nodes
// or switches of one tier.
func unlike(e *edge, first *inventory.Cable) string {
	c := e.cable
	switch {
	case first.Splitter != nil:
		return fmt.Sprintf("%s is a half of a cable that is a half itself", c.From.String())
	case e.node != nil && first.From.Node == e.node && first.From.NIC == c.From.NIC && first.From.Port == c.From.Port:
		a, b := first.To.Switch, c.To.Switch
		if a != nil && b != nil && (a.Plane == b.Plane || a.Rail != b.Rail || a.ScalableUnit != b.ScalableUnit) {
			return fmt.Sprintf("the halves of %s end on %s and %s, which are not one leaf of two planes", c.From.String(), a.Name, b.Name)
		}
		return ""
	case shared(c.From, first.From) || shared(c.To, first.To) || shared(c.From, first.To) || shared(c.To, first.From):
		return ""
	}
	return fmt.Sprintf("%s and %s are halves of one cable, and have no port together", c.From.String(), first.From.String())
}

func shared(a, b inventory.CableEnd) bool {
	return a.Switch != nil && a.Switch == b.Switch && a.Port == b.Port && a.Lane != b.Lane
}
