// SPDX-License-Identifier: Apache-2.0

package amdsmi

import (
	"bytes"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

var (
	boxHead  = lazyregexp.New(`^\| AMD-SMI (\S+) +amdgpu version: *(\S+) +ROCm version: *(\S+)`)
	boxVBIOS = lazyregexp.New(`^\| VBIOS version: *(\S+)`)
	// boxFirst and boxSecond are the two lines of a GPU, each with a bar inside.
	boxFirst  = lazyregexp.New(`^\| ([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]) +(\S.*?) *\| (\S+)(?: %)? +(\S+)(?: °C)? +(\S+) +(N/A|[^/\s]+)(?:/(\S+))?(?: W)? *\|$`)
	boxSecond = lazyregexp.New(`^\| +(\d+) +(\S+) +(\S+) +(\S+) *\| (\S+)(?: %)? +(\S+)(?: %)? +(N/A|[^/\s]+)(?:/(\S+))?(?: MB)? *\|$`)
)

// box reads the table that amd-smi of ROCm 7 prints without a command. It cuts
// long names at their begin or end and writes three dots there, and it does not
// say of which sensor its temperature is.
func (r *Report) box(b []byte, p *tool.Problems) {
	var above *GPU
	driver, vbios, last, n := "", "", "", 0
	for raw := range bytes.Lines(b) {
		n++
		line := strings.TrimSpace(string(raw))
		if line == "" {
			continue
		}
		last = line
		if m := boxHead.FindStringSubmatch(line); m != nil {
			r.Versions = versionsOf(m[1], "", m[3], m[2])
			driver = r.Versions.Driver
		} else if m := boxVBIOS.FindStringSubmatch(line); m != nil {
			vbios, _ = readValue(m[1])
		} else if m := boxFirst.FindStringSubmatch(line); m != nil {
			above = parseBoxedGPU(m, driver, vbios)
		} else if m := boxSecond.FindStringSubmatch(line); m != nil && above != nil {
			r.boxed(above, m, n, p)
			above = nil
		} else if strings.HasPrefix(line, "| Processes:") {
			break // their rows look like those of GPUs
		}
	}
	switch {
	case above != nil:
		p.Add(tool.Truncated, n, "the table ends between the two lines of a GPU")
	case strings.HasPrefix(last, "|") && !strings.HasPrefix(last, "| Processes:"):
		p.Add(tool.Truncated, n, "the table ends without its last line")
	}
}

// newLeaf returns a branch with one value, for its readers of numbers.
func newLeaf(s string) *branch { return &branch{sub: []*branch{{name: "v", value: s}}} }

// parseBoxedGPU makes a GPU of the first of its lines.
func parseBoxedGPU(m []string, driver, vbios string) *GPU {
	return &GPU{
		BDF:    strings.ToLower(m[1]),
		Static: &Static{Name: m[2], Driver: driver, VBIOS: vbios, PowerLimit: newLeaf(m[7]).float("v")},
		Metric: &Metric{Power: newLeaf(m[6]).float("v"), ECC: ECC{Uncorrectable: newLeaf(m[5]).int("v")}},
	}
}

// boxed adds a GPU whose second line has come.
func (r *Report) boxed(above *GPU, m []string, n int, p *tool.Problems) {
	number := newLeaf(m[1]).int("v")
	if number == nil || *number >= mostGPUs {
		p.Add(tool.Inconsistent, n, "a GPU without a number")
		return
	}
	g := r.gpu(int(*number))
	if g.BDF != "" {
		p.Add(tool.Inconsistent, n, "GPU %d is there twice", g.GPU)
		return
	}
	above.GPU = g.GPU
	*g = *above
	g.Static.OAM = newLeaf(m[3]).int("v")
	if mode, ok := readValue(m[4]); ok {
		g.Static.Compute, g.Static.Memory, _ = strings.Cut(mode, "/")
	}
	g.Metric.GFX, g.Metric.VRAMUsed, g.Metric.VRAMTotal = newLeaf(m[5]).float("v"), newLeaf(m[7]).float("v"), newLeaf(m[8]).float("v")
	g.Static.VRAM = g.Metric.VRAMTotal
}
