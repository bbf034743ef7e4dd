// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/reach"
)

// newObserver is an observer of two nodes with an image, n1 and n2, at whose addresses
// nobody is.
func newObserver() Observer {
	inv := &inventory.Inventory{}
	for i, name := range []string{"n1", "n2"} {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: name, Image: &inventory.Image{}, Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(11 + i)})})
	}
	return Observer{
		Access:     reach.Access{Inv: inv, Network: network.NewMemory().At(netip.MustParseAddr("192.0.2.2"))},
		NodeStages: func(onnode.Nodes) []stage.Stage { return nil },
	}
}

func TestDriftOfANodeThatWasNeverAccepted(t *testing.T) {
	t.Parallel()
	ob, store := newObserver(), state.NewMemory()
	fence, err := store.Claim(t.Context(), "drift")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	o := DriftOptions{Words: []string{"n1"}, Now: now}
	d, err := ob.Drift(t.Context(), store, fence, o)
	if err != nil {
		t.Fatal(err)
	}
	if d.Nodes != 0 || len(d.Changes) != 0 || len(d.Unknown) != 0 || len(d.Notes) != 1 || !strings.Contains(d.Notes[0].Text, "n1 is neither accepted nor adopted") {
		t.Errorf("%+v", d)
	}
	taken, unknown, err := ob.AcceptDrift(t.Context(), store, fence, o, "ann", "it looks well")
	if err != nil || len(taken) != 0 || len(unknown) != 1 || !strings.Contains(unknown[0].Why, "ironrail adopt n1") {
		t.Errorf("taken %v, unknown %+v, %v", taken, unknown, err)
	}
	if d, err = ob.Drift(t.Context(), store, fence, DriftOptions{Now: now}); err != nil || d.Nodes != 0 || len(d.Notes) != 0 {
		t.Errorf("of the whole site: %+v, %v", d, err)
	}
}
