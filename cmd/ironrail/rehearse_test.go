// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// interrupt runs ironrail until it has said a text on standard error, presses
// Ctrl-C, and wants an exit code: interrupt 130 TEXT ironrail rehearse.
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: interrupt N TEXT COMMAND")
	}
	var cmd *exec.Cmd
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, args[2]); cmd == nil {
			if _, err := os.Stat(path); err == nil {
				cmd = exec.Command(path, args[3:]...)
			}
		}
	}
	if cmd == nil {
		ts.Fatalf("no %s", args[2])
	}
	cmd.Dir, cmd.WaitDelay = ts.MkAbs("."), time.Second
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "TMPDIR=" + ts.Getenv("WORK"), "HOME=" + ts.Getenv("HOME")}
	said, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	var text bytes.Buffer
	pressed := false
	for lines := bufio.NewScanner(io.TeeReader(said, &text)); lines.Scan(); {
		if !pressed && strings.Contains(lines.Text(), args[1]) {
			pressed = true
			ts.Check(cmd.Process.Signal(os.Interrupt))
		}
	}
	_ = cmd.Wait() // the exit code is looked at
	ts.Logf("%s", text.String())
	if !pressed {
		ts.Fatalf("%q was not said", args[1])
	}
	if left, _ := filepath.Glob(filepath.Join(ts.Getenv("WORK"), "ironrail-rehearsal-*")); len(left) > 0 {
		ts.Fatalf("left behind: %q", left)
	}
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s, not %s", got, args[0])
	}
}

// summary wants a file of JSON lines whose last one is the summary of a
// rehearsal, with exactly these nodes quarantined and all faults found:
// summary FILE [NODE...].
func summary(ts *testscript.TestScript, _ bool, args []string) {
	var last struct {
		Type        string
		Accepted    []string
		Quarantined []struct {
			Node, Part, Cause, Action string
			Evidence                  []string
		}
		Faults []struct {
			Kind, Where string
			Found       bool
		}
		WallTime      float64 `json:"wall_time"`
		PredictedTime float64 `json:"predicted_time"`
		PeakMemory    uint64  `json:"peak_memory"`
	}
	summaries := 0
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		last.Type = ""
		ts.Check(json.Unmarshal([]byte(line), &last))
		if last.Type == "summary" {
			summaries++
		}
	}
	if last.Type != "summary" || summaries != 1 {
		ts.Fatalf("%d summaries, and the last line is a %q", summaries, last.Type)
	}
	var out []string
	for _, q := range last.Quarantined {
		out = append(out, q.Node)
		if q.Part == "" || q.Cause == "" || q.Action == "" || len(q.Evidence) == 0 {
			ts.Fatalf("%+v does not say what, why and what next", q)
		}
	}
	if got, want := strings.Join(out, " "), strings.Join(args[1:], " "); got != want {
		ts.Fatalf("quarantined: %q, not %q", got, want)
	}
	for _, f := range last.Faults {
		if !f.Found || f.Kind == "" || f.Where == "" {
			ts.Fatalf("%+v", f)
		}
	}
	if len(last.Accepted) == 0 || last.WallTime <= 0 || last.PredictedTime <= 0 || last.PeakMemory == 0 {
		ts.Fatalf("%+v", last)
	}
}

// sampleRehearsal has one of everything.
func sampleRehearsal(text string) rehearsal.Summary {
	dimm := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode("n3"), Part: "DIMM"}}, Step: "n3/install.inspect", Cause: "the hardware is not what hardware.hgx-h100 says, " + text,
		Evidence: []string{"sha256:00/dmi.txt", "DIMM: 31 of 32 DIMMs are there, which is fewer than the block says and more than none " + text},
		Action:   "Reseat or replace the DIMM that the firmware's log names."}
	breaker := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.PDU, Name: "r02/a"}, Part: "breaker 1"}}, Affected: []subject.ID{subject.OfNode("n4"), subject.OfNode("n5")},
		Cause: "breaker 1 is open", Evidence: []string{"0 A"}, Action: "Close it."}
	res := apply.Result{Run: "r1", Findings: []stage.Finding{dimm, breaker}, Nodes: []apply.NodeResult{
		{Name: "n1", Outcome: apply.NodeDone, Accepted: true}, {Name: "n2", Outcome: apply.NodeDone, Accepted: true}, {Name: "n3", Outcome: apply.NodeQuarantined, Finding: &dimm},
		{Name: "n4", Outcome: apply.NodeQuarantined, Finding: &breaker}, {Name: "n5", Outcome: apply.NodeQuarantined, Finding: &breaker}, {Name: "n6", Outcome: apply.NodeInterrupted}}}
	return rehearsal.Summary{Site: "demo", Result: res,
		Faults:   []rehearsal.Planted{{Kind: fault.MissingDIMM, Where: "n3", Found: true}, {Kind: fault.PDUTrip, Where: "r02/a"}},
		WallTime: rehearsal.Seconds(600 * time.Millisecond), SimulatedTime: rehearsal.Seconds(24 * time.Minute), PredictedTime: rehearsal.Seconds(35 * time.Minute),
		PeakMemory: 80 << 20}
}

// TestSummaryFitsTheTerminal wants every line within 80 columns.
func TestSummaryFitsTheTerminal(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	writeRehearsal(&b, sampleRehearsal("text of some length"), samplePlaces, "ironrail -C demo why", 80, plainLines)
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
