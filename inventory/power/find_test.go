// SPDX-License-Identifier: Apache-2.0

package power

import (
	"slices"
	"strings"
)

// Rack returns the rack of that name.
func (p *Plan) Rack(name string) (*Rack, bool) {
	i, ok := slices.BinarySearchFunc(p.Racks, name, func(r Rack, name string) int { return strings.Compare(r.Rack.Name, name) })
	if !ok {
		return nil, false
	}
	return &p.Racks[i], true
}

// Feed returns the feed of that name.
func (p *Plan) Feed(name string) (*Feed, bool) {
	i, ok := slices.BinarySearchFunc(p.Feeds, name, func(f Feed, name string) int { return strings.Compare(f.Name, name) })
	if !ok {
		return nil, false
	}
	return &p.Feeds[i], true
}

// PDU returns the PDU of that label, such as "a".
func (r *Rack) PDU(label string) (*PDU, bool) {
	for i := range r.PDUs {
		if r.PDUs[i].PDU.Label == label {
			return &r.PDUs[i], true
		}
	}
	return nil, false
}
