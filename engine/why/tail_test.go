// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
)

// TestConsoleSpeaks: what a console says decides the answer, at once when it is the
// end of a kernel, and only of the step that it was read for.
func TestConsoleSpeaks(t *testing.T) {
	t.Parallel()
	const panicked, pxe = "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)", "PXE-E51: No DHCP or proxyDHCP offers were received."
	console := func(step plan.StepID, lines ...string) *control.Console {
		return &control.Console{Step: step, At: now, Lines: lines, Ref: "sha256:" + strings.Repeat("ab", 32) + "/console.txt"}
	}
	running := apply.StepStatus{ID: "n1/install.netboot", Node: "n1", Stage: "install", Text: "waits", Since: now.Add(-10 * time.Minute), Until: now.Add(time.Hour)}
	pace := func(slow time.Duration) map[plan.StepID]plan.Budget {
		return map[plan.StepID]plan.Budget{running.ID: {Expected: time.Minute, Slow: slow}}
	}
	guess := &control.Guess{Cause: "its agent never called", Action: "Read the serial console of n1: the kernel may have stopped."}
	out := &state.Quarantine{At: now, Finding: stage.Finding{Step: "n1/install.netboot", Cause: "its agent never called", Action: "Read the serial console of n1: the kernel may have stopped."}}
	for _, c := range []struct {
		name    string
		why     control.Why
		running bool
		cause   string
		action  string
	}{
		{"a panic is plain at once", control.Why{Active: []apply.StepStatus{running}, Paces: pace(time.Hour), Guess: guess, Console: console(running.ID, "x", panicked, "---[ end ]---")}, true,
			"the kernel found no root file system: " + panicked, "Look whether the image has the driver"},
		{"the firmware may yet boot", control.Why{Active: []apply.StepStatus{running}, Paces: pace(time.Hour), Console: console(running.ID, pxe)}, true, "", "Nothing yet"},
		{"late, and the firmware said why", control.Why{Active: []apply.StepStatus{running}, Paces: pace(time.Minute), Guess: guess, Console: console(running.ID, pxe, "Booting...")}, true,
			"no DHCP server answered the boot NIC: " + pxe, "Look at the VLAN"},
		{"late, and nothing is known of it", control.Why{Active: []apply.StepStatus{running}, Paces: pace(time.Minute), Guess: guess, Console: console(running.ID, "Booting...")}, true,
			"its agent never called", "Read its last lines on the serial console, below: the kernel may have stopped."},
		{"quarantined", control.Why{Node: state.Node{Quarantine: out}, Console: console("n1/install.netboot", panicked)}, false,
			"the kernel found no root file system: " + panicked, "Look whether the image"},
		{"of another step", control.Why{Node: state.Node{Quarantine: out}, Console: console("n1/install.boot", panicked)}, false,
			"its agent never called", "Read the serial console of n1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.why.Node.Name = "n1"
			a := ExplainNode(c.why, c.running, now).Answer
			if a.Cause != c.cause || !strings.HasPrefix(a.Action, c.action) {
				t.Errorf("cause %q, action %q", a.Cause, a.Action)
			}
		})
	}
	text := ExplainNode(control.Why{Node: state.Node{Name: "n1"}, Console: console("n1/install.boot", "one\x1b[2J", "two")}, false, now).Text(now)
	for _, want := range []string{"Last on its serial console, read by install.boot until ", `  one\x1b[2J`, "  two\n", "(more of it: .ironrail/evidence/ab/abab"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	text = ExplainNode(control.Why{Node: state.Node{Name: "n1"}, Console: &control.Console{Step: "n1/install.boot", Error: "node n1: bmc 10.0.0.9: read the console: refused"}}, false, now).Text(now)
	if !strings.Contains(text, "Its serial console is not read any more: Bmc 10.0.0.9: read the console: refused.") && !strings.Contains(text, "not read any more: bmc 10.0.0.9: read the console: refused.") {
		t.Errorf("%s", text)
	}
}
