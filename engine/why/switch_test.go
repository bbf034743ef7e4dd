// SPDX-License-Identifier: Apache-2.0

package why

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// TestSwitchAnswers: what a switch that is not well is told to have, and one that is.
func TestSwitchAnswers(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	const id = "net/leaf-1/fabric.compute.switch"
	sonic := func(x ...state.Step) control.Switch {
		return control.Switch{Name: "net/leaf-1", Fabric: "compute", Kind: "roce", OS: "sonic", Login: "sonic", Address: "10.10.15.1", Rack: "net", Unit: 40, Steps: x,
			Cables: []control.Port{{Port: "net/leaf-1/1", To: "n1/rail/0", Heard: "leaf-1 etp1", HeardAt: at}, {Port: "net/leaf-1/2", To: "n2/rail/0"}}}
	}
	failed := func(cause, action string, evidence ...string) state.Step {
		f := stage.Finding{Cause: cause, Action: action, Evidence: evidence, Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Switch, Name: "net/leaf-1"}, Part: "CONFIG_DB"}}}
		return state.Step{ID: id, State: state.StepIsFailed, Ended: at, Error: cause, Finding: &f, Blamed: []stage.Finding{f}}
	}
	ofPort := failed("port Ethernet0 does not keep its configuration", "See who else writes it.")
	ofPort.Blamed[0].Suspects[0].Part = "Ethernet0 (n1/rail/0)"
	cable := stage.Finding{Step: "site/fabric.compute.cabling", Cause: "net/leaf-1/2 and net/leaf-1/3 are exchanged", Action: "Exchange the two plugs."}
	bad := stage.Finding{Step: "all/validate.pair", Cause: "what crosses leaf net/leaf-1 is slow", Action: "Look at its uplinks.", Evidence: []string{"48GB/s"}}
	told, err := json.Marshal(bad)
	if err != nil {
		t.Fatal(err)
	}
	with := func(s control.Switch, change func(*control.Switch)) control.Switch { change(&s); return s }
	for name, tt := range map[string]struct {
		of      control.Switch
		running bool
		status  Status
		want    []string // in the text
	}{
		"does not answer": {sonic(state.Step{ID: id, State: state.StepIsFailed, Ended: at, Error: "switch net/leaf-1 at 10.10.15.1:22: dial tcp: connection timed out"}), false, Failed,
			[]string{"Switch net/leaf-1 is not as the site says: fabric.compute.switch failed, since 03:00:00 (1h0m).", "Most likely cause: switch net/leaf-1 at 10.10.15.1:22: dial tcp: connection timed out.", "Next: Look at the switch and its management network, then `ironrail apply`."}},
		"host key changed": {sonic(failed("the switch shows the host key ssh-ed25519 SHA256:b, and the site says SHA256:a", "Find out why before going on.")), false, Failed,
			[]string{"Most likely cause: the switch shows the host key", "Next: Find out why before going on. Then `ironrail apply` looks again."}},
		"rolled back": {sonic(failed("switch net/leaf-1 took the patch, and reads back otherwise", "See who else writes it.", "it was taken back to what it had before; nothing was saved")), true, Failed,
			[]string{"reads back otherwise", "When the run has ended, `ironrail apply` looks again.", "seen  it was taken back"}},
		"one port, and it is asked about":    {with(sonic(ofPort), func(s *control.Switch) { s.Port, s.Cables = "net/leaf-1/1", s.Cables[:1] }), false, Failed, []string{"Port net/leaf-1/1 is not as the site says", "net/leaf-1/1 to n1/rail/0 (its other end heard leaf-1 etp1, 03:00:00)"}},
		"one port, and another is asked for": {with(sonic(ofPort), func(s *control.Switch) { s.Port, s.Cables = "net/leaf-1/2", s.Cables[1:] }), false, Conforms, []string{"Port net/leaf-1/2 is as the site says", "`ironrail why net/leaf-1` names them", "(nothing was heard there)"}},
		"suspected by a test": {with(sonic(), func(s *control.Switch) {
			s.Suspect, s.Near = []stage.Finding{bad}, []stage.Finding{cable}
			s.Journal = []state.Record{{Kind: state.FindingMade, Time: at, Data: told}}
		}), false, Suspected, []string{"step all/validate.pair found it to be at fault, since 03:00:00", "Found as well: net/leaf-1/2 and net/leaf-1/3 are exchanged (by step site/fabric.compute.cabling). Exchange the two plugs.", "seen  48GB/s"}},
		"a cable": {with(sonic(), func(s *control.Switch) { s.Near = []stage.Finding{cable} }), false, Suspected, []string{"a cable of it was found to be wrong", "net/leaf-1/2 to n2/rail/0"}},
		"works": {with(sonic(), func(s *control.Switch) {
			s.Active = []apply.StepStatus{{ID: id, Since: at, Text: "74 differences from the site"}}
		}), true, Working, []string{"fabric.compute.switch: 74 differences from the site"}},
		"waits":      {sonic(), true, Waiting, []string{"its step has not begun"}},
		"was cut":    {sonic(state.Step{ID: id, State: state.StepRunning, Started: at}), false, Cut, []string{"ended in the middle of fabric.compute.switch"}},
		"configured": {with(sonic(state.Step{ID: id, State: state.StepIsDone, Ended: at}), func(s *control.Switch) { s.Read = &control.SwitchRead{At: at, Conforms: true} }), false, Conforms, []string{"is as the site says", "(read last at 03:00:00)"}},
		"changed since": {with(sonic(state.Step{ID: id, State: state.StepIsDone, Ended: at}), func(s *control.Switch) {
			s.Read = &control.SwitchRead{At: at, Conforms: true}
			s.Seen = &control.SwitchObservation{At: at.Add(30 * time.Minute), State: stage.Differs, Evidence: "PORT|Ethernet0 mtu: 1500 -> 9100\x1b[2J"}
		}), false, Differs, []string{"Switch net/leaf-1 is not as the site says: its configuration was read, and is not what the site says any more, since 03:30:00 (30m0s).", "Most likely cause: PORT|Ethernet0 mtu: 1500 -> 9100", "`ironrail plan --refresh` shows what differs now"}},
		"looked at since": {with(sonic(state.Step{ID: id, State: state.StepIsDone, Ended: at}), func(s *control.Switch) {
			s.Read = &control.SwitchRead{At: at, Conforms: true}
			s.Seen = &control.SwitchObservation{At: at.Add(30 * time.Minute), State: stage.Conforms}
		}), false, Conforms, []string{"(read last at 03:30:00)"}},
		"did not answer a look": {with(sonic(state.Step{ID: id, State: state.StepIsDone, Ended: at}), func(s *control.Switch) {
			s.Read = &control.SwitchRead{At: at, Conforms: true}
			s.Seen = &control.SwitchObservation{At: at.Add(30 * time.Minute), State: stage.Unknown, Evidence: "no route to host"}
		}), false, Conforms, []string{"(read last at 03:00:00)"}},
		"without login": {control.Switch{Name: "net/leaf-1", Kind: "roce"}, false, Unmanaged, []string{"Switch net/leaf-1 is not known: ironrail has no login for it"}},
		"not swept":     {control.Switch{Name: "net/leaf-1", Kind: "infiniband"}, false, Untouched, []string{"no step has looked at it yet"}},
		"swept":         {control.Switch{Name: "net/leaf-1", Kind: "infiniband", Fabric: "compute", Sweep: &state.Step{State: state.StepIsFailed, Ended: at}}, false, Conforms, []string{"the sweep of fabric compute found nothing wrong with its cables"}},
		"hostile":       {sonic(failed("it says \x1b[2J", "")), false, Failed, []string{`\x1b[2J`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := at.Add(time.Hour)
			s := ExplainSwitch(tt.of, tt.running, now)
			text := s.Text(now)
			if s.Answer.Status != tt.status || strings.ContainsRune(text, 0x1b) {
				t.Errorf("%s, want %s\n%s", s.Answer.Status, tt.status, text)
			}
			for _, w := range tt.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is not in\n%s", w, text)
				}
			}
		})
	}
}
