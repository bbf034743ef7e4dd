// SPDX-License-Identifier: Apache-2.0

package ibnetdiscover

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

const samples = "../recognise/testdata/"

func parse(t *testing.T, text string) (*Topology, tool.Problems) {
	t.Helper()
	top, problems, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return top, problems
}

func sample(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(samples + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDirector(t *testing.T) {
	t.Parallel()
	top, problems := parse(t, sample(t, "ibnetdiscover.director.txt"))
	if len(problems) != 0 {
		t.Errorf("problems %v", problems)
	}
	if len(top.Switches) != 2 || len(top.HCAs) != 2 || len(top.Routers) != 1 || len(top.Links) != 4 {
		t.Fatalf("%q", top.Summary())
	}
	spine, line := top.Switches[0], top.Switches[1]
	if spine.ID != "S-506b4b0300c50100" || spine.LID != 12 || spine.Ports != 41 || !spine.Enhanced || spine.Chassis != 1 || spine.Slot != "SW Spine 1 Chip 1" || spine.VendorID != "0x2c9" || spine.DeviceID != "0xd2f0" || spine.SystemGUID != 0x506b4b0300c50000 {
		t.Errorf("%+v", spine)
	}
	if line.GUID != 0x506b4b0300c50200 || line.Name != "MF0;director:CS8500/L01/U1" {
		t.Errorf("%+v", line)
	}
	if h := top.HCAs[0]; h.Name != ` gpu-1 "a": mlx5_0 ` || h.Count != 1 || len(h.Ports) != 1 || h.Ports[0] != (Port{1, 0x506b4b0300aa0010, 3, 0}) {
		t.Errorf("%+v", h)
	}
	if h := top.HCAs[1]; h.Count != 2 || h.Ports[0] != (Port{2, 0x506b4b0300aa0022, 4, 2}) {
		t.Errorf("%+v", h)
	}
	if r := top.Routers[0]; r.Name != "router;1/2" || r.Ports[0].GUID != 0x506b4b0300ee0001 {
		t.Errorf("%+v", r)
	}
	want := Link{
		From: End{"S-506b4b0300c50200", 0x506b4b0300c50200, "MF0;director:CS8500/L01/U1", 2}, To: End{"H-506b4b0300aa0020", 0x506b4b0300aa0020, "gpu-2 mlx5_0", 2},
		Width: "2x", Speed: "???", Codes: map[string]int{"s": 4, "w": 16, "v": 4, "e": 4},
	}
	i := slices.IndexFunc(top.Links, func(l Link) bool { return l.From == want.From })
	if i < 0 {
		t.Fatalf("no link from %v", want.From)
	}
	if got := top.Links[i]; !reflect.DeepEqual(Link{got.From, got.To, got.Width, got.Speed, got.Codes, 0}, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPortsAndList(t *testing.T) {
	t.Parallel()
	top, problems := parse(t, sample(t, "ibnetdiscover.ports.txt"))
	if len(problems) != 0 || top.Form != Ports || len(top.Switches) != 1 || len(top.HCAs) != 2 || len(top.Links) != 2 {
		t.Fatalf("%q, problems %v", top.Summary(), problems)
	}
	if s := top.Switches[0]; s.Name != " leaf;1:/U1 " || s.Ports != 41 || s.LID != 11 || !slices.Equal(s.Free, []int{41, 4}) {
		t.Errorf("%+v", s)
	}
	if l := top.Links[1]; l.To.Name != "gpu-1 (a) mlx5_0" || l.To.Port != 1 || l.From.Port != 1 || l.Width != "4x" || l.Speed != "HDR" {
		t.Errorf("%+v", l)
	}
	if h := top.HCAs[1]; h.ID != "H-506b4b0300aa0022" || h.Ports[0].LID != 4 || h.Ports[0].Port != 2 {
		t.Errorf("%+v", h)
	}
	top, problems = parse(t, sample(t, "ibnetdiscover.list.txt"))
	if len(problems) != 0 || top.Form != List || len(top.Switches) != 1 || top.Switches[0].Ports != 41 || top.HCAs[0].DeviceID != "0x101b" || top.Routers[0].Name != "router" {
		t.Errorf("%+v, problems %v", top, problems)
	}
	top, _ = parse(t, "Switch\t: 0x506b4b0300c50200 ports 36 \"leaf\" enhanced port 0 lid 3 lmc 0\n")
	if s := top.Switches[0]; s.LID != 3 || !s.Enhanced || s.Name != "leaf" {
		t.Errorf("ibswitches: %+v", s)
	}
	top, problems = parse(t, "SW     9 81 0x946dae030053ec1a 4x HDR                 leaf of no quotes\n")
	if len(problems) != 0 || top.Switches[0].Name != "leaf of no quotes" {
		t.Errorf("%+v, problems %v", top.Switches, problems)
	}
}

// TestWrong changes a sample that is right in one place each.
func TestWrong(t *testing.T) {
	t.Parallel()
	good := sample(t, "ibnetdiscover.director.txt")
	line := func(with string) int { return strings.Count(good[:strings.Index(good, with)], "\n") + 1 }
	for _, c := range []struct {
		name, from, to string
		kind           tool.ProblemKind
		line           int
		text           string
	}{
		{"one end is elsewhere", `[1]	"S-506b4b0300c50200"[21]`, `[1]	"S-506b4b0300c50200"[22]`, tool.Inconsistent, 25, "another cable there"},
		{"one end is silent", "[21]\t\"S-506b4b0300c50100\"[1]\t\t# \"MF0;director:CS8500/S01/U1\" lid 12 4xHDR s=4 w=2 v=4 e=4\n", "", tool.Inconsistent, 14, "does not name it"},
		{"a port that is not", `"S-506b4b0300c50200"[3][ext 3]`, `"S-506b4b0300c50200"[73]`, tool.Inconsistent, 0, "connected with"},
		{"two widths", `lid 11 2x???`, `lid 11 1x???`, tool.Inconsistent, line("lid 4 lmc 2"), "2x??? and 1x???"},
		{"two LIDs", `# "router;1/2" lid 9`, `# "router;1/2" lid 10`, tool.Inconsistent, line(`[3][ext 3]`), "LID 9"},
		{"two port GUIDs", `[1](506b4b0300ee0001) 		#`, `[1](506b4b0300ee0002) 		#`, tool.Inconsistent, line(`[3][ext 3]`), "0x506b4b0300ee0002"},
		{"no record", good[strings.Index(good, "vendid=0x2c9\ndevid=0xcf0a"):], "", tool.Missing, line(`[3][ext 3]`), "no record of its own"},
		{"two records", `"R-506b4b0300ee0000"		#`, `"H-506b4b0300aa0020"		#`, tool.Inconsistent, line("Rt\t2"), "second record"},
		{"identifiers alone", good[strings.Index(good, "Rt\t2"):], "", tool.Truncated, line("rtguid"), "the node is not"},
		{"no width", `lid 12 4xHDR s=4 w=2 v=4 e=4`, `lid 12`, tool.Missing, 25, "no width"},
		{"not these identifiers", "caguid=0x506b4b0300aa0020", "caguid=0x506b4b0300aa0030", tool.Inconsistent, line("Ca\t2"), "follows the identifiers"},
		{"it failed", "Non-Chassis Nodes", "src/query_smp.c:227; umad (DR path slid 0; dlid 0; 0,1,2 Attr 0x11:0) bad status 110; Connection timed out", tool.Failed, line("Non-Chassis"), "timed out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, problems := parse(t, strings.Replace(good, c.from, c.to, 1))
			if !slices.ContainsFunc(problems, func(p tool.Problem) bool {
				return p.Kind == c.kind && strings.Contains(p.Text, c.text) && (c.line == 0 || p.Line == c.line)
			}) {
				t.Errorf("want %s on line %d: %s; got %v", c.kind, c.line, c.text, problems)
			}
		})
	}
}

// TestTorn cuts a topology anywhere in its last records: whoever reads the rest
// is told. Only the last blanks and codes may be cut without a trace.
func TestTorn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ibnetdiscover.director.txt", "ibnetdiscover.ports.txt"} {
		good := sample(t, name)
		end := strings.LastIndex(good, "HDR") + len("HDR")
		if name == "ibnetdiscover.ports.txt" {
			end = len(good) - 1
		}
		for n := 200; n < end; n++ {
			_, problems, err := Parse([]byte(good[:n]))
			if err == nil && len(problems) == 0 && !strings.HasSuffix(good[:n], " ") {
				t.Errorf("%s: %d bytes, ending in %q: no problem", name, n, good[max(0, n-30):n])
			}
		}
		if _, problems, _ := Parse([]byte(strings.TrimSpace(good))); len(problems) != 0 {
			t.Errorf("%s without the last line break: %v", name, problems)
		}
	}
}

func TestFailureAlone(t *testing.T) {
	t.Parallel()
	text := "ibwarn: [12345] mad_rpc_open_port: can't open UMAD port ((null):0)\n/usr/sbin/ibnetdiscover: iberror: failed: discover failed\n"
	if matchFormat([]byte(text)) == 0 || matchFormat([]byte(strings.ReplaceAll(text, "ibnetdiscover", "iblinkinfo"))) != 0 {
		t.Error("the program is not known by its name")
	}
	top, problems := parse(t, text)
	if len(top.Switches) != 0 || len(problems) != 2 || problems[0].Kind != tool.Failed {
		t.Errorf("%+v, %v", top, problems)
	}
	if _, _, err := Parse([]byte("nothing of it\n")); err == nil {
		t.Error("anything is a topology")
	}
}

// large writes a rail-optimised fabric of nodes with 8 HCAs each, in scalable
// units of 32 nodes, below spines of as many ports as it takes.
func large(nodes int) []byte {
	var b bytes.Buffer
	b.WriteString("#\n# Topology file: generated on Mon Mar  2 09:15:00 2026\n#\n# Initiated from node 946dae0300000000 port 946dae0300000000\n")
	ids := func(kind string, guid int) {
		fmt.Fprintf(&b, "\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x%x\n%sguid=0x%x", guid, kind, guid)
	}
	const rails, unit, spines = 8, 32, 32
	leaf := func(i int) int { return 0xb0cf0e0301000000 - 1<<63 + i<<8 }
	hca := func(n, r int) int { return 0x946dae0300000000 - 1<<63 + (n*rails+r)<<4 }
	spine := func(i int) int { return 0xb0cf0e0302000000 - 1<<63 + i<<8 }
	leaves := nodes / unit * rails
	for i := range leaves {
		ids("switch", leaf(i))
		fmt.Fprintf(&b, "(%x)\nSwitch\t64 \"S-%016x\"\t\t# \"leaf-%d\" enhanced port 0 lid %d lmc 0\n", leaf(i), leaf(i), i, 1+i)
		for p := range unit {
			n := i/rails*unit + p
			fmt.Fprintf(&b, "[%d]\t\"H-%016x\"[1](%x) \t\t# \"gpu-%d mlx5_%d\" lid %d 4xNDR\n", p+1, hca(n, i%rails), hca(n, i%rails), n, i%rails, 5000+n*rails+i%rails)
		}
		for s := range spines {
			fmt.Fprintf(&b, "[%d]\t\"S-%016x\"[%d]\t\t# \"spine-%d\" lid %d 4xNDR\n", unit+s+1, spine(s), 1+i%255, s, 4000+s)
		}
	}
	for n := range nodes {
		for r := range rails {
			ids("ca", hca(n, r))
			l := n/unit*rails + r
			fmt.Fprintf(&b, "\nCa\t1 \"H-%016x\"\t\t# \"gpu-%d mlx5_%d\"\n[1](%x) \t\"S-%016x\"[%d]\t\t# lid %d lmc 0 \"leaf-%d\" lid %d 4xNDR\n", hca(n, r), n, r, hca(n, r), leaf(l), n%unit+1, 5000+n*rails+r, l, 1+l)
		}
	}
	return b.Bytes()
}

// BenchmarkParse reads the fabric of 1,024 nodes with 8 HCAs each.
func BenchmarkParse(b *testing.B) {
	data := large(1024)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if top, _, err := Parse(data); err != nil || len(top.HCAs) != 8192 || len(top.Switches) != 256 {
			b.Fatal(err)
		}
	}
}

// TestProblemsAreBounded: the spines of large have no record.
func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	_, problems := parse(t, string(large(512)))
	if len(problems) == 0 || len(problems) > 100 {
		t.Errorf("%d problems", len(problems))
	}
}

// TestPublicSamples reads outputs of other people's fabrics.
func TestPublicSamples(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"topograph-example.txt":     "40 switches, 582 HCAs, 0 routers, 1114 cables; problems 0",
		"topograph-example-bad.txt": "0 switches, 1 HCAs, 0 routers, 0 cables; problems 1",
		"treydock-test.txt":         "3 switches, 3 HCAs, 0 routers, 4 cables; problems 1",
	} {
		data, err := os.ReadFile(filepath.Join("../../../shared/samples/ibnetdiscover", name))
		if err != nil {
			t.Skip("the samples of other people are not here")
		}
		top, problems := parse(t, string(data))
		if got := fmt.Sprintf("%s; problems %d", top.Summary()[0], len(problems)); got != want {
			t.Errorf("%s: got %s, want %s: %v", name, got, want, problems)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"director", "ports", "list"} {
		f.Add([]byte(sample(f, "ibnetdiscover."+name+".txt")))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		top, problems, err := Parse(data)
		if err != nil {
			return
		}
		if len(top.Links) > bytes.Count(data, []byte("\n"))+1 || len(problems) > 2*bytes.Count(data, []byte("\n"))+10 {
			t.Errorf("%d links and %d problems of %d bytes", len(top.Links), len(problems), len(data))
		}
		top.Summary()
	})
}

// TestDifference: --diff marks the lines that only one of two times has, and
// leaves out most of the subnet.
func TestDifference(t *testing.T) {
	t.Parallel()
	text := "vendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x946dae0300c51000\nswitchguid=0x946dae0300c51000(946dae0300c51000)\nSwitch\t65 \"S-946dae0300c51000\"\t\t# \"leaf\" enhanced port 0 lid 3 lmc 0\n< [1]\t\"H-e09d7303007a4bd8\"[1](e09d7303007a4bd8) \t\t# \"gpu-1 mlx5_0\" lid 5 4xNDR\n> [2]\t\"H-e09d7303007a4bd8\"[1](e09d7303007a4bd8) \t\t# \"gpu-1 mlx5_0\" lid 5 4xNDR\n\n"
	top, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 1 || len(top.Switches) != 1 || len(top.Links) != 0 {
		t.Fatalf("%v, %v, %+v", err, problems, top)
	}
	if p := problems[0]; p.Kind != tool.Missing || p.Line != 6 || !strings.Contains(p.Text, "--diff") {
		t.Errorf("%+v", p)
	}
}
