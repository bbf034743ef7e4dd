// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"time"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver/usage"
)

// Dated is the day on which the tables of this package were compared with their
// sources. What came out later is a warning, never an error.
var Dated = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// release is major and minor of ROCm, or of the kernel driver.
type release = usage.Release

// releases are those of ROCm that the tables know, in their order.
var releases = []release{{5, 3}, {5, 4}, {5, 5}, {5, 6}, {5, 7}, {6, 0}, {6, 1}, {6, 2}, {6, 3}, {6, 4}, {7, 0}, {7, 1}, {7, 2}}

// kernelDriver is a release of amdgpu-dkms and the ROCm releases that it serves.
type kernelDriver struct {
	driver      release
	first, last release // of ROCm
}

// kernelDrivers is AMD's "User and AMD GPU Driver support matrix" of ROCm 7.0
// (rocm.docs.amd.com, install-on-linux, reference), with the "AMD GPU Driver" row
// of the ROCm 7.2.3 compatibility matrix and that of driver 30.30.3. Until ROCm
// 6.4 the driver has ROCm's number; since 7.0 it is released apart, as 30.10 and
// on.
var kernelDrivers = []kernelDriver{
	{release{5, 7}, release{5, 5}, release{6, 1}},
	{release{6, 0}, release{5, 6}, release{6, 2}},
	{release{6, 1}, release{5, 7}, release{6, 4}},
	{release{6, 2}, release{6, 0}, release{7, 0}},
	{release{6, 3}, release{6, 1}, release{7, 0}},
	{release{6, 4}, release{6, 1}, release{7, 2}},
	{release{30, 10}, release{6, 2}, release{7, 2}},
	{release{30, 20}, release{6, 3}, release{7, 2}},
	{release{30, 30}, release{6, 3}, release{7, 2}},
}

// bundled is the kernel driver that comes with a release of ROCm: its own number,
// and since 7.0 30.10 and on (release notes of ROCm 7.0, 7.1 and 7.2).
var bundled = map[release]string{{7, 0}: "30.10", {7, 1}: "30.20", {7, 2}: "30.30"}

// generation is a family of Instinct GPUs.
type generation struct {
	name   string
	first  release // of ROCm
	target string  // as the compiler calls it
}

// models are the Instinct GPUs by the word of their names; releases as in the
// historical ROCm compatibility matrix (gfx942 from 6.0, gfx950 from 7.0).
var models = map[string]generation{
	"MI210": {"CDNA 2", release{5, 0}, "gfx90a"}, "MI250": {"CDNA 2", release{5, 0}, "gfx90a"}, "MI250X": {"CDNA 2", release{5, 0}, "gfx90a"},
	"MI300X": {"CDNA 3", release{6, 0}, "gfx942"}, "MI300A": {"CDNA 3", release{6, 0}, "gfx942"}, "MI308X": {"CDNA 3", release{6, 0}, "gfx942"}, "MI325X": {"CDNA 3", release{6, 0}, "gfx942"},
	"MI350X": {"CDNA 4", release{7, 0}, "gfx950"}, "MI355X": {"CDNA 4", release{7, 0}, "gfx950"},
}

func generationOf(model string) (generation, bool) {
	for _, w := range usage.ModelWords(model) {
		if g, ok := models[w]; ok {
			return g, true
		}
	}
	return generation{}, false
}

// system is a distribution with the releases of ROCm that support it.
type system struct {
	distribution.Release
	first, last release // last zero: not ended
}

// systems is the "Operating systems" rows of the ROCm compatibility matrix, 6.0
// to 7.2.3.
var systems = []system{
	{distribution.Release{Family: distribution.Ubuntu, Version: "20.04"}, release{5, 0}, release{6, 1}},
	{distribution.Release{Family: distribution.Ubuntu, Version: "22.04"}, release{5, 3}, release{}},
	{distribution.Release{Family: distribution.Ubuntu, Version: "24.04"}, release{6, 2}, release{}},
	{distribution.Release{Family: distribution.Debian, Version: "12"}, release{6, 3}, release{}},
	{distribution.Release{Family: distribution.Debian, Version: "13"}, release{7, 1}, release{}},
	{distribution.Release{Family: distribution.RHEL, Version: "8"}, release{5, 0}, release{}},
	{distribution.Release{Family: distribution.RHEL, Version: "9"}, release{5, 3}, release{}},
	{distribution.Release{Family: distribution.RHEL, Version: "10"}, release{7, 1}, release{}},
}
