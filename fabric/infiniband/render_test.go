// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
)

// TestRender: the files have what the site says, are taken by our own reader, and
// are the same every time.
func TestRender(t *testing.T) {
	t.Parallel()
	inv := room(t, 9, 2, "[]")
	f := inv.Fabrics[0]
	w := plugIn(inv, plain)
	k := Known{Members: w.members, Switches: map[addr.GUID]*inventory.Switch{}}
	present := map[addr.GUID]bool{}
	for _, m := range w.members {
		present[m.GUID] = true
	}
	spines := 0
	for i, s := range inv.Switches {
		k.Switches[addr.GUID(0xb0cf0e0000000000+uint64(i))] = s
		if s.Tier == inventory.Spine {
			spines++
		}
	}
	files := map[string]string{}
	for _, x := range Render(inv, f, k, "/etc/opensm", 0) {
		files[x.Name] = string(x.Content)
		if x.Restart != (x.Name == confFile) {
			t.Errorf("%s: restart %v", x.Name, x.Restart)
		}
	}
	for _, x := range Render(inv, f, k, "/etc/opensm", 0) {
		if files[x.Name] != string(x.Content) {
			t.Errorf("%s differs the second time", x.Name)
		}
	}
	if wrong := lintPartitions([]byte(files[partitionsFile]), present); len(wrong) > 0 {
		t.Errorf("our own partitions: %v", wrong)
	}
	list, _ := parsePartitions([]byte(files[partitionsFile]))
	count := map[uint16]int{}
	for _, s := range list {
		count[s.PKey] += len(s.Ports)
	}
	if count[1] != 32 || count[2] != 32 || count[defaultPKey] != 2 {
		t.Errorf("members by P_Key: %v", count)
	}
	for name, want := range map[string]string{
		confFile:       "routing_engine ftree,updn\n",
		partitionsFile: "tenant-a=0x0001, ipoib, mtu=5, defmember=full : ",
		namesFile:      `"r1-n1 rail 0"`,
		orderFile:      "# r1-n1/rail/0\n",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%.300s", name, want, files[name])
		}
	}
	if n := strings.Count(files[rootsFile], "0x"); n != spines || spines == 0 {
		t.Errorf("%d roots of %d spines", n, spines)
	}
	if _, ok := files[computeFile]; ok {
		t.Error("nodes of one kind are split")
	}
	standby := ""
	for _, x := range Render(inv, f, k, "/etc/opensm", 1) {
		if x.Name == confFile {
			standby = string(x.Content)
		}
	}
	if !strings.Contains(files[confFile], "sm_priority 14\n") || !strings.Contains(standby, "sm_priority 13\n") {
		t.Error("the second manager is no standby of the first")
	}
}

// TestPKeysOfNodes: full members of their own, limited ones of the default.
func TestPKeysOfNodes(t *testing.T) {
	t.Parallel()
	inv := room(t, 9, 1, "[]")
	f, n := inv.Fabrics[0], inv.Nodes[0]
	if got := keyText(PKeys(f, n)); got != "0x7fff 0x8001" {
		t.Error(got)
	}
	n.Partitions = append(n.Partitions, inventory.Partition{Fabric: f, Name: "Default", PKey: defaultPKey})
	if got := keyText(PKeys(f, n)); got != "0x8001 0xffff" {
		t.Error(got)
	}
	f.Partitions = nil
	if got := keyText(PKeys(f, n)); got != "0xffff" {
		t.Error(got)
	}
}

// TestCheck: what opensm would go on without is said when a plan is made.
func TestCheck(t *testing.T) {
	t.Parallel()
	for routing, want := range map[string]string{
		`[]`:                  "No adaptive routing",
		`["ftree", "updn"]`:   "No adaptive routing",
		`["fttree"]`:          `Did you mean "ftree"`,
		`["ar_updn"]`:         "NVIDIA's own",
		`["updn", "minhopp"]`: `Did you mean "minhop"`,
	} {
		inv := room(t, 9, 1, routing)
		found := New(inv, nil, nil).Check(inv.Fabrics[0], inv.Nodes)
		if len(found) != 1 || !strings.Contains(found[0].Summary+found[0].Detail, want) {
			t.Errorf("%s: %v, want %q", routing, found, want)
		}
	}
}

// TestReadLog: what the log of the real opensm says, by its lines.
func TestReadLog(t *testing.T) {
	t.Parallel()
	const at = "Nov 22 13:41:00 592159 [5B76E740] "
	l := readLog([]byte(at + "0x01 -> setup_routing_engine: cannot find or setup routing engine 'bogus'\n" +
		at + "0x80 -> Entering MASTER state\n" + at + "0x02 -> osm_ucast_mgr_process: minhop tables configured on all switches\n" + at + "0x02 -> SUBNET UP\n"))
	if !l.Up || l.Standby || l.Engine != "minhop" || len(l.Problems) != 1 || strings.Contains(l.Problems[0], "5B76E740") {
		t.Errorf("%+v", l)
	}
}
