// SPDX-License-Identifier: Apache-2.0

// Package bandwidth measures the GPUs of one installed node by themselves: copies
// within the memory of each, between it and the host, and between two of them. The
// figures come from the vendor's own program; each is held against the site's
// limit, else against what good hardware of the model gives, and against the other
// GPUs of the node. What is bad is named by GPU.
package bandwidth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool"
)

// patience is how long a program may run on a node: eight GPUs take four minutes
// at most.
const patience = 12 * time.Minute

// Figure is one measured bandwidth.
type Figure struct {
	Measure string // such as gpu.hbm_copy; see package floor
	GPU     string // PCI address
	Peer    string // the other GPU, of a copy between two
	Rate    float64
}

// Output is what one program measured on a node.
type Output struct {
	Vendor  string // of the GPUs: nvidia or amd
	Program string // with its version where it says one
	Params  string // what it was asked for
	Figures []Figure
	Printed []byte
	// Absent is a sentence with what to do where the node has no such program; then
	// nothing was measured.
	Absent string
}

// program is how the GPUs of one vendor are measured.
type program struct {
	name   string
	places []string // folders, in the order in which they are looked through
	comes  string   // where it comes from
	params string
	run    func(ctx context.Context, nodes onnode.Nodes, node, path string) (onnode.Output, error)
	read   func(printed []byte) (version string, figures []Figure, problems tool.Problems, err error)
}

// programs are by vendor of GPUs.
var programs = map[string]program{"nvidia": nvbandwidth, "amd": rvs}

// listVendors returns those of a chassis' GPUs that can be measured.
func listVendors(h *inventory.Hardware) (list []string) {
	for _, vendor := range []string{"nvidia", "amd"} {
		if countGPUs(h, vendor) > 0 {
			list = append(list, vendor)
		}
	}
	return list
}

// countGPUs returns how many GPUs of a vendor a chassis has.
func countGPUs(h *inventory.Hardware, vendor string) (n int) {
	for _, g := range h.GPUs {
		if g.Vendor == vendor {
			n += max(g.Count, 1)
		}
	}
	return n
}

// programOf names the program that measures the GPUs of a vendor, and says where it
// comes from.
func programOf(vendor string) (name, comes string) {
	return programs[vendor].name, programs[vendor].comes
}

// TakeFigures runs the vendor's program on a node and loads all its GPUs meanwhile. An
// error means that the node could not be asked, or that the program did not end
// with all its figures: then the run holds what was printed.
func TakeFigures(ctx context.Context, nodes onnode.Nodes, node, vendor string, h *inventory.Hardware) (Output, error) {
	p := programs[vendor]
	r := Output{Vendor: vendor, Program: p.name, Params: p.params}
	path, err := p.find(ctx, nodes, node)
	if err != nil {
		return r, err
	}
	if path == "" {
		r.Absent = fmt.Sprintf("there is no %s on %s. %s", p.name, node, p.comes)
		return r, nil
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := p.run(within, nodes, node, path)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return r, errkind.New(errkind.Timeout, "node %s: %s did not end within %s", node, p.name, patience).Do("Look at dmesg of the node: a GPU may hang.")
	}
	if err != nil {
		return r, fmt.Errorf("node %s: %s: %w", node, p.name, err)
	}
	r.Printed = append(bytes.Clone(out.Stdout), out.Stderr...)
	version, figures, problems, err := p.read(out.Stdout)
	r.Figures = figures
	r.Program = strings.TrimSpace(p.name + " " + version)
	switch {
	case err != nil || out.Exit != 0:
		return r, failedError(node, p.name, fmt.Sprintf("exit status %d: %s", out.Exit, lastLine(r.Printed)))
	case len(problems) > 0:
		return r, failedError(node, p.name, problems[0].Text)
	}
	return r, r.whole(node, countGPUs(h, vendor))
}

func failedError(node, program, says string) error {
	return errkind.New(errkind.Mismatch, "node %s: %s: %s", node, program, says).Do("Read the attached output, and dmesg of the node.")
}

// whole asks for a figure of each measure and GPU.
func (r *Output) whole(node string, gpus int) error {
	for _, m := range Measures {
		if m.Between && gpus < 2 {
			continue
		}
		seen := map[string]bool{}
		for _, f := range r.Figures {
			if f.Measure == m.Name {
				seen[f.GPU] = true
			}
		}
		if len(seen) != gpus && (!m.Between || len(seen) > 0) {
			return failedError(node, r.Program, fmt.Sprintf("it has figures of %d GPUs for %s, and there are %d", len(seen), m.Name, gpus))
		}
	}
	return nil
}

// find returns where the program is on a node; "" when it is not there.
func (p program) find(ctx context.Context, nodes onnode.Nodes, node string) (string, error) {
	script := ""
	for _, dir := range p.places {
		script += fmt.Sprintf("if [ -x %[1]s/%[2]s ]; then echo %[1]s/%[2]s; exit 0; fi\n", dir, p.name)
	}
	out, err := onnode.Do(ctx, nodes, node, "sh", "-c", script+"exit 1\n")
	if exit, ok := errors.AsType[*onnode.ExitError](err); ok && exit.Output.Exit == 1 {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

// lastLine is the last line that says something, cut to a readable length.
func lastLine(b []byte) string {
	text := strings.TrimSpace(string(b))
	text = text[strings.LastIndexByte(text, '\n')+1:]
	if text == "" {
		return "it said nothing"
	}
	return text[:min(len(text), 300)]
}
