// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"

	"github.com/ironrail/ironrail/internal/errkind"
)

// serial is the serial line of n1 behind a BMC that gives it to one reader at a time.
// What is printed while nobody reads is lost.
type serial struct {
	mu    sync.Mutex
	to    io.Writer // nil: nobody reads
	typed string
}

// open reads the line, and keeps what is typed.
func (s *serial) open(ctx context.Context, c Console, to io.Writer, keys <-chan string, up func()) error {
	t := c.BMC
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

var serialBMC = netip.MustParseAddrPort("10.77.1.1:623")
