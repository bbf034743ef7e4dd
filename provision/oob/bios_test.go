// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
)

// Settings behind a BMC that cannot set them are refused while planning.
func TestBIOSNeedsRedfish(t *testing.T) {
	t.Parallel()
	inv := site(bmc.IPMI)
	inv.Nodes[0].Hardware = &inventory.Hardware{Name: "h", BIOS: map[string]string{"A": "B"}}
	steps, diags := New(inv, nil).Plan(nil)
	if len(diags) != 1 || !diags.HasErrors() || !strings.Contains(diags[0].Detail, `node "n1"`) || len(steps) != 2 {
		t.Errorf("%v, %d steps", diags, len(steps))
	}
}

// A node that keeps its system in memory is not rebooted for settings.
func TestNoRebootOfDiskless(t *testing.T) {
	t.Parallel()
	n := &inventory.Node{Name: "n1", Image: &inventory.Image{Block: inventory.Block{Kind: inventory.KindDiskless, Name: "m"}}}
	err := (&Stage{}).rebootFor(t.Context(), nil, n, plan.Step{}, firmware{}, "b1") // a run would be used for the effect
	if errkind.Of(err) != errkind.Refused || !strings.Contains(errkind.Action(err), "ironrail rebuild n1") {
		t.Errorf("got %v", err)
	}
}

// The settings stand between the steps of other stages.
func TestWeave(t *testing.T) {
	t.Parallel()
	inv := site(bmc.Redfish)
	inv.Nodes[0].Hardware = &inventory.Hardware{Name: "h", BIOS: map[string]string{"A": "B"}}
	step := func(id string, needs ...string) plan.Step {
		node, _, _ := strings.Cut(id, "/")
		st := plan.Step{ID: plan.StepID(id), Stage: "other", Subject: subject.OfNode(node)}
		for _, n := range needs {
			st.Needs = append(st.Needs, plan.Need{Step: plan.StepID(n), On: plan.Success})
		}
		return st
	}
	var got []string
	for _, st := range Weave(inv, []plan.Step{
		step("n1/install.netboot", "n1/bmc"), step("n1/install.inspect", "n1/install.netboot"), step("n1/install.write", "n1/install.inspect"),
		step("n1/drivers.rdma", "n1/install.boot"), step("n2/install.netboot"), step("n2/drivers.rdma", "n2/install.boot"),
	}) {
		for _, n := range st.Needs {
			if strings.Contains(string(n.Step), "bios") {
				got = append(got, string(st.ID)+" "+string(n.Step)+map[bool]string{true: " triggers"}[n.Triggers])
			}
		}
	}
	want := "n1/install.netboot n1/bmc.bios|n1/install.write n1/bmc.bios_check|n1/drivers.rdma n1/bmc.bios_check triggers"
	if strings.Join(got, "|") != want {
		t.Errorf("got %s", strings.Join(got, "|"))
	}
}
