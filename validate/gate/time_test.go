// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/gate/traits"
	"github.com/ironrail/ironrail/validate/uniform"
)

// What chronyc -c prints (chrony 4.3, client.c).
const (
	follows   = "0A4D0001,10.77.0.1,3,1763712000.1,-0.000012345,0.000001,0.000020,-12.345,0.001,0.020,0.0003,0.0001,64.5,Normal\n"
	unsynced  = "00000000,,0,0.000000000,0.000000000,0.0,0.0,0.000,0.000,0.000,1.0,1.0,0.0,Not synchronised\n"
	answers   = "^,*,10.77.0.1,2,6,377,21,-0.0000001,-0.0000001,0.0002\n^,?,10.77.0.2,0,6,0,4294967295,0.0,0.0,0.0\n"
	unanswers = "^,?,10.77.0.1,0,6,0,4294967295,0.0,0.0,0.0\n^,?,10.77.0.2,0,6,0,4294967295,0.0,0.0,0.0\n"
	own       = "#,*,SHM0,0,4,0,8,-0.0000001,-0.0000001,0.0002\n"
)

// TestTime: what chronyd, or systemd, says of a node's clock, whether it is a fault, and what
// nodes of a role are compared by.
func TestTime(t *testing.T) {
	t.Parallel()
	ok := func(text string) onnode.Output { return onnode.Output{Stdout: []byte(text)} }
	none := onnode.Output{Exit: 127}
	stopped := onnode.Output{Exit: 1, Stdout: []byte("506 Cannot talk to daemon\n")}
	for _, c := range []struct {
		name                                  string
		tracking, later, sources, timedatectl onnode.Output // later: after waiting
		fault, note, trait                    string
		waits                                 bool
	}{
		{"follows one of two", ok(follows), none, ok(answers), none, "", "", "a time server", false},
		{"answers a while after the boot", ok(unsynced), ok(follows), ok(answers), none, "", "", "a time server", true},
		{"nobody answers", ok(unsynced), ok(unsynced), ok(unanswers), none, "clock: none of its time servers answers", "chronyd follows no time server", "", true},
		{"nobody answers any more", ok(follows), ok(follows), ok(unanswers), none, "clock: none of its time servers answers", "", "", true},
		{"answers, and is not believed", ok(unsynced), ok(unsynced), ok(answers), none, "", "chronyd follows no time server", "none", true},
		{"no server is set", ok(unsynced), none, ok(""), none, "", "chronyd follows no time server", "none", false},
		{"a clock of its own", ok(follows), ok(follows), ok(own), none, "clock: none of its time servers answers", "", "", true},
		{"chronyd does not run", stopped, none, stopped, none, "", "neither chronyd nor systemd-timesyncd", "none", false},
		{"systemd follows", none, none, none, ok("yes\n"), "", "", "a time server", false},
		{"systemd follows nobody", none, none, none, ok("no\n"), "", "systemd follows no time server", "none", false},
		{"neither program", none, none, none, none, "", "there is no timedatectl", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			waited := false
			nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, call onnodetest.Call) (onnode.Output, error, bool) {
				switch line := strings.Join(call.Argv, " "); {
				case strings.Contains(line, "health"):
					return ok("{}"), nil, true
				case line == "chronyc -n -c tracking" && waited:
					return c.later, nil, true
				case line == "chronyc -n -c tracking":
					return c.tracking, nil, true
				case line == "chronyc -n -c sources":
					return c.sources, nil, true
				case strings.HasPrefix(line, "chronyc -n waitsync "):
					waited = true
					return onnode.Output{Exit: 1}, nil, true
				case strings.HasPrefix(line, "timedatectl show "):
					return c.timedatectl, nil, true
				}
				return onnode.Output{}, nil, false
			}}}
			h := &inventory.Hardware{}
			s, _, err := look.ReadNode(t.Context(), nodes, "n1", h)
			if err != nil {
				t.Fatal(err)
			}
			faults, notes, _ := gate.JudgeEach(h, nil, s)
			found := ""
			for _, f := range faults {
				found += f.Cause
				if !f.Unlike || f.Of != "time_servers" {
					t.Errorf("%+v is not about time_servers", f)
				}
			}
			if found != c.fault || waited != c.waits {
				t.Errorf("found %q, want %q; waited %t", found, c.fault, waited)
			}
			if c.note != "" && !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, c.note) }) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
			trait := ""
			for _, x := range traits.Common("n1", s, nil) {
				if x.Key == uniform.TimeSource {
					trait = x.Value
				}
			}
			if trait != c.trait {
				t.Errorf("time source %q, want %q", trait, c.trait)
			}
		})
	}
}
