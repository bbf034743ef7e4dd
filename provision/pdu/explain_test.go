// SPDX-License-Identifier: Apache-2.0

package pdu

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// lost says that nodes went silent a second apart.
func lost(nodes ...string) (l []Loss) {
	for i, n := range nodes {
		l = append(l, Loss{Node: n, At: noon.Add(time.Duration(i) * time.Second)})
	}
	return l
}

// rack is a PDU a with nine outlets on three breakers, and nodes n1 to n9 on it.
func rack(dead int, state BreakerState) (map[string][]Feed, Reading) {
	feeds := map[string][]Feed{}
	r := Reading{PDU: "r01/a", At: noon}
	for i := 1; i <= 3; i++ {
		b := Breaker{Number: i, Amps: 12, Rating: 32, State: state}
		if state == BreakerOpen {
			b.State = BreakerClosed
		}
		if i == dead {
			b.Amps, b.State = 0, state
		}
		r.Breakers = append(r.Breakers, b)
		r.Phases = append(r.Phases, Phase{Number: i, Amps: b.Amps, Volts: 230})
	}
	for i := 1; i <= 9; i++ {
		feeds[fmt.Sprintf("n%d", i)] = []Feed{{Supply: "psu1", PDU: "r01/a", Outlet: i}}
		o := Outlet{Number: i, State: On, Metered: true, Breaker: (i-1)%3 + 1, Watts: 900, Amps: 4}
		if o.Breaker == dead {
			o.Watts, o.Amps = 0, 0
		}
		r.Outlets = append(r.Outlets, o)
	}
	return feeds, r
}

func TestExplainOneBreaker(t *testing.T) {
	t.Parallel()
	for _, state := range []BreakerState{BreakerOpen, BreakerUnknown} {
		feeds, now := rack(2, state)
		_, before := rack(0, state)
		causes := ExplainOutage(Outage{Losses: lost("n8", "n2", "n5"), Feeds: feeds, Now: map[string]Reading{"r01/a": now}, Before: map[string]Reading{"r01/a": before}})
		if len(causes) != 1 {
			t.Fatalf("%s: %d causes: %+v", state, len(causes), causes)
		}
		c := causes[0]
		if fmt.Sprint(c.Parts) != "[breaker 2 of PDU r01/a]" || fmt.Sprint(c.Nodes) != "[n2 n5 n8]" || !c.Certain {
			t.Errorf("%s: %+v", state, c)
		}
		for _, want := range []string{"0.0 A of 32 A", "it carried 12.0 A at 12:00:00", "n2, n5 and n8 lost power together"} {
			if !strings.Contains(strings.Join(c.Evidence, "\n"), want) {
				t.Errorf("%s: the evidence lacks %q: %q", state, want, c.Evidence)
			}
		}
		if !strings.Contains(c.Action, "breaker 2 of PDU r01/a") || !strings.Contains(c.Cause, "breaker 2 of PDU r01/a") {
			t.Errorf("%s: %q, %q", state, c.Cause, c.Action)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	feeds, well := rack(0, BreakerUnknown)
	_, tripped := rack(1, BreakerUnknown)
	off := well
	off.Outlets = append([]Outlet(nil), well.Outlets...)
	off.Outlets[3].State, off.Outlets[3].Watts = Off, 0
	dark := well
	dark.Phases = []Phase{{Number: 1}, {Number: 2}, {Number: 3}}
	_, flat := rack(0, BreakerUnknown)
	for i := range flat.Breakers {
		flat.Breakers[i].Amps = 0
	}
	loose := map[string][]Feed{"n1": {{"psu1", "r01/a", 0}}, "n2": {{"psu1", "r01/a", 0}}, "n3": {{"psu1", "r01/a", 0}}}
	all := []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"}
	dual := map[string][]Feed{
		"n1": {{"psu1", "a", 1}, {"psu2", "b", 1}}, "n2": {{"psu1", "a", 2}, {"psu2", "b", 2}},
		"n3": {{"psu1", "a", 3}, {"psu2", "b", 3}},
	}
	half := map[string]Reading{"a": {Outlets: []Outlet{{Number: 1, State: On, Metered: true, Watts: 800}, {Number: 2, State: On, Metered: true, Watts: 700}}}}
	apart := lost("n1", "n4")
	apart[1].At = noon.Add(time.Hour)
	for _, c := range []struct {
		name string
		o    Outage
		want string // parts: nodes (certain) of each cause
	}{
		{"an outlet is off, one node", Outage{Losses: lost("n4"), Feeds: feeds, Now: map[string]Reading{"r01/a": off}}, "[outlet 4 of PDU r01/a]: [n4] true"},
		{"one node, its outlet delivers", Outage{Losses: lost("n4"), Feeds: feeds, Now: map[string]Reading{"r01/a": well}}, ""},
		{"two causes at once", Outage{Losses: lost("n1", "n4", "n5"), Feeds: feeds, Now: map[string]Reading{"r01/a": tripped}}, "[breaker 1 of PDU r01/a]: [n1 n4] true"},
		{"no input", Outage{Losses: lost(all...), Feeds: feeds, Now: map[string]Reading{"r01/a": dark}}, "[PDU r01/a]: [n1 n2 n3 n4 n5 n6 n7 n8 n9] true"},
		{"everything dark, PDU silent", Outage{Losses: lost(all...), Feeds: feeds, Silent: map[string]bool{"r01/a": true}}, "[PDU r01/a]: [n1 n2 n3 n4 n5 n6 n7 n8 n9] false"},
		{"no reading, half of the nodes run", Outage{Losses: lost("n1", "n2"), Feeds: feeds}, ""},
		{"an hour apart, one breaker", Outage{Losses: apart, Feeds: feeds, Now: map[string]Reading{"r01/a": tripped}}, "[breaker 1 of PDU r01/a]: [n1] true; [breaker 1 of PDU r01/a]: [n4] true"},
		{"dual feeds, both silent", Outage{Losses: lost("n1", "n2", "n3"), Feeds: dual}, "[PDU a PDU b]: [n1 n2 n3] false"},
		{"dual feeds, a delivers", Outage{Losses: lost("n1", "n2"), Feeds: dual, Now: half}, ""},
		{"all breakers, one cause", Outage{Losses: lost(all...), Feeds: feeds, Now: map[string]Reading{"r01/a": flat}}, "[PDU r01/a]: [n1 n2 n3 n4 n5 n6 n7 n8 n9] true"},
		{"outlets not known, one breaker carried before", Outage{Losses: lost("n1", "n3"), Feeds: loose, Now: map[string]Reading{"r01/a": tripped}, Before: map[string]Reading{"r01/a": well}}, "[breaker 1 of PDU r01/a]: [n1 n3] true"},
		{"outlets not known, one bank always empty", Outage{Losses: lost("n1"), Feeds: loose, Now: map[string]Reading{"r01/a": tripped}, Before: map[string]Reading{"r01/a": tripped}}, ""},
		{"outlets not known, all well", Outage{Losses: lost("n1", "n2"), Feeds: loose, Now: map[string]Reading{"r01/a": well}}, ""},
		{"a node without feeds", Outage{Losses: lost("x", "y"), Feeds: feeds}, ""},
		{"nothing lost", Outage{Feeds: feeds}, ""},
	} {
		var got []string
		for _, cause := range ExplainOutage(c.o) {
			got = append(got, fmt.Sprintf("%v: %v %v", cause.Parts, cause.Nodes, cause.Certain))
			if cause.Cause == "" || cause.Action == "" || len(cause.Evidence) == 0 {
				t.Errorf("%s: %+v", c.name, cause)
			}
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, s, c.want)
		}
	}
}
