// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"context"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/tool"
	parser "github.com/ironrail/ironrail/tool/rvs"
	"github.com/ironrail/ironrail/validate/floor"
)

// rvs measures GPUs of AMD: the ROCm Validation Suite, which is packaged beside
// ROCm. TransferBench, which measures the same, is a package of its own only in
// some releases, and prints no PCI addresses.
var rvs = program{
	name:   "rvs",
	places: []string{"/opt/rocm/bin", "/usr/local/bin", "/usr/bin"},
	comes:  "It is the package \"rocm-validation-suite\" of AMD's repository: put it into the packages of the driver.",
	params: "babel 1 GiB, pebb and pbqt 64 MiB",
	run: func(ctx context.Context, nodes onnode.Nodes, node, path string) (onnode.Output, error) {
		if err := onnode.Write(ctx, nodes, node, rvsConfig, 0o600, []byte(rvsActions)); err != nil {
			return onnode.Output{}, err
		}
		return nodes.Run(ctx, node, onnode.Command{Argv: []string{path, "-c", rvsConfig}})
	},
	read: readAMD,
}

// rvsConfig is where the actions are written: gone with the next boot.
const rvsConfig = "/run/ironrail/rvs.conf"

// rvsActions are those of rvs/conf/MI300X (babel.conf, pebb_single.conf and
// pbqt_single.conf) of the suite, of copies alone, one GPU at a time, and shorter.
const rvsActions = `actions:
- name: memory
  device: all
  module: babel
  parallel: false
  count: 1
  num_iter: 200
  array_size: 268435456
  test_type: 1
  mibibytes: true
  o/p_csv: false
  subtest: 1
  copy: true
- name: to-gpu
  device: all
  module: pebb
  duration: 20000
  host_to_device: true
  device_to_host: false
  parallel: false
  block_size: 67108864
  link_type: 2
- name: from-gpu
  device: all
  module: pebb
  duration: 20000
  host_to_device: false
  device_to_host: true
  parallel: false
  block_size: 67108864
  link_type: 2
- name: peers
  device: all
  module: pbqt
  log_interval: 60000
  duration: 60000
  peers: all
  test_bandwidth: true
  bidirectional: false
  parallel: false
  block_size: 67108864
  device_id: all
`

// readAMD reads what rvs printed. A GPU is measured with the memory of every CPU;
// the nearest counts.
func readAMD(printed []byte) (string, []Figure, tool.Problems, error) {
	c, problems, err := parser.Parse(printed)
	if err != nil {
		return "", nil, nil, err
	}
	var list []Figure
	best := func(f Figure) {
		if i := slices.IndexFunc(list, func(o Figure) bool { return o.Measure == f.Measure && o.GPU == f.GPU && o.Peer == f.Peer }); i < 0 {
			list = append(list, f)
		} else {
			list[i].Rate = max(list[i].Rate, f.Rate)
		}
	}
	for _, m := range c.Memory {
		i := slices.IndexFunc(c.GPUs, func(g parser.GPU) bool { return g.ID == m.GPU })
		switch {
		case m.Function != "Copy":
		case i < 0:
			problems.Add(tool.Missing, 0, "no line says which PCI address GPU %d of babel has", m.GPU)
		default:
			best(Figure{floor.HBMCopy, c.GPUs[i].BDF, "", m.Rate})
		}
	}
	for _, h := range c.Host {
		switch {
		case h.To && !h.From:
			best(Figure{floor.HostToDevice, strings.ToLower(h.BDF), "", h.Rate})
		case h.From && !h.To:
			best(Figure{floor.DeviceToHost, strings.ToLower(h.BDF), "", h.Rate})
		}
	}
	for _, p := range c.Peers {
		if !p.BothWays {
			best(Figure{floor.PeerRead, p.From.BDF, p.To.BDF, p.Rate})
		}
	}
	return "", list, problems, nil
}
