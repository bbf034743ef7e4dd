// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
)

// TrustWarnings says of which BMCs and power shelves no certificate is verified, with the place of each
// `tls = "insecure"`: every plan shows them.
func TrustWarnings(inv *inventory.Inventory) []string {
	nodes, order := map[hcl.Range][]string{}, []hcl.Range(nil)
	for _, n := range inv.Nodes {
		if n.BMC.TLS.Mode != inventory.TLSInsecure {
			continue
		}
		at := n.Decl
		if p := n.BMC.Profile; p != nil && p.TLS.Mode == inventory.TLSInsecure {
			at = inventory.PlaceOf(p.Ranges, "tls", p.Decl)
		}
		if nodes[at] == nil {
			order = append(order, at)
		}
		nodes[at] = append(nodes[at], n.Name)
	}
	list := make([]string, len(order), len(order)+1)
	for i, at := range order {
		who := nodes[at][0]
		if len(nodes[at]) > 1 {
			who = fmt.Sprintf("%d nodes", len(nodes[at]))
		}
		list[i] = fmt.Sprintf("%s:%d: BMC certificates are not verified (%s): tls = \"insecure\" accepts any, so that whoever answers at a BMC's address gets its password", at.Filename, at.Start.Line, who)
	}
	for _, r := range inv.Racks {
		for _, s := range r.Shelves {
			if s.Control != nil && s.Control.TLS.Mode == inventory.TLSInsecure {
				list = append(list, fmt.Sprintf("%s:%d: the certificate of power shelf %s is not verified: tls = \"insecure\" accepts any, so that whoever answers at its address gets its password", s.Control.Decl.Filename, s.Control.Decl.Start.Line, s.Name))
			}
		}
	}
	return list
}
