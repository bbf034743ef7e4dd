// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/inventory"
)

// problems are what is wrong with a block.
type problems struct {
	d    *inventory.Driver
	list hcl.Diagnostics
}

func (p *problems) add(block, summary, format string, args ...any) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: placeOf(p.d, block).Ptr()}
	p.list = append(p.list, d)
	return d
}

// placeOf is where the block of a program stands, else that of the driver.
func placeOf(d *inventory.Driver, block string) hcl.Range {
	if d.Body == nil || block == "" {
		return d.Decl
	}
	inner, _, _ := d.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: block}}})
	if inner == nil || len(inner.Blocks) == 0 {
		return d.Decl
	}
	return inner.Blocks[0].DefRange
}

// Check implements driver.Kind: what a block says by itself.
func (k *Tools) Check(d *inventory.Driver) hcl.Diagnostics {
	p := &problems{d: d}
	list := given(d)
	for _, one := range list {
		if one.own == nil {
			p.source(one)
		}
	}
	p.alone(list, func(o program) bool { return o.own != nil }, "One program for two stacks", "name")
	p.alone(list, func(o program) bool { return o.mpi }, "Tests of two libraries in one driver", "names")
	return p.list
}

// alone refuses a second one of programs that are called the same and are for GPUs of two vendors.
func (p *problems) alone(list []program, of func(program) bool, summary, names string) {
	same := slices.DeleteFunc(slices.Clone(list), func(o program) bool { return !of(o) })
	if len(same) > 1 {
		p.add(same[1].block, summary, "Driver %q has %s and %s, whose programs have the same %s, and no node has GPUs of both vendors. Write a driver \"tools\" for each.", p.d.Name, same[0].block, same[1].block, names)
	}
}

// source checks where a program's sources come from.
func (p *problems) source(one program) {
	s := sourceOf(p.d, one)
	u, err := url.Parse(s.At)
	switch {
	case strings.TrimSpace(s.At) == "":
		p.add(one.block, "No source", "The source of %s of driver %q is empty. Give the URL of an archive of its sources with its checksum, or a file of the site's folder.", one.block, p.d.Name)
	case strings.Contains(s.At, "://") && (err != nil || !s.IsURL() || u.Host == ""):
		p.add(one.block, "Source that cannot be fetched", "The source of %s of driver %q is %q: archives are fetched over http and https, or read from a file.", one.block, p.d.Name, s.At)
	case s.IsURL() && u.User != nil:
		p.add(one.block, "Password in a source", "The source of %s of driver %q has a password, which would stand in logs. Bring the archive into the site's folder and name the file.", one.block, p.d.Name)
	case s.IsURL() && s.Checksum == "":
		p.add(one.block, "Source without a checksum", "The source of %s of driver %q is fetched, and nothing says what it is. Write checksum = \"sha256:...\" (sha256sum prints it); or bring the archive into the site's folder and name the file: then ironrail.lock keeps what it was.", one.block, p.d.Name)
	}
}

// Fits implements driver.Fitter: what a block asks for together with the stacks and the
// image of a node.
func (k *Tools) Fits(t driver.Target) hcl.Diagnostics {
	p := &problems{d: t.Driver}
	if _, ok := distribution.OfImage(t.Node.Image); !ok {
		p.add("", "System without packages of programs", "Driver %q is given to node %s. Image %q is of kind %q, and nobody knows the names of its packages. Bring the programs in the image.", t.Driver.Name, t.Node.Name, t.Node.Image.Name, t.Node.Image.Kind)
		return p.list
	}
	own := slices.IndexFunc(t.Node.Drivers, func(d *inventory.Driver) bool { return d.Name == t.Driver.Name })
	for i, d := range t.Node.Drivers {
		if i > own && d.Kind != Name {
			p.add("", "Tools before the stacks that they use", "Driver %q is installed before driver %q on node %s, and its programs use the libraries of that. Put driver.%s to the end of the drivers.", t.Driver.Name, d.Name, t.Node.Name, t.Driver.Name)
			break
		}
	}
	for _, one := range given(t.Driver) {
		k.fits(p, t, one)
	}
	return p.list
}

// fits checks that a node has what one program is compiled for.
func (k *Tools) fits(p *problems, t driver.Target, one program) {
	if one.of == "" {
		return
	}
	kit, ok, err := k.recipes.toolkitOf(t.Node, one.of, stack.BaseOf(t.Node.Image))
	switch {
	case err != nil: // the stack says that by itself
	case !ok && !slices.ContainsFunc(t.Node.Drivers, func(d *inventory.Driver) bool { return d.Kind == one.of }):
		p.add(one.block, "Program for a stack that is not there", "Driver %q has %s, and node %s has no driver of kind %q, which it is compiled for and runs on. Take the block out, or give that driver to the node.", t.Driver.Name, one.block, t.Node.Name, one.of)
	case !ok:
		p.add(one.block, "Nothing to compile with", "Driver %q has %s, and the driver of kind %q of node %s brings no compiler and no library for it. %s", t.Driver.Name, one.block, one.of, t.Node.Name, toolkitHint[one.of])
	case len(kit.Targets) == 0:
		p.add(one.block, "GPUs that are not known", "Driver %q has %s, and it is not known what code the GPUs of node %s take (hardware %q). Name their model as the vendor does, such as \"H100 SXM5 80GB\".", t.Driver.Name, one.block, t.Node.Name, hardwareName(t.Node))
	}
}

// toolkitHint says by kind of stack how it brings a toolkit.
var toolkitHint = map[string]string{
	"cuda": `Give it the toolkit (cuda = "13.0") and NVIDIA's repository: a distribution's own archive has no NCCL.`,
	"rocm": "Give it AMD's repository: a distribution's own archive has no RCCL.",
}

func hardwareName(n *inventory.Node) string {
	if n.Hardware == nil {
		return ""
	}
	return n.Hardware.Name
}
