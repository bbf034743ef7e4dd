// SPDX-License-Identifier: Apache-2.0

package tftp

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/bpf"
)

// TestRefusedTooOften: the kernel drops what an unknown client sends who was refused twenty
// times within a second; nodes are served on, and never dropped themselves.
func TestRefusedTooOften(t *testing.T) {
	t.Parallel()
	server, n, _ := start(t)
	node := dial(t, server, "127.0.0.1", 0)
	for range 3 * refusals {
		node.send(request(1, "nothing"))
		n.await(t, eventRefused)
	}
	unknown := dial(t, server, "127.0.0.3", 0)
	for range refusals + 1 {
		unknown.send(request(1, "nothing"))
		n.await(t, eventRefused)
	}
	if e := n.await(t, eventDropped); e.Address.String() != "127.0.0.3" || e.Node != "" || !e.Refused || !strings.Contains(e.Detail, "127.0.0.3") {
		t.Errorf("evidence %+v", e)
	}
	for range 50 {
		unknown.send(request(1, "nothing"))
	}
	if b, err := dial(t, server, "127.0.0.1", 0).get("snponly.efi"); err != nil || len(b) == 0 {
		t.Errorf("the node got %d bytes: %v", len(b), err)
	}
	for {
		select {
		case e := <-n:
			if e.What == eventRefused {
				t.Fatalf("what was to be dropped is refused: %+v", e)
			}
			continue
		default:
		}
		break
	}
}

// TestBlockerForgets: sources are let through again, and their number is bounded.
func TestBlockerForgets(t *testing.T) {
	t.Parallel()
	var filters, cleared int
	b := &blocker{attach: func([]bpf.RawInstruction) error { filters++; return nil }, clear: func() error { cleared++; return nil },
		recent: map[netip.Addr]*recent{}, blocked: map[netip.Addr]time.Time{}}
	defer b.stop()
	past := time.Now().Add(-blockTime)
	for i := range 2 * maxBlocked {
		from := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		for range refusals {
			if b.refused(from, past) {
				t.Fatalf("%s is dropped too early", from)
			}
		}
		if dropped := b.refused(from, past); dropped != (i < maxBlocked) {
			t.Errorf("source %d is dropped: %v", i, dropped)
		}
	}
	if filters != maxBlocked || cleared != 0 {
		t.Errorf("%d filters, cleared %d times", filters, cleared)
	}
	b.expire()
	if len(b.blocked) != 0 || cleared != 1 {
		t.Errorf("%d are dropped forever, cleared %d times", len(b.blocked), cleared)
	}
}

// TestFilterOfAll: the longest filter is one that the kernel takes.
func TestFilterOfAll(t *testing.T) {
	t.Parallel()
	var all []netip.Addr
	for i := range maxBlocked {
		all = append(all, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	f, err := dropFrom(all)
	if err != nil || len(f) > 4096 {
		t.Errorf("%d instructions, %v", len(f), err)
	}
}
