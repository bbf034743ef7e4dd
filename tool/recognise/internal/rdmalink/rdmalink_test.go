// SPDX-License-Identifier: Apache-2.0

package rdmalink

import (
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "rdma-link.txt")
	l, problems, err := Parse([]byte(good))
	if err != nil || len(problems) != 0 || len(l.Links) != 3 {
		t.Fatalf("%v, %v, %+v", err, problems, l)
	}
	if p := l.Links[0]; p.Device != "mlx5_0" || *p.LID != 47 || *p.SMLID != 1 || p.Physical != "LINK_UP" {
		t.Errorf("%+v", p)
	}
	if p := l.Links[2]; p.NetDev != "bond0" || p.LID != nil || p.Port != 1 {
		t.Errorf("%+v", p)
	}
	if lines := l.Summary(); len(lines) != 2 || lines[1] != "mlx5_1 port 1 is DOWN/POLLING" {
		t.Errorf("%q", lines)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "torn", From: " physical_state LINK_UP\n", To: "\n", Kind: tool.Truncated, Line: 1, Text: "before its states"},
		{Name: "twice", From: "mlx5_1/1", To: "mlx5_0/1", Kind: tool.Inconsistent, Line: 2, Text: "mlx5_0/1"},
		{Name: "no number", From: "lid 47", To: "lid x", Kind: tool.Inconsistent, Line: 1, Text: "no number"},
		{Name: "end", From: "bond0\n", To: "bo", Kind: tool.Truncated, Line: 3, Text: "last line"},
	})
}

// TestOtherForms: of old versions the index stands before the name, and -j is an
// array.
func TestOtherForms(t *testing.T) {
	t.Parallel()
	old := "0/1: mlx5_0/1: state DOWN physical_state DISABLED \n5/1: mlx5_5/1: subnet_prefix fe80:0000:0000:0000 lid 12 sm_lid 4 lmc 0 state ACTIVE physical_state LINK_UP \n"
	l, problems, err := Parse([]byte(old))
	if err != nil || len(problems) != 0 || len(l.Links) != 2 || *l.Links[1].LID != 12 || l.Links[0].Physical != "DISABLED" {
		t.Errorf("%v, %v, %+v", err, problems, l)
	}
	text := tooltest.ReadSample(t, "rdma-link.json")
	l, problems, err = Parse([]byte(text))
	if err != nil || len(problems) != 0 || len(l.Links) != 2 || *l.Links[0].LID != 47 || l.Links[1].NetDev != "ens6f0np0" {
		t.Errorf("%v, %v, %+v", err, problems, l)
	}
	older := `[{"ifindex":0,"port":1,"ifname":"mlx5_0/1","subnet_prefix":"fe80:0000:0000:0000","lid":399,"sm_lid":1,"lmc":0,"state":"ACTIVE","physical_state":"LINK_UP"}]`
	l, problems, err = Parse([]byte(older))
	if err != nil || len(problems) != 0 || l.Links[0].Device != "mlx5_0" || l.Links[0].Port != 1 || *l.Links[0].LID != 399 || Format.Is([]byte(older)) == 0 {
		t.Errorf("%v, %v, %+v", err, problems, l)
	}
	line := "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens6 netdev_index 5 \\    caps: <CM, IP_BASED_GIDS> \n" // -d -o
	l, problems, err = Parse([]byte(line))
	if err != nil || len(problems) != 0 || l.Links[0].NetDev != "ens6" || Format.Is([]byte(line)) == 0 {
		t.Errorf("%v, %v, %+v", err, problems, l)
	}
	_, problems, err = Parse([]byte(text[:len(text)-40]))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantProblem(t, problems, tool.Truncated, 0, "array")
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "rdma-link.txt", "rdma-link.json") }
