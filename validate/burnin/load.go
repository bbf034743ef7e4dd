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
	"github.com/ironrail/ironrail/validate/burnin/stress"
	"github.com/ironrail/ironrail/validate/gate/look"
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
	Model   string // of the GPUs, as it was declared
	GPUs    int    // that the hardware block has of the vendor
	// Least is how many GFLOPS each GPU makes at least, by its maker, and Source where that is
	// from; 0: no target is known.
	Least  float64
	Source string
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

// modelOf is the model of the GPUs of a chassis that are loaded.
func modelOf(h *inventory.Hardware) string {
	if h == nil {
		return ""
	}
	vendor := VendorOf(h)
	for _, g := range h.GPUs {
		if g.Vendor == vendor {
			return g.Model
		}
	}
	return ""
}

// Of is what loads the GPUs of a chassis for so long.
//
// NVIDIA: DCGM's test "diagnostic" multiplies matrices for as long as it is told
// to, checks every result, writes and reads the memory, and ends when dcgmi or its
// connection ends (DcgmDiagManager.cpp, OnConnectionRemove). is_allowed lets it run
// on models that its table does not list. NVIDIA states no target: GPUs are held
// against each other.
//
// AMD: module gst of the ROCm Validation Suite multiplies matrices, in the way by which
// AMD itself loads the model, and compares each result with the one before (self_check).
func Of(h *inventory.Hardware, long time.Duration) Load {
	l := Load{Vendor: VendorOf(h), Model: modelOf(h)}
	if h != nil {
		l.GPUs, _ = look.DeclaredGPUs(h, l.Vendor)
	}
	if l.Vendor == "amd" {
		s := stress.Of(l.Model)
		l.Program, l.Shown, l.Argv, l.File, l.Config = "rvs", "rvs -c "+configFile, []string{"sh", "-c", runRVS, "sh", configFile}, configFile, s.Config(long)
		l.Comes = `It is the package "rocm-validation-suite" of AMD's repository: put it into the packages of the driver or of the image.`
		l.Least, l.Source = s.Least(), s.Source
		return l
	}
	parameters := fmt.Sprintf("diagnostic.test_duration=%d;diagnostic.is_allowed=true", int(long.Seconds()))
	l.Program, l.Shown, l.Argv = "dcgmi", "dcgmi diag -r diagnostic -p \""+parameters+"\" -j", []string{"env", "dcgmi", "diag", "-r", "diagnostic", "-p", parameters, "-j"}
	l.Comes = `It comes with DCGM, the package "datacenter-gpu-manager-4-cuda13" or "-cuda12" of NVIDIA's repository: give the driver block a repository that has it.`
	return l
}
