// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
)

var update = flag.Bool("update", false, "write the golden files")

// drawings are the golden files: a site, how it is seen, and what is drawn.
var drawings = []struct {
	name string
	site func() (*inventory.Inventory, *power.Plan)
	opt  Options
	draw func(*Drawing) []svg.Sheet
}{
	{"rack", oneRack, Options{}, func(d *Drawing) []svg.Sheet { return d.Racks() }},
	{"rack-rear", oneRack, Options{Side: Rear, Serials: true, Errors: 2}, func(d *Drawing) []svg.Sheet { return d.Racks() }},
	{"rack-trays", trayRack, Options{}, func(d *Drawing) []svg.Sheet { return d.Racks() }},
	{"rack-standing", sized(5), Options{Nodes: marks, Of: "rehearsed"}, func(d *Drawing) []svg.Sheet { return append(d.Racks(), d.Hall()...) }},
	{"row", sized(15), Options{}, func(d *Drawing) []svg.Sheet { return d.Rows() }},
	{"hall", sized(45), Options{}, func(d *Drawing) []svg.Sheet { return d.Hall() }},
	{"power", sized(3), Options{}, func(d *Drawing) []svg.Sheet { return d.Power() }},
	{"power-over", oneRack, Options{Errors: 1}, func(d *Drawing) []svg.Sheet { return d.Power() }},
	{"power-trays", trayRack, Options{}, func(d *Drawing) []svg.Sheet { return d.Power() }},
	{"fabric", leafSpine(4, 8, 4, 1, true), Options{}, func(d *Drawing) []svg.Sheet { return d.Maps() }},
	{"fabric-units", leafSpine(127, 32, 16, 4, true), Options{}, func(d *Drawing) []svg.Sheet { return d.Maps() }},
	{"fabric-large", leafSpine(2048, 512, 256, 64, false), Options{}, func(d *Drawing) []svg.Sheet { return append(d.Maps(), unplacedOf(d)) }},
	{"odd", oddSite, Options{Serials: true}, func(d *Drawing) []svg.Sheet {
		return append(append(append(d.Racks(), d.Hall()...), d.Power()...), d.Maps()...)
	}},
}

// marks are how nodes of two racks stand.
var marks = map[string]Mark{
	"r0001-n1": {Good, "accepted"}, "r0001-n2": {Bad, "quarantined: the hardware is not what hardware.hgx says"}, "r0001-n3": {Waiting, "held: power works in row 1"},
	"r0002-n1": {Good, "accepted"}, "r0002-n2": {Working, "working"}, "r0002-n3": {Good, "accepted"},
}

// TestRacksAlike: racks that differ in nothing but names are drawn once, and each is led to;
// what differs, what is named and what is asked for is drawn by itself.
func TestRacksAlike(t *testing.T) {
	t.Parallel()
	bad := map[string]Mark{}
	for r := 1; r <= 12; r++ {
		for n := 1; n <= 8; n++ {
			bad[fmt.Sprintf("r%04d-n%d", r, n)] = Mark{Good, "accepted"}
		}
	}
	bad["r0004-n2"] = Mark{Bad, "quarantined"}
	for _, c := range []struct {
		name  string
		opt   Options
		names []string
		want  string
	}{
		{"alike", Options{}, nil, "r[0001,0004,0007,0010] r[0002,0005,0008,0011] r[0003,0009,0012] r0006"},
		{"one stands in another way", Options{Nodes: bad}, nil, "r[0001,0007,0010] r[0002,0005,0008,0011] r[0003,0009,0012] r0004 r0006"},
		{"named", Options{}, []string{"r0001", "r0004"}, "r0001 r0004"},
		{"each", Options{Each: true}, nil, "r0001 r0002 r0003 r0004 r0005 r0006 r0007 r0008 r0009 r0010 r0011 r0012"},
		{"serials", Options{Serials: true}, []string{"r0001", "r0004", "r0007"}, "r0001 r0004 r0007"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newTestDrawing(sized(12), c.opt)
			var got []string
			for _, r := range d.rackCells(c.names) {
				got = append(got, r.name())
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
			for _, s := range d.Racks(c.names...) {
				if len(got) > 4 && s.W != sheetWidth {
					t.Errorf("%s is %v wide", s.ID, s.W)
				}
			}
		})
	}
}

func unplacedOf(d *Drawing) svg.Sheet {
	s, _ := d.unplaced()
	return s
}

func sized(racks int) func() (*inventory.Inventory, *power.Plan) {
	return func() (*inventory.Inventory, *power.Plan) { return hall(racks) }
}

func TestDrawings(t *testing.T) {
	t.Parallel()
	for _, c := range drawings {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newTestDrawing(c.site, c.opt)
			sheets := c.draw(d)
			inspect(t, sheets, d.Defs())
			var got bytes.Buffer
			if err := svg.WriteSheets(&got, c.name, sheets, d.Defs()); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", c.name+".svg"), got.Bytes())
		})
	}
}

func newTestDrawing(site func() (*inventory.Inventory, *power.Plan), o Options) *Drawing {
	inv, plan := site()
	return New(inv, plan, o)
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		i := 0
		for i < len(got) && i < len(want) && got[i] == want[i] {
			i++
		}
		from := max(0, i-60)
		t.Errorf("%s differs at byte %d; look at it, then -update:\n got %q\nwant %q", path, i, got[from:min(i+60, len(got))], want[from:min(i+60, len(want))])
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	d := newTestDrawing(sized(60), Options{Errors: 3})
	sheets := d.All()
	inspectSheets := 0
	for _, s := range sheets {
		if s.W > sheetWidth+0.5 {
			t.Errorf("%s is %v wide: more than a page", s.ID, s.W)
		}
		inspectSheets++
	}
	if inspectSheets < 10 {
		t.Fatalf("only %d sheets", inspectSheets)
	}
	var b bytes.Buffer
	if err := d.HTML(&b, sheets, nil); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "http://", "https://", "style=", " src=", "@import"} {
		if strings.Contains(strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, ""), bad) {
			t.Errorf("the page has %q: it must need nothing beside it", bad)
		}
	}
	for _, want := range []string{"@page", "Content-Security-Policy", "check found 3 errors", `href="#rack-r0060"`, `id="rack-r0060"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// The page closes its elements, so that it is read as XML as well.
	xmlPage := strings.NewReplacer("<!DOCTYPE html>", "", `<meta charset="utf-8">`, "", `<meta name="viewport" content="width=device-width">`, "").Replace(page)
	at := strings.Index(xmlPage, "<meta http-equiv")
	end := at + strings.Index(xmlPage[at:], ">") + 1
	uniqueIDs(t, parse(t, strings.NewReader(xmlPage[:at]+xmlPage[end:])))
}

func TestSameBytes(t *testing.T) {
	t.Parallel()
	var first []byte
	for range 3 {
		inv, plan := leafSpine(64, 16, 8, 2, true)()
		d := New(inv, plan, Options{})
		var b bytes.Buffer
		if err := d.HTML(&b, d.All(), nil); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b.Bytes()
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Fatal("the same site was drawn in other bytes")
		}
	}
}

// contrast is that of WCAG 2.1.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	light := func(c string) float64 {
		var rgb [3]int
		if _, err := fmt.Sscanf(c, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
			t.Fatalf("colour %q: %v", c, err)
		}
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			v := float64(rgb[i]) / 255
			if v <= 0.03928 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestContrast(t *testing.T) {
	t.Parallel()
	under := append([]string{svg.White, frameFill, overFill, shelfFill, loadColour(0), loadColour(0.5), loadColour(0.8), loadColour(1), loadColour(2)}, roleFills[:]...)
	for _, s := range standings {
		under = append(under, s.fill)
	}
	for _, fill := range under {
		for _, text := range []string{svg.Ink, svg.Soft, svg.Over} {
			if text != svg.Ink && (fill == shelfFill || fill == loadColour(0.8) || fill == loadColour(1)) {
				continue // carry ink only
			}
			if got := contrast(t, fill, text); got < 4.5 {
				t.Errorf("%s on %s has a contrast of %.2f, want 4.5", text, fill, got)
			}
		}
	}
	for _, fill := range []string{switchFill, nvlinkFill} {
		if got := contrast(t, fill, svg.White); got < 4.5 {
			t.Errorf("white on %s has a contrast of %.2f, want 4.5", fill, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	n := newTestDrawing(leafSpine(127, 32, 16, 4, true), Options{}).Numbers()
	f := n.Fabrics[0]
	if got, want := fmt.Sprint(f.Nodes, f.Tiers[0].Switches, f.Tiers[1].Switches, f.Links[0].Count, f.Links[1].Count), "127 32 16 1016 1024"; got != want {
		t.Errorf("fabric: got %s, want %s", got, want)
	}
	rack := newTestDrawing(oneRack, Options{}).Numbers().Rows[0].Racks[0]
	if got, want := fmt.Sprint(rack.Free, rack.GPUs, rack.Load.Max, len(rack.PDUs)), "11 32 45000 2"; got != want {
		t.Errorf("rack: got %s, want %s", got, want)
	}
}

func BenchmarkPage400Racks(b *testing.B) {
	inv, plan := hall(400)
	for b.Loop() {
		d := New(inv, plan, Options{})
		var out bytes.Buffer
		if err := d.HTML(&out, d.All(), nil); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(out.Len())/1e6, "MB")
	}
}
