// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"
)

// What a round of a kind of unit takes on a large GPU. Belief: the program was compiled for
// GPUs and run on none.
const checksumRound = 80 * time.Millisecond

// runChecksum is ironrail_checksum SECONDS, as images/driver/tools/checksum has it. What comes
// out depends on the model, the driver and the kind of unit alone; of a GPU with wrong results
// that of fp32 and of matrix is another.
func runChecksum(ctx context.Context, c call) int {
	n, long := c.n, 30
	if len(c.Argv) > 1 {
		long, _ = strconv.Atoi(c.Argv[1])
	}
	runtime, module, names := "cuda", "nvidia", map[string]string{}
	var order []string
	for _, g := range n.gpus() {
		order = append(order, g.address())
		names[g.address()] = g.name
	}
	if len(order) == 0 {
		runtime, module = "hip", "amdgpu"
		for _, at := range n.amdAddresses() {
			order = append(order, at)
			names[at] = n.amdModel()
		}
	}
	if !n.loaded(module) {
		order = nil
	}
	version := n.fs.Text("sys/module", module, "version")
	c.print(fmt.Sprintf("{\"program\":\"ironrail_checksum\",\"version\":1,\"runtime\":%q,\"runtime_version\":13000,\"driver_api\":13000,\"module\":%q,\"steps\":262144}\n", runtime, version))
	if len(order) > 0 {
		if _, done := n.loadGPUs(ctx, time.Duration(long)*time.Second); !done {
			return 137
		}
	}
	heat := n.heat()
	for _, at := range order {
		c.print(fmt.Sprintf("{\"gpu\":%q,\"name\":%q,\"arch\":\"9.0\",\"multiprocessors\":132}\n", at, names[at]))
	}
	for _, at := range order {
		for _, unit := range []string{"fp32", "fp64", "int", "matrix"} {
			h := fnv.New64a()
			_, _ = fmt.Fprintf(h, "%s %s %s", names[at], version, unit)
			sum := h.Sum64()
			if heatAt(heat, at).Wrong && (unit == "fp32" || unit == "matrix") {
				sum ^= 1 << 17
			}
			c.print(fmt.Sprintf("{\"result\":%q,\"unit\":%q,\"checksum\":\"%016x\",\"rounds\":%d,\"others\":0}\n", at, unit, sum, max(2, int(time.Duration(long)*time.Second/(4*checksumRound)))))
		}
	}
	c.print(fmt.Sprintf("{\"end\":true,\"gpus\":%d}\n", len(order)))
	return 0
}
