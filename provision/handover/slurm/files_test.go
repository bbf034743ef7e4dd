// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/provision/handover"
)

func TestHostlist(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{
		"n[1-3]":                {"n3", "n1", "n2"},
		"n[001-002,004]":        {"n004", "n001", "n002"},
		"n[1,9],n[10-11]":       {"n9", "n10", "n11", "n1"},
		"head,r01-u[05-06]":     {"r01-u06", "head", "r01-u05"},
		"n7":                    {"n7"},
		"":                      nil,
		"a[1-2],b[1-2],n[0-1]":  {"a1", "b1", "a2", "b2", "n0", "n1"},
		"gpu-1234567890123,x-y": {"gpu-1234567890123", "x-y"},
	} {
		got := writeHostlist(names)
		back := expandHostlist(got)
		slices.Sort(back)
		sorted := slices.Sorted(slices.Values(names))
		if len(splitWords(got)) != len(splitWords(want)) || !slices.Equal(back, sorted) {
			t.Errorf("%q is written %q, want %q; read back %q", names, got, want, back)
		}
	}
}

// FuzzHostlist: names come back as they were.
func FuzzHostlist(f *testing.F) {
	f.Add("n1 n2 n10 n010 x")
	f.Add("r01-u1 r01-u01 7 07")
	f.Fuzz(func(t *testing.T, text string) {
		names := strings.Fields(text)
		if slices.ContainsFunc(names, func(s string) bool { return !plainName(s) }) {
			expandHostlist(text)
			return
		}
		names = slices.Compact(slices.Sorted(slices.Values(names)))
		back := expandHostlist(writeHostlist(names))
		slices.Sort(back)
		if !slices.Equal(back, names) {
			t.Errorf("%q is written %q and read %q", names, writeHostlist(names), back)
		}
	})
}

// TestLint: each mistake that slurmctld refuses, or drops in silence.
func TestLint(t *testing.T) {
	t.Parallel()
	const nodes = "NodeName=n1 CPUs=4 RealMemory=9 State=UNKNOWN\nNodeName=n2 CPUs=4 RealMemory=9 State=DRAIN Reason=\"ironrail: x y\"\nPartitionName=p Nodes=n[1-2] State=UP\n"
	conf := func(topology string) []handover.File {
		return []handover.File{{Name: "nodes.conf", Content: []byte(nodes)}, {Name: "topology.conf", Content: []byte(topology)}}
	}
	yaml := func(topology string) []handover.File {
		return []handover.File{{Name: "nodes.conf", Content: []byte(nodes)}, {Name: "topology.yaml", Content: []byte("- topology: a\n  cluster_default: true\n" + topology)}}
	}
	for name, c := range map[string]struct {
		files []handover.File
		want  string
	}{
		"good":               {conf("# x\nSwitchName=s Nodes=n[1-2]\n"), ""},
		"good blocks":        {conf("BlockName=a Nodes=n1\nBlockName=b Nodes=n2\nBlockSizes=1,2\n"), ""},
		"good yaml":          {yaml("  tree:\n    switches:\n    - {switch: s, nodes: \"n[1-2]\"}\n"), ""},
		"two roots":          {conf("SwitchName=s Nodes=n1\nSwitchName=r Nodes=n2\n"), "2 switches are below no other"},
		"no such switch":     {conf("SwitchName=s Nodes=n[1-2]\nSwitchName=r Switches=s,t\n"), `switch "t" has no line`},
		"node twice":         {conf("SwitchName=s Nodes=n[1-2],n1\n"), `node "n1" is at 2 places`},
		"node nowhere":       {conf("SwitchName=s Nodes=n1\n"), "1 of 2 nodes have a place"},
		"unknown node":       {conf("SwitchName=s Nodes=n[1-3]\n"), `node "n3"`},
		"sizes":              {conf("BlockName=a Nodes=n[1-2]\nBlockSizes=1,3\n"), "block size 3"},
		"small block":        {conf("BlockName=a Nodes=n1\nBlockName=b Nodes=n2\nBlockSizes=2\n"), "a block has 1 nodes"},
		"same name":          {conf("SwitchName=s Nodes=n1\nSwitchName=s Nodes=n2\n"), "one more switch"},
		"unknown yaml":       {yaml("  treee: {}\n"), "not one topology"},
		"line":               {[]handover.File{{Name: "nodes.conf", Content: []byte("NodeName=n1 " + strings.Repeat("x", maxLine))}}, "a line has"},
		"node line twice":    {[]handover.File{{Name: "nodes.conf", Content: []byte(nodes + "NodeName=n1 CPUs=1 RealMemory=1 State=UNKNOWN\n")}}, "one more node"},
		"no memory":          {[]handover.File{{Name: "nodes.conf", Content: []byte("NodeName=n1 CPUs=1 RealMemory=0 State=UNKNOWN\n")}}, "RealMemory=0"},
		"somebody's drain":   {[]handover.File{{Name: "nodes.conf", Content: []byte("NodeName=n1 CPUs=1 RealMemory=1 State=DRAIN Reason=\"fan\"\n")}}, "State=DRAIN"},
		"partition":          {[]handover.File{{Name: "nodes.conf", Content: []byte("PartitionName=p Nodes=n7\n")}}, `node "n7" of the partition`},
		"gpus of nobody":     {[]handover.File{{Name: "nodes.conf", Content: []byte(nodes)}, {Name: "gres.conf", Content: []byte("NodeName=n7 Name=gpu Type=h100\n")}}, `node "n7" is not in nodes.conf`},
		"gpus without model": {[]handover.File{{Name: "nodes.conf", Content: []byte(nodes)}, {Name: "gres.conf", Content: []byte("NodeName=n1 Name=gpu\n")}}, "no line of GPUs"},
	} {
		err := lintFiles(c.files, daemon{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	old := daemon{release: release{24, 11}}
	if err := lintFiles(yaml("  tree:\n    switches:\n    - {switch: s, nodes: \"n[1-2]\"}\n"), old); err == nil || !strings.Contains(err.Error(), "25.05") {
		t.Errorf("a YAML file for Slurm 24.11: %v", err)
	}
}

func TestParseRelease(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]release{
		"slurm-wlm 22.05.8\n": {22, 5}, "slurm 25.11.0-0rc1": {25, 11}, "23.11": {23, 11}, "slurm": {}, "22.13": {},
	} {
		if got, ok := parseRelease(text); ok != want.known() || ok && got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	d := parseConfig("Configuration data as of 2026-11-22T13:37:00\nGresTypes               = gpu,mps\nSLURM_VERSION           = 22.05.8\nTopologyPlugin          = topology/tree\n")
	if d.release != (release{22, 5}) || !slices.Equal(d.gres, []string{"gpu", "mps"}) || d.plugin != "topology/tree" {
		t.Errorf("%+v", d)
	}
}
