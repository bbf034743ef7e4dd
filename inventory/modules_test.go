// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"os"
	"testing"
	"testing/fstest"
)

// TestModuleModel looks at what a module declares in the model: it belongs to the
// site, its files are read from its own folder, and an override of the site holds.
func TestModuleModel(t *testing.T) {
	t.Parallel()
	base, err := os.ReadFile("testdata/diagnostics/base.hcl")
	if err != nil {
		t.Fatal(err)
	}
	const use = `
use "row" {
  for_each = { a = 1, b = 2 }
  source   = "modules/row"
  role     = role.w
  network  = network.oob
  row      = each
}
role "other" {
  hardware = hardware.h
  bmc      = use["row-a"].bmc["row-a"]
  image    = image.os
}
rack "own" {
  number = 0
  node "n" {
    role = role.other
    unit = 1
  }
}
override "a-n1" {
  reason = "the board was exchanged"
  serial = "SN2"
}
moved {
  from = "n1-a"
  to   = "a-n1"
}
`
	const module = `
variable "role" {}
variable "network" {}
variable "row" {}
bmc "row" {
  for_each = toset([var.row.key])
  protocol = "redfish"
  network  = var.network
  username = "u"
  password = secret("file:keys/bmc")
  tls      = "ca.pem"
}
rack "r" {
  for_each = toset(["r-${var.row.key}"])
  name     = each.key
  number   = var.row.value
  node "n" {
    name   = "${var.row.key}-n1"
    role   = var.role
    unit   = 3
    serial = "SN1-${var.row.key}"
  }
}
`
	fsys := fstest.MapFS{"base.hcl": {Data: base}, "use.hcl": {Data: []byte(use)}, "modules/row/row.hcl": {Data: []byte(module)}, "modules/row/ca.pem": {Data: authority(t)}}
	inv, diags, files := LoadFS(fsys, Options{})
	if len(diags) > 0 {
		t.Fatal(text(t, diags, files))
	}
	n, ok := inv.Node("a-n1")
	if !ok || len(inv.Nodes) != 3 || len(inv.Racks) != 3 {
		t.Fatalf("%d nodes, %d racks", len(inv.Nodes), len(inv.Racks))
	}
	own, _ := inv.Node("n")
	checks := []struct{ what, got, want string }{
		{"role", n.Role.Name, "w"},
		{"serial, overridden", n.Serial, "SN2"},
		{"address", n.Address.String(), "10.1.0.67"},
		{"file", n.Decl.Filename, "modules/row/row.hcl"},
		{"trust", string(own.BMC.TLS.Mode), string(TLSAuthority)},
		{"password", string(own.BMC.Password), "file:modules/row/keys/bmc"},
		{"move", inv.Moves[0].To, "a-n1"},
	}
	for _, c := range checks {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
	if len(files["modules/row/row.hcl"]) == 0 {
		t.Error("the module's file is not among the sources")
	}
}
