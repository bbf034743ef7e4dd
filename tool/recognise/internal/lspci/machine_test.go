// SPDX-License-Identifier: Apache-2.0

package lspci

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

const (
	vmm = "Slot:\t17:00.0\nClass:\t3D controller [0302]\nVendor:\tNVIDIA Corporation [10de]\nDevice:\tGH100 [H100 SXM5 80GB] [2330]\nSVendor:\tNVIDIA Corporation [10de]\nSDevice:\tDevice [16c1]\n" +
		"PhySlot:\t7\nRev:\ta1\nDriver:\tnvidia\nModule:\tnouveau\nModule:\tnvidia\nNUMANode:\t1\nIOMMUGroup:\t44\n\n" +
		"Slot:\t0001:18:00.0\nClass:\t0207\nVendor:\t15b3\nDevice:\t1021\n\n"
	mm = "17:00.0 \"3D controller\" \"NVIDIA Corporation\" \"GH100 [H100 SXM5 80GB]\" -ra1 -p00 \"NVIDIA Corporation\" \"Device 16c1\"\n" +
		"0001:18:00.0 \"0207\" \"15b3\" \"1021\" \"\" \"\"\n"
)

func TestMachineReadable(t *testing.T) {
	t.Parallel()
	for _, in := range []string{vmm, strings.ReplaceAll(vmm, "\t", "  "), mm} {
		if n := Format.Is([]byte(in)); n != 90 {
			t.Errorf("%d%% sure of %q", n, in)
		}
		d, problems := parse(t, in)
		tooltest.WantNoProblems(t, problems)
		if len(d) != 2 || d[0].Address != "0000:17:00.0" || d[0].Class != "3D controller" || d[0].Name != "NVIDIA Corporation GH100 [H100 SXM5 80GB]" || d[0].Revision != "a1" || !strings.HasPrefix(d[0].Subsystem, "NVIDIA Corporation Device") {
			t.Errorf("%+v", d)
		}
		if h := d[1]; h.Address != "0001:18:00.0" || h.ClassID != "0207" || h.VendorID != "15b3" || h.DeviceID != "1021" || h.Subsystem != "" {
			t.Errorf("%+v", h)
		}
	}
	d, _ := parse(t, vmm)
	if g := d[0]; g.VendorID != "10de" || g.DeviceID != "2330" || g.SubsystemDevice != "16c1" || *g.NUMA != 1 || *g.IOMMU != 44 || g.Driver != "nvidia" || g.Modules != "nouveau, nvidia" || g.Slot != "7" {
		t.Errorf("%+v", g)
	}
	for in, want := range map[string]tool.ProblemKind{
		strings.Replace(mm, "-ra1", "-rff", 1): tool.Failed,
		mm[:strings.Index(mm, "GH100")] + "\n": tool.Truncated,
		mm + mm:                                tool.Inconsistent,
	} {
		if _, problems, err := Parse([]byte(in + mm[strings.Index(mm, "0001:"):])); err != nil || len(problems) == 0 || problems[0].Kind != want && problems[len(problems)-1].Kind != want {
			t.Errorf("%q: %v %v, want %s", in, err, problems, want)
		}
	}
}
