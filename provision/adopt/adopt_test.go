// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/provision/reach"
)

// newAdopter adopts n1, n2 and n3, at whose addresses nobody is, and n4, which has no
// image. The site wants a test of n1 and n2, and one of n2 and n3.
func newAdopter() Adopter {
	inv := &inventory.Inventory{}
	for i, name := range []string{"n1", "n2", "n3", "n4"} {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: name, Image: &inventory.Image{}, Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(11 + i)})})
	}
	inv.Nodes[3].Image = nil
	pair := func(id plan.StepID, a, b string) plan.Step {
		return plan.Step{ID: id, Subject: subject.ID{Kind: "site", Name: "t"}, Group: &plan.Group{Members: []subject.ID{subject.OfNode(a), subject.OfNode(b)}}}
	}
	return Adopter{
		Observer: observe.Observer{Access: reach.Access{Inv: inv, Network: network.NewMemory().At(netip.MustParseAddr("192.0.2.2"))}},
		Steps: func(stage.View) ([]plan.Step, error) {
			return []plan.Step{pair("site/pair.1", "n1", "n2"), pair("site/pair.2", "n2", "n3")}, nil
		},
	}
}

// newStore is a state that knows these nodes.
func newStore(t *testing.T, nodes ...state.Node) (state.Store, state.Fence) {
	t.Helper()
	store := state.NewMemory()
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		p, err := state.PutOf(state.NodeKey(n.Name), n)
		if err == nil {
			_, err = store.Append(t.Context(), fence, state.Batch{Puts: []state.Put{p}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return store, fence
}

func TestChosenNodes(t *testing.T) {
	t.Parallel()
	store, fence := newStore(t, state.Node{Name: "n1", Accepted: true}, state.Node{Name: "n2", Adopted: true})
	for _, c := range []struct {
		name string
		o    Options
		want []string
	}{
		{"all: those that the state does not know", Options{All: true}, []string{"n3"}},
		{"named, whether known or not", Options{Words: []string{"n1", "n2", "n3"}}, []string{"n1", "n2", "n3"}},
		{"none is named", Options{}, nil},
		{"without an image", Options{Words: []string{"n4"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, err := newAdopter().open(t.Context(), store, fence, c.o)
			if err != nil {
				t.Fatal(err)
			}
			defer a.close()
			var got []string
			for _, n := range a.nodes {
				got = append(got, n.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestSilentNodes: a node that does not answer is not adopted, and one that was accepted
// is not asked.
func TestSilentNodes(t *testing.T) {
	t.Parallel()
	store, fence := newStore(t, state.Node{Name: "n1", Accepted: true})
	list, err := newAdopter().Adopt(t.Context(), store, fence, Options{Words: []string{"n1", "n2"}, Now: time.Unix(1e9, 0)})
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if n := list[0]; !n.Already || n.Adopted || n.Error != "" {
		t.Errorf("accepted: %+v", n)
	}
	if n := list[1]; n.Adopted || !strings.Contains(n.Error, "n2 cannot be observed") || n.Action == "" {
		t.Errorf("silent: %+v", n)
	}
	if known, err := state.ReadNodes(t.Context(), store); err != nil || known["n2"].Adopted {
		t.Errorf("state: %+v, %v", known, err)
	}
}

// TestGroupsOfAdoptedNodes: the test of a group counts as done where all of its nodes were
// adopted, and no other.
func TestGroupsOfAdoptedNodes(t *testing.T) {
	t.Parallel()
	store, fence := newStore(t, state.Node{Name: "n1", Adopted: true}, state.Node{Name: "n2", Adopted: true}, state.Node{Name: "n3", Accepted: true})
	if _, err := newAdopter().Adopt(t.Context(), store, fence, Options{All: true, Now: time.Unix(1e9, 0)}); err != nil {
		t.Fatal(err)
	}
	prior, err := state.ReadPrior(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if _, done := prior.Steps["site/pair.1"]; !done || len(prior.Steps) != 1 {
		t.Errorf("done: %v", prior.Steps)
	}
}
