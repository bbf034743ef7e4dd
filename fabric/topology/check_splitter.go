// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"

	"github.com/ironrail/ironrail/inventory"
)

// root is a port that may be split.
type root struct {
	node *inventory.Node
	nic  *inventory.NIC
	at   *inventory.Switch
	port int
}

func rootOf(e *inventory.CableEnd) root { return root{e.Node, e.NIC, e.Switch, e.Port} }

// splitters compares the halves of splitter cables: the lanes of a switch port,
// and the planes of a node port. Ports that are both whole and split are
// port.duplicate.
func (k *checker) splitters() {
	first := map[root]*edge{} // with lane 1
	for i := range k.cables {
		e := &k.cables[i]
		for _, end := range [2]*inventory.CableEnd{&e.cable.From, &e.cable.To} {
			if end.Lane == 1 && !e.cable.Computed() {
				first[rootOf(end)] = e
			}
		}
	}
	var faults []fault
	reported := map[root]bool{}
	for i := range k.cables {
		e := &k.cables[i]
		if half := e.cable.Splitter; half != nil {
			if text := describeUnlike(e, half); text != "" {
				faults = append(faults, fault{text, e.cable.Places().From, edgeNames(e)})
			}
		}
		if e.cable.Computed() {
			continue // laid lane by lane, from the first
		}
		for _, end := range [2]*inventory.CableEnd{&e.cable.From, &e.cable.To} {
			r := rootOf(end)
			if end.Lane < 2 || reported[r] {
				continue
			}
			if text := describeHalves(first[r], e, *end); text != "" {
				reported[r] = true
				faults = append(faults, fault{text, e.cable.Place(end), edgeNames(e)})
			}
		}
	}
	k.report("fabric.splitter", "Halves of a splitter that disagree", "A splitter cable is one plug at one end: list all of its halves, from lane 1, to things of one kind.", faults)
}

func edgeNames(e *edge) []string {
	if e.node == nil {
		return nil
	}
	return []string{e.node.Name}
}

// describeHalves says what is wrong with a split port that has a further lane.
func describeHalves(first, further *edge, end inventory.CableEnd) string {
	port := end
	port.Text, port.Lane = "", 0
	switch {
	case first == nil:
		return fmt.Sprintf("lane %d of port %s has a cable, and lane 1, the first half of the splitter, has none", end.Lane, port.String())
	case end.Node != nil && first.low == further.low:
		return fmt.Sprintf("lanes 1 and %d of port %s both end on %s, and each is a plane of its own", end.Lane, port.String(), first.low.Name)
	case end.Switch != nil && (first.node == nil) != (further.node == nil):
		return fmt.Sprintf("lanes of port %s go to a node and to a switch", port.String())
	}
	return ""
}

// describeUnlike says how a further half differs from the first: the halves of a node's
// port go to the same leaf of different planes, those of a switch's port to nodes
// or switches of one tier.
func describeUnlike(e *edge, first *inventory.Cable) string {
	c := e.cable
	switch {
	case first.Splitter != nil:
		return fmt.Sprintf("%s is a half of a cable that is a half itself", c.From.String())
	case e.node != nil && first.From.Node == e.node && first.From.NIC == c.From.NIC && first.From.Port == c.From.Port:
		a, b := first.To.Switch, c.To.Switch
		if a != nil && b != nil && (a == b || a.Rail != b.Rail || a.ScalableUnit != b.ScalableUnit) {
			return fmt.Sprintf("the halves of %s end on %s and %s, which are not one leaf of two planes", c.From.String(), a.Name, b.Name)
		}
		return ""
	case isShared(c.From, first.From) || isShared(c.To, first.To) || isShared(c.From, first.To) || isShared(c.To, first.From):
		return ""
	}
	return fmt.Sprintf("%s and %s are halves of one cable, and have no port together", c.From.String(), first.From.String())
}

func isShared(a, b inventory.CableEnd) bool {
	return a.Switch != nil && a.Switch == b.Switch && a.Port == b.Port && a.Lane != b.Lane
}
