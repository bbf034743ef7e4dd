// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
)

// TestNearestCores: the cores of a GPU's socket are written where every GPU's is
// known, and nothing where one is not: a wrong core is worse than none.
func TestNearestCores(t *testing.T) {
	t.Parallel()
	cpu := wire.CPU{Sockets: 2, Cores: 112, Threads: 224}
	for _, c := range []struct {
		name, vendor, sockets string // of GPUs in the order of the bus; - for not known
		cpu                   wire.CPU
		want                  string
	}{
		{"two halves", "nvidia", "0 0 0 0 1 1 1 1", cpu, "Name=gpu Type=m File=/dev/nvidia[0-3] Cores=0-55|Name=gpu Type=m File=/dev/nvidia[4-7] Cores=56-111"},
		{"in turn", "amd", "1 0 0", cpu, "Name=gpu Type=m File=/dev/dri/renderD128 Cores=56-111|Name=gpu Type=m File=/dev/dri/renderD[129-130] Cores=0-55"},
		{"one not known", "nvidia", "0 -", cpu, "Name=gpu Type=m File=/dev/nvidia[0-1]"},
		{"one socket", "nvidia", "0 0", wire.CPU{Sockets: 1, Cores: 64, Threads: 128}, "Name=gpu Type=m File=/dev/nvidia[0-1]"},
		{"uneven sockets", "nvidia", "0 1", wire.CPU{Sockets: 2, Cores: 3, Threads: 3}, "Name=gpu Type=m File=/dev/nvidia[0-1]"},
		{"a socket that is not there", "nvidia", "0 2", cpu, "Name=gpu Type=m File=/dev/nvidia[0-1]"},
	} {
		var zero int
		hw := wire.Hardware{CPU: c.cpu, PCI: []wire.PCI{{Address: "0000:03:00.0", Vendor: "1a03", Class: "030000", Socket: &zero}}} // of the BMC
		g := gpuSet{vendor: c.vendor, model: "m"}
		for i, word := range strings.Fields(c.sockets) {
			f := wire.PCI{Address: fmt.Sprintf("0000:%02x:00.0", 0x10+i), Vendor: map[string]string{"nvidia": "10de", "amd": "1002"}[c.vendor], Class: "120000"}
			var s int
			if _, err := fmt.Sscan(word, &s); err == nil {
				f.Socket = &s
			}
			hw.PCI = append([]wire.PCI{f}, hw.PCI...) // in no order
			g.count++
		}
		if got := strings.Join(g.lines(nearestSockets(g, hw)), "|"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
		g.count++
		if got := nearestSockets(g, hw); got != "" {
			t.Errorf("%s: with a GPU that was not inspected: %q", c.name, got)
		}
	}
}
