// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"time"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver/usage"
)

// Dated is the day on which the tables of this package were compared with their
// sources. What came out later is not known to them: that is a warning, never an
// error.
var Dated = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// branch is a row of NVIDIA's driver branches.
type branch struct {
	number  int
	kind    string    // as NVIDIA calls it
	end     time.Time // first day without support
	toolkit           // newest CUDA toolkit that it was made for
	next    int       // the branch to go to when it has ended
}

// toolkit is a version of the CUDA toolkit.
type toolkit = usage.Release

// anyMinor is the minor version of a branch of which only the major is known.
const anyMinor = 99

// branches is NVIDIA's table of data center drivers. End of life and kind:
// docs.nvidia.com/datacenter/tesla/drivers, "Supported Drivers and CUDA Toolkit
// Versions", editions of August 2025 and September 2026; branches that both
// leave out are ended, and have the day of the edition that says so first.
// Toolkit: CUDA Toolkit release notes, "CUDA Toolkit and Corresponding Driver
// Versions", 12.2 to 13.1; of later ones the major number.
var branches = []branch{
	{450, "long term support", firstOfMonth(2023, 8), toolkit{11, 0}, 580},
	{470, "long term support", firstOfMonth(2024, 8), toolkit{11, 4}, 580},
	{525, "production", firstOfMonth(2025, 8), toolkit{12, 0}, 580},
	{535, "long term support", firstOfMonth(2026, 7), toolkit{12, 2}, 580},
	{550, "production", firstOfMonth(2025, 8), toolkit{12, 4}, 580},
	{560, "new feature", firstOfMonth(2025, 8), toolkit{12, 6}, 580},
	{565, "new feature", firstOfMonth(2025, 8), toolkit{12, 7}, 580},
	{570, "production", firstOfMonth(2026, 3), toolkit{12, 8}, 580},
	{575, "new feature", firstOfMonth(2025, 8), toolkit{12, 9}, 580},
	{580, "long term support", firstOfMonth(2028, 7), toolkit{13, 0}, 0},
	{590, "new feature", firstOfMonth(2026, 9), toolkit{13, 1}, 595},
	{595, "production", firstOfMonth(2027, 4), toolkit{13, anyMinor}, 580},
	{610, "new feature", firstOfMonth(2026, 9), toolkit{13, anyMinor}, 595},
}

func firstOfMonth(year, m int) time.Time {
	return time.Date(year, time.Month(m), 1, 0, 0, 0, 0, time.UTC)
}

func branchOf(number int) (branch, bool) {
	for _, b := range branches {
		if b.number == number {
			return b, true
		}
	}
	return branch{}, false
}

// minimums are the oldest drivers of a toolkit's major version (CUDA
// Compatibility, "Minor Version Compatibility").
var minimums = map[int]int{11: 450, 12: 525, 13: 580}

// openSince is the oldest driver branch with the open kernel module
// (Driver Installation Guide, "Kernel Modules").
const openSince = 515

// architecture is a generation of GPUs.
type architecture struct {
	name         string
	first, last  int     // branches; last 0: not ended
	toolkit      toolkit // the first that makes code for it
	lastToolkit  int     // major; 0: not ended
	open, closed bool    // which kernel modules know it
}

// The generations. Modules: Driver Installation Guide, "Kernel Modules" (open
// from Turing on; proprietary up to Volta), and, for Blackwell and Grace, which
// only the open module serves, the open-gpu-kernel-modules announcement of July
// 2024. First branch: that of the first toolkit with the compute capability
// (CUDA Toolkit release notes). Last: R580 is the last for Pascal and Volta, and
// CUDA 13.0 the first without them.
var (
	pascal  = architecture{"Pascal", 375, 580, toolkit{8, 0}, 12, false, true}
	volta   = architecture{"Volta", 384, 580, toolkit{9, 0}, 12, false, true}
	turing  = architecture{"Turing", 410, 0, toolkit{10, 0}, 0, true, true}
	ampere  = architecture{"Ampere", 450, 0, toolkit{11, 0}, 0, true, true}
	ada     = architecture{"Ada", 525, 0, toolkit{11, 8}, 0, true, true}
	hopper  = architecture{"Hopper", 525, 0, toolkit{11, 8}, 0, true, true}
	grace   = architecture{"Grace Hopper", 535, 0, toolkit{11, 8}, 0, true, false}
	black   = architecture{"Blackwell", 570, 0, toolkit{12, 8}, 0, true, false}
	blackUp = architecture{"Blackwell Ultra", 575, 0, toolkit{12, 9}, 0, true, false}
)

// models are the GPUs of racks by the word of their names. A word that is not
// here is not judged.
var models = map[string]architecture{
	"P100": pascal, "P40": pascal, "P4": pascal,
	"V100": volta, "V100S": volta,
	"T4":   turing,
	"A100": ampere, "A800": ampere, "A30": ampere, "A40": ampere, "A10": ampere, "A16": ampere, "A2": ampere,
	"L40": ada, "L40S": ada, "L4": ada, "L20": ada, "L2": ada,
	"H100": hopper, "H200": hopper, "H800": hopper, "H20": hopper,
	"GH200": grace,
	"B100":  black, "B200": black, "GB200": black,
	"B300": blackUp, "GB300": blackUp,
}

// capabilities are the compute capabilities of models, as nvcc writes them
// (developer.nvidia.com/cuda-gpus).
var capabilities = map[string]string{
	"P100": "60", "P40": "61", "P4": "61",
	"V100": "70", "V100S": "70",
	"T4":   "75",
	"A100": "80", "A800": "80", "A30": "80", "A40": "86", "A10": "86", "A16": "86", "A2": "86",
	"L40": "89", "L40S": "89", "L4": "89", "L20": "89", "L2": "89",
	"H100": "90", "H200": "90", "H800": "90", "H20": "90", "GH200": "90",
	"B100": "100", "B200": "100", "GB200": "100",
	"B300": "103", "GB300": "103",
}

// trays are the models that stand in tray racks, whose NVSwitches are in switch
// trays of their own (NVL72, NVL36).
var trays = map[string]bool{"GB200": true, "GB300": true}

// architectureOf returns the generation of a model such as "H100 SXM5 80GB".
func architectureOf(model string) (architecture, bool) {
	for _, w := range usage.ModelWords(model) {
		if a, ok := models[w]; ok {
			return a, true
		}
	}
	return architecture{}, false
}

func isTray(model string) bool {
	for _, w := range usage.ModelWords(model) {
		if trays[w] {
			return true
		}
	}
	return false
}

// packaged is a release with the branches that NVIDIA packages for it.
type packaged struct {
	distribution.Release
	first, last int // branches; last 0: not ended
}

// distributions is from the Driver Installation Guide (R580 and R590), "Validated
// Linux Configurations": what is not in it any more ended with the branch before.
var distributions = []packaged{
	{distribution.Release{Family: distribution.Ubuntu, Version: "20.04"}, 450, 575},
	{distribution.Release{Family: distribution.Ubuntu, Version: "22.04"}, 515, 0},
	{distribution.Release{Family: distribution.Ubuntu, Version: "24.04"}, 550, 0},
	{distribution.Release{Family: distribution.Debian, Version: "11"}, 470, 575},
	{distribution.Release{Family: distribution.Debian, Version: "12"}, 525, 0},
	{distribution.Release{Family: distribution.Debian, Version: "13"}, 580, 0},
	{distribution.Release{Family: distribution.RHEL, Version: "8"}, 450, 0},
	{distribution.Release{Family: distribution.RHEL, Version: "9"}, 515, 0},
	{distribution.Release{Family: distribution.RHEL, Version: "10"}, 575, 0},
}

// broken is a pair of module and kernel of which the build is known to fail.
type broken struct {
	version, module string
	kernel          string // the start of the package's release
	since           int    // the number after it, and later ones
	why, good       string
}

// brokenKernels was measured with Debian 12's own packages:
// 6.1.192-2 gained an argument of pci_resize_resource that this module does not
// give; 6.1.176-1 builds.
var brokenKernels = []broken{{
	version: "535.261.03", module: "open", kernel: "linux-image-6.1.0-", since: 56,
	why:  "its pci_resize_resource has an argument more than the module gives",
	good: "linux-image-6.1.0-50-amd64 builds it, and so does module = \"proprietary\" with 535.261.03 or 535.309.01 on 6.1.0-56",
}}

// followers are packages that must have the driver's own version (NVIDIA Fabric
// Manager User Guide, IMEX Guide: "must match the driver").
var followers = []string{"nvidia-fabricmanager", "nvidia-fabric-manager", "nvidia-imex", "libnvidia-nscq"}
