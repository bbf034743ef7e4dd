// SPDX-License-Identifier: Apache-2.0

package system

import "strings"

// What GPUs compute under load, TFLOPS: peaks of the data sheets in double precision by matrix
// units and in bf16 (0: no program here asks), and the part of it that a long multiplication
// keeps up. The parts are belief, and above what AMD wants.
var gpuComputes = []struct {
	match                string // a part of the model's name
	double, bf16         float64
	doublePart, bf16Part float64
}{
	{"GB300", 1.3, 0, 0.9, 0}, {"GB200", 40, 0, 0.8, 0}, {"B300", 1.2, 0, 0.9, 0}, {"B200", 37, 0, 0.8, 0}, {"H200", 67, 0, 0.8, 0}, {"H100", 67, 0, 0.8, 0}, {"A100", 19.5, 0, 0.9, 0},
	{"MI355X", 78.6, 2516, 0.5, 0.42}, {"MI350X", 72.1, 2307, 0.5, 0.45}, {"MI325X", 163.4, 1307, 0.5, 0.5}, {"MI308X", 40, 188, 0.65, 0.97}, {"MI300X", 163.4, 1307, 0.5, 0.5},
	{"MI300A", 122.6, 981, 0.5, 0.5}, {"MI250", 45.3, 181, 0.75, 0.6}, {"MI210", 45.3, 181, 0.75, 0.6}, {"", 10, 40, 0.8, 0.6},
}

// gstTolerance is the share of its target that rvs lets a GPU miss (GST_DEFAULT_TOLERANCE).
const gstTolerance = 0.05

// gflops is what a GPU of a model makes under load.
func gflops(model string, bf16 bool) float64 {
	for _, c := range gpuComputes {
		switch {
		case !strings.Contains(strings.ToUpper(model), c.match):
		case bf16:
			return 1000 * c.bf16 * c.bf16Part
		default:
			return 1000 * c.double * c.doublePart
		}
	}
	return 0
}

// amdModel is the model of the node's GPUs of AMD.
func (n *node) amdModel() string {
	for _, g := range n.cfg.Hardware.GPUs {
		if g.Vendor == "amd" {
			return g.Model
		}
	}
	return ""
}
