// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Check asks for a program for each verb that is always needed. It is pure.
func Check(_ *inventory.Inventory, b inventory.Block) diag.List {
	var found diag.List
	h := &inventory.Handover{Block: b}
	for _, v := range []verb{join, drain} {
		if len(argvOf(h, v)) == 0 {
			found.Add("exec.program", b.Decl, fmt.Sprintf("No program for %s", v), fmt.Sprintf(
				"Handover %q of kind \"exec\" has no program that is run to %s a node. Write %s = [\"/usr/local/bin/...\"], or command, which is run with %q as its last argument.", b.Name, v, v, v))
		}
	}
	return found
}
