// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"context"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/tool"
	parser "github.com/ironrail/ironrail/tool/nvbandwidth"
	"github.com/ironrail/ironrail/validate/floor"
)

// nvbandwidth measures GPUs of NVIDIA. DCGM 4 of NVIDIA's repositories brings it
// along, as a plugin of its diagnostics (nvvs/plugin_src/nvbandwidth of
// github.com/NVIDIA/DCGM).
var nvbandwidth = program{
	name: "nvbandwidth",
	places: []string{"/usr/local/bin", "/usr/bin", "/opt/nvbandwidth",
		"/usr/libexec/datacenter-gpu-manager-4/plugins/cuda12", "/usr/libexec/datacenter-gpu-manager-4/plugins/cuda13"},
	comes:  "It comes with DCGM 4 of NVIDIA's repositories: put \"datacenter-gpu-manager-4-cuda13\", or cuda12, into the packages of the driver, or the program into /usr/local/bin of the image.",
	params: "512 MiB, copy engines",
	run: func(ctx context.Context, nodes onnode.Nodes, node, path string) (onnode.Output, error) {
		argv := []string{"env", "CUDA_DEVICE_ORDER=PCI_BUS_ID", path, "-b", "512", "-t"}
		for _, t := range nvTests {
			argv = append(argv, t.name)
		}
		return nodes.Run(ctx, node, onnode.Command{Argv: argv})
	},
	read: readNVIDIA,
}

// nvTests are the tests of nvbandwidth. It counts the bytes of a copy once; within
// one memory each of them is read and written (memcpy.cpp and testcases_ce.cpp of
// nvbandwidth 0.8: there is no factor in DeviceLocalCopy), which gpu.hbm_copy
// counts as two.
var nvTests = []struct {
	name, measure string
	times         float64
}{
	{"device_local_copy", floor.HBMCopy, 2},
	{"host_to_device_memcpy_ce", floor.HostToDevice, 1},
	{"device_to_host_memcpy_ce", floor.DeviceToHost, 1},
	{"device_to_device_memcpy_read_ce", floor.PeerRead, 1},
}

// busID is a PCI address as CUDA's device properties have it: no function.
var busID = lazyregexp.New(`^(?:[0-9A-Fa-f]{4})?([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})$`)

// readNVIDIA reads what nvbandwidth printed. A test that it waived, such as copies
// between GPUs without access to each other, has no figures.
func readNVIDIA(printed []byte) (string, []Figure, tool.Problems, error) {
	c, problems, err := parser.Parse(printed)
	if err != nil {
		return "", nil, nil, err
	}
	var at []string
	for _, d := range c.Devices {
		m := busID.FindStringSubmatch(d.BusID)
		if m == nil {
			problems.Add(tool.Missing, 0, "device %d has no PCI address, as before version 0.5 of nvbandwidth", d.Index)
			return c.Version, nil, problems, nil
		}
		at = append(at, strings.ToLower(m[1])+".0")
	}
	var list []Figure
	for _, t := range c.Tests {
		for _, known := range nvTests {
			if known.name != t.Name || t.Unit != "GB/s" {
				continue
			}
			for i, row := range t.Matrix {
				for j, v := range row {
					switch {
					case v == nil || *v <= 0 || j >= len(at):
					case known.measure != floor.PeerRead:
						list = append(list, Figure{known.measure, at[j], "", *v * 1e9 * known.times})
					case i < len(at):
						list = append(list, Figure{known.measure, at[i], at[j], *v * 1e9})
					}
				}
			}
		}
	}
	return c.Version, list, problems, nil
}
