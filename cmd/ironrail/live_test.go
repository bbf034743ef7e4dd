// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/provision"
)

// heard is a writer that says when a text was written to it.
type heard struct {
	text    string
	written chan struct{} // closed once text was written

	mu  sync.Mutex // guards all
	all bytes.Buffer
}

func newHeard(text string) *heard { return &heard{text: text, written: make(chan struct{})} }

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := strings.Contains(h.all.String(), h.text)
	n, err := h.all.Write(b)
	if !before && strings.Contains(h.all.String(), h.text) {
		close(h.written)
	}
	return n, err
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.String()
}

// gated is an owner whose BMCs answer once a text was printed; asked is told of each
// question.
type gated struct {
	backend
	after <-chan struct{}
	asked chan<- struct{}
}

// wait is false for a question that was given up before the gate was open.
func (g gated) wait(ctx context.Context) bool {
	g.asked <- struct{}{}
	select {
	case <-g.after:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g gated) Look(ctx context.Context, node string) (control.Look, error) {
	if !g.wait(ctx) {
		return control.Look{}, ctx.Err()
	}
	return g.backend.Look(ctx, node)
}

func (g gated) AskBMCs(ctx context.Context, q control.BMCQuestion, nodes []string, tell func(control.BMCAnswer)) ([]control.BMCAnswer, error) {
	if !g.wait(ctx) {
		return nil, ctx.Err()
	}
	return g.backend.AskBMCs(ctx, q, nodes, tell)
}

// slow is an owner of which the BMC of n1 answers once the answer of n2 was printed, or
// never.
type slow struct {
	backend
	printed <-chan struct{} // nil: the owner ends before n1 answers
	nodes   chan []string   // what was asked for
}

func (s slow) AskBMCs(ctx context.Context, q control.BMCQuestion, nodes []string, tell func(control.BMCAnswer)) ([]control.BMCAnswer, error) {
	s.nodes <- nodes
	all, _ := s.backend.AskBMCs(ctx, q, nodes, func(control.BMCAnswer) {})
	tell(all[1])
	if s.printed == nil {
		panic(http.ErrAbortHandler)
	}
	select {
	case <-s.printed:
		tell(all[0])
	case <-ctx.Done():
	}
	return all, nil
}

// TestPowerDuringARun: a BMC that does not answer holds up no other answer, and a run
// that ends before it does leaves it unknown.
func TestPowerDuringARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends bool
		args []string
		last string
		code int
	}{
		"text":         {false, nil, "n2             unknown: nothing \\x1b[31manswers\nn1             on\n", exitSomeFailed},
		"named":        {false, []string{"n2", "n1"}, "n2             unknown: nothing \\x1b[31manswers\nn1             on\n", exitSomeFailed},
		"the run ends": {true, nil, "n2             unknown: nothing \\x1b[31manswers\nn1             unknown: apply ended before the BMC answered\n", exitSomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, talk := newHeard("n2             unknown"), &bytes.Buffer{}
			s := slow{newBackend(), out.written, make(chan []string, 1)}
			if c.ends {
				s.printed = nil
			}
			dir := owns(t, s)
			if code := newApp(out, talk).run(t.Context(), append([]string{"-C", dir, "power", "status"}, c.args...)); code != c.code {
				t.Fatalf("exit code %d, want %d: %s", code, c.code, talk)
			}
			if nodes := <-s.nodes; !slices.Equal(nodes, c.args) || !strings.HasSuffix(out.String(), "Asked now:\n"+c.last) {
				t.Errorf("asked for %q, printed %q", nodes, out)
			}
		})
	}
}

// TestPowerJSONKeepsTheOrder: the list has the order of the site, whoever answers first.
func TestPowerJSONKeepsTheOrder(t *testing.T) {
	t.Parallel()
	out, talk, open := newHeard("{"), &bytes.Buffer{}, make(chan struct{})
	close(open)
	dir := owns(t, slow{newBackend(), open, make(chan []string, 1)})
	newApp(out, talk).run(t.Context(), []string{"-C", dir, "--json", "power", "status"})
	var list []control.BMCAnswer
	if err := json.Unmarshal([]byte(out.String()), &list); err != nil || len(list) != 2 || list[0].Node != "n1" || list[1].Node != "n2" {
		t.Errorf("%v: %s", err, out)
	}
}

// owns serves b as the owner of the tiny site in a folder, which it returns.
func owns(t *testing.T, b control.Backend) string {
	t.Helper()
	dir := tinySite(t)
	owner, err := control.AcquireFolder(filepath.Join(dir, provision.StateFolder), "apply", fixtureTime)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := owner.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- control.Serve(ctx, ln, b, "1.2.3") }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := owner.Release(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// tinySite makes the folder of a site of two nodes, changed as the pairs of old and new texts say.
func tinySite(t *testing.T, changes ...string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/site.hcl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(strings.NewReplacer(changes...).Replace(string(b))), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestKnownBeforeTheBMCAnswers: no BMC answers before what is known was printed. A
// command that prints it afterwards would wait for itself, and fail.
func TestKnownBeforeTheBMCAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		known string
		last  string // how the text ends
		code  int
	}{
		"why":          {[]string{"why", "n1"}, "(1 times, last 2026-01-02 15:04:06)\n", "BMC, asked now (2026-01-02 15:04:05): the power is on, the firmware is at PCIResource\\x1b[31mConfigStarted.\n", 0},
		"power status": {[]string{"power", "status"}, "Asked now:\n", "n1             on\nn2             unknown: nothing \\x1b[31manswers\n", exitSomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, talk := newHeard(c.known), &bytes.Buffer{}
			asked := make(chan struct{}, 1)
			dir := owns(t, gated{newBackend(), out.written, asked})
			if code := newApp(out, talk).run(t.Context(), append([]string{"-C", dir}, c.args...)); code != c.code {
				t.Fatalf("exit code %d, want %d: %s", code, c.code, talk)
			}
			before, after, ok := strings.Cut(out.String(), c.known)
			if !ok || !strings.HasSuffix(after, c.last) || strings.Contains(before, "ConfigStarted") || len(asked) != 1 {
				t.Errorf("asked %d times; printed %q, then %q", len(asked), before, after)
			}
		})
	}
}

// TestLogsAndSensors: both are asked of the owner while there is one, and shown without what a BMC might do
// to a terminal.
func TestLogsAndSensors(t *testing.T) {
	t.Parallel()
	dir := owns(t, newBackend())
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"sel":      {[]string{"sel", "n1", "--last", "7"}, "n1:\n  2026-01-02 15:04:05  Critical  one of the last 7\n  no time              OK        power\\x1b[31m unit\n", exitDone},
		"sensors":  {[]string{"sensors", "n1"}, "n1:\n  Inlet Temp                         24.5 Cel\n", exitDone},
		"negative": {[]string{"sel", "--last", "-1"}, "", exitUsage},
		"json":     {[]string{"--json", "sensors", "n1"}, "[\n  {\n    \"node\": \"n1\",\n    \"state\": \"\",\n    \"sensors\": [\n      {\n        \"name\": \"Inlet Temp\",\n        \"value\": 24.5,\n        \"unit\": \"Cel\"\n      }\n    ],\n    \"at\": \"2026-01-02T15:04:05Z\"\n  }\n]\n", exitDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, talk bytes.Buffer
			if code := newApp(&out, &talk).run(t.Context(), append([]string{"-C", dir}, c.args...)); code != c.code || out.String() != c.want {
				t.Errorf("exit code %d, printed %q, want %d, %q: %s", code, out.String(), c.code, c.want, talk.String())
			}
		})
	}
}

// TestJSONWaitsForTheBMC: as JSON nothing is printed before the answer came, and then
// one document with it.
func TestJSONWaitsForTheBMC(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"why", "n1"}, {"power", "status", "n1"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			out, talk := newHeard("{"), &bytes.Buffer{}
			asked, open := make(chan struct{}), make(chan struct{})
			dir := owns(t, gated{newBackend(), open, asked})
			code := make(chan int)
			go func() { code <- newApp(out, talk).run(t.Context(), append([]string{"-C", dir, "--json"}, args...)) }()
			<-asked
			if early := out.String(); early != "" {
				t.Errorf("printed before the BMC answered: %q", early)
			}
			close(open)
			if got := <-code; got != 0 {
				t.Fatalf("exit code %d: %s", got, talk)
			}
			var doc any
			if err := json.Unmarshal([]byte(out.String()), &doc); err != nil || !strings.Contains(out.String(), `"on"`) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestCtrlCKeepsWhatIsKnown: Ctrl-C while a BMC is waited for ends with 130, and what
// was printed stays. It is not parallel: the signal is for the whole process.
func TestCtrlCKeepsWhatIsKnown(t *testing.T) {
	for name, args := range map[string][]string{"why": {"why", "n1"}, "power": {"power", "status"}} {
		t.Run(name, func(t *testing.T) {
			out, talk := newHeard("n1"), &bytes.Buffer{}
			asked := make(chan struct{})
			dir := owns(t, gated{newBackend(), nil, asked})
			code := make(chan int)
			go func() { code <- newApp(out, talk).run(t.Context(), append([]string{"-C", dir}, args...)) }()
			<-asked
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if got := <-code; got != exitInterrupted {
				t.Errorf("exit code %d, want %d: %s", got, exitInterrupted, talk)
			}
			if got := out.String(); !strings.Contains(got, "n1") || strings.Contains(got, "unknown:") || strings.Contains(got, "BMC, asked now") {
				t.Errorf("printed %q", got)
			}
		})
	}
}

// TestBMCsAreAskedTogether: without a run, a BMC that accepts and says nothing holds up
// neither what is known nor the question to the next one.
func TestBMCsAreAskedTogether(t *testing.T) {
	t.Parallel()
	one, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	_, port, _ := net.SplitHostPort(one.Addr().String())
	other, err := net.Listen("tcp", "127.0.0.3:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	dir := silentSite(t, port)
	out, talk := newHeard("Asked now:\n"), &bytes.Buffer{}
	a := newApp(out, talk)
	a.environ = func(string) (string, bool) { return "x", true }
	code := make(chan int, 1)
	go func() {
		code <- a.run(t.Context(), []string{"-C", dir, "power", "status"})
		one.Close()
		other.Close()
	}()
	c, err := one.Accept()
	d, derr := other.Accept() // before the first was answered
	if err != nil || derr != nil {
		t.Fatalf("%v, %v: exit code %d: %s", err, derr, <-code, talk)
	}
	<-out.written
	for _, ln := range []net.Listener{one, other} { // who tries again is refused
		ln.Close()
	}
	c.Close()
	d.Close()
	if got := <-code; got != exitSomeFailed {
		t.Errorf("exit code %d: %s", got, talk)
	}
	if got := out.String(); strings.Count(got, " unknown: ") != 2 || !strings.HasPrefix(got, "Recorded, before any BMC answers:\n  n1 ") {
		t.Errorf("printed %q", got)
	}
}

// silentSite is the tiny site with BMCs on loopback.
func silentSite(t *testing.T, port string) string {
	t.Helper()
	dir := tinySite(t)
	path := filepath.Join(dir, "site.hcl")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	site := strings.NewReplacer(`  protocol = "ipmi"
  network  = network.boot
`, "  protocol = \"redfish\"\n  network  = network.bmcs\n", `{ address = "192.0.2.10${each.value}" }`,
		"{\n      address = \"127.0.0.${each.value}\"\n      port    = "+port+"\n    }").Replace(string(raw))
	site += "network \"bmcs\" { cidr = \"127.0.0.0/24\" }\n"
	if err := os.WriteFile(path, []byte(site), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}
