// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
)

// TestOnlyABannerIsEvidenceOfARunningNode: firewalls and proxies accept connections
// for addresses behind which nobody is, and other programs than sshd may answer.
func TestOnlyABannerIsEvidenceOfARunningNode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		says    string
		ends    bool // closes after that; else it stays silent
		running string
		warns   bool
	}{
		{name: "silence", warns: true},
		{name: "closed at once, as by a proxy", ends: true, warns: true},
		{name: "another protocol", says: "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", ends: true, warns: true},
		{name: "a banner that never ends", says: "SSH-2.0-" + strings.Repeat("x", 4096), warns: true},
		{name: "lines without end", says: strings.Repeat("no banner\r\n", 100), warns: true},
		{name: "a banner", says: "SSH-2.0-OpenSSH_9.2p1\r\n", running: "(SSH-2.0-OpenSSH_9.2p1)"},
		{name: "a banner after other lines", says: "Authorized use only\r\n\r\nSSH-2.0-OpenSSH_9.2p1\r\n", running: "(SSH-2.0-OpenSSH_9.2p1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			board := network.NewMemory()
			s := openOn(t, board)
			n1, _ := s.Inv.Node("n1")
			answerAt(t, board, n1.Address, c.says, c.ends)
			p := planFor(t, s, state.Empty{}, PlanOptions{Targets: []string{"n1"}})
			warned := strings.Contains(strings.Join(p.Warnings, "\n"), "port 22 accepts connections and sends no SSH banner within 1.5s: n1.")
			if warned != c.warns {
				t.Errorf("warnings %q", p.Warnings)
			}
			if c.running == "" {
				if p.Empty() || len(p.Offers) > 0 || len(p.Unmanaged) != 1 { // n2 is outside of the targets
					t.Errorf("%d steps, offers %v, unmanaged %v", len(p.Steps), p.Offers, p.Unmanaged)
				}
				return
			}
			if !p.Empty() || p.Conforms() || len(p.Offers) != 1 || !strings.HasSuffix(p.Offers[0].Cause, c.running) || p.Unmanaged[0].Reason != plan.RunsUnknown {
				t.Errorf("%d steps, conforms %v, offers %v, unmanaged %v", len(p.Steps), p.Conforms(), p.Offers, p.Unmanaged)
			}
		})
	}
}

// answerAt answers every connection to the SSH port of an address.
func answerAt(t *testing.T, board *network.Memory, at netip.Addr, says string, ends bool) {
	t.Helper()
	ln, err := board.At(at).Listen(t.Context(), "tcp", ":22")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		var open []net.Conn
		defer func() {
			for _, c := range open {
				c.Close()
			}
		}()
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			open = append(open, c)
			_, _ = c.Write([]byte(says)) // whoever asked may have gone
			if ends {
				c.Close()
			}
		}
	}()
}

// openOn opens the pinned site on a network in memory.
func openOn(t *testing.T, board *network.Memory) *Site {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(strings.Replace(pinned, "DIGEST", one, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	inv, diags, _ := inventory.Load(dir, inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	s, err := Open(inv, Options{Network: board.At(netip.MustParseAddr("192.0.2.2"))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
