// SPDX-License-Identifier: Apache-2.0

package iblinkinfo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

func sample(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func parse(t *testing.T, text string) ([]Port, tool.Problems) {
	t.Helper()
	info, problems, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return info.Ports, problems
}

func TestByNode(t *testing.T) {
	t.Parallel()
	ports, problems := parse(t, sample(t, "iblinkinfo.nodes.txt"))
	if len(ports) != 8 || len(problems) != 0 {
		t.Fatalf("%d ports, problems %v", len(ports), problems)
	}
	h := ports[1]
	if h.Node != (Node{HCA, 0, "gpu-2 mlx5_0"}) || h.GUID != 0x506b4b0300aa0020 || h.LID != 4 || h.Port != 1 || h.Width != "2X" || h.Lane != 53.125 || h.Rate != 106.25 || h.State != "Active" || h.Physical != "LinkUp" {
		t.Errorf("%+v", h)
	}
	if *h.Peer != (Peer{0, 11, 2, 2, "MF0;leaf: 1:MQM8700/U1"}) || !slices.Equal(h.CouldBe, []string{"4X"}) {
		t.Errorf("%+v, could be %q", h.Peer, h.CouldBe)
	}
	s := ports[4]
	if s.Node != (Node{Switch, 0x506b4b0300c50200, "MF0;leaf: 1:MQM8700/U1"}) || s.External != 3 || s.Speed != "10.0 Gbps (FDR10)" || s.Lane != 10 || s.Settings != "HOQ:17 VL_Stall:7" {
		t.Errorf("%+v", s)
	}
	if want := []string{"FDR10 (Found link at 10.0 Gbps but expected speed is FDR10)"}; !slices.Equal(s.CouldBe, want) {
		t.Errorf("could be %q, want %q", s.CouldBe, want)
	}
	if p := ports[5]; p.State != "Down" || p.Physical != "Polling" || p.Width != "" || p.Peer != nil {
		t.Errorf("%+v", p)
	}
	if p := ports[6]; p.State != "Down" || p.Physical != "Disabled" {
		t.Errorf("%+v", p)
	}
	if p := ports[7]; p.State != "Initialize" || p.Peer.LID != 0 || p.CouldBe[0] != "53.125 Gbps" {
		t.Errorf("%+v", p)
	}
}

func TestByLine(t *testing.T) {
	t.Parallel()
	ports, problems := parse(t, sample(t, "iblinkinfo.lines.txt"))
	if len(ports) != 3 || len(problems) != 0 {
		t.Fatalf("%d ports, problems %v", len(ports), problems)
	}
	if p := ports[0]; p.Node != (Node{"", 0, "gpu-1 mlx5_0"}) || p.GUID != 0x506b4b0300aa0010 || *p.Peer != (Peer{0x506b4b0300c50200, 11, 1, 0, "leaf;1"}) {
		t.Errorf("%+v %+v", p, p.Peer)
	}
}

func TestWrong(t *testing.T) {
	t.Parallel()
	good := sample(t, "iblinkinfo.nodes.txt")
	for _, c := range []struct {
		name, from, to string
		kind           tool.ProblemKind
		line           int
		text           string
	}{
		{"other peer", "11    1[ 1] \"MF0", "11    5[ 5] \"MF0", tool.Inconsistent, 2, "names another"},
		{"two widths", "2[ 2] ==( 2X", "2[ 2] ==( 4X", tool.Inconsistent, 7, "2X 53.125 Gbps and 4X"},
		{"twice", "11    5[ 5] ==(", "11    4[ 4] ==(", tool.Inconsistent, 10, "on line 9"},
		{"no answer", `9    1[  ] "router;1/2" ( Could be FDR10 (Found link at 10.0 Gbps but expected speed is FDR10))`, `"Port not available"`, tool.Missing, 8, "Port not available"},
		{"no node", "CA: gpu-1 mlx5_0:\n", "", tool.Missing, 1, "not in the output"},
		{"torn", `4    1[  ] "gpu-2 mlx5_0" (Could be 4X )`, `4    1[  ] "gpu`, tool.Truncated, 7, "before its end"},
		{"it failed", "CA: gpu-1", "/usr/sbin/iblinkinfo: iberror: failed: discover failed\nCA: gpu-1", tool.Failed, 1, "discover failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, problems := parse(t, strings.Replace(good, c.from, c.to, 1))
			if !slices.ContainsFunc(problems, func(p tool.Problem) bool {
				return p.Kind == c.kind && p.Line == c.line && strings.Contains(p.Text, c.text)
			}) {
				t.Errorf("want %s on line %d: %s; got %v", c.kind, c.line, c.text, problems)
			}
		})
	}
}

// TestTorn cuts an output anywhere within its last lines.
func TestTorn(t *testing.T) {
	t.Parallel()
	good := sample(t, "iblinkinfo.nodes.txt")
	for n := strings.Index(good, "Switch:"); n < len(good)-1; n++ {
		_, problems, err := Parse([]byte(good[:n]))
		if last := good[n-1]; err == nil && len(problems) == 0 && last != ')' && last != '\n' && last != ' ' {
			t.Errorf("%d bytes, ending in %q: no problem", n, good[max(0, n-30):n])
		}
	}
	if _, _, err := Parse([]byte("CA: alone:\n")); err == nil {
		t.Error("anything is of iblinkinfo")
	}
}

func TestPublicSamples(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"iblinkinfo/edr-hdr-sharp-excerpt.txt": "8 ports; problems 0",
		"ibsim-generated/iblinkinfo-8x8.txt":   "1343 ports; problems 1",
	} {
		data, err := os.ReadFile(filepath.Join("../../../../../shared/samples", name))
		if err != nil {
			t.Skip("the samples of other people are not here")
		}
		info, problems, err := Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s; problems %d", info.Summary()[0], len(problems)); got != want {
			t.Errorf("%s: got %s, want %s: %v", name, got, want, problems)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample(f, "iblinkinfo.nodes.txt")))
	f.Add([]byte(sample(f, "iblinkinfo.lines.txt")))
	f.Fuzz(func(t *testing.T, data []byte) {
		info, problems, err := Parse(data)
		if err != nil {
			return
		}
		if lines := bytes.Count(data, []byte("\n")) + 1; len(info.Ports) > lines || len(problems) > 3*lines+10 {
			t.Errorf("%d ports and %d problems of %d bytes", len(info.Ports), len(problems), len(data))
		}
		info.Summary()
	})
}

// TestDifference: --diff marks the lines that only one of two times has.
func TestDifference(t *testing.T) {
	t.Parallel()
	text := "Switch: 0x946dae0300c51000 leaf:\n<            3    1[  ] ==( 4X         106.25 Gbps Active/  LinkUp)==>       5    1[  ] \"gpu-1 mlx5_0\" ( )\n>            3    1[  ] ==(                Down/ Polling)==>             [  ] \"\" ( )\n"
	i, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 1 || len(i.Ports) != 0 {
		t.Fatalf("%v, %v, %+v", err, problems, i)
	}
	if p := problems[0]; p.Kind != tool.Missing || p.Line != 2 || !strings.Contains(p.Text, "--diff") {
		t.Errorf("%+v", p)
	}
}
