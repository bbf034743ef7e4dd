// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// ipmiAt gives one node a BMC that speaks IPMI, and so a console that can be read.
func ipmiAt(inv *inventory.Inventory, node string) *inventory.Inventory {
	for _, n := range inv.Nodes {
		if n.Name == node {
			n.BMC.Protocol, n.BMC.Port, n.BMC.CipherSuite = "ipmi", 623, 17
		}
	}
	return inv
}

// TestWhyShowsTheConsole: of a node with an IPMI BMC whose kernel stops, why shows
// what it printed last, while the run waits for it and afterwards.
func TestWhyShowsTheConsole(t *testing.T) {
	t.Parallel()
	f := fault.Fault{Kind: fault.KernelHang, Node: "r01-u09"}
	w := &witnessed{t: t, nodes: []string{f.Node}}
	_, err := rehearsal.Run(context.Background(), ipmiAt(roomy(load(t, demo, nil)), f.Node),
		w.asked(rehearsal.Options{Seed: 7, Faults: []fault.Fault{f}}, []time.Duration{18 * time.Minute}))
	if err != nil {
		t.Fatal(err)
	}
	for i, said := range w.answers {
		if !strings.Contains(said, "Linux version 6.1.0") || !strings.Contains(said, "iPXE") {
			t.Errorf("answer %d shows no console:\n%s", i, said)
		}
	}
	w.golden("kernel-hang-ipmi")
}
