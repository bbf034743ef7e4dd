// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/inventory/diag"
)

// TestAccept lowers findings about several nodes: of two, one may be the
// exception; of more, each has to allow it.
func TestAccept(t *testing.T) {
	t.Parallel()
	const site = `
site "s" {}
network "oob" { cidr = "10.0.0.0/24" }
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "u"
  password = secret("env:P")
}
hardware "h" {}
image "debian" "os" { release = "bookworm" }
role "w" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
}
rack "r" {
  node "n" {
    count = 3
    name  = "n${count.index}"
    role  = role.w
    unit  = 1 + count.index
  }
}
override "n0" {
  reason = "Its supply is on order"
  allow  = ["test.all", "test.one"]
}
override "n1" {
  reason = "The same"
  allow  = ["test.all"]
}
override "n2" {
  reason = "The same"
  allow  = ["test.all"]
}
`
	about := func(check string, nodes ...string) Check {
		return func(inv *Inventory) (found diag.List) {
			d := found.Add(check, inv.Nodes[0].Decl, "Something", "Something is wrong.")
			for _, n := range nodes {
				d.Of(n)
			}
			return found
		}
	}
	for name, c := range map[string]struct {
		check string
		nodes []string
		want  diag.Severity
	}{
		"one of one":     {"test.one", []string{"n0"}, diag.Warning},
		"one of two":     {"test.one", []string{"n1", "n0"}, diag.Warning},
		"none of two":    {"test.one", []string{"n1", "n2"}, diag.Error},
		"one of three":   {"test.one", []string{"n0", "n1", "n2"}, diag.Error},
		"three of three": {"test.all", []string{"n0", "n1", "n2"}, diag.Warning},
		"of no node":     {"test.all", nil, diag.Error},
	} {
		_, diags, _ := LoadFS(fstest.MapFS{"x.hcl": {Data: []byte(site)}}, Options{Checks: []Check{about(c.check, c.nodes...)}})
		if len(diags) != 1 || diags[0].Severity != c.want {
			t.Errorf("%s: got %+v, want one %s", name, diags, c.want)
		}
	}
}
