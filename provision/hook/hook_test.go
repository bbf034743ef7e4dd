// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"encoding/json"
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/hook"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// site is one node with one hook that runs a shell script.
func site(t *testing.T, dir, script string, timeout time.Duration) *inventory.Inventory {
	t.Helper()
	path := filepath.Join(dir, "hook.sh")
	syscall.ForkLock.RLock() // a child that has the file open for writing would make it "busy"
	err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	mac, err := addr.ParseMAC("02:00:00:00:00:01")
	if err != nil {
		t.Fatal(err)
	}
	role := &inventory.Role{Name: "worker"}
	n := &inventory.Node{Name: "n1", Role: role, Rack: &inventory.Rack{Name: "r01"}, Unit: 7, Serial: "ABC1", UUID: "00000000-0000-0000-0000-000000000001",
		BootMAC: mac, Address: netip.MustParseAddr("10.77.0.11"), Hardware: &inventory.Hardware{Name: "gpu"},
		Image:    &inventory.Image{Block: inventory.Block{Name: "os"}},
		Handover: &inventory.Handover{Block: inventory.Block{Name: "lab"}}}
	n.BMC.Address = netip.MustParseAddr("10.77.1.11")
	n.BMC.Username = "secret-user"
	return &inventory.Inventory{Site: inventory.Site{Name: "lab"}, Nodes: []*inventory.Node{n},
		Hooks: []*inventory.Hook{{When: hook.After, Stage: "validate", Command: []string{path, "accepted"}, Timeout: timeout,
			Decl: hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: 9, Column: 1}}}}}
}

// accept is a step that hooks stand after.
var accept = plan.Step{ID: "n1/validate.accept", Stage: "validate", Subject: subject.OfNode("n1")}

// apply runs the one hook of a site once.
func apply(t *testing.T, inv *inventory.Inventory, dir string, run *onnodetest.Run) error {
	t.Helper()
	steps := hook.Place(inv, []plan.Step{accept})
	if len(steps) != 2 {
		t.Fatalf("%d steps", len(steps))
	}
	s := hook.New(inv, dir, nil)
	return s.Apply(t.Context(), run, steps[1])
}

func TestProgramGetsTheNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inv := site(t, dir, `cat >got.json; env | sort >env.txt; pwd >pwd.txt; echo "$1" >arg.txt; echo fine`, time.Minute)
	run := onnodetest.NewRun(subject.OfNode("n1"))
	if err := apply(t, inv, dir, run); err != nil {
		t.Fatal(err)
	}
	golden(t, "call.json", indented(t, read(t, dir, "got.json")))
	env := read(t, dir, "env.txt")
	for _, want := range []string{"IRONRAIL_KEY=n1/hook.validate.after/1", "IRONRAIL_NODE=n1", "IRONRAIL_SITE=lab", "IRONRAIL_STAGE=validate", "IRONRAIL_WHEN=after", "PATH=/usr/local/sbin"} {
		if !strings.Contains(env, want) {
			t.Errorf("%s is not in the environment:\n%s", want, env)
		}
	}
	if strings.Contains(env, "HOME=") || strings.Contains(env, "secret") {
		t.Errorf("the environment is not its own:\n%s", env)
	}
	if got, _ := filepath.EvalSymlinks(dir); strings.TrimSpace(read(t, dir, "pwd.txt")) != got {
		t.Errorf("it ran in %s", read(t, dir, "pwd.txt"))
	}
	if read(t, dir, "arg.txt") != "accepted\n" {
		t.Errorf("argument %q", read(t, dir, "arg.txt"))
	}
	// The next call is another one.
	if err := apply(t, inv, dir, run); err != nil {
		t.Fatal(err)
	}
	if want := []string{"n1/hook.validate.after/1", "n1/hook.validate.after/2"}; !slices.Equal(run.Effects, want) {
		t.Errorf("effects %q, want %q", run.Effects, want)
	}
	if len(run.Evidence) == 0 {
		t.Error("its output was not kept")
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		timeout      time.Duration
		kind         errkind.Kind
		cause        string
		evidence     string
	}{
		{"a status", `echo one; printf 'no \033[31mquota\n' >&2; exit 7`, time.Minute, errkind.Refused, "ended with exit status 7", `no \x1b[31mquota`},
		{"a signal", `kill -TERM $$`, time.Minute, errkind.Refused, "signal: terminated", ""},
		{"a timeout", `echo waiting; exec sleep 600`, 3 * time.Second, errkind.Timeout, "did not end within its timeout", "waiting"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := onnodetest.NewRun(subject.OfNode("n1"))
			err := apply(t, site(t, dir, c.script, c.timeout), dir, run)
			if errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.cause) || errkind.Action(err) == "" {
				t.Errorf("error %v (%v)", err, errkind.Of(err))
			}
			if len(run.Findings) != 1 || run.Findings[0].Suspects[0].Subject != subject.OfNode("n1") {
				t.Fatalf("findings %+v", run.Findings)
			}
			if all := strings.Join(run.Findings[0].Evidence, "\n"); !strings.Contains(all, c.evidence) {
				t.Errorf("evidence %q lacks %q", all, c.evidence)
			}
		})
	}
}

func TestNoProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inv := site(t, dir, "", time.Minute)
	inv.Hooks[0].Command = []string{filepath.Join(dir, "absent")}
	err := apply(t, inv, dir, onnodetest.NewRun(subject.OfNode("n1")))
	if errkind.Of(err) != errkind.NotFound || !strings.Contains(errkind.Action(err), "site.hcl:9") {
		t.Errorf("%v: %s", err, errkind.Action(err))
	}
}

// TestTimeoutKillsTheGroup: what the program had started dies with it, and so does
// what it leaves behind when it ends well.
func TestTimeoutKillsTheGroup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script  string
		timeout time.Duration
	}{
		"timeout":     {`sleep 600 & echo $! >child.pid; wait`, 3 * time.Second},
		"left behind": {`sleep 600 & echo $! >child.pid; exit 0`, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := onnodetest.NewRun(subject.OfNode("n1"))
			err := apply(t, site(t, dir, c.script, c.timeout), dir, run)
			if (err != nil) != (name == "timeout") {
				t.Errorf("error %v", err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(read(t, dir, "child.pid")))
			if err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
				stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
				if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(stat), ") Z ") {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("process %d lives on: %s", pid, stat)
				}
			}
		})
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := onnodetest.NewRun(subject.OfNode("n1"))
	if err := apply(t, site(t, dir, `head -c 3000000 /dev/zero | tr '\0' x; echo; echo the end; exit 1`, time.Minute), dir, run); err == nil {
		t.Fatal("no error")
	}
	for ref, b := range run.Evidence {
		if len(b) > 65<<10 || !strings.HasSuffix(string(b), "the end\n") || !strings.HasPrefix(string(b), "[the beginning") {
			t.Errorf("%s has %d bytes", ref, len(b))
		}
	}
	if got := run.Findings[0].Evidence; len(got) < 2 || got[1] != "the end" || len(got[0]) > 600 {
		t.Errorf("evidence %q", got)
	}
}

// TestChangedSincePlan: what runs is what was shown.
func TestChangedSincePlan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inv := site(t, dir, "exit 0", time.Minute)
	st := hook.Place(inv, []plan.Step{accept})[1]
	inv.Hooks[0].Command = append(inv.Hooks[0].Command, "more")
	err := hook.New(inv, dir, nil).Apply(t.Context(), onnodetest.NewRun(subject.OfNode("n1")), st)
	if errkind.Of(err) != errkind.Mismatch {
		t.Errorf("error %v", err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func indented(t *testing.T, text string) string {
	t.Helper()
	var c hook.Call
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
	}
}
