// SPDX-License-Identifier: Apache-2.0

package ibdev2netdev

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "ibdev2netdev.txt")
	d, problems, err := Parse([]byte(good))
	if err != nil || len(d.Ports) != 3 {
		t.Fatal(d, err)
	}
	tooltest.WantNoProblems(t, problems)
	if p := d.Ports[2]; p.Device != "roceP2p1s0f1" || p.Port != 2 || p.NetDev != "enP2p1s0f1np1" || p.State != "Up" {
		t.Errorf("%+v", p)
	}
	d, problems, err = Parse([]byte(tooltest.ReadSample(t, "ibdev2netdev.verbose.txt")))
	if err != nil || len(problems) != 0 || len(d.Ports) != 2 {
		t.Fatal(d, problems, err)
	}
	if p := d.Ports[0]; p.Device != "mlx5_0" || p.PCI != "0000:18:00.0" || p.Model != "MT4129 - MCX75310AAS-NEAT" || p.Firmware != "28.39.1002" || p.Link != "ACTIVE" || p.NetDev != "ib0" {
		t.Errorf("%+v", p)
	}
	if p := d.Ports[1]; p.Link != "DOWN" || p.State != "Down" || p.Firmware != "22.39.1002" {
		t.Errorf("%+v", p)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "torn", From: "==> rail1 (Down)", To: "==> rai", Kind: tool.Truncated, Line: 2, Text: "its end"},
		{Name: "no interface", From: "==> rail1 (Down)", To: "==>  (Down)", Kind: tool.Missing, Line: 2, Text: "no interface"},
		{Name: "twice", From: "mlx5_1 port 1 ==> rail1", To: "mlx5_0 port 1 ==> rail0", Kind: tool.Inconsistent, Line: 2, Text: "line 1"},
	})
	tooltest.CheckTorn(t, Format, good, func(rest string) bool { return strings.HasSuffix(strings.TrimSpace(rest), ")") })
	for name, n := range map[string]int{"azure-h100-renamed.txt": 9, "dgx-spark-roce.txt": 4, "mixed-eth-ib.txt": 6} {
		if d, problems, err := Parse([]byte(tooltest.ReadPublic(t, "ibdev2netdev/"+name))); err != nil || len(problems) != 0 || len(d.Ports) != n {
			t.Errorf("%s: %+v, %v, %v", name, d, problems, err)
		}
	}
}

// TestColumns: through column -t, and with remarks behind the lines.
func TestColumns(t *testing.T) {
	t.Parallel()
	text := "mlx5_0   port  1  ==>  ibp26s0        (Down)  # rail 1\nmlx5_11  port  1  ==>  enp27s0f0np0   (Up)    # storage (port 1 of 2)\n"
	d, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 0 || len(d.Ports) != 2 || d.Ports[0].State != "Down" || d.Ports[1].NetDev != "enp27s0f0np0" || Format.Is([]byte(text)) == 0 {
		t.Errorf("%v, %v, %+v", err, problems, d)
	}
}

// TestOtherLines: warnings of infiniband-diags name ports as well.
func TestOtherLines(t *testing.T) {
	t.Parallel()
	d, problems, err := Parse([]byte("mlx5_0 port 1 ==> ib0 (Up)\nibwarn: [4711] query: no answer, Lid 90 port 1\nlogout\n"))
	if err != nil || len(problems) != 0 || len(d.Ports) != 1 {
		t.Errorf("%v, %v, %+v", err, problems, d)
	}
}

func FuzzParse(f *testing.F) {
	tooltest.Fuzz(f, Format, "ibdev2netdev.txt", "ibdev2netdev.verbose.txt")
}
