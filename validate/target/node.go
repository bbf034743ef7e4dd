// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
)

// GPUDrivers are the kinds of drivers whose programs the gates ask.
var GPUDrivers = map[string]bool{"cuda": true, "rocm": true}

// HasGates reports whether a node has gates: it has GPUs, and the site installs
// their driver; or another tool installed it, and whatever it has is looked at.
func HasGates(n *inventory.Node) bool {
	switch {
	case n.Hardware == nil:
		return false
	case n.Foreign:
		return true
	case n.Hardware.GPUCount() == 0:
		return false
	}
	for _, d := range n.Drivers {
		if GPUDrivers[d.Kind] {
			return true
		}
	}
	return false
}

// HasHost reports whether the host of a node is measured: something runs on it that the site, or
// another tool, has installed.
func HasHost(n *inventory.Node) bool {
	return n.Hardware != nil && (n.Foreign || n.Image != nil)
}

// GPUsOf is what the hardware says of its GPUs, as an input of the step.
func GPUsOf(h *inventory.Hardware) string {
	var all []string
	for _, g := range h.GPUs {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d x %s %s %s", max(g.Count, 1), g.Vendor, g.Model, g.Interconnect)))
	}
	return strings.Join(all, ", ")
}

// AllowedGates returns the gates that the site allows a node to fail, with its reasons.
func AllowedGates(n *inventory.Node) map[string]string {
	all := map[string]string{}
	if n.Validation != nil {
		for _, a := range n.Validation.Allowed {
			all[a.Gate] = a.Reason
		}
	}
	return all
}

// AllowedInputs declares them.
func AllowedInputs(n *inventory.Node) (in []plan.Input) {
	if n.Validation != nil {
		for _, a := range n.Validation.Allowed {
			in = append(in, plan.Input{Name: "allowed gate", Value: a.Gate, Decl: stage.Source(a.Decl)})
		}
	}
	return in
}
