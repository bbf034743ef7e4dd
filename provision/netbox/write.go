// SPDX-License-Identifier: Apache-2.0

package netbox

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
)

// Difference is a thing that stands in a file written by hand and is otherwise in NetBox.
type Difference struct {
	Place hcl.Range `json:"-"`
	File  string    `json:"file"`
	Line  int       `json:"line"`
	Text  string    `json:"text"`
}

// Compare takes out of a site what its files declare elsewhere than in the file that is
// written, and says where these differ. inv may be nil: nothing is declared.
func Compare(s Site, inv *inventory.Inventory, file string) (rest Site, list []Difference) {
	if inv == nil {
		return s, nil
	}
	c := &comparison{inv: inv, file: file}
	for _, r := range s.Racks {
		if !c.rack(r) {
			rest.Racks = append(rest.Racks, r)
		}
	}
	declared := map[[2]string]bool{}
	for _, x := range inv.Cables {
		if x.Decl.Filename == file {
			continue
		}
		declared[[2]string{x.From.String(), x.To.String()}] = true
		declared[[2]string{x.To.String(), x.From.String()}] = true
	}
	for _, x := range s.Cables {
		if !declared[[2]string{x.From, x.To}] {
			rest.Cables = append(rest.Cables, x)
		}
	}
	return rest, c.list
}

// comparison is the work on one site.
type comparison struct {
	inv  *inventory.Inventory
	file string
	list []Difference
}

func (c *comparison) add(at hcl.Range, format string, args ...any) {
	c.list = append(c.list, Difference{at, at.Filename, at.Start.Line, fmt.Sprintf(format, args...)})
}

// rack compares a rack; false: no other file declares it.
func (c *comparison) rack(r SiteRack) bool {
	var have *inventory.Rack
	for _, x := range c.inv.Racks {
		if x.Name == r.Name && x.Decl.Filename != c.file {
			have = x
		}
	}
	if have == nil {
		return false
	}
	if have.Units != r.Units {
		c.add(have.Decl, "rack %s has %d units, and %d in NetBox", r.Name, have.Units, r.Units)
	}
	nodes := map[string]bool{}
	for _, n := range r.Nodes {
		nodes[n.Name] = true
		c.node(have, n)
	}
	for _, n := range have.Nodes {
		if !nodes[n.Name] {
			c.add(n.Decl, "node %s is not in rack %s of NetBox", n.Name, r.Name)
		}
	}
	switches := map[string]*inventory.Switch{}
	for _, x := range have.Switches {
		switches[x.Name] = x
	}
	for _, x := range r.Switches {
		if have := switches[r.Name+"/"+x.Name]; have == nil {
			c.add(c.rackPlace(r.Name), "switch %s of NetBox, unit %d, is not in rack %s", x.Name, x.Unit, r.Name)
		} else if have.Unit != x.Unit && have.Unit != 0 {
			c.add(have.Decl, "switch %s is at unit %d, and at %d in NetBox", have.Name, have.Unit, x.Unit)
		}
	}
	return true
}

func (c *comparison) rackPlace(name string) hcl.Range {
	for _, x := range c.inv.Racks {
		if x.Name == name {
			return x.Decl
		}
	}
	return hcl.Range{}
}

// node compares a node with what the files say of it, wherever they have it.
func (c *comparison) node(rack *inventory.Rack, n SiteNode) {
	have, ok := c.inv.Node(n.Name)
	if !ok {
		c.add(rack.Decl, "node %s of NetBox, unit %d, is not in rack %s", n.Name, n.Unit, rack.Name)
		return
	}
	if have.Rack != nil && have.Rack.Name != rack.Name {
		c.add(have.Decl, "node %s is in rack %s, and in %s in NetBox", n.Name, have.Rack.Name, rack.Name)
	}
	differ := func(at hcl.Range, what, here, there string) {
		if there != "" && here != there {
			c.add(at, "node %s has %s %q, and %q in NetBox", n.Name, what, here, there)
		}
	}
	if have.Unit != n.Unit {
		c.add(have.Ranges.Unit, "node %s is at unit %d, and at %d in NetBox", n.Name, have.Unit, n.Unit)
	}
	mac, bmc, address := "", "", ""
	if have.BootMAC != (addr.MAC{}) {
		mac = have.BootMAC.String()
	}
	if have.BMC.Address.IsValid() {
		bmc = have.BMC.Address.String()
	}
	if have.Address.IsValid() {
		address = have.Address.String()
	}
	differ(have.Ranges.Serial, "serial", have.Serial, n.Serial)
	differ(have.Ranges.BootMAC, "boot_mac", mac, n.BootMAC)
	differ(have.Ranges.BMCAddress, "the BMC's address", bmc, n.BMC)
	differ(have.Ranges.Address, "address", address, n.Address)
}

// HCL writes a site in the inventory language, formatted.
func (s Site) HCL() []byte {
	f := hclwrite.NewEmptyFile()
	f.Body().AppendUnstructuredTokens(hclwrite.Tokens{{Type: 'C', Bytes: []byte("# Written by `ironrail import netbox`. Changes by hand are lost with the next import.\n")}})
	set := func(b *hclwrite.Body, name, value string) {
		if value != "" {
			b.SetAttributeValue(name, cty.StringVal(value))
		}
	}
	refer := func(b *hclwrite.Body, kind, name string) {
		b.SetAttributeTraversal(kind, hcl.Traversal{hcl.TraverseRoot{Name: kind}, hcl.TraverseAttr{Name: name}})
	}
	for _, r := range s.Racks {
		f.Body().AppendNewline()
		rack := f.Body().AppendNewBlock("rack", []string{r.Name}).Body()
		rack.SetAttributeValue("number", cty.NumberIntVal(int64(r.Number)))
		rack.SetAttributeValue("units", cty.NumberIntVal(int64(r.Units)))
		for _, x := range r.Switches {
			b := rack.AppendNewBlock("switch", []string{x.Name}).Body()
			b.SetAttributeValue("unit", cty.NumberIntVal(int64(x.Unit)))
			set(b, "model", x.Model)
			if x.Fabric != "" {
				refer(b, "fabric", x.Fabric)
			}
			set(b, "address", x.Address)
		}
		for _, n := range r.Nodes {
			b := rack.AppendNewBlock("node", []string{n.Name}).Body()
			refer(b, "role", n.Role)
			b.SetAttributeValue("unit", cty.NumberIntVal(int64(n.Unit)))
			set(b, "serial", n.Serial)
			set(b, "boot_mac", n.BootMAC)
			set(b, "address", n.Address)
			if n.BMC != "" {
				set(b.AppendNewBlock("bmc", nil).Body(), "address", n.BMC)
			}
		}
	}
	for _, x := range s.Cables {
		f.Body().AppendNewline()
		if x.Over != "" {
			f.Body().AppendUnstructuredTokens(hclwrite.Tokens{{Type: 'C', Bytes: []byte("# Over " + x.Over + ".\n")}})
		}
		b := f.Body().AppendNewBlock("cable", nil).Body()
		set(b, "from", x.From)
		set(b, "to", x.To)
		set(b, "type", x.Type)
		set(b, "length", x.Length)
	}
	return hclwrite.Format(f.Bytes())
}
