// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
)

// memo is a run that remembers what is learned.
type memo struct {
	stage.Run
	facts map[fact.Key]fact.Fact
}

func (m memo) Fact(k fact.Key) (fact.Fact, bool) { f, ok := m.facts[k]; return f, ok }

func (m memo) Learn(_ context.Context, fs ...fact.Fact) error {
	for _, f := range fs {
		m.facts[f.Key] = f
	}
	return nil
}

// TestGivenSettings: what is recorded is what the first try of a configuration
// wrote, whatever the files say when it is repeated; the next one records anew.
func TestGivenSettings(t *testing.T) {
	t.Parallel()
	inv := site()
	n := inv.Nodes[0]
	n.Host = &inventory.HostSettings{Name: "gpu", KernelArgs: []string{"quiet", "iommu=pt"}, Accounts: inventory.Accounts{AuthorizedKeys: []string{"ssh-ed25519 AAAA kim"}}}
	s, run := New(inv, nil, Dependencies{SSHKey: "ssh-ed25519 BBBB"}), memo{facts: map[fact.Key]fact.Fact{}}
	after := func(key string) Given {
		if err := s.recordSettings(t.Context(), run, n, key); err != nil {
			t.Fatal(err)
		}
		g, ok, err := readFact(run, SettingsFact, n.Name)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return g
	}
	first := after("n1/1/configure")
	if v := first.Values; v["kernel_args"] != "quiet iommu=pt" || v["boot_mac"] != "02:00:00:00:00:01" || v["address"] != "10.0.0.11/24" || !strings.HasPrefix(v["authorized_keys"], "1, sha256:") {
		t.Errorf("recorded %v", v)
	}
	if zone, is := first.Values["timezone"]; zone != "" || !is {
		t.Error("a setting that is not given is not known to be none")
	}
	n.Host.KernelArgs = []string{"quiet"}
	if again := after("n1/1/configure"); again.Values["kernel_args"] != "quiet iommu=pt" {
		t.Errorf("a repetition recorded %v", again.Values)
	}
	if next := after("n1/2/configure"); next.Values["kernel_args"] != "quiet" {
		t.Errorf("the next configuration recorded %v", next.Values)
	}
}

// TestHasSettings: what a node has is told from what it has not, without decoding it.
func TestHasSettings(t *testing.T) {
	t.Parallel()
	list := []Setting{{Name: "kernel_args", Value: `a "b" <c>`}, {Name: "dns"}, {Name: "timezone", Value: "UTC"}}
	stored, err := json.Marshal(NewGiven(`k","dns":"`, list))
	if err != nil {
		t.Fatal(err)
	}
	if !hasSettings(stored, list) {
		t.Errorf("not found in %s", stored)
	}
	for _, x := range []Setting{{Name: "kernel_args", Value: `a "b`}, {Name: "kernel_args"}, {Name: "dns", Value: "1.2.3.4"}, {Name: "timezone", Value: "UT"}, {Name: "zone", Value: "UTC"}, {Name: "gateway"}} {
		if hasSettings(stored, []Setting{x}) {
			t.Errorf("%+v found in %s", x, stored)
		}
	}
}
