// SPDX-License-Identifier: Apache-2.0

package lspci

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

var (
	// rootLine is the first line of a tree: "-[0000:00]-+-00.0" or, of several root
	// buses, "-+-[0000:d7]-+-00.0".
	rootLine = lazyregexp.New(`(?m)^[ \t]*-(?:\+-)?\[[0-9a-f]{4,8}:[0-9a-f]{2}(?:-[0-9a-f]{2})?\]-`)
	// branch is a line of a tree, the root's too.
	branch  = lazyregexp.New(`^[ |]*(?:-(?:\+-)?\[|[+\\]-)`)
	treeBus = lazyregexp.New(`^\[(?:([0-9a-f]{4,8}):)?([0-9a-f]{2})(?:-[0-9a-f]{2})?\]`)
	treeFn  = lazyregexp.New(`^[0-9a-f]{2}\.[0-7]`)
)

// mostProblems is how many problems of a tree are written out: a line of it may
// hold many devices.
const mostProblems = 100

// isTree reports whether a text is a tree: few texts have what is looked for first.
func isTree(data []byte) bool {
	return bytes.Contains(data, []byte("]-")) && rootLine.Match(data)
}

// bus is a bus that a line of the tree opened, and the column where.
type bus struct {
	domain, number string
	parent         string // address of the bridge above it
	column         int
}

// tree reads -t and -tv. What a line continues is told by columns alone: a device
// is on the last bus that was opened to the left of it.
func (r *reader) tree(data []byte) (*Devices, tool.Problems, error) {
	var open []bus
	last, seen := "", false
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		line = strings.TrimRight(line, " \t\r")
		if line != "" {
			last = line
		}
		if seen = seen || rootLine.MatchString(line); seen && branch.MatchString(line) {
			open = r.branch(line, open)
		}
	}
	if len(r.content.Devices) == 0 {
		return nil, nil, errors.New("it has no device")
	}
	if len(data) > 0 && data[len(data)-1] != '\n' && !strings.HasSuffix(last, "]--") {
		r.problems.Add(tool.Truncated, r.line, "The output ends within its last line, or right behind it.")
	}
	return &r.content, r.problems, nil
}

// branch reads one line such as
//
//	+-[0000:ae]-+-00.0-[af]----00.0  NVIDIA Corporation GH100 [H100 SXM5 80GB]
//	|           \-02.0-[b0-b1]--+-00.0  Mellanox Technologies MT2910 Family [ConnectX-7]
func (r *reader) branch(line string, open []bus) []bus {
	bridge := ""
	for at := 0; at < len(line); {
		rest := line[at:]
		b, fn := treeBus.FindStringSubmatch(rest), treeFn.FindString(rest)
		switch {
		case strings.IndexByte(" |+-\\", rest[0]) >= 0:
			at++
		case b != nil:
			open = busesLeftOf(open, at)
			next := bus{domain: b[1], number: b[2], parent: bridge, column: at}
			if b[1] == "" && len(open) > 0 {
				next.domain = open[len(open)-1].domain
			}
			open, bridge = append(open, next), ""
			at += len(b[0])
		case fn != "":
			open = busesLeftOf(open, at)
			if len(open) == 0 {
				r.problems.Add(tool.Missing, r.line, "The bus of device %s is not in the output.", fn)
				return open
			}
			name, named := strings.CutPrefix(rest[len(fn):], "  ")
			bridge = r.leaf(open[len(open)-1], fn, name, named)
			if named {
				return open
			}
			at += len(fn)
		default:
			r.problems.Add(tool.Truncated, r.line, "The line ends before a device, or has what no tree has: %q.", rest)
			return open
		}
	}
	return open
}

// busesLeftOf returns the buses that were opened to the left of a column.
func busesLeftOf(open []bus, column int) []bus {
	for len(open) > 0 && open[len(open)-1].column >= column {
		open = open[:len(open)-1]
	}
	return open
}

// leaf adds a device and returns its address.
func (r *reader) leaf(on bus, fn, name string, named bool) string {
	d := Device{Address: fmt.Sprintf("%s:%s:%s", on.domain, on.number, fn), Parent: on.parent, line: r.line}
	if named {
		d.Name = name
		if i := ids.FindStringSubmatch(name); i != nil {
			d.Name, d.VendorID, d.DeviceID = i[1], i[2], i[3]
		}
	}
	if before, again := r.at[d.Address]; again && len(r.problems) < mostProblems {
		r.problems.Add(tool.Inconsistent, r.line, "Device %s is here and on line %d: outputs of two nodes are in one file.", d.Address, before)
	}
	r.at[d.Address] = r.line
	r.content.Devices = append(r.content.Devices, d)
	return d.Address
}
