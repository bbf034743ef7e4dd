// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/keys"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	testscript.Main(m, map[string]func(){"ironrail": main, "fixture": fixture, "owned": owned})
}

// TestLongScripts runs every script in a folder of its own that holds the tiny site,
// unless the script brings another one.
func TestLongScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "UTC")
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			e.Setenv("EXAMPLES", examples)
			netbox, err := filepath.Abs("../../provision/netbox/testdata/saved")
			if err != nil {
				return err
			}
			e.Setenv("NETBOX", netbox)
			site := filepath.Join(e.WorkDir, "site.hcl")
			if _, err := os.Stat(site); err == nil {
				return nil
			}
			b, err := os.ReadFile("testdata/site.hcl")
			if err != nil {
				return err
			}
			return os.WriteFile(site, b, 0o644)
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"subst": subst, "code": code, "holds": holds, "interrupt": interrupt, "summary": summary, "ungap": ungap, "until": until, "documented": documented},
	})
}

// subst replaces a text in a file: subst FILE OLD NEW. \n in NEW is the end of a line.
func subst(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: subst FILE OLD NEW")
	}
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	if !bytes.Contains(b, []byte(args[1])) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(path, bytes.ReplaceAll(b, []byte(args[1]), []byte(strings.ReplaceAll(args[2], `\n`, "\n"))), 0o644))
}

// code runs ironrail and wants an exit code: code 64 ironrail plan --bogus. What
// it printed is compared as that of exec.
func code(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		e, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = fmt.Sprint(e.ExitCode())
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, not %s", got, args[0])
	}
}

// until runs a command again and again until its standard output matches a pattern: until
// PATTERN COMMAND. Its end after a minute only ends a test that hangs.
func until(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND")
	}
	wanted := regexp.MustCompile("(?m)" + args[0])
	var out string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...) // it may fail until it does not
		if out = ts.ReadFile("stdout"); wanted.MatchString(out) {
			return
		}
	}
	ts.Fatalf("no %q after a minute:\n%s%s", args[0], out, ts.ReadFile("stderr"))
}

// ungap takes the list of gaps out of what plan printed, as data or as text: a saved plan
// does not hold it. ungap FILE.
func ungap(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	text := string(b)
	if before, _, found := strings.Cut(text, ",\n  \"gaps\": ["); found {
		text = before + "\n}\n"
	} else if list := printedGaps(text); list != "" {
		text = strings.Replace(text, gapsTitle+list, "", 1)
	} else {
		ts.Fatalf("%s has no list of gaps", args[0])
	}
	ts.Check(os.WriteFile(path, []byte(text), 0o644))
}

// holds reports the files below a folder that hold a text: [!] holds FOLDER TEXT.
func holds(ts *testscript.TestScript, neg bool, args []string) {
	var found []string
	err := filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(args[1])) {
			found = append(found, path)
		}
		return err
	})
	ts.Check(err)
	if (len(found) > 0) == neg {
		ts.Fatalf("%q is held by %q", args[1], found)
	}
}

// fixture writes what a run would have left behind into the state of the site in
// this folder.
func fixture() {
	if err := writeFixture(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var fixtureTime = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func writeFixture(ctx context.Context, what string, args []string) error {
	if err := os.MkdirAll(provision.StateFolder, 0o700); err != nil {
		return err
	}
	k, err := keys.Load(filepath.Join(provision.StateFolder, "keys"))
	if err != nil {
		return err
	}
	if what == "modules" { // the key that signs kernel modules is made
		return k.AddModules(provision.StateFolder, "tiny", time.Now())
	}
	if what == "recovery" { // two nodes have encrypted volumes
		_, err := k.Recovery().Make("n1", "scratch", "6c616230-0000-4000-8000-000000000001")
		_, more := k.Recovery().Make("n2", "home", "6c616230-0000-4000-8000-000000000002")
		return errors.Join(err, more)
	}
	s, err := state.Open(provision.StatePath("."))
	if err != nil {
		return err
	}
	defer s.Close()
	fence, err := s.Claim(ctx, "fixture")
	if err != nil {
		return err
	}
	var b state.Batch
	switch what {
	case "done": // PLAN: every step of it has ended well, its nodes are accepted
		err = finished(&b, args[0])
	case "unfinished": // PLAN: a run of it was stopped
		err = stopped(&b, args[0])
	case "quarantined": // NODE: it never asked for an address
		f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(args[0]), Part: "boot NIC"}}, Step: args[0] + "/install.netboot",
			Cause: "the node never asked for an address", Evidence: []string{"power was switched on"}, Action: "Check the cable."}
		err = put(&b, state.NodeKey(args[0]), state.Node{Name: args[0], Run: "r1",
			Quarantine: &state.Quarantine{Finding: f, Kind: errkind.Timeout, At: fixtureTime, Run: "r1"}})
	case "real": // its first run has recorded whose the state is
		return k.BindIdentity(ctx, s, fence, "demo")
	case "strange": // an event segment with a refused client that no node owns
		return strangeEvents()
	default:
		return fmt.Errorf("no fixture %q", what)
	}
	if err != nil {
		return err
	}
	_, err = s.Append(ctx, fence, b)
	return err
}

func put(b *state.Batch, k state.Key, v any) error {
	p, err := state.PutOf(k, v)
	b.Puts = append(b.Puts, p)
	return err
}

func finished(b *state.Batch, path string) error {
	p, _, err := readPlan(path, nil)
	if err != nil {
		return err
	}
	for _, s := range p.Steps {
		if err := put(b, state.StepKey(s.ID), state.Step{ID: s.ID, State: state.StepIsDone, Version: s.Version, Inputs: s.Inputs, Started: fixtureTime, Ended: fixtureTime}); err != nil {
			return err
		}
		if s.Subject.Kind == subject.Node {
			if err := put(b, state.NodeKey(s.Subject.Name), state.Node{Name: s.Subject.Name, Accepted: true, AcceptedAt: fixtureTime, Run: "r1"}); err != nil {
				return err
			}
		}
	}
	return nil
}

func stopped(b *state.Batch, path string) error {
	p, _, err := readPlan(path, nil)
	if err != nil {
		return err
	}
	approval := state.Approval{By: "ann", Host: "head1", At: fixtureTime, How: state.ByTyping, Erase: 2, MaxErase: new(1)}
	run := state.Run{ID: "r1", Plan: p.ID, Started: fixtureTime, Ended: fixtureTime, Outcome: state.RunDrained, Approvals: []state.Approval{approval}}
	f, err := install.AttemptFact.New(subject.OfNode("n1"), install.Attempt{Node: "n1", ID: "a1"}, "")
	if err != nil {
		return err
	}
	if err := put(b, state.FactKey(f.Key), f); err != nil {
		return err
	}
	if err := put(b, state.PlanKey(p.ID), p); err != nil {
		return err
	}
	return put(b, state.LastRun, run)
}

func strangeEvents() error {
	bus := event.NewBus(10)
	bus.Emit(event.Event{Type: event.RunStarted, Run: "r1", Time: fixtureTime})
	for range 3 {
		bus.Emit(event.Event{Type: event.Evidence, Time: fixtureTime.Add(time.Minute), Text: "dhcp discover: no node has this MAC",
			Data: map[string]string{"mac": "02:00:00:00:99:99", "refused": "true"}})
	}
	bus.Emit(event.Event{Type: event.StepFailed, Node: "n2", Step: "n2/bmc", Time: fixtureTime.Add(time.Minute), Text: "told \x1b[2Jlies"})
	bus.Close()
	log := event.Log{Dir: filepath.Join(provision.StateFolder, "events")}
	return log.Follow(context.Background(), bus.Subscribe(0))
}

// owned runs a command while this process owns the state of the site in this
// folder and answers on its control socket: owned ironrail status.
func owned() {
	code, err := runOwned(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 99
	}
	os.Exit(code)
}

func runOwned(args []string) (int, error) {
	if args[0] == "reading" { // owned reading ironrail hold n1: another command only looks at the state, for long
		s, err := state.OpenReadOnly(provision.StatePath("."))
		if err != nil {
			return 0, err
		}
		defer s.Close()
		return newApp(os.Stdout, os.Stderr).run(context.Background(), args[2:]), nil
	}
	owner, err := control.AcquireFolder(provision.StateFolder, "apply", fixtureTime)
	if err != nil {
		return 0, err
	}
	defer owner.Release()
	if args[0] == "deaf" { // owned deaf ironrail status: it does not answer yet
		return newApp(os.Stdout, os.Stderr).run(context.Background(), args[2:]), nil
	}
	ln, err := owner.Listen()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- control.Serve(ctx, ln, newBackend(), "1.2.3") }()
	rc := newApp(os.Stdout, os.Stderr).run(ctx, args[1:])
	cancel()
	return rc, <-served
}

// backend answers with a run in which n1 waits for its netboot.
type backend struct{ bus *event.Bus }

func newBackend() backend {
	b := backend{event.NewBus(10)}
	b.bus.Emit(event.Event{Type: event.StepStarted, Node: "n1", Stage: "install", Step: "n1/install.netboot", Time: fixtureTime, Text: "power on"})
	b.bus.Emit(event.Event{Type: event.RunEnded, Time: fixtureTime, Text: "done"})
	return b
}

var netbooting = apply.StepStatus{ID: "n1/install.netboot", Stage: "install", Node: "n1", State: "running", Text: "waits for DHCP",
	Since: fixtureTime, Until: fixtureTime.Add(10 * time.Minute)}

func (backend) Status(context.Context) (control.Status, error) {
	run := apply.Status{Run: "r2", Plan: "p2", Started: fixtureTime, Counts: map[string]int{"running": 1}, Active: []apply.StepStatus{netbooting},
		Nodes: []apply.NodeStatus{
			{NodeResult: apply.NodeResult{Name: "n1", Outcome: apply.NodeActive}, Done: 1, Total: 9},
			{NodeResult: apply.NodeResult{Name: "n2", Outcome: apply.NodeActive}, Total: 9}}}
	return control.Status{Owner: control.Identity{PID: 7, Command: "apply", Started: fixtureTime}, Run: &run,
		Nodes: []state.Node{{Name: "n1", Run: "r2"}, {Name: "n2", Run: "r2"}}}, nil
}

func (backend) Why(_ context.Context, node string) (control.Why, error) {
	if node == "n3" {
		return control.Why{}, errkind.New(errkind.Refused, "%q is not a node of this site", node)
	}
	return control.Why{Node: state.Node{Name: node}, Active: []apply.StepStatus{netbooting}, Evidence: []event.Event{
		{Type: event.Evidence, Time: fixtureTime.Add(time.Second), Text: "dhcp discover: no node has this MAC", Data: map[string]string{"mac": "02:00:00:00:99:99", "refused": "true"}}}}, nil
}

func (backend) Look(context.Context, string) (control.Look, error) {
	return control.Look{At: fixtureTime, Power: "on", Progress: "PCIResource\x1b[31mConfigStarted"}, nil
}

func (backend) Hold(context.Context, string, control.HoldRequest) error { return nil }

func (backend) Release(_ context.Context, node string, _ control.HoldRequest) error {
	return errkind.New(errkind.Refused, "node %s is not on hold", node)
}

func (backend) AskBMCs(_ context.Context, q control.BMCQuestion, _ []string, tell func(control.BMCAnswer)) ([]control.BMCAnswer, error) {
	if q.For != control.AskPower {
		x := control.BMCAnswer{Node: "n1", At: fixtureTime, Sensors: []control.Sensor{{Name: "Inlet Temp", Value: 24.5, Unit: "Cel"}}}
		if q.For == control.AskLog {
			x = control.BMCAnswer{Node: "n1", At: fixtureTime, Log: []control.LogEntry{{Time: fixtureTime, Severity: "Critical", Text: fmt.Sprintf("one of the last %d", q.Last)}, {Severity: "OK", Text: "power\x1b[31m unit"}}}
		}
		tell(x)
		return []control.BMCAnswer{x}, nil
	}
	all := []control.BMCAnswer{{Node: "n1", State: "on", At: fixtureTime}, {Node: "n2", Error: "nothing \x1b[31manswers", At: fixtureTime}}
	for _, p := range all {
		tell(p)
	}
	return all, nil
}

func (backend) Drain(context.Context) error { return nil }

// Snapshot copies the file, which nothing writes here.
func (backend) Snapshot(ctx context.Context, w io.Writer) error {
	s, err := state.OpenReadOnly(provision.StatePath("."))
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Snapshot(ctx, w)
}

func (b backend) Events(from uint64) *event.Subscription { return b.bus.Subscribe(from) }

// newApp is the command line with other outputs.
func newApp(out, err io.Writer) *app {
	return &app{in: os.Stdin, out: out, err: err, environ: os.LookupEnv, now: time.Now}
}
