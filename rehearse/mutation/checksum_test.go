// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"testing"

	"github.com/ironrail/ironrail/validate/checksum"
)

// TestChecksums changes what the GPUs of a node computed.
func TestChecksums(t *testing.T) {
	t.Parallel()
	var four [4]checksum.Record
	for i := range four {
		r := checksum.Record{Runtime: "cuda", Version: 1, RuntimeVersion: 13000, Module: "580.126.16", Steps: 262144}
		for k := range 2 {
			g := checksum.GPU{Address: fmt.Sprintf("0000:%d9:00.0", k), Name: "NVIDIA H100 80GB HBM3", Arch: "9.0", Multiprocessors: 132}
			for _, unit := range []string{"fp32", "fp64", "int", "matrix"} {
				g.Units = append(g.Units, checksum.Unit{Name: unit, Checksum: fmt.Sprintf("%016x", len(unit)), Rounds: 90})
			}
			r.GPUs = append(r.GPUs, g)
		}
		four[i] = r
	}
	mutate(t, "checksums", four, func(four [4]checksum.Record) (v verdict) {
		var nodes []checksum.Node
		for i, r := range four {
			nodes = append(nodes, checksum.Node{Name: fmt.Sprintf("n%d", i+1), Record: r})
		}
		for _, f := range four[0].Judge(nil) {
			v.faults = append(v.faults, f.Cause)
		}
		if err := four[0].Whole(2); err != nil {
			v.faults = append(v.faults, err.Error())
		}
		_, found, notes := checksum.CompareNodes(nodes)
		v.notes = notes
		for _, o := range found {
			v.add(o.Node, o.Cause)
		}
		return v
	})
}
