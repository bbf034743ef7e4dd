// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/cputime"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

// printSweep is what ibnetdiscover prints of a fabric as the site says it, without the
// cables that lost names.
func printSweep(inv *inventory.Inventory, lost map[string]bool) []byte {
	type end struct{ id, name, line string }
	guids := map[string]int{}
	guid := func(name string) int {
		if guids[name] == 0 {
			guids[name] = (len(guids) + 1) << 8
		}
		return guids[name]
	}
	var order []string
	ports := map[string][]string{}
	put := func(device, line string) {
		if ports[device] == nil {
			order = append(order, device)
		}
		ports[device] = append(ports[device], line)
	}
	switchEnd := func(name string, port int) end {
		return end{fmt.Sprintf("S-%016x", guid(name)), name, fmt.Sprintf("[%d]\t", port)}
	}
	var b bytes.Buffer
	b.WriteString("#\n# Topology file: generated on Mon Mar  2 09:15:00 2026\n#\n# Initiated from node 946dae0300000000 port 946dae0300000000\n")
	for _, c := range cabling.IntendedOf(inv, inv.Fabrics[0]) {
		if lost[c.Name()] {
			continue
		}
		high := switchEnd(c.Switch.Name, c.Number)
		if c.Node == nil {
			low := switchEnd(c.Low.Switch, c.Low.Number)
			put(low.name, fmt.Sprintf("%s%q[%d]\t\t# \"MF0;%s:MQM9700/U1\" lid 1 4xHDR\n", low.line, high.id, c.Number, plainSwitch(high.name)))
			put(high.name, fmt.Sprintf("%s%q[%d]\t\t# \"MF0;%s:MQM9700/U1\" lid 1 4xHDR\n", high.line, low.id, c.Low.Number, plainSwitch(low.name)))
			continue
		}
		g := guid(c.Name())
		put(high.name, fmt.Sprintf("%s\"H-%016x\"[1](%x) \t\t# \"%s mlx5_%d\" lid 1 4xHDR\n", high.line, g, g, c.Node.Name, c.Port))
		fmt.Fprintf(&b, "\nvendid=0x2c9\ndevid=0x1021\nsysimgguid=0x%x\ncaguid=0x%x\nCa\t1 \"H-%016x\"\t\t# \"%s mlx5_%d\"\n[1](%x) \t%q[%d]\t\t# lid 1 lmc 0 \"MF0;%s:MQM9700/U1\" lid 1 4xHDR\n",
			g, g, g, c.Node.Name, c.Port, g, high.id, c.Number, plainSwitch(high.name))
	}
	for _, name := range order {
		g := guid(name)
		fmt.Fprintf(&b, "\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x%x\nswitchguid=0x%x(%x)\nSwitch\t64 \"S-%016x\"\t\t# \"MF0;%s:MQM9700/U1\" enhanced port 0 lid 1 lmc 0\n", g, g, g, g, plainSwitch(name))
		for _, line := range ports[name] {
			b.WriteString(line)
		}
	}
	return b.Bytes()
}

func plainSwitch(name string) string { return strings.ReplaceAll(name, "/", "-") }

// TestMissingRail: where a sweep finds one rail of a node, the node is on, and a rail that it
// does not find has no link, though the node has not said its GUIDs yet. Of a node of which
// it finds nothing, nothing is known.
func TestMissingRail(t *testing.T) {
	t.Parallel()
	inv := room(t, 9, 2, "[]")
	lost := map[string]bool{"r1-n2/rail/3": true}
	for rail := range 8 {
		lost[fmt.Sprintf("r2-n1/rail/%d", rail)] = true
	}
	found, problems, err := ibnetdiscover.Parse(printSweep(inv, lost))
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	r := cabling.CompareSweep(inv, inv.Fabrics[0], nil, found)
	expect(t, r.Findings, map[string][]string{"r1-n2/rail/3 (OSFP 4) has no link to compute/leaf-u1-r3": {"r1-n2 is in rack r1, unit 5"}})
	for _, x := range r.Results {
		name := x.Cable.Name()
		want := cabling.Conforms
		switch {
		case x.Cable.Node == nil:
		case name == "r1-n2/rail/3":
			want = cabling.Missing
		case lost[name]:
			want = cabling.Unknown
		}
		if x.State != want {
			t.Errorf("%s is %s (%s), want %s", name, x.State, x.Why, want)
		}
	}
}

// BenchmarkVerify reads a sweep of 98,304 links and compares it with the site of 4,096
// nodes: all cables as they should be, and with one of 64 rails missing.
func BenchmarkVerify(b *testing.B) {
	inv := benchRoom(b)
	f := inv.Fabrics[0]
	lost := map[string]bool{}
	for i, n := range inv.Nodes {
		if i%8 == 0 {
			lost[n.Name+"/rail/0"] = true
		}
	}
	for _, c := range []struct {
		name string
		lost map[string]bool
	}{{"whole", nil}, {"missing", lost}} {
		text := printSweep(inv, c.lost)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var cpu time.Duration
			for b.Loop() {
				began := cputime.Used()
				found, _, err := ibnetdiscover.Parse(text)
				if err != nil {
					b.Fatal(err)
				}
				swept := cabling.CompareSweep(inv, f, nil, found)
				cpu += cputime.Used() - began
				if len(swept.Results) != 98_304 || len(swept.Findings) != len(c.lost) {
					b.Fatalf("%d cables, %d findings: %+v", len(swept.Results), len(swept.Findings), swept.Findings[:min(3, len(swept.Findings))])
				}
			}
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// benchRoom is room with 4,096 nodes and no host of a subnet manager.
func benchRoom(b *testing.B) *inventory.Inventory {
	b.Helper()
	head, rest, _ := strings.Cut(rails, "  subnet_manager {")
	_, tail, ok := strings.Cut(rest, "routing = %[2]s\n  }\n")
	text := strings.NewReplacer("10.20.0.0/16", "10.32.0.0/12", "10.10.0.0/16", "10.64.0.0/12").Replace(head + tail)
	if !ok {
		b.Fatal("the site has other lines than it had")
	}
	k := inventory.DefaultKinds()
	spec := k.Fabric[Name]
	spec.Design = Design
	k.Fabric[Name] = spec
	inv, found, _ := inventory.LoadFS(fstest.MapFS{"site.hcl": {Data: fmt.Appendf(nil, text, 32, "", 1024, 64)}}, inventory.Options{Kinds: &k})
	if found.HasErrors() {
		b.Fatal(found[:min(3, len(found))])
	}
	return inv
}
