// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
)

var day = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// snap makes a snapshot of items "kind/part/name=value" and counters "#part/name=n".
func snap(at time.Time, words ...string) Snapshot {
	s := Snapshot{Node: "n1", Serial: "S1", At: at, BootID: "b1", Uptime: at.Sub(day.Add(-24 * time.Hour)).Seconds()}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		f := strings.Split(strings.TrimPrefix(name, "#"), "/")
		switch {
		case strings.HasPrefix(w, "#"):
			var n int64
			fmt.Sscan(value, &n)
			s.Counters = append(s.Counters, wire.Counter{Part: f[0], Name: f[1], Value: n})
		case strings.HasPrefix(w, "boot="):
			s.BootID = value
		case strings.HasPrefix(w, "serial="):
			s.Serial = value
		case strings.HasPrefix(w, "plain="):
			s.Plain = true
		case strings.HasPrefix(w, "gap="):
			s.gap("not seen", value)
		case strings.HasPrefix(w, "set/"):
			if s.Sets == nil {
				s.Sets = map[string]string{}
			}
			s.Sets[f[1]] = value
		default:
			s.Items = append(s.Items, wire.Item{Kind: f[0], Part: f[1], Name: f[2], Value: value})
		}
	}
	return s
}

func TestCompare(t *testing.T) {
	t.Parallel()
	sets := map[string]Set{"a": {"x": "1", "y": "1", "gone": "1"}, "b": {"x": "2", "y": "1", "new": "1"}}
	for _, c := range []struct{ name, was, now, want string }{
		{"the same", "kernel//release=1", "kernel//release=1", ""},
		{"a value", "kernel//release=1", "kernel//release=2", "kernel release 1 2"},
		{"a kind that was not seen", "kernel//release=1", "kernel//release=2 gap=kernel", ""},
		{"a kind that was not seen before", "kernel//release=1 gap=kernel", "kernel//release=2", ""},
		{"something that nobody looked at before", "kernel//release=1", "kernel//release=1 drivers/nvidia/version=570", ""},
		{"another chassis", "hardware//serial=S1 kernel//release=1", "serial=S2 hardware//serial=S2 kernel//release=2", "hardware serial S1 S2"},
		{"a narrow link", "link/p/speed=400000", "link/p/speed=100000", "link p speed 400000 100000 lower"},
		{"a faster link", "link/p/speed=100000", "link/p/speed=400000", "link p speed 100000 400000"},
		{"a link without light has no speed", "hardware/p/NIC=x link/p/state=up link/p/speed=400000", "hardware/p/NIC=x link/p/state=down", "link p state up down lower"},
		{"a speed that is not told any more", "hardware/p/NIC=x link/p/speed=400000", "hardware/p/NIC=x", "link p speed 400000 absent lower"},
		{"a part that is gone is one change", "hardware/p/NIC=x hardware/p/MAC=y link/p/speed=4 hardware/q/NIC=x", "hardware/q/NIC=x", "hardware p part there absent"},
		{"a part that is new", "hardware/q/NIC=x", "hardware/p/NIC=x hardware/p/MAC=y hardware/q/NIC=x", "hardware p part absent there"},
		{"what plain programs do not report is not gone", "hardware/p/GPU=x kernel//release=1", "plain= kernel//release=2", "kernel release 1 2"},
		{"a firmware entry that is refused now and then", "firmware/x/version=1 firmware/y/version=1", "firmware/y/version=1", ""},
		{"packages: changed, gone and new", "set/packages=a", "set/packages=b", "packages gone 1 absent; packages new absent 1; packages x 1 2"},
		{"BIOS: what a new firmware calls otherwise is no change", "set/bios=a", "set/bios=b", "bios x 1 2"},
		{"a list that is lost", "set/packages=a", "set/packages=c", "packages list a c"},
		{"Secure Boot was switched off", "secure-boot//state=on secure-boot//lockdown=integrity", "secure-boot//state=off secure-boot//lockdown=none", "secure-boot lockdown integrity none; secure-boot state on off"},
		{"a certificate is lost", "secure-boot//state=on secure-boot/certificate_a/name=MS secure-boot/certificate_b/name=ours", "secure-boot//state=on secure-boot/certificate_a/name=MS", "secure-boot certificate_b name ours absent"},
		{"a certificate is new", "secure-boot/certificate_a/name=MS", "secure-boot/certificate_a/name=MS secure-boot/certificate_b/name=ours", ""},
		{"no certificate is shown any more", "secure-boot//state=on secure-boot/certificate_a/name=MS", "secure-boot//state=on", ""},
		{"few errors in a day", "#p/symbol_error=5", "#p/symbol_error=200", ""},
		{"many", "#p/symbol_error=5", "#p/symbol_error=300", "errors p symbol_error"},
		{"many, but most before a reboot", "#p/symbol_error=5", "boot=b2 #p/symbol_error=6", ""},
		{"a link that went down twice", "#p/link_downed=1", "#p/link_downed=3", "errors p link_downed"},
		{"a counter that no limit is known of", "#p/rx_errors=1", "#p/rx_errors=1000000", ""},
	} {
		var got []string
		find := func(d string) Set { return sets[d] }
		for _, x := range Compare(snap(day, strings.Fields(c.was)...), snap(day.Add(24*time.Hour), strings.Fields(c.now)...), find) {
			text := strings.Join(strings.Fields(x.Kind+" "+x.Part+" "+x.Name), " ")
			if x.Kind != Errors {
				text += " " + x.Was + " " + x.Is
			}
			if x.Lower {
				text += " lower"
			}
			if x.Action == "" || x.Since != day || x.Node != "n1" {
				t.Errorf("%s: %+v", c.name, x)
			}
			got = append(got, text)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestMajority(t *testing.T) {
	t.Parallel()
	var nodes []Snapshot
	for i := range 5 {
		s := snap(day, "firmware/BIOS/version=2.4.1", fmt.Sprintf("hardware//serial=S%d", i), "set/bios=a")
		s.Node = fmt.Sprintf("n%d", i+1)
		nodes = append(nodes, s)
	}
	nodes[2].Items[0].Value, nodes[2].Sets = "2.3.9", map[string]string{BIOS: "b"}
	nodes[4].Items[0].Value = "2.3.8"
	sets := func(d string) Set { return map[string]Set{"a": {"SMT": "On"}, "b": {"SMT": "Off"}}[d] }
	role := func(string) string { return "worker" }
	for _, c := range []struct {
		name   string
		judged string
		n      int
		want   string
	}{
		{"the minority is named", "n5", 5, "n3"},
		{"two nodes are no majority", "", 2, ""},
		{"a judged node is no matter of opinion", "n3 n5", 5, ""},
	} {
		var got []string
		for _, n := range Majority(nodes[:c.n], role, func(n string) bool { return strings.Contains(c.judged, n) }, sets) {
			got = append(got, n.Text)
		}
		want := ""
		if c.want != "" {
			want = "4 of 5 nodes of role worker have bios SMT On; n3 has Off|3 of 5 nodes of role worker have firmware BIOS version 2.4.1; n3 has 2.3.9"
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
