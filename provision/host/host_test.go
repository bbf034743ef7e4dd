// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
)

type noFacts struct{}

func (noFacts) Fact(fact.Key) (fact.Fact, bool) { return fact.Fact{}, false }

func site(h *inventory.HostSettings, packages ...string) *inventory.Inventory {
	image := &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm", Packages: packages}
	return &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1", Image: image, Host: h}, {Name: "n2", Image: image}}}
}

// TestPlan: a node whose files give a setting has a step, whose inputs are what they say;
// others have none.
func TestPlan(t *testing.T) {
	t.Parallel()
	inv := site(&inventory.HostSettings{Name: "gpu", HoldKernel: true, Timezone: "UTC", Sysctl: map[string]string{"vm.swappiness": "10", "fs.file-max": "9"}})
	steps, diags := New(inv, nil).Plan(noFacts{})
	if len(steps) != 1 || diags.HasErrors() || steps[0].ID != "n1/host.settings" {
		t.Fatalf("%+v, %v", steps, diags)
	}
	var in []string
	for _, x := range steps[0].Inputs {
		in = append(in, x.Name+"="+x.Value)
	}
	if got := strings.Join(in, ", "); got != "sysctl fs.file-max=9, sysctl vm.swappiness=10, hold_kernel=true" {
		t.Errorf("inputs %s", got)
	}
	shared := make([]plan.Need, 1, 8) // what steps share is not changed
	shared[0] = plan.Need{Step: "n1/install.boot", On: plan.Success, Triggers: true}
	woven := Weave(inv, []plan.Step{{ID: "n1/drivers.x", Needs: shared}, {ID: "n2/drivers.x", Needs: []plan.Need{{Step: "n2/install.boot"}}}, steps[0]})
	if n := woven[0].Needs; len(n) != 2 || n[1] != (plan.Need{Step: "n1/host.settings", On: plan.Success}) || shared[:2][1].Step != "" {
		t.Errorf("needs %+v", n)
	}
	if len(woven[1].Needs) != 1 || len(woven[2].Needs) != 1 {
		t.Errorf("others got needs: %+v", woven)
	}
}

// TestLackingPackages: what a setting needs is asked for before anything is installed.
func TestLackingPackages(t *testing.T) {
	t.Parallel()
	h := &inventory.HostSettings{Name: "gpu", Locale: "en_US.UTF-8", Accounts: inventory.Accounts{SudoGroups: []string{"ops"}}}
	if d := New(site(h), nil).Check(); len(d) != 2 || !strings.Contains(d[0].Detail, `needs package "locales-all"`) || !strings.Contains(d[1].Detail, `needs package "sudo"`) {
		t.Errorf("%v", d)
	}
	if d := New(site(h, "sudo", "locales-all"), nil).Check(); d.HasErrors() {
		t.Errorf("%v", d)
	}
	h.UserData = "#cloud-config\n"
	if d := New(site(h, "sudo", "locales-all"), nil).Check(); len(d) != 1 || !strings.Contains(d[0].Detail, `user_data of host "gpu" needs package "cloud-init"`) {
		t.Errorf("%v", d)
	}
	h.UserData, h.Locale = "", "de_DE.UTF-8"
	rocky := site(h, "glibc-all-langpacks")
	rocky.Nodes[0].Image.Kind = "rhel"
	if d := New(rocky, nil).Check(); d.HasErrors() {
		t.Errorf("%v", d)
	}
	rocky.Nodes[0].Image.Packages = nil
	if d := New(rocky, nil).Check(); len(d) != 1 || !strings.Contains(d[0].Detail, `needs package "glibc-langpack-de"`) {
		t.Errorf("%v", d)
	}
	h.Locale = "C.utf8"
	if d := New(site(h, "sudo"), nil).Check(); d.HasErrors() {
		t.Errorf("%v", d)
	}
}
