// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ironrail/ironrail/engine/event"
)

func note(i int) event.Event { return event.Event{Type: event.Note, Text: fmt.Sprint(i)} }

// ready reads what can be read now.
func ready(s *event.Subscription) (out []string) {
	for {
		e, ok := s.Ready()
		if !ok {
			return out
		}
		out = append(out, e.Text)
	}
}

func TestSubscribe(t *testing.T) {
	t.Parallel()
	b := event.NewBus(3)
	for i := range 5 {
		b.Emit(note(i + 1))
	}
	for _, c := range []struct {
		name string
		from uint64
		want string
	}{
		{"what is kept", 0, "3 4 5"},
		{"from one on", 4, "4 5"},
		{"from one that is gone", 1, "2 events are missing here: this reader was too slow or came too late 3 4 5"},
		{"from the next", 6, ""},
	} {
		if got := strings.Join(ready(b.Subscribe(c.from)), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSlowReaderIsToldWhatItMissed(t *testing.T) {
	t.Parallel()
	b := event.NewBus(4)
	s := b.Subscribe(0)
	b.Emit(note(1))
	if got := ready(s); len(got) != 1 {
		t.Fatalf("%q", got)
	}
	for i := range 10 {
		b.Emit(note(i + 2))
	}
	e, ok := s.Ready()
	if !ok || e.Type != event.Note || e.Total != 6 || e.Seq != 7 {
		t.Errorf("gap: %+v", e)
	}
	if got := strings.Join(ready(s), " "); got != "8 9 10 11" {
		t.Errorf("after the gap: %q", got)
	}
}

func TestNextWaitsAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := event.NewBus(8)
		s := b.Subscribe(0)
		got := make(chan event.Event)
		ended := make(chan error)
		go func() {
			for {
				e, err := s.Next(t.Context())
				if err != nil {
					ended <- err
					return
				}
				got <- e
			}
		}()
		synctest.Wait()
		b.Emit(note(1))
		if e := <-got; e.Text != "1" || e.Seq != 1 || e.Time.IsZero() {
			t.Errorf("%+v", e)
		}
		b.Emit(note(2))
		b.Close()
		b.Emit(note(3))
		if e := <-got; e.Text != "2" {
			t.Errorf("%+v", e)
		}
		if err := <-ended; !errors.Is(err, io.EOF) {
			t.Errorf("end: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := event.NewBus(1).Subscribe(0).Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

func TestConcurrentEmit(t *testing.T) {
	t.Parallel()
	b := event.NewBus(1000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				b.Emit(note(i))
			}
		})
	}
	s, next := b.Subscribe(0), uint64(1)
	for range 800 {
		e, err := s.Next(t.Context())
		if err != nil || e.Seq != next {
			t.Fatalf("event %d where %d was due: %v", e.Seq, next, err)
		}
		next++
	}
	wg.Wait()
}

func TestNilBusDiscards(t *testing.T) {
	t.Parallel()
	var b *event.Bus
	b.Emit(note(1))
	b.Close()
	if _, err := b.Subscribe(0).Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}

func TestLogRotates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 { // the second process goes on behind the first
		b := event.NewBus(1000)
		for i := range 100 {
			b.Emit(note(i))
		}
		b.Close()
		l := event.Log{Dir: dir, Size: 1000, Keep: 3}
		if err := l.Follow(t.Context(), b.Subscribe(0)); err != nil {
			t.Fatal(err)
		}
	}
	names, err := event.Segments(dir)
	if err != nil || len(names) != 3 {
		t.Fatalf("%q %v", names, err)
	}
	last := -1
	for _, n := range names {
		f, err := os.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		if st, err := f.Stat(); err != nil || st.Size() > 1000 {
			t.Errorf("%s: %v %v", n, st.Size(), err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var e event.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			var i int
			_, _ = fmt.Sscan(e.Text, &i)
			if last >= 0 && i != last+1 {
				t.Errorf("%d after %d", i, last)
			}
			last = i
		}
		_ = f.Close()
	}
	if last != 99 {
		t.Errorf("ends with %d", last)
	}
}

// lines reads the texts of all segments; torn lines are "?".
func lines(t *testing.T, dir string) (texts []string) {
	t.Helper()
	names, err := event.Segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var e event.Event
			if json.Unmarshal([]byte(line), &e) != nil {
				e.Text = "?"
			}
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// logged writes notes as one run does.
func logged(t *testing.T, l event.Log, from, to int) error {
	t.Helper()
	b := event.NewBus(to - from + 1)
	for i := from; i < to; i++ {
		b.Emit(note(i))
	}
	b.Close()
	return l.Follow(t.Context(), b.Subscribe(0))
}

// TestLogGoesOn: many short runs share a segment, and a line that a killed one
// left torn is one line.
func TestLogGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 20 {
		if err := logged(t, event.Log{Dir: dir, Size: 10000, Keep: 2}, i, i+1); err != nil {
			t.Fatal(err)
		}
		if i == 9 {
			names, _ := event.Segments(dir)
			f, err := os.OpenFile(names[0], os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(`{"seq":7,"text":"to`); err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
		}
	}
	if got, want := strings.Join(lines(t, dir), " "), "0 1 2 3 4 5 6 7 8 9 ? 10 11 12 13 14 15 16 17 18 19"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestLogWithoutRoom: a log that cannot be written loses its lines, says so, and goes
// on when it can; it never blocks who emits.
func TestLogWithoutRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, logWithoutRoom)
}

func logWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	events := filepath.Join(dir, "events")
	if err := os.WriteFile(events, []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := event.NewBus(100)
	told := make(chan error, 10)
	l := event.Log{Dir: events, Trouble: func(err error) { told <- err }}
	done := make(chan error, 1)
	go func() { done <- l.Follow(context.Background(), b.Subscribe(0)) }()
	b.Emit(note(1))
	if err := <-told; err == nil || !strings.Contains(err.Error(), "event log") {
		t.Errorf("told %v", err)
	}
	b.Emit(note(2))
	if err := os.Remove(events); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2100 * time.Millisecond) // until it tries again
	b.Emit(note(3))
	b.Close()
	if err := <-done; err == nil {
		t.Error("the first error is not returned")
	}
	got := strings.Join(lines(t, events), "|")
	if !strings.HasPrefix(got, "2 events are missing here: they could not be written") || !strings.HasSuffix(got, "|3") {
		t.Errorf("log: %s", got)
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"node n1 ist böse 日本 🚀": "node n1 ist böse 日本 🚀",
		"a\x1b[31mred\x1b[0m":   `a\x1b[31mred\x1b[0m`,
		"two\nlines\r\tand tab": `two\nlines\r\tand tab`,
		"\x7f\x00\u009b31m":     `\x7f\x00\u009b31m`,
		"bad \xff\xfe bytes":    `bad \xff\xfe bytes`,
		"a\u202egnp.exe\u2028":  `a\u202egnp.exe\u2028`,
		`C:\new`:                `C:\new`,
		"given \uFFFD stays":    "given \uFFFD stays",
	} {
		if got := event.Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[2J\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		out := event.Escape(s)
		if !utf8.ValidString(out) || strings.ContainsFunc(out, unicode.IsControl) {
			t.Errorf("Escape(%q) = %q", s, out)
		}
		if event.Escape(out) != out {
			t.Errorf("Escape is not stable on %q", out)
		}
	})
}
