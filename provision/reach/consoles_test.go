// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/install"
)

// serial is the serial line of n1 behind a BMC that gives it to one reader at a time.
// What is printed while nobody reads is lost.
type serial struct {
	mu    sync.Mutex
	to    io.Writer // nil: nobody reads
	typed string
}

// open reads the line, and keeps what is typed.
func (s *serial) open(ctx context.Context, t bmc.Target, to io.Writer, keys <-chan string, up func()) error {
	if t.Node != "n1" || t.Addr != serialBMC || t.Username != "admin" || t.Password.Reveal() != "correct-horse-9" {
		return fmt.Errorf("another BMC or account: %+v", t)
	}
	if !s.give(to) {
		return errkind.New(errkind.Refused, "somebody else has the console open")
	}
	if up != nil {
		up()
	}
	for ctx.Err() == nil {
		select {
		case text := <-keys:
			s.mu.Lock()
			s.typed += text
			s.mu.Unlock()
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = nil
	return nil
}

// give gives the line to a reader, unless there is one.
func (s *serial) give(to io.Writer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to != nil {
		return false
	}
	s.to = to
	return true
}

// print prints on the line.
func (s *serial) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to != nil {
		_, _ = io.WriteString(s.to, text)
	}
}

// known is a secret that is where it should be.
type known struct{}

func (known) Resolve(secret.Ref) (secret.Value, error) {
	return secret.NewValue("correct-horse-9"), nil
}

var serialBMC = netip.MustParseAddrPort("10.77.1.1:623")

// listeners are the consoles of a site with n1, which has a console, n2, which
// speaks Redfish, and n3, whose hardware names none.
func listeners(line *serial) *Consoles {
	node := func(name, protocol, port string) *inventory.Node {
		n := &inventory.Node{Name: name, Serial: "S1", Hardware: &inventory.Hardware{Console: inventory.Console{Port: port}}}
		n.BMC.Protocol, n.BMC.Address, n.BMC.Port, n.BMC.Username = protocol, serialBMC.Addr(), serialBMC.Port(), "admin"
		return n
	}
	inv := &inventory.Inventory{Nodes: []*inventory.Node{node("n1", "ipmi", "ttyS1"), node("n2", "redfish", "ttyS1"), node("n3", "ipmi", "")}}
	return NewConsoles(BMCs{Inv: inv, Secrets: known{}, Facts: func(fact.Key) (fact.Fact, bool) { return fact.Fact{}, false }}, line.open)
}

// says waits until a console has printed a text.
func says(t *testing.T, c install.Console, text string) {
	t.Helper()
	for by := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		lines, err := c.Lines()
		if strings.Contains(strings.Join(lines, "\n"), text) {
			return
		}
		if err != nil || time.Now().After(by) {
			t.Fatalf("%q, %v; want %q", lines, err, text)
		}
	}
}

// TestConsoles: a step's console is read and told while it runs, the next step of
// the same node gets it, and nobody else has a console.
func TestConsoles(t *testing.T) {
	t.Parallel()
	line := &serial{}
	c := listeners(line)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, name := range []string{"n2", "n3", "unknown"} {
		if x := c.Open(ctx, name); x != nil {
			t.Errorf("%s has a console", name)
		}
	}
	for _, step := range []string{"first", "second"} {
		x := c.Open(ctx, "n1")
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { // what is printed before the console is open is lost
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
					line.print(step + " \x1b[31mred\r\n")
				}
			}
		})
		says(t, x, step+" red")
		close(stop)
		wg.Wait()
		told := c.Of("n1", "n1/install.netboot")
		if told == nil || len(told.Lines) == 0 || len(told.Lines) > install.TailLines || told.Error != "" {
			t.Errorf("%+v", told)
		}
		x.Close()
		if told := c.Of("n1", "n1/install.netboot"); told != nil {
			t.Errorf("told after its step: %+v", told)
		}
	}
	c.Wait()
}

// TestType: what is typed goes to the node's line, what that prints comes back and is kept for who
// asks, until the end; nodes without a console are refused.
func TestType(t *testing.T) {
	t.Parallel()
	line := &serial{}
	c := listeners(line)
	for _, name := range []string{"n2", "n3", "unknown"} {
		if err := c.Type(t.Context(), name, io.Discard, nil, nil); errkind.Of(err) != errkind.Unsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	keys, up, done := make(chan string), make(chan struct{}), make(chan error, 1)
	var printed bytes.Buffer // written to by print alone
	go func() { done <- c.Type(ctx, "n1", &printed, keys, func() { close(up) }) }()
	<-up
	line.print("Press any key\r\n")
	keys <- " "
	keys <- "\r"
	if lines, ever := c.Printed("n1"); printed.String() != "Press any key\r\n" || !slices.Equal(lines, []string{"Press any key"}) || ever != 1 {
		t.Errorf("printed %q, kept %q", printed.String(), lines)
	}
	cancel()
	if err := <-done; err != nil || line.typed != " \r" {
		t.Errorf("%v; typed %q", err, line.typed)
	}
	if lines, _ := c.Printed("n1"); len(lines) > 0 {
		t.Errorf("kept behind its end: %q", lines)
	}
}

// TestConsoleThatIsTaken: somebody else's console is left to them, and why says so.
func TestConsoleThatIsTaken(t *testing.T) {
	t.Parallel()
	line := &serial{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	theirs, ours := listeners(line), listeners(line)
	a := theirs.Open(ctx, "n1")
	stop := time.AfterFunc(0, func() {
		for ctx.Err() == nil {
			line.print("hello\n")
			time.Sleep(10 * time.Millisecond)
		}
	})
	defer stop.Stop()
	says(t, a, "hello")
	ours.Open(ctx, "n1")
	for by := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if x := ours.Of("n1", "s"); strings.Contains(x.Error, "somebody else has the console open") {
			break
		} else if time.Now().After(by) {
			t.Fatalf("%+v", x)
		}
	}
	for range consolesMost {
		ours.slots <- struct{}{}
	}
	full := ours.Open(ctx, "n1")
	ours.Wait() // neither waits for a turn
	if _, err := full.Lines(); err == nil || !strings.Contains(err.Error(), "the most at a time") {
		t.Errorf("%v", err)
	}
	cancel()
	theirs.Wait()
}

// TestTapIsBounded: however much a node prints, its last 64 KiB are kept.
func TestTapIsBounded(t *testing.T) {
	t.Parallel()
	x := &tap{end: func() {}}
	for range 5000 {
		x.add(strings.Repeat("a", 60) + "\x07")
	}
	x.add("the end")
	lines, _ := x.Lines()
	if size := len(strings.Join(lines, "\n")) + 1; size > consoleBytes || size < consoleBytes-100 || lines[len(lines)-1] != "the end" {
		t.Errorf("%d bytes in %d lines", size, len(lines))
	}
}
