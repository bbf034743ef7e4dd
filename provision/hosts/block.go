// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// writeBlocks writes what most hosts of each cohort have as blocks of the language: what
// is judged by is what can be read, changed and given back.
func writeBlocks(cohorts []cohort) []byte {
	var b bytes.Buffer
	for _, c := range cohorts {
		writeBlock(&b, c, len(cohorts) > 1)
	}
	return hclwrite.Format(b.Bytes())
}

// isPlain reports whether text from firmware is the same after it was written and read.
func isPlain(text string) bool {
	return utf8.ValidString(text) && cty.StringVal(text).AsString() == text && !strings.ContainsFunc(text, unicode.IsControl)
}

// quote is text as a string of the language.
func quote(text string) string {
	return string(hclwrite.TokensForValue(cty.StringVal(text)).Bytes())
}

// writeBlock writes the hardware block of a cohort, with the fabrics that its rails are
// on. What no majority has the same of is left out.
func writeBlock(b *bytes.Buffer, c cohort, several bool) {
	rails := c.rails()
	fabric := func(r railSet) string {
		if several {
			return c.name + "-" + r.name
		}
		return r.name
	}
	for _, r := range rails {
		fmt.Fprintf(b, "fabric %s %s {\nrails = %d\n}\n\n", quote(r.kind()), quote(fabric(r)), len(r.pci))
	}
	fmt.Fprintf(b, "hardware %s {\n", quote(c.name))
	writeChassis(b, c)
	if s, ok := c.typical(partGPUs); ok {
		for _, g := range s.gpus() {
			if !isPlain(g.Model) {
				g.Model = "a model whose name cannot be read"
			}
			fmt.Fprintf(b, "gpu {\nvendor = %s\nmodel = %s\ncount = %d\n", quote(g.Vendor), quote(g.Model), g.Count)
			if g.Interconnect != "" {
				fmt.Fprintf(b, "interconnect = %s\n", quote(g.Interconnect))
			}
			b.WriteString("}\n")
		}
	}
	writeDisks(b, c)
	for _, r := range rails {
		fmt.Fprintf(b, "hca %s {\nfabric = fabric.%s\n", quote(r.name), fabric(r))
		if r.speed > 0 {
			fmt.Fprintf(b, "speed = %s\n", quote(r.speed.String()))
		}
		b.WriteString("ports = [\n")
		for i, at := range r.pci {
			fmt.Fprintf(b, "{ rail = %d, pci = %s },\n", i, quote(at))
		}
		b.WriteString("]\n}\n")
	}
	if other := c.otherNICs(rails); len(other) > 0 {
		var list []string
		for _, at := range other {
			list = append(list, quote(at))
		}
		fmt.Fprintf(b, "nic \"other\" {\npci = [%s]\n}\n", strings.Join(list, ", "))
	}
	b.WriteString("}\n")
}

// writeChassis writes what is there once.
func writeChassis(b *bytes.Buffer, c cohort) {
	if s, ok := c.typical(partVendor); ok && isPlain(s.hw.Identity.Vendor) {
		fmt.Fprintf(b, "vendor = %s\n", quote(s.hw.Identity.Vendor))
	}
	if s, ok := c.typical(partProduct); ok && isPlain(s.hw.Identity.Product) {
		fmt.Fprintf(b, "product = %s\n", quote(s.hw.Identity.Product))
	}
	if arch := c.members[0].arch; arch != inventory.AMD64 {
		fmt.Fprintf(b, "arch = %s\n", quote(string(arch)))
	}
	if s, ok := c.typical(partBoot); ok && (s.hw.Firmware == "bios" || s.hw.Firmware == "uefi") {
		fmt.Fprintf(b, "boot = %s\n", quote(s.hw.Firmware))
	}
	writeProcessors(b, c)
	if s, ok := c.typical(partMemory); ok && s.memory() > 0 {
		fmt.Fprintf(b, "memory {\nsize = %s\n", quote(s.memory().String()))
		if d, ok := c.typical(partDIMMs); ok {
			fmt.Fprintf(b, "dimms = %d\n", d.hw.Memory.DIMMs)
		}
		b.WriteString("}\n")
	}
}

// writeProcessors writes the cpu block.
func writeProcessors(b *bytes.Buffer, c cohort) {
	sockets, hasSockets := c.typical(partSockets)
	cores, hasCores := c.typical(partCores)
	if hasSockets || hasCores {
		b.WriteString("cpu {\n")
		if s, ok := c.typical(partCPU); ok && isPlain(s.hw.CPU.Model) {
			fmt.Fprintf(b, "model = %s\n", quote(s.hw.CPU.Model))
		}
		if hasSockets {
			fmt.Fprintf(b, "sockets = %d\n", sockets.hw.CPU.Sockets)
		}
		if hasCores {
			fmt.Fprintf(b, "cores = %d\n", cores.hw.CPU.Cores)
		}
		b.WriteString("}\n")
	}
}

// writeDisks writes sets of disks that exclude each other: exact sizes, by kind.
func writeDisks(b *bytes.Buffer, c cohort) {
	s, ok := c.typical(partDisks)
	if !ok {
		return
	}
	for i, d := range s.disks() {
		fmt.Fprintf(b, "disk %s {\ntype = %s\nsize = %s\ncount = %d\n}\n", quote(fmt.Sprintf("%s-%d", d.kind, i+1)), quote(d.kind), quote(diskSize(d, s.disks())), d.count)
	}
}

// diskSize is the label of a disk, where it tells it from the others; else its bytes.
func diskSize(d diskSet, all []diskSet) string {
	label := d.label()
	l, err := unit.ParseDriveSize(label)
	if err != nil {
		return "= " + unit.Bytes(d.size).String()
	}
	for _, o := range all {
		if o.kind == d.kind && l.Allows(unit.Bytes(o.size)) != (o == d) {
			return "= " + unit.Bytes(d.size).String()
		}
	}
	return label
}
