// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/validate/accept"
)

// line is the serial line of n1, which is given to one reader and any number of typists.
type line struct {
	mu      sync.Mutex
	to      []io.Writer
	refuse  error         // of the next try to open it
	drop    chan error    // ends who reads
	opened  chan struct{} // takes one for each that is open
	typed   string
	readers int
}

func newLine() *line { return &line{drop: make(chan error), opened: make(chan struct{}, 100)} }

func (l *line) open(ctx context.Context, _ string, to io.Writer, keys <-chan string, up func()) error {
	l.mu.Lock()
	if err := l.refuse; err != nil {
		l.refuse = nil
		l.mu.Unlock()
		return err
	}
	l.to = append(l.to, to)
	l.readers++
	l.mu.Unlock()
	up()
	l.opened <- struct{}{}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.readers--
		l.to = slices.DeleteFunc(l.to, func(w io.Writer) bool { return w == to })
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-l.drop:
			return err
		case k := <-keys:
			l.mu.Lock()
			l.typed += k
			l.mu.Unlock()
		}
	}
}

// print prints to whoever reads.
func (l *line) print(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.to {
		_, _ = io.WriteString(w, text)
	}
}

// openAt reads n1 of a line.
func recorderOf(t *testing.T, l *line) (*Recorder, string) {
	t.Helper()
	dir := t.TempDir()
	r := NewRecorder(Config{Has: func(node string) bool { return node == "n1" }, Open: l.open, Folder: dir, Bus: event.NewBus(16),
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }})
	t.Cleanup(r.Close)
	return r, dir
}

// logOf is the log of n1.
func logOf(t *testing.T, dir string) (lines []string) {
	t.Helper()
	err := Read(dir, "n1", func(l Line) error {
		text := l.Text
		if l.Note {
			text = "# " + text
		}
		lines = append(lines, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// stepRun is the stage.Run of a step of n1.
type stepRun struct {
	stage.Run
	facts []fact.Fact
}

func (*stepRun) Members() []subject.ID                 { return []subject.ID{subject.OfNode("n1")} }
func (*stepRun) Attach(string, []byte) (string, error) { return "sha256:1", nil }
func (*stepRun) Emit(event.Event)                      {}
func (*stepRun) Clock() clock.Clock                    { return clock.Wall{} }
func (r *stepRun) Learn(_ context.Context, f ...fact.Fact) error {
	r.facts = append(r.facts, f...)
	return nil
}

// working is a stage that does what a test says.
type working struct {
	stage.Stage
	do func() error
}

func (w working) Apply(context.Context, stage.Run, plan.Step) error { return w.do() }

// TestWholeBringUp: a console is read from the first step that may switch the node until the node is accepted,
// also between steps; steps see what was printed since they began, and what a failed one saw is kept.
func TestWholeBringUp(t *testing.T) {
	t.Parallel()
	l := newLine()
	r, dir := recorderOf(t, l)
	inv := &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1"}}}
	run := &stepRun{}
	step := func(id plan.StepID, may plan.EffectSet, do func() error) error {
		return r.Around(inv, working{do: do}).Apply(t.Context(), run, plan.Step{ID: id, Subject: subject.OfNode("n1"), May: may})
	}
	if err := step("n1/bmc.reach", 0, func() error { return nil }); err != nil || l.readers != 0 {
		t.Errorf("read before its first power action: %v", err)
	}
	if err := step("n1/install.netboot", plan.Effects(plan.Power), func() error { <-l.opened; l.print("PXE\n"); return nil }); err != nil {
		t.Error(err)
	}
	l.print("between\n")
	failed := errors.New("a test failed")
	err := step("n1/validate.gpu", 0, func() error {
		l.print("NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus\x07\n")
		c := r.Of("n1", "n1/validate.gpu")
		if c == nil || !slices.Equal(c.Lines, []string{`NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus`}) || c.Error != "" {
			t.Errorf("%+v", c)
		}
		if r.Of("n1", "n1/install.netboot") != nil {
			t.Error("a step that has ended has a console")
		}
		return failed
	})
	if !errors.Is(err, failed) || len(run.facts) != 1 {
		t.Fatalf("%v, %v", err, run.facts)
	}
	tail, err := install.ConsoleFact.Get(run.facts[0])
	if err != nil || tail.Step != "n1/validate.gpu" || len(tail.Lines) != 1 || tail.Ref != "sha256:1" {
		t.Errorf("%+v, %v", tail, err)
	}
	if err := step(accept.ID("n1"), 0, func() error { return nil }); err != nil {
		t.Error(err)
	}
	r.wg.Wait()
	if l.readers != 0 {
		t.Error("read after it was accepted")
	}
	want := []string{"# the console is open", "PXE", "between", "NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus"}
	if got := logOf(t, dir); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestReadAgain: a console that somebody else has is asked for again, a BMC that drops it is called again, and
// neither ends a step; what cannot be read at all is not tried again.
func TestReadAgain(t *testing.T) {
	t.Parallel()
	l := newLine()
	l.refuse = errkind.New(errkind.Refused, "somebody else has the console open")
	r, dir := recorderOf(t, l)
	r.Begin("n2") // has none
	r.Begin("n1")
	r.Begin("n1")
	<-l.opened
	l.print("first\n")
	l.drop <- errkind.New(errkind.Unreachable, "the BMC is gone")
	<-l.opened
	l.print("second\n")
	l.drop <- errkind.New(errkind.Auth, "wrong password")
	r.wg.Wait()
	want := []string{"# the console is not read: somebody else has the console open", "# the console is open", "first",
		"# the console is not read: the BMC is gone", "# the console is open", "second", "# the console is not read: wrong password"}
	if got := logOf(t, dir); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	r.of("n1").watch("s")
	if c := r.Of("n1", "s"); c == nil || c.Error != "wrong password" {
		t.Errorf("%+v", c)
	}
}

// TestTyping: what is printed while a step types may hold the password, and is kept nowhere.
func TestTyping(t *testing.T) {
	t.Parallel()
	l := newLine()
	r, dir := recorderOf(t, l)
	if err := r.Type(t.Context(), "n2", io.Discard, nil, nil); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("%v", err)
	}
	r.Begin("n1")
	<-l.opened
	l.mu.Lock()
	l.refuse = errkind.New(errkind.Refused, "somebody else has the console open") // a killed controller's session
	l.mu.Unlock()
	r.of("n1").watch("n1/install.mok")
	l.print("before\n")
	ctx, cancel := context.WithCancel(t.Context())
	keys, done := make(chan string), make(chan error, 1)
	var seen strings.Builder
	go func() { done <- r.Type(ctx, "n1", &seen, keys, func() {}) }()
	<-l.opened
	keys <- "secret"
	l.print("secret\n")
	if lines, ever := r.Printed("n1"); !slices.Equal(lines, []string{"before", "secret"}) || ever != 2 {
		t.Errorf("%q, %d", lines, ever)
	}
	cancel()
	if err := <-done; err != nil || seen.String() != "secret\n" || l.typed != "secret" {
		t.Errorf("%v, saw %q", err, seen.String())
	}
	l.print("after\n")
	if lines := r.of("n1").unwatch("n1/install.mok"); !slices.Equal(lines, []string{"after"}) {
		t.Errorf("%q", lines)
	}
	if got := logOf(t, dir); !slices.Equal(got, []string{"# the console is open", "before", "after"}) {
		t.Errorf("%q", got)
	}
}

// TestBounded: however much a node prints, its last lines are kept; and a log that cannot be written ends
// nothing and is said once.
func TestBounded(t *testing.T) {
	t.Parallel()
	l := newLine()
	r, dir := recorderOf(t, l)
	r.Begin("n1")
	<-l.opened
	x := r.of("n1")
	x.watch("s")
	for i := range 12_000 {
		l.print(fmt.Sprintf("%06d %s\n", i, strings.Repeat("a", 40)))
	}
	if x.bytes > tailBytes || x.bytes < tailBytes-100 {
		t.Errorf("%d bytes in memory", x.bytes)
	}
	if lines := x.unwatch("s"); !strings.HasPrefix(lines[len(lines)-1], "011999") {
		t.Errorf("%q", lines[len(lines)-1])
	}
	var sum int64
	files, err := os.ReadDir(filepath.Join(dir, Folder))
	for _, f := range files {
		info, _ := f.Info()
		sum += info.Size()
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", f.Name(), info.Mode())
		}
	}
	got := logOf(t, dir)
	if err != nil || sum > 2*fileMost || sum < fileMost || !strings.HasPrefix(got[len(got)-1], "011999") {
		t.Errorf("%d bytes in %d files, %d lines: %v", sum, len(files), len(got), err)
	}

	full := filepath.Join(dir, "full")
	if err := os.WriteFile(full, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bus := event.NewBus(16)
	other := newLine()
	blocked := NewRecorder(Config{Has: r.cfg.Has, Open: other.open, Folder: full, Bus: bus, Now: time.Now})
	defer blocked.Close()
	blocked.Begin("n1")
	<-other.opened
	other.print("one\ntwo\n")
	e, ok := bus.Subscribe(0).Ready()
	if !ok || !strings.HasPrefix(e.Text, "warning: consoles are not kept: ") || bus.Newest() != e.Seq {
		t.Errorf("%+v", e)
	}
	if x := blocked.of("n1"); !slices.Equal(x.from(0), []string{"one", "two"}) {
		t.Errorf("%q", x.from(0))
	}
}

// TestReadLog: a log that was cut off is read as far as it goes, and continued on a line of its own; and none is said.
func TestReadLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Read(dir, "n1", nil); errkind.Of(err) != errkind.NotFound {
		t.Errorf("%v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, Folder), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "2026-01-02T03:04:05Z | one\nnonsense\n2026-01-02T03:04:06Z # lost\nyesterday | two\n2026-01-0"
	if err := os.WriteFile(filepath.Join(dir, Folder, "n1.log"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := logOf(t, dir); !slices.Equal(got, []string{"one", "# lost"}) {
		t.Errorf("%q", got)
	}
	l := log{folder: filepath.Join(dir, Folder), node: "n1"}
	for _, text := range []string{"three", "four"} {
		if err := l.write(Line{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
	if got := logOf(t, dir); !slices.Equal(got, []string{"one", "# lost", "three", "four"}) {
		t.Errorf("%q", got)
	}
}
