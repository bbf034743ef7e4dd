// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/cabling"
)

// respeed gives the port of a device another width or speed in ibsim's file.
func (w *wiring) respeed(t *testing.T, id string, port int, to string) {
	t.Helper()
	head, rest, ok := strings.Cut(w.text, fmt.Sprintf(" %q # ", id))
	line, tail, found := "", "", false
	if ok {
		line, tail, found = strings.Cut(rest, fmt.Sprintf("\n[%d] ", port))
	}
	end := strings.Index(tail, "s=7 e=7")
	if !found || end < 0 {
		t.Fatalf("%s has no port %d", id, port)
	}
	w.text = head + fmt.Sprintf(" %q # ", id) + line + fmt.Sprintf("\n[%d] ", port) + tail[:end] + to + tail[end+len("s=7 e=7"):]
}

// sweep compares a simulated fabric with the site.
func (h *simHost) sweep(t *testing.T, w *wiring) cabling.Swept {
	t.Helper()
	found, err := h.subnet(w.inv).Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return cabling.CompareSweep(w.inv, w.inv.Fabrics[0], Plugs(w.members), found)
}

// TestPeerSlowLinks: a link of one lane and one of a lower speed are found among 128
// good ones, and named.
func TestPeerSlowLinks(t *testing.T) {
	t.Parallel()
	w := plugIn(room(t, 9, 2, "[]"), plain)
	w.respeed(t, w.ids["r1-n3/rail/2"], 1, "w=1 s=7 e=7") // ibsim wants one width at both ends
	w.respeed(t, w.ids["compute/leaf-u1-r2"], 3, "w=1 s=7 e=7")
	w.respeed(t, w.ids["r2-n1/rail/6"], 1, "s=7 e=3")
	w.respeed(t, w.ids["compute/spine-1"], 3, "s=7 e=3")
	h := simulate(t, w).host(w.ids["head1/sm/0"])
	low := ""
	for _, c := range cabling.IntendedOf(w.inv, w.inv.Fabrics[0]) {
		if c.Node == nil && c.Switch.Name == "compute/spine-1" && c.Number == 3 {
			low = c.Name()
		}
	}
	expect(t, h.sweep(t, w).Findings, map[string][]string{
		"r1-n3/rail/2 (OSFP 3) to compute/leaf-u1-r2":  {"too narrow: it runs at 1x HDR, which is 50Gbps of 200Gbps", "r1-n3 is in rack r1, unit 9"},
		"r2-n1/rail/6 (OSFP 7) to compute/leaf-u1-r6":  {"too slow: it runs at 4x EDR, which is 100Gbps of 200Gbps"},
		"the link of " + low + " to compute/spine-1/3": {"too slow"},
	})
}

// TestPeerTrunks: cables between switches that are exchanged, missing and additional,
// also where no switch says its name.
func TestPeerTrunks(t *testing.T) {
	t.Parallel()
	for name, describe := range map[string]func(string) string{"named": plain, "nameless": nameless} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := plugIn(room(t, 9, 2, "[]"), describe)
			s := simulate(t, w)
			h := s.host(w.ids["head1/sm/0"])
			var trunks []cabling.Cable // of three leaves, one each
			for _, c := range cabling.IntendedOf(w.inv, w.inv.Fabrics[0]) {
				if c.Node == nil && (len(trunks) == 0 || c.Low.Switch != trunks[len(trunks)-1].Low.Switch) {
					trunks = append(trunks, c)
				}
			}
			a, b, lost := trunks[0], trunks[1], trunks[2]
			id := func(end cabling.End) string { return w.ids[end.Switch] }
			upper := func(c cabling.Cable) string { return w.ids[c.Switch.Name] }
			for _, c := range []cabling.Cable{a, b, lost} {
				s.do(`Unlink "%s"[%d]`, id(c.Low), c.Low.Number)
			}
			s.do(`Link "%s"[%d] "%s"[%d]`, id(a.Low), a.Low.Number, upper(b), b.Number)
			s.do(`Link "%s"[%d] "%s"[%d]`, id(b.Low), b.Low.Number, upper(a), a.Number)
			s.do(`Link "%s"[64] "%s"[63]`, id(a.Low), id(b.Low)) // a cable too many
			expect(t, h.sweep(t, w).Findings, map[string][]string{
				"two cables are exchanged":      {fmt.Sprintf("%s is in %s/%d instead of %s/%d", a.Name(), b.Switch.Name, b.Number, a.Switch.Name, a.Number)},
				lost.Name() + " has no link to": {"the sweep finds no cable at " + lost.Name()},
				"an additional cable links":     {a.Low.Switch + "/64", b.Low.Switch + "/63"},
			})
		})
	}
}

// TestPeerScale: 128 nodes with eight rails are swept, loaded and judged as a whole: 1,024
// ports have their P_Keys, 2,000 cables are compared, and one that is wrong is found.
func TestPeerScale(t *testing.T) {
	t.Parallel()
	inv := roomOf(t, 31, 32, 64, "[]")
	w := plugIn(inv, plain)
	s := simulate(t, w)
	h := s.host(w.ids["head1/sm/0"])
	sub := h.subnet(inv)
	began := time.Now()
	sweep, err := sub.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := sub.Files(w.members, sweep)
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.Load(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	r := h.sweep(t, w)
	if len(w.members) != 1024 || len(r.Findings) > 0 {
		t.Fatalf("%d ports, %+v", len(w.members), r.Findings)
	}
	conform := 0
	for _, x := range r.Results {
		if x.State == cabling.Conforms {
			conform++
		}
	}
	if conform != len(r.Results) || conform < 2000 || len(r.Switches) != len(inv.Switches) {
		t.Errorf("%d of %d cables conform", conform, len(r.Results))
	}
	t.Logf("swept twice, loaded and compared %d cables, %d switches in %s", len(r.Results), len(r.Switches), time.Since(began))
	if sweep, err = sub.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	some := w.members[:64] // all 1,024 take a program each
	wrong, err := sub.Verify(t.Context(), some, sweep)
	if err != nil || len(wrong) > 0 {
		t.Errorf("%v, %v", wrong, err)
	}
}

// TestPeerSweep breaks cables of a running fabric and names them, with and without
// names in the devices.
func TestPeerSweep(t *testing.T) {
	t.Parallel()
	inv := room(t, 9, 2, "[]")
	for name, describe := range map[string]func(string) string{"named": plain, "nameless": nameless} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := plugIn(inv, describe)
			s := simulate(t, w)
			sub := s.host(w.ids["head1/sm/0"]).subnet(inv)
			look := func() cabling.Swept {
				t.Helper()
				sweep, err := sub.Sweep(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return cabling.CompareSweep(inv, inv.Fabrics[0], Plugs(w.members), sweep)
			}
			r := look()
			if len(r.Findings) > 0 || len(r.Results) == 0 {
				t.Fatalf("%d cables, %+v", len(r.Results), r.Findings)
			}
			for _, x := range r.Results {
				if x.State != cabling.Conforms {
					t.Fatalf("%s: %s, %s", x.Cable.Name(), x.State, x.Why)
				}
			}
			// A cable of rail 3 and one of rail 5 are exchanged, one is dead, one is narrow.
			leaf := func(rail int) string { return w.ids[fmt.Sprintf("compute/leaf-u1-r%d", rail)] }
			a, b := w.ids["r1-n2/rail/3"], w.ids["r1-n2/rail/5"]
			s.do(`Unlink "%s"[1]`, a)
			s.do(`Unlink "%s"[1]`, b)
			s.do(`Link "%s"[1] "%s"[2]`, a, leaf(5))
			s.do(`Link "%s"[1] "%s"[2]`, b, leaf(3))
			s.do(`Unlink "%s"[1]`, w.ids["r2-n4/rail/7"])
			r = look()
			expect(t, r.Findings, map[string][]string{
				"two cables are exchanged":                                {"r1-n2/rail/3 (OSFP 4) is in compute/leaf-u1-r5/2", "r1-n2/rail/5 (OSFP 6) is in compute/leaf-u1-r3/2", "r1-n2 is in rack r1, unit 5", "compute/leaf-u1-r3/2 (port 1/2)"},
				"r2-n4/rail/7 (OSFP 8) has no link to compute/leaf-u1-r7": {"r2-n4 is in rack r2, unit 13", "compute/leaf-u1-r7/8 (port 4/2)"},
			})
		})
	}
}

// expect compares findings by words that each must have.
func expect(t *testing.T, findings []stage.Finding, want map[string][]string) {
	t.Helper()
	if len(findings) != len(want) {
		t.Errorf("%d findings, want %d: %+v", len(findings), len(want), findings)
	}
	for cause, parts := range want {
		found := false
		for _, f := range findings {
			text := fmt.Sprint(f.Cause, f.Evidence)
			if !strings.Contains(text, cause) {
				continue
			}
			found = true
			for _, p := range parts {
				if !strings.Contains(text, p) {
					t.Errorf("%q does not say %q", text, p)
				}
			}
		}
		if !found {
			t.Errorf("nothing says %q: %+v", cause, findings)
		}
	}
}
