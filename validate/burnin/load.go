// SPDX-License-Identifier: Apache-2.0

// Package burnin is what loads the GPUs of a node for a time, and what is made of
// what was seen meanwhile: the verdict of the program, clocks that were held down,
// and temperatures against the slowdown and against the same slot of other nodes.
// It is pure.
package burnin

import (
	"fmt"
	"time"

	"github.com/ironrail/ironrail/inventory"
)

// Every is how often the GPUs are looked at.
const Every = 5 * time.Second

// Grace is what a program may take beyond its time: to begin, to check and to end.
const Grace = 5 * time.Minute

// Load is what loads all GPUs of a node.
type Load struct {
	Vendor  string // nvidia or amd
	Program string // as a person calls it
	Shown   string // its command line, as a person writes it
	Argv    []string
	File    string // that Argv names, with Config in it; "": none
	Config  string
	Comes   string // where the program comes from
}

// configFile is where the actions of rvs are written: gone with the next boot.
const configFile = "/run/ironrail/burn.conf"

// runRVS runs rvs from where ROCm has it, which is on no path.
const runRVS = `if [ -x /opt/rocm/bin/rvs ]; then exec /opt/rocm/bin/rvs -c "$1"; fi
exec rvs -c "$1"`

// VendorOf is whose GPUs of a chassis are loaded; "" when there are none that
// anything here loads.
func VendorOf(h *inventory.Hardware) string {
	if h == nil {
		return ""
	}
	for _, g := range h.GPUs {
		if g.Vendor == "nvidia" || g.Vendor == "amd" {
			return g.Vendor
		}
	}
	return ""
}

// Of is what loads the GPUs of a vendor for so long.
//
// NVIDIA: DCGM's test "diagnostic" multiplies matrices for as long as it is told
// to, checks every result, writes and reads the memory, and ends when dcgmi or its
// connection ends (DcgmDiagManager.cpp, OnConnectionRemove). is_allowed lets it run
// on models that its table does not list.
//
// AMD: module gst of the ROCm Validation Suite multiplies matrices and compares
// each result with the one before (self_check). Double precision at this size is
// what the suite itself takes to reach the power limit of MI300X
// (conf/MI300X/iet_stress.conf). The target is what any GPU reaches: how fast it is
// is judged elsewhere.
func Of(vendor string, long time.Duration) Load {
	if vendor == "amd" {
		return Load{Vendor: vendor, Program: "rvs", Shown: "rvs -c " + configFile, Argv: []string{"sh", "-c", runRVS, "sh", configFile}, File: configFile, Config: stressCommand(long),
			Comes: `It is the package "rocm-validation-suite" of AMD's repository: put it into the packages of the driver or of the image.`}
	}
	parameters := fmt.Sprintf("diagnostic.test_duration=%d;diagnostic.is_allowed=true", int(long.Seconds()))
	return Load{Vendor: vendor, Program: "dcgmi", Shown: "dcgmi diag -r diagnostic -p \"" + parameters + "\" -j", Argv: []string{"env", "dcgmi", "diag", "-r", "diagnostic", "-p", parameters, "-j"},
		Comes: `It comes with DCGM, the package "datacenter-gpu-manager-4-cuda13" or "-cuda12" of NVIDIA's repository: give the driver block a repository that has it.`}
}

// stressCommand returns the configuration of rvs.
func stressCommand(long time.Duration) string {
	return fmt.Sprintf(`actions:
- name: burn-in
  device: all
  module: gst
  parallel: true
  count: 1
  duration: %d
  ramp_interval: 5000
  log_interval: 60000
  hot_calls: 20
  copy_matrix: false
  target_stress: 1
  matrix_size_a: 28000
  matrix_size_b: 28000
  matrix_size_c: 28000
  matrix_init: rand
  ops_type: dgemm
  lda: 28000
  ldb: 28000
  ldc: 28000
  alpha: 1
  beta: 0
  self_check: true
`, long.Milliseconds())
}
