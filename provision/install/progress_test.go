// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/hub"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// watched is a boot that is watched in virtual time: what the node does, and when the wait for
// its agent ends.
func watched(t *testing.T, do func(c *heardOf)) (took time.Duration, told []string) {
	t.Helper()
	c := &heardOf{boots: NewBoots([]byte(strings.Repeat("k", 32)), nil, nil)}
	n := site().Nodes[0]
	n.Hardware.BootTimeout = 3 * time.Minute
	s := New(site(), nil, Dependencies{Boots: c.boots, Hub: hub.New(hub.Config{Grants: c.boots}),
		BMC:      func(context.Context, string) (Control, error) { return nil, errors.New("no BMC") },
		Evidence: func(string, time.Time) []BootEvent { return c.events() },
		Printed:  func(string) ([]string, int) { lines := c.printed(); return lines, len(lines) }})
	run := newNoteTaker()
	ctx, cancel := context.WithTimeout(t.Context(), bootLimit)
	defer cancel()
	wait, giveUp := context.WithCancelCause(ctx)
	began := time.Now()
	go do(c)
	s.watchBoot(wait, giveUp, run, n, plan.Step{ID: StepOf("n1", Netboot)}, Attempt{ID: "a", Node: "n1"})
	return time.Since(began), run.all()
}

// heardOf is what there is to see of a node.
type heardOf struct {
	boots *Boots

	mu    sync.Mutex // guards what follows
	seen  []BootEvent
	lines []string
}

func (h *heardOf) see(s BootEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, s)
}

func (h *heardOf) print(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
}

func (h *heardOf) events() []BootEvent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen)
}

func (h *heardOf) printed() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// TestProgressMovesTheLimit: a node that goes on is waited for, whatever shows it; a
// node that hangs is found in the same time after the last progress; a node that
// repeats itself is one that hangs.
func TestProgressMovesTheLimit(t *testing.T) {
	t.Parallel()
	const limit, minute = 3 * time.Minute, time.Minute
	for _, c := range []struct {
		name     string
		do       func(*heardOf)
		last     time.Duration // when the last progress is made
		reported string
	}{
		{"nothing", func(*heardOf) {}, 0, "first DHCP request"},
		{"console", func(h *heardOf) {
			for i := range 5 {
				time.Sleep(2 * minute)
				h.print("Starting systemd-unit " + string(rune('a'+i)))
			}
		}, 10 * minute, "console: Starting systemd-unit"},
		{"console that repeats itself", func(h *heardOf) {
			for i := range 30 {
				time.Sleep(minute)
				h.print(fmt.Sprintf("[%5d.1] PXE-E18: timeout", i))
			}
		}, minute, "PXE-E18"},
		{"DHCP", func(h *heardOf) {
			time.Sleep(2 * minute)
			h.see(BootEvent{boot.Evidence{Time: time.Now(), Proto: boot.DHCP, What: "offer"}})
		}, 2 * minute, "dhcp offer"},
		{"bytes of a slow initrd", func(h *heardOf) {
			body := newJoin([]Segment{bytes.NewReader(make([]byte, 5<<10))})
			body.sent = h.boots.counter("n1")
			for range 5 {
				time.Sleep(2 * minute)
				_, _ = body.Read(make([]byte, 1<<10))
			}
		}, 10 * minute, "fetches the install ramdisk"},
		{"a console that never ends", func(h *heardOf) {
			for i := range 1000 {
				time.Sleep(minute)
				h.print(strings.Repeat("x", i+1))
			}
		}, bootLimit - limit, "console: x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				took, told := watched(t, c.do)
				if want := c.last + limit; took < want-2*time.Second || took > want+3*time.Second {
					t.Errorf("gave up after %v, want %v", took, want)
				}
				if got := strings.Join(told, "\n"); !strings.Contains(got, c.reported) {
					t.Errorf("told %q, want %q", got, c.reported)
				}
				time.Sleep(24 * time.Hour) // what do still does
			})
		})
	}
}

// TestServedCounts: what a node fetches of its ramdisk is counted.
func TestServedCounts(t *testing.T) {
	t.Parallel()
	b := NewBoots([]byte(strings.Repeat("k", 32)), nil, nil)
	w := httptest.NewRecorder()
	serveSegments(w, httptest.NewRequest("GET", "/boot/a/vmlinuz", nil), b.counter("n1"), bytes.NewReader(make([]byte, 1000)))
	if b.Served("n1") != 1000 || b.Served("n2") != 0 {
		t.Errorf("served %d and %d", b.Served("n1"), b.Served("n2"))
	}
}

// TestTokensOfAttempts: a token is good while its attempt is live, and known to have
// been given after that.
func TestTokensOfAttempts(t *testing.T) {
	t.Parallel()
	b := NewBoots([]byte(strings.Repeat("k", 32)), nil, nil)
	other := NewBoots([]byte(strings.Repeat("s", 32)), nil, nil)
	live := Attempt{ID: "n-1-a", Node: "n-1", Phase: Open, Expires: time.Now().Add(time.Hour)}
	later := live
	later.ID = "n-1-b"
	for _, tt := range []struct {
		name        string
		now         Attempt
		token       string
		open, ended bool
	}{
		{"of the live attempt", live, b.Token("n-1-a"), true, false},
		{"of the attempt before", later, b.Token("n-1-a"), false, true},
		{"of an attempt that has ended", Attempt{ID: live.ID, Node: live.Node, Phase: Ended, Expires: live.Expires}, b.Token("n-1-a"), false, true},
		{"of an attempt that has expired", Attempt{ID: live.ID, Node: live.Node, Phase: Open, Expires: time.Now()}, b.Token("n-1-a"), false, true},
		{"of another controller", live, other.Token("n-1-a"), false, false},
		{"without a code", live, "n-1-a", false, false},
	} {
		b.Set(tt.now)
		_, open := b.Grant(tt.token)
		g, ended := b.Ended(tt.token)
		if open != tt.open || ended != tt.ended || ended && g != live.grant() {
			t.Errorf("%s: open %v, ended %v of %+v", tt.name, open, ended, g)
		}
	}
}

// TestARPMovesTheLimit: a node whose address answers, with its SSH server not up yet,
// has made progress, once.
func TestARPMovesTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := New(site(), nil, Dependencies{Boots: NewBoots(nil, nil, nil)}).watchProgress(site().Nodes[0], plan.Step{}, began, "waits for SSH")
		unreachable := errkind.New(errkind.Unreachable, "ssh: %w", &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH})
		refused := errkind.New(errkind.Unreachable, "ssh: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
		p.noteLoginError(refused, began.Add(time.Second)) // by the ramdisk
		p.noteLoginError(unreachable, began.Add(time.Minute))
		if p.at != began {
			t.Error("a node that nobody reaches has made progress")
		}
		p.noteLoginError(refused, began.Add(2*time.Minute))
		p.noteLoginError(refused, began.Add(3*time.Minute))
		if p.at != began.Add(2*time.Minute) || !strings.Contains(p.what, "answers on its address") {
			t.Errorf("progress %v after the start: %s", p.at.Sub(began), p.what)
		}
	})
}
