// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"maps"
	"strings"

	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/provision/hook"
	"github.com/ironrail/ironrail/provision/install"
)

// limits hold in every run, by resource. A name that ends in a slash stands for
// each resource that begins with it.
var limits = map[string]int{
	install.InrushUses: 8,               // nodes between power-on and their agent's hello, of one rack whose circuits or power are not known
	"streams":          16,              // images streamed by this controller
	"bmc/":             1,               // sessions of one BMC
	"test/":            1,               // collective tests on one set of nodes
	switchos.Resource:  switchos.AtOnce, // of one fabric: a switch that nodes work through takes them all
	"repo/":            1,               // builds of one repository
	hook.Resource:      32,              // programs of the site's own, on this controller
}

// capacity is how much there is of each resource: the limits, and the room of
// each circuit for nodes that are switched on, in watts.
func (s *Site) capacity() map[string]int {
	all := maps.Clone(limits)
	for circuit, watts := range power.NewInrush(s.Inv).Room {
		all[install.InrushUses+circuit] = watts
	}
	return all
}

// units writes how much of a resource is in use, as an operator reads it.
func units(resource string, used, limit int) string {
	circuit, inrush := strings.CutPrefix(resource, install.InrushUses)
	switch {
	case inrush && strings.Contains(circuit, "/"):
		return fmt.Sprintf("%.1f of %.1f kW in use", float64(used)/1000, float64(limit)/1000)
	case inrush:
		return fmt.Sprintf("%d of %d nodes are being switched on", used, limit)
	}
	return fmt.Sprintf("%d of %d in use", used, limit)
}
