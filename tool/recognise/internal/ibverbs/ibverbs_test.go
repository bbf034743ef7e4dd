// SPDX-License-Identifier: Apache-2.0

package ibverbs

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestDevinfo(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "ibv_devinfo.txt")
	i, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if len(i.Devices) != 2 {
		t.Fatalf("%+v", i)
	}
	hca, bond := i.Devices[0], i.Devices[1]
	if hca.NodeGUID.String() != "0x946dae0300be6ed4" || hca.Firmware != "28.43.2026" || hca.Board != "MT_0000000838" || hca.PartID != 4129 || hca.Limits["max_qp"] != "131072" {
		t.Errorf("%+v", hca)
	}
	if p := hca.Ports[0]; p.State != "ACTIVE" || p.LID != 47 || p.ActiveMTU != 4096 || p.Width != "4X" || p.Lane != 100 || p.Physical != "LINK_UP" || len(p.GIDs) != 1 {
		t.Errorf("%+v", p)
	}
	if p := bond.Ports[0]; p.State != "DOWN" || p.Layer != "Ethernet" || len(p.GIDs) != 2 || p.GIDs[1] != (GID{1, "fe80::a288:c2ff:fe48:1122", "RoCE v2"}) {
		t.Errorf("%+v", p)
	}
	if lines := i.Summary(); len(lines) != 2 || lines[1] != "mlx5_bond_0 port 1 is DOWN" {
		t.Errorf("%q", lines)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "two nodes", From: "mlx5_bond_0", To: "mlx5_0", Kind: tool.Inconsistent, Line: 33, Text: "line 1"},
		{Name: "ends within a port", From: good[strings.LastIndex(good, "\t\t\tport_lid"):], To: "", Kind: tool.Truncated, Line: 43, Text: "Port 1 of mlx5_bond_0"},
		{Name: "ends before its ports", From: good[strings.LastIndex(good, "\t\tport:"):], To: "", Kind: tool.Truncated, Line: 33, Text: "before its ports"},
		{Name: "torn GUID", From: "946d:ae03:00be:6ed4", To: "946d:ae03:00", Kind: tool.Inconsistent, Line: 4, Text: "no GUID"},
		{Name: "no number", From: "sm_lid:\t\t\t1", To: "sm_lid:\t\t\tx", Kind: tool.Inconsistent, Line: 22, Text: "no number"},
		{Name: "a port is missing", From: "phys_port_cnt:\t\t\t1", To: "phys_port_cnt:\t\t\t2", Kind: tool.Missing, Line: 1, Text: "has 2 ports"},
		{Name: "failed", From: "\n\nhca_id", To: "\n\nFailed to query device props\nhca_id", Kind: tool.Failed, Line: 33, Text: "device props"},
	})
	old := "hca_id: rxe0\n    transport:          InfiniBand (0)\n    fw_ver:             0.0.0\n    node_guid:          428d:5cff:fe35:bb12\n    sys_image_guid:         0000:0000:0000:0000\n    vendor_id:          0x0000\n    vendor_part_id:         0\n    hw_ver:             0x0\n    phys_port_cnt:          1\n        port:   1\n            state:          PORT_ACTIVE (4)\n            max_mtu:        4096 (5)\n            active_mtu:     1024 (3)\n            sm_lid:         0\n            port_lid:       0\n            port_lmc:       0x00\n"
	if i, problems, err := Parse([]byte(old)); err != nil || len(problems) != 0 || i.Devices[0].Ports[0].ActiveMTU != 1024 {
		t.Errorf("%v, %v, %+v", err, problems, i)
	}
}

// TestDevinfoList: -l prints names alone.
func TestDevinfoList(t *testing.T) {
	t.Parallel()
	text := "$ ibv_devinfo -l\n2 HCAs found:\n\tmlx5_0\n\trocep1s0f0\n\n$\n"
	i, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 0 || Format.Is([]byte(text)) == 0 || len(i.Devices) != 2 || i.Devices[1].Name != "rocep1s0f0" {
		t.Fatalf("%v, %v, %+v", err, problems, i)
	}
	for _, c := range []struct {
		text, want string
		kind       tool.ProblemKind
	}{
		{"0 HCAs found:\n\n", "No device", tool.Missing},
		{"2 HCAs found:\n\tmlx5_0\n", "2 devices were found, and 1", tool.Truncated},
		{"No IB devices found\nroot@n1:~# ibv_devinfo\n", "No IB devices", tool.Failed},
		{"IB device 'mlx5_9' wasn't found\n$ sudo ibv_devinfo -d mlx5_9\n", "mlx5_9", tool.Failed},
		{"Failed to get IB devices list: Function not implemented\n$ ibv_devinfo\n", "not implemented", tool.Failed},
	} {
		_, problems, err := Parse([]byte(c.text))
		if err != nil || Format.Is([]byte(c.text)) == 0 {
			t.Fatalf("%q: %v", c.text, err)
		}
		tooltest.WantProblem(t, problems, c.kind, 1, c.want)
	}
	if Format.Is([]byte("$ ibv_rc_pingpong n2\nNo IB devices found\n")) != 0 {
		t.Error("the failure of another program is taken for that of ibv_devinfo")
	}
}

// TestDevinfoAbove: what ibv_devinfo writes to standard error stands above all
// else in a file, and the limits of tag matching are not those of the device.
func TestDevinfoAbove(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "ibv_devinfo.txt")
	text := "Failed to query port 1 props\n" + strings.Replace(good, "\tmax_qp:", "\tmax_sge:\t\t\t30\n\tmax_rndv_hdr_size:\t\t64\n\tmax_num_tags:\t\t\t127\n\tmax_sge:\t\t\t1\n\tmax_qp:", 1)
	text = strings.Replace(text, "\t\t\tphys_state:", "\t\t\teffective_speed:\t200.5 Gbps\n\t\t\tphys_state:", 1)
	i, problems, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 1, "port 1")
	if d := i.Devices[0]; d.Limits["max_sge"] != "30" || d.Limits["tag matching max_sge"] != "1" || d.Ports[0].Effective != 200.5 {
		t.Errorf("%+v", d)
	}
}

func TestDevices(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "ibv_devices.txt")
	l, problems, err := ParseList([]byte(good))
	if err != nil || len(problems) != 0 || len(l.Devices) != 3 || l.Devices[1].NodeGUID.String() != "0xa088c20300481122" {
		t.Errorf("%v, %v, %+v", err, problems, l)
	}
	if l, problems, err := ParseList([]byte(good + "logout\n")); err != nil || len(problems) != 0 || len(l.Devices) != 3 {
		t.Errorf("%v, %v, %+v", err, problems, l)
	}
	tooltest.CheckWrong(t, ListFormat, good, []tooltest.Case{
		{Name: "none", From: good[strings.Index(good, "    mlx5_0"):], To: "", Kind: tool.Missing, Line: 1, Text: "no device"},
		{Name: "torn", From: "069081fffe39e3e8\n", To: "0690", Kind: tool.Truncated, Line: 5, Text: "ends before"},
		{Name: "twice", From: "    rocep", To: "    device          \t   node GUID\n    rocep", Kind: tool.Inconsistent, Line: 5, Text: "two nodes"},
	})
}

func FuzzDevinfo(f *testing.F) { tooltest.Fuzz(f, Format, "ibv_devinfo.txt") }
func FuzzDevices(f *testing.F) { tooltest.Fuzz(f, ListFormat, "ibv_devices.txt") }
