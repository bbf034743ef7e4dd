// SPDX-License-Identifier: Apache-2.0

package lldpctl

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

// leaf1 is the neighbour that each sample begins with.
func leaf1(line int, addresses ...string) Neighbor {
	return Neighbor{Interface: "rail0", Via: "LLDP", Age: "0 day, 04:12:31", Chassis: ID{"mac", "9c:05:91:a0:00:01"}, Name: "leaf1", Descr: "SONiC Software Version: SONiC.202311.3",
		Addresses: addresses, Port: ID{"local", "etp1a"}, PortDescr: "Ethernet0", line: line}
}

// The samples are composed in the forms of lldpd 1.0's writers.
func TestForms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first Neighbor
		lines string
	}{
		"lldpctl.txt":        {leaf1(4, "10.10.0.21", "fe80::9e05:91ff:fea0:1"), "2 neighbours; rail0: leaf1 port etp1a (Ethernet0); rail1: leaf2 port etp1a (Ethernet0)"},
		"lldpctl.keys.txt":   {leaf1(1, "10.10.0.21"), "2 neighbours; rail0: leaf1 port etp1a (Ethernet0); eth0.10: mgmt1 port Ethernet7"},
		"lldpctl.json":       {leaf1(1, "10.10.0.21", "fe80::9e05:91ff:fea0:1"), "2 neighbours; rail0: leaf1 port etp1a (Ethernet0); rail1: 9c:05:91:a0:00:02 port etp1a"},
		"lldpctl.lists.json": {leaf1(1, "10.10.0.21"), "1 neighbours; rail0: leaf1 port etp1a (Ethernet0)"},
	} {
		r, problems, err := Parse([]byte(tooltest.ReadSample(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		tooltest.WantNoProblems(t, problems)
		got := r.Neighbors[0]
		got.Descr, _, _ = strings.Cut(got.Descr, " - ")
		if !reflect.DeepEqual(got, c.first) {
			t.Errorf("%s: %+v, want %+v", name, got, c.first)
		}
		if s := strings.Join(r.Summary(), "; "); s != c.lines {
			t.Errorf("%s: %s", name, s)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "lldpctl.txt")
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "several", From: "Interface:    rail1", To: "Interface:    rail0", Kind: tool.Inconsistent, Line: 20, Text: "rail0 has more than one neighbour"},
		{Name: "same port", From: "mac 9c:05:91:a0:00:02", To: "mac 9c:05:91:a0:00:01", Kind: tool.Inconsistent, Line: 20, Text: "rail0 and rail1 hear the same port, etp1a of leaf2"},
		{Name: "no port", From: "    PortID:       local etp1a\n", Kind: tool.Truncated, Line: 4, Text: "rail0 has no chassis ID or no port ID"},
		{Name: "torn", From: "rail1, via: LLDP, RID: 2, Time: 0 day, 04:12:29", To: "rail1", Kind: tool.Truncated, Line: 20, Text: "its end"},
		{Name: "none", From: good, To: good[:strings.Index(good, "Interface:")], Kind: tool.Missing, Text: "No interface hears"},
	})
	tooltest.CheckTorn(t, Format, good, func(rest string) bool { return strings.HasSuffix(strings.TrimRight(rest, "-\n"), "120") })
	tooltest.CheckWrong(t, Format, tooltest.ReadSample(t, "lldpctl.keys.txt"), []tooltest.Case{
		{Name: "torn", From: "eth0.10.port.ttl=120\n", To: "eth0.10.po", Kind: tool.Truncated, Line: 19, Text: "before its value"},
	})
	tooltest.CheckWrong(t, Format, tooltest.ReadSample(t, "lldpctl.json"), []tooltest.Case{
		{Name: "torn", From: "    ]\n  }\n}\n", To: "  ", Kind: tool.Truncated, Text: "before its end"},
	})
	for _, none := range []string{"{\n  \"lldp\": {}\n}\n", "{\"lldp\":[{}]}\n", "{\n  \"lldp\": {\n    \"interface\": []\n  }\n}\n"} {
		_, problems, err := Parse([]byte(none))
		if err != nil || Format.Is([]byte(none)) == 0 {
			t.Errorf("%s: %v", none, err)
		}
		tooltest.WantProblem(t, problems, tool.Missing, 0, "No interface hears")
	}
	if _, _, err := Parse([]byte("Interface: up\n")); err == nil {
		t.Error("anything is taken for lldpctl")
	}
}

func FuzzParse(f *testing.F) {
	tooltest.Fuzz(f, Format, "lldpctl.txt", "lldpctl.keys.txt", "lldpctl.json", "lldpctl.lists.json")
}
