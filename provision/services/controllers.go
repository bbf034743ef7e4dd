// SPDX-License-Identifier: Apache-2.0

package services

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// FindController is the controller that ironrail runs on: the one that is no standby of
// a subnet manager. One owner of a state is all that this version can have, so that
// of several nothing is guessed.
func FindController(inv *inventory.Inventory) (*inventory.Controller, error) {
	able := listCandidates(inv)
	switch len(able) {
	case 1:
		return able[0], nil
	case 0:
		return nil, errkind.New(errkind.Unsupported, "the site has no controller that ironrail runs on").
			Do("Give the site a controller block that no subnet_manager names behind the first of its run_on.")
	}
	return nil, errkind.New(errkind.Unsupported, "%s", formatCandidates(able)).Do(doManyControllers)
}

// listCandidates are the controllers that no fabric names behind the first of run_on.
func listCandidates(inv *inventory.Inventory) []*inventory.Controller {
	standby := map[string]bool{}
	for _, f := range inv.Fabrics {
		if f.Kind != infiniband.Name {
			continue
		}
		for i, name := range infiniband.Managers(f) {
			standby[name] = standby[name] || i > 0
		}
	}
	return slices.DeleteFunc(slices.Clone(inv.Controllers), func(c *inventory.Controller) bool { return standby[c.Name] })
}

// doManyControllers is what to do about several controllers that ironrail could run on.
const doManyControllers = "Keep the controller block of the machine that ironrail runs on. A standby of a subnet manager is a further one: name it behind the first in run_on."

func formatCandidates(able []*inventory.Controller) string {
	var names []string
	for _, c := range able {
		names = append(names, c.Name)
	}
	return fmt.Sprintf("ironrail runs on exactly one controller, and nothing says on which of %s", strings.Join(names, ", "))
}

// CheckControllers refuses a site of which several controllers could run ironrail. One
// without any can be planned, on another machine.
func CheckControllers(inv *inventory.Inventory) hcl.Diagnostics {
	able := listCandidates(inv)
	if len(able) < 2 {
		return nil
	}
	text := formatCandidates(able)
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Several controllers", Detail: strings.ToUpper(text[:1]) + text[1:] + ". " + doManyControllers, Subject: able[1].Decl.Ptr()}}
}
