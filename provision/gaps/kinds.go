// SPDX-License-Identifier: Apache-2.0

package gaps

import (
	"maps"
	"slices"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/kinds"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
)

// Kinds are the kinds of typed blocks that can be planned, by name, and reach nothing.
type Kinds struct {
	Drivers   map[string]driver.Kind
	Fabrics   map[string]fabric.Kind
	Handovers map[string]handover.Kind
}

// MissingKind is a kind of typed block that the language has and no plan can hold.
type MissingKind struct{ Block, Kind string }

// Missing returns the kinds of the language that cannot be planned, by block and name.
func (k Kinds) Missing(all inventory.Kinds) (list []MissingKind) {
	add := func(block string, of map[string]inventory.KindSpec, has func(string) bool) {
		for _, kind := range slices.Sorted(maps.Keys(of)) {
			if !has(kind) {
				list = append(list, MissingKind{block, kind})
			}
		}
	}
	add("image", all.Image, func(kind string) bool { return slices.Contains(kinds.Names(), kind) })
	add("driver", all.Driver, func(kind string) bool { return k.Drivers[kind] != nil })
	add("fabric", all.Fabric, func(kind string) bool { return k.Fabrics[kind] != nil })
	add("handover", all.Handover, func(kind string) bool { return k.Handovers[kind] != nil })
	return list
}
