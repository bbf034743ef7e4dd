// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/command"
)

func argv(list ...string) cty.Value {
	var vs []cty.Value
	for _, s := range list {
		vs = append(vs, cty.StringVal(s))
	}
	return cty.TupleVal(vs)
}

// scheduler is a program that writes down what it is told.
func scheduler(t *testing.T) (program, log string) {
	t.Helper()
	dir := t.TempDir()
	program, log = filepath.Join(dir, "scheduler"), filepath.Join(dir, "log")
	script := "#!/bin/sh\nread -r node\necho \"$# $2 $node ${HOME-no home}\" >>\"$1\"\ncase $node in *n3*) echo 'n3 is unknown' >&2; exit 4;; esac\n"
	syscall.ForkLock.RLock() // a child that has the file open for writing would make it "busy"
	err := os.WriteFile(program, []byte(script), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return program, log
}

func readNotices(t *testing.T, log string) []string {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func TestExecTellsEachNodeOnce(t *testing.T) {
	t.Parallel()
	program, log := scheduler(t)
	st := &statuses{in: map[string]bool{"n1": true, "n2": true}}
	h := block("exec", map[string]cty.Value{"command": argv(program, log)})
	s := handover.New(site(h), map[string]handover.Kind{"exec": command.Command{}}, st)
	run := onnodetest.NewRun()
	first := run.Now
	accept(t, run, "n1", first)
	accept(t, run, "n2", first)
	all := steps(t, s)
	apply := func(id string, want int) {
		t.Helper()
		for range 2 { // the second time there is nothing to do
			if err := s.Apply(t.Context(), run, all[handover.StepID("lab")]); id == "" && err != nil {
				t.Fatal(err)
			}
			if id != "" {
				if err := s.Drain(t.Context(), run, id, handover.DrainOptions{}); err != nil {
					t.Fatal(err)
				}
				st.in[id] = false
			}
		}
		if got := readNotices(t, log); len(got) != want {
			t.Fatalf("told %d times, want %d: %q", len(got), want, got)
		}
	}
	apply("", 2)
	if o, err := s.Observe(t.Context(), run, all["site/handover.lab"]); err != nil || o.State != stage.Conforms {
		t.Errorf("%v %v", o, err)
	}
	apply("n1", 3) // drained exactly once
	st.in["n1"] = true
	accept(t, run, "n1", first.Add(time.Hour))
	apply("", 4)   // resumed
	apply("n1", 5) // and drained again in its second life
	want := []string{
		`2 join {"verb":"join","handover":"lab","name":"n1","address":"10.77.0.11","rack":"r01","serial":"LAB0001"} no home`,
		`2 join {"verb":"join","handover":"lab","name":"n2","address":"10.77.0.12","rack":"r01","serial":"LAB0002"} no home`,
		`2 drain {"verb":"drain","handover":"lab","name":"n1","address":"10.77.0.11","rack":"r01","serial":"LAB0001","reason":"is being changed"} no home`,
		`2 resume {"verb":"resume","handover":"lab","name":"n1","address":"10.77.0.11","rack":"r01","serial":"LAB0001"} no home`,
		`2 drain {"verb":"drain","handover":"lab","name":"n1","address":"10.77.0.11","rack":"r01","serial":"LAB0001","reason":"is being changed"} no home`,
	}
	if got := readNotices(t, log); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
}

func TestExecGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	program, log := scheduler(t)
	st := &statuses{in: map[string]bool{"n3": true, "n4": true}}
	h := block("exec", map[string]cty.Value{"join": argv(program, log, "in"), "drain": argv(program, log, "out")})
	s := handover.New(site(h), map[string]handover.Kind{"exec": command.Command{}}, st)
	run := onnodetest.NewRun()
	accept(t, run, "n3", run.Now)
	accept(t, run, "n4", run.Now)
	err := s.Apply(t.Context(), run, steps(t, s)["site/handover.lab"])
	if err == nil || !strings.Contains(err.Error(), "1 nodes could not be told of (n3)") || errkind.Of(err) != errkind.Refused || errkind.Action(err) == "" {
		t.Errorf("got %v", err)
	}
	if got := readNotices(t, log); len(got) != 2 || !strings.Contains(got[1], `"name":"n4"`) {
		t.Errorf("told %q", got)
	}
	if string(run.Evidence["evidence/0-join-n3.txt"]) != "n3 is unknown\n" {
		t.Errorf("evidence %q", run.Evidence)
	}
	err = s.Drain(t.Context(), run, "n3", handover.DrainOptions{})
	if err == nil || errkind.Of(err) != errkind.Refused {
		t.Errorf("a drain that failed counts as done: %v", err)
	}
}

func TestExecIsEndedInTime(t *testing.T) {
	t.Parallel()
	h := block("exec", map[string]cty.Value{"command": argv("/bin/sh", "-c", "exec sleep 60", "sh"), "timeout": cty.StringVal("50ms")})
	s := handover.New(site(h), map[string]handover.Kind{"exec": command.Command{}}, &statuses{in: map[string]bool{"n1": true}})
	run := onnodetest.NewRun()
	accept(t, run, "n1", run.Now)
	if err := s.Drain(t.Context(), run, "n1", handover.DrainOptions{}); errkind.Of(err) != errkind.Timeout {
		t.Errorf("got %v", err)
	}
}

func TestExecNeedsPrograms(t *testing.T) {
	t.Parallel()
	h := block("exec", map[string]cty.Value{"join": argv("/bin/true")})
	_, diags := handover.New(site(h), map[string]handover.Kind{"exec": command.Command{}}, nil).Plan(onnodetest.NewRun())
	if len(diags) != 1 || !strings.Contains(diags[0].Detail, "`drain`") {
		t.Errorf("got %v", diags)
	}
}

func TestDrainWithoutAHandover(t *testing.T) {
	t.Parallel()
	inv := site(slurmBlock())
	inv.Nodes[0].Handover = nil
	s := handover.New(inv, nil, &statuses{})
	if err := s.Drain(t.Context(), onnodetest.NewRun(), "n1", handover.DrainOptions{}); err != nil {
		t.Error(err)
	}
	if err := s.Drain(t.Context(), onnodetest.NewRun(), "n2", handover.DrainOptions{}); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("got %v", err)
	}
}
