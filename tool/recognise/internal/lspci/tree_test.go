// SPDX-License-Identifier: Apache-2.0

package lspci

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestTree(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "lspci.tree.txt")
	d, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	var got []string
	for _, v := range d.Devices {
		got = append(got, v.Address+" < "+v.Parent)
	}
	want := []string{
		"0000:c0:00.0 < ", "0000:c0:00.1 < ", "0000:c0:02.0 < ", "0000:c1:00.0 < 0000:c0:02.0",
		"0000:c2:00.0 < 0000:c1:00.0", "0000:c3:00.0 < 0000:c2:00.0",
		"0000:c2:04.0 < 0000:c1:00.0", "0000:c4:00.0 < 0000:c2:04.0", "0000:c4:00.1 < 0000:c2:04.0", "0000:c2:1f.0 < 0000:c1:00.0",
		"0000:80:00.0 < ", "0000:80:01.0 < ", "0000:81:00.0 < 0000:80:01.0",
		"10000:00:02.0 < ", "10000:01:00.0 < 10000:00:02.0", "10000:00:04.0 < ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if gpu := d.Devices[5]; gpu.Name != "NVIDIA Corporation GH100 [H100 SXM5 80GB]" {
		t.Errorf("%+v", gpu)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "ends", From: good[strings.Index(good, " Co Ltd"):], To: "", Kind: tool.Truncated, Line: 8, Text: "last line"},
		{Name: "ends before a device", From: "----00.0  Samsung", To: "----0", Kind: tool.Truncated, Line: 8, Text: "before a device"},
		{Name: "twice", From: "-00.1  Mellanox", To: "-00.0  Mellanox", Kind: tool.Inconsistent, Line: 5, Text: "line 4"},
	})
	other := "-[0000:00]-+-00.0\n           +-01.1-[01]--+-00.0\n           |            \\-00.1  10de:2331\n           \\-02.0\n"
	if d, problems, err := Parse([]byte(other)); err != nil || len(problems) != 0 || len(d.Devices) != 5 || d.Devices[3].Parent != "0000:00:01.1" || d.Devices[3].DeviceID != "2331" || d.Devices[4].Parent != "" {
		t.Errorf("%v, %v, %+v", err, problems, d)
	}
}
