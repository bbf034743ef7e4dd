// SPDX-License-Identifier: Apache-2.0

package showgids

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "show_gids.txt")
	table, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	g, ok := table.Find("mlx5_0", 1, "v2", "10.200.0.1")
	if !ok || g.Index != 3 || g.NetDev != "rail0" || g.GID != "0000:0000:0000:0000:0000:ffff:0ac8:0001" {
		t.Errorf("%+v", g)
	}
	if _, ok := table.Find("mlx5_0", 1, "v2", "10.200.0.2"); ok {
		t.Error("an address that is not there was found")
	}
	if g := table.GIDs[4]; g.Device != "mlx5_1" || g.Version != "v1" || g.NetDev != "" || g.IPv4 != "" {
		t.Errorf("%+v", g)
	}
	if got := strings.Join(table.Summary(), "; "); got != "6 GIDs; mlx5_1 port 1 has no v2 GID of an IPv4 address; mlx5_bond_0 port 1 has no v2 GID of an IPv4 address" {
		t.Error(got)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "count", From: "found=6", To: "found=7", Kind: tool.Inconsistent, Line: 10, Text: "7 GIDs"},
		{Name: "other address", From: "0ac8:0001\t10.200.0.1  \tv2", To: "0ac8:0001\t10.200.0.9  \tv2", Kind: tool.Inconsistent, Line: 6, Text: "10.200.0.9"},
		{Name: "index twice", From: "mlx5_0\t1\t3", To: "mlx5_0\t1\t2", Kind: tool.Inconsistent, Line: 6, Text: "line 5"},
		{Name: "torn", From: "\tfe80:0000:0000:0000:506b:4b03:00aa:0020\t\t\tv1", Kind: tool.Truncated, Line: 7, Text: "its end"},
	})
	tooltest.CheckTorn(t, Format, good, func(string) bool { return false })
	if table, problems, err := Parse([]byte(tooltest.ReadPublic(t, "show_gids/bond-no-ipv4.txt"))); err != nil || len(problems) != 0 || len(table.GIDs) != 4 {
		t.Errorf("%+v, %v, %v", table, problems, err)
	}
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "show_gids.txt") }
