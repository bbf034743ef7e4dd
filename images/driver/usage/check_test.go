// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Checks: []inventory.Check{Missing, Unsigned}})
}

// Nodes with one combination are one usage, whichever override lists the drivers.
func TestAll(t *testing.T) {
	t.Parallel()
	h, i, d := &inventory.Hardware{}, &inventory.Image{}, &inventory.Driver{}
	inv := &inventory.Inventory{Nodes: []*inventory.Node{
		{Name: "a", Hardware: h, Image: i, Drivers: []*inventory.Driver{d}},
		{Name: "b", Hardware: h, Image: i, Drivers: []*inventory.Driver{d}},
		{Name: "c", Hardware: h, Image: i},
		{Name: "d", Hardware: h, Image: i, Domain: "x", Drivers: []*inventory.Driver{d}},
		{Name: "e"},
	}}
	var got []string
	for _, u := range All(inv) {
		got = append(got, u.On())
	}
	if want := []string{"nodes a and b", "node c", "node d"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	if got, want := ModelWords("Nvidia H100-SXM5 80GB"), []string{"NVIDIA", "H100", "SXM5", "80GB"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A site of 12,500 nodes is a handful of combinations; finding them is linear.
func BenchmarkAll(b *testing.B) {
	for _, n := range []int{100, 12_500} {
		h, i, d := &inventory.Hardware{}, &inventory.Image{}, []*inventory.Driver{{}}
		inv := &inventory.Inventory{}
		for k := range n {
			inv.Nodes = append(inv.Nodes, &inventory.Node{Name: fmt.Sprintf("n%05d", k), Hardware: h, Image: i, Drivers: d})
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(GroupBy(All(inv), func(u *Usage) *inventory.Hardware { return u.Hardware })) != 1 {
					b.Fatal("more than one combination")
				}
			}
		})
	}
}
