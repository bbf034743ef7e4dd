// SPDX-License-Identifier: Apache-2.0

// Package stress knows by what AMD loads its GPUs, model by model, and how much each must compute
// meanwhile. It is pure.
package stress

import (
	"fmt"
	"strings"
	"time"
)

// Load is a multiplication of matrices by which AMD loads a model, and what AMD wants of it.
type Load struct {
	model  string  // a part of the model's name
	target float64 // GFLOPS that each GPU makes; 0: AMD states none
	Source string  // of the target; empty: AMD states none
	action string  // the lines of an action of rvs that say what is multiplied
}

// tolerance is the share of its target that a GPU may miss: GST_DEFAULT_TOLERANCE of
// gst.so/src/action.cpp of the ROCm Validation Suite.
const tolerance = 0.05

// Actions of rvs. So many calls make a batch of 7 to 24 seconds: results are compared behind a
// batch, and rvs ends between two.
const (
	dgemm = `  hot_calls: 1000
  matrix_size_a: 8192
  matrix_size_b: 8192
  matrix_size_c: 8192
  matrix_init: trig
  ops_type: dgemm
  lda: 8192
  ldb: 8192
  ldc: 8192
  transa: 1
  transb: 0
  alpha: 1
  beta: 0
`
	olderDgemm = `  hot_calls: 200
  matrix_size_a: 8192
  matrix_size_b: 8192
  matrix_size_c: 8192
  matrix_init: trig
  ops_type: dgemm
  lda: 8192
  ldb: 8192
  ldc: 8192
`
	bf16 = `  hot_calls: 10000
  matrix_size_a: 4864
  matrix_size_b: 4096
  matrix_size_c: 8192
  matrix_init: trig
  data_type: bf16_r
  lda: 8320
  ldb: 8320
  ldc: 4992
  ldd: 4992
  transa: 1
  transb: 0
  alpha: 1
  beta: 0
`
	newerBf16 = `  hot_calls: 10000
  matrix_size_a: 8192
  matrix_size_b: 8192
  matrix_size_c: 16384
  matrix_init: trig
  data_type: bf16_r
  out_data_type: bf16_r
  compute_type: fp32_r
  transa: 1
  transb: 0
  alpha: 1
  beta: 0
  rotating: 512
  blas_source: hipblaslt
`
)

// loads are AMD's own, of rvs/conf of github.com/ROCm/ROCmValidationSuite as of August 2026
// (commit 21584e14; that of MI250X, 41c29091). Level 5 loads all GPUs at once, for 15 minutes
// each. Of MI350X and MI355X AMD states no target in double precision. MI300A has none: a file
// that once had some repeats those of MI300X, of which it has three quarters of the units.
var loads = []Load{
	{"MI300X", 70000, "MI300X/levels/rvs_level_5.conf, compute-fp64-trig", dgemm},
	{"MI325X", 70000, "MI325X/levels/rvs_level_5.conf, compute-fp64-trig", dgemm},
	{"MI308X", 172333, "MI308X/levels/rvs_level_5.conf, compute-bf16-trig", bf16},
	{"MI350X", 956000, "MI350X/levels/rvs_level_5.conf, compute-bf16-trig", newerBf16},
	{"MI355X", 956000, "MI355X/levels/rvs_level_5.conf, compute-bf16-trig", newerBf16},
	{"MI250", 30000, "MI250X/gst_single.conf, gpustress-30000-dgemm-false", olderDgemm},
	{"MI210", 30000, "MI210/gst_single.conf, gpustress-30000-dgemm-false", olderDgemm},
}

// Of returns the load of a model; of one that AMD states none for, it has no target.
func Of(model string) Load {
	for _, s := range loads {
		if strings.Contains(strings.ToUpper(model), s.model) {
			return s
		}
	}
	return Load{action: olderDgemm}
}

// Config is the configuration of rvs that loads all GPUs for so long. Without a target rvs is
// given what each GPU reaches: it prints the same, and judges nothing.
func (s Load) Config(long time.Duration) string {
	return fmt.Sprintf(`actions:
- name: burn-in
  device: all
  module: gst
  parallel: true
  count: 1
  duration: %d
  ramp_interval: 5000
  log_interval: 30000
  copy_matrix: false
  target_stress: %.0f
%s  self_check: true
`, long.Milliseconds(), max(s.target, 1), s.action)
}

// Least is how many GFLOPS a GPU makes at least; 0 where AMD states no target.
func (s Load) Least() float64 { return s.target * (1 - tolerance) }
