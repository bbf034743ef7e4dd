// SPDX-License-Identifier: Apache-2.0

package ibstat

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	d, problems, err := Parse([]byte(tooltest.ReadSample(t, "ibstat.txt")))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 25, "Port 1 of mlx5_1 is Down, its physical state is Polling.")
	if len(d.Devices) != 3 || d.Summary()[0] != "3 devices, 4 ports, 2 active" || d.Summary()[1] != "mlx5_1 port 1 is Down/Polling" {
		t.Fatalf("%q", d.Summary())
	}
	first := d.Devices[0]
	p := first.Ports[0]
	if first.Name != "mlx5_0" || first.Kind != "CA" || first.Type != "MT4129" || first.Firmware != "28.41.1000" || first.NodeGUID != 0x506b4b0300aa0010 {
		t.Errorf("%+v", first)
	}
	if p.Port != 1 || p.Rate != 400 || p.LID != 3 || p.SMLID != 1 || p.GUID != 0x506b4b0300aa0010 || p.Layer != "InfiniBand" || p.Capability != "0xa751e848" {
		t.Errorf("%+v", p)
	}
	if p := d.Devices[2].Ports[0]; p.Rate != 10 || p.RateNote != "FDR10" {
		t.Errorf("%+v", p)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text string }{
		{"one port", "CA: 'mlx5_0'\nPort 1:\nState: Active\nPhysical state: LinkUp\nRate: 400\nBase lid: 3\nLMC: 0\nSM lid: 1\nCapability mask: 0xa751e848\nPort GUID: 0x506b4b0300aa0010\nLink layer: InfiniBand\n"},
		{"short", "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.41.1000\n\tHardware version: 0\n\tNode GUID: 0x506b4b0300aa0010\n\tSystem image GUID: 0x506b4b0300aa0010\n"},
	} {
		d, problems, err := Parse([]byte(c.text))
		if err != nil || len(problems) != 0 || len(d.Devices) != 1 || Format.Is([]byte(c.text)) == 0 {
			t.Errorf("%s: %+v, %v, %v", c.name, d, problems, err)
		}
	}
	for _, text := range []string{
		"ibpanic: [4711] main: stat of IB device 'mlx5_9' failed: No such file or directory\n",
		"ibpanic: [4711] main: 'mlx5_9' IB device can't be found: (No such file or directory)\n",
		"ibwarn: [4711] main: stat of IB device 'mlx5_9' failed\n", // of newer versions, between the others
		"ibwarn: [4711] ca_stat: CA: 'mlx5_9' has no port number 2 - max (1)\n",
	} {
		_, problems, err := Parse([]byte(text))
		if err != nil || Format.Is([]byte(text)) == 0 {
			t.Fatal(err)
		}
		tooltest.WantProblem(t, problems, tool.Failed, 1, "mlx5_9")
	}
}

// TestOtherDevices: an Ethernet NIC of iWARP has no type, a device of a kind that
// ibstat does not know has no word for it, and a new ibstat says what a port
// reaches.
func TestOtherDevices(t *testing.T) {
	t.Parallel()
	port := "\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 800\n\t\tEffective speed: 400.5\n\t\tBase lid: 1\n\t\tLMC: 0\n\t\tSM lid: 0\n\t\tCapability mask: 0x009b0000\n\t\tPort GUID: 0x0000000000000000\n\t\tLink layer: Ethernet\n"
	body := "\tNumber of ports: 1\n\tFirmware version: 1.74\n\tHardware version: \n\tNode GUID: 0xb49691fffea5f2c0\n\tSystem image GUID: 0xb49691a5f2c00000\n" + port
	text := "iWARP RNIC 'rocep1s0'\n\tiWARP RNIC type: \n" + body + "??? 'usnic_0'\n\t??? type: VIC-1\n" + body
	d, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 0 || len(d.Devices) != 2 || Format.Is([]byte(text)) == 0 {
		t.Fatalf("%v, %v, %+v", err, problems, d)
	}
	if a, b := d.Devices[0], d.Devices[1]; a.Kind != "iWARP RNIC" || a.Type != "" || a.Count != 1 || b.Kind != "???" || b.Type != "VIC-1" || b.Ports[0].Effective != 400.5 || b.Ports[0].Rate != 800 {
		t.Errorf("%+v", d)
	}
	_, problems, _ = Parse([]byte(strings.Replace(text, "400.5", "fast", 1)))
	tooltest.WantProblem(t, problems, tool.Inconsistent, 12, "fast")
}

func TestWrong(t *testing.T) {
	t.Parallel()
	good := allActive(t)
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "no rate", From: "\t\tRate: 400\n", Kind: tool.Missing, Line: 8, Text: "Rate"},
		{Name: "port is not there", From: "Number of ports: 2", To: "Number of ports: 3", Kind: tool.Truncated, Line: 35, Text: "has 3 ports"},
		{Name: "a port too many", From: "Number of ports: 2", To: "Number of ports: 1", Kind: tool.Inconsistent, Line: 35, Text: "has 1 ports"},
		{Name: "two nodes", From: "CA 'mlx5_1'", To: "CA 'mlx5_0'", Kind: tool.Inconsistent, Line: 18, Text: "two nodes"},
		{Name: "no number", From: "Rate: 400", To: "Rate: many", Kind: tool.Inconsistent, Line: 11, Text: "many"},
		{Name: "NaN", From: "Rate: 400", To: "Rate: nan", Kind: tool.Inconsistent, Line: 11, Text: "nan"},
		{Name: "failed", From: "CA 'mlx5_1'", To: "ibpanic: [1] main: stat of IB device 'mlx5_1' failed: Invalid argument\nCA 'mlx5_1'", Kind: tool.Failed, Line: 18, Text: "Invalid argument"},
	})
	tooltest.CheckTorn(t, Format, good, func(rest string) bool {
		rest = strings.TrimSpace(rest)
		return strings.HasSuffix(rest, "InfiniBand") || strings.HasSuffix(rest, "GUID: 0x506b4b0300aa0010") || strings.Contains(rest, "Port ") && strings.Contains(rest[strings.LastIndexByte(rest, '\n')+1:], "Port GUID: 0x")
	})
}

// allActive is the sample with every port in use.
func allActive(t *testing.T) string {
	t.Helper()
	return strings.NewReplacer("State: Down", "State: Active", "Physical state: Polling", "Physical state: LinkUp").Replace(tooltest.ReadSample(t, "ibstat.txt"))
}

// TestDown: a port that is switched on and carries nothing is a problem, in both
// outputs; one that is disabled is off on purpose.
func TestDown(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		state, physical string
		down            bool
	}{
		{"Active", "LinkUp", false}, {"Down", "Disabled", false}, {"Down", "Polling", true}, {"Down", "PortConfigurationTraining", true},
		{"Initializing", "LinkUp", true}, {"Armed", "LinkUp", true}, {"Active", "LinkErrorRecovery", true}, {"Down", "Sleep", false},
	} {
		text := strings.NewReplacer("State: Active", "State: "+x.state, "Physical state: LinkUp", "Physical state: "+x.physical).Replace(allActive(t))
		_, problems, err := Parse([]byte(text))
		if err != nil || (len(problems) > 0) != x.down {
			t.Errorf("ibstat %s %s: %v, %v", x.state, x.physical, err, problems)
		}
		text = strings.NewReplacer("4: ACTIVE", "1: "+strings.ToUpper(x.state), "5: LinkUp", "2: "+x.physical).Replace(tooltest.ReadSample(t, "ibstatus.txt"))
		_, problems, err = ParseStatus([]byte(text))
		if err != nil || (len(problems) > 0) != x.down {
			t.Errorf("ibstatus %s %s: %v, %v", x.state, x.physical, err, problems)
		}
	}
}

// TestUnknownGID: that a port has no GID is not wrong.
func TestUnknownGID(t *testing.T) {
	t.Parallel()
	text := strings.Replace(tooltest.ReadSample(t, "ibstatus.txt"), "fe80:0000:0000:0000:506b:4b03:00aa:0010", "unknown", 1)
	s, problems, err := ParseStatus([]byte(text))
	if err != nil || len(problems) != 0 || s.Ports[0].GID != "" {
		t.Errorf("%v, %v, %+v", err, problems, s)
	}
}

// TestNoStatus: without an RDMA driver, ibstatus says so alone.
func TestNoStatus(t *testing.T) {
	t.Parallel()
	text := "Fatal error:  No devices\n"
	s, problems, err := ParseStatus([]byte(text))
	if err != nil || len(s.Ports) != 0 || StatusFormat.Is([]byte(text)) == 0 {
		t.Fatal(err)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 1, "No devices")
}

// TestWithheldGUIDs: an output whose GUIDs were taken out has them as problems,
// and is not cut off for that.
func TestWithheldGUIDs(t *testing.T) {
	t.Parallel()
	text := "CA 'mlx5_10'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.39.1002\n\tHardware version: 0\n\tNode GUID: ...\n\tSystem image GUID: ...\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: 10\n\t\tBase lid: 868\n\t\tLMC: 0\n\t\tSM lid: 334\n\t\tCapability mask: 0xa751e848\n\t\tPort GUID: ...\n\t\tLink layer: InfiniBand\n"
	d, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 4 || problems[3].Kind != tool.Failed || len(d.Devices[0].Ports) != 1 {
		t.Errorf("%v, %v, %+v", err, problems, d)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "ibstatus.txt")
	s, problems, err := ParseStatus([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if p := s.Ports[0]; len(s.Ports) != 3 || p.Device != "mlx5_0" || p.LID != 0x33bf || p.State != "ACTIVE" || p.Physical != "LinkUp" || p.Rate != 400 || p.Width != "4X" || p.Speed != "NDR" || p.Layer != "InfiniBand" {
		t.Errorf("%+v", s.Ports)
	}
	if p := s.Ports[1]; p.Rate != 2.5 || p.Physical != "Disabled" {
		t.Errorf("%+v", p)
	}
	tooltest.CheckWrong(t, StatusFormat, good, []tooltest.Case{
		{Name: "no rate", From: "\trate:\t\t 400 Gb/sec (4X NDR)\n", Kind: tool.Missing, Line: 1, Text: "rate"},
		{Name: "odd rate", From: "400 Gb/sec (4X NDR)", To: "fast", Kind: tool.Inconsistent, Line: 7, Text: "fast"},
		{Name: "endless rate", From: "400 Gb/sec (4X NDR)", To: strings.Repeat("9", 400) + " Gb/sec (4X NDR)", Kind: tool.Inconsistent, Line: 7, Text: "no number"},
		{Name: "twice", From: "'mlx5_1' port 1", To: "'mlx5_0' port 1", Kind: tool.Inconsistent, Line: 10, Text: "line 1"},
		{Name: "not readable", From: "\tsm lid:\t\t 0x1\n", To: "\tsm lid:\t\t unknown\n", Kind: tool.Missing, Line: 1, Text: "sm lid"},
		{Name: "failed", From: "Infiniband device 'mlx5_1' port 1", To: "Fatal error:  device 'mlx5_1': sys files not found (/sys/class/infiniband/mlx5_1/ports)", Kind: tool.Failed, Line: 10, Text: "sys files"},
	})
	tooltest.CheckTorn(t, StatusFormat, good, func(rest string) bool {
		rest = strings.TrimRight(rest, " \t\n")
		return strings.HasSuffix(rest, "InfiniBand") || strings.HasSuffix(rest, "link_layer:") || strings.HasSuffix(rest, ")") && strings.HasSuffix(rest, "DR)") // without the layer as of old
	})
}

func TestPublicSamples(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"gpud-ibstat.47.0.h100.some.down.0.txt":  "12 devices, 12 ports, 9 active",
		"gpud-ibstat.47.0.h100.all.active.1.txt": "12 devices, 12 ports, 12 active",
		"gpud-ibstat.47.0.a100.all.active.0.txt": "9 devices, 9 ports, 9 active",
	} {
		d, problems, err := Parse([]byte(tooltest.ReadPublic(t, "ibstat/"+name)))
		if err != nil || len(problems) != 0 || d.Summary()[0] != want {
			t.Errorf("%s: %v, %v, %q", name, err, problems, d.Summary())
		}
	}
	if s, problems, err := ParseStatus([]byte(tooltest.ReadPublic(t, "ibstatus/gpud-a100-all-active.txt"))); err != nil || len(problems) != 0 || s.Summary()[0] != "9 ports, 9 active" {
		t.Errorf("%v, %v, %q", err, problems, s.Summary())
	}
}

func FuzzParse(f *testing.F)  { tooltest.Fuzz(f, Format, "ibstat.txt") }
func FuzzStatus(f *testing.F) { tooltest.Fuzz(f, StatusFormat, "ibstatus.txt") }
