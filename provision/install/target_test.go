// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// knownFacts are facts of n1.
type knownFacts map[fact.Key]fact.Fact

func (f knownFacts) Fact(k fact.Key) (fact.Fact, bool) { v, ok := f[k]; return v, ok }

func tell[T any](t *testing.T, f knownFacts, name fact.Name[T], v T, part string) {
	t.Helper()
	x, err := name.New(subject.OfNode("n1"), v, part)
	if err != nil {
		t.Fatal(err)
	}
	f[x.Key] = x
}

// TestRebuildOfAdopted: a plan that reinstalls an adopted node shows the disk that its
// system runs from. Where that is not known, and nothing else says which disk it is, the
// plan is refused and counts no erasure.
func TestRebuildOfAdopted(t *testing.T) {
	t.Parallel()
	system, data, both := twoDisks(true)
	system.Content = "GPT; p2 ext4"
	both.Disks = []wire.Disk{data, system}
	marked := system
	marked.Marker = "n1/lost/write"
	spare := data
	spare.Serial, spare.Content = "SPARE", ""
	raid := wire.Hardware{Identity: both.Identity, Disks: []wire.Disk{spare, {Name: "sda", Type: "ssd", Serial: "A", Size: 1e12, Content: "mdraid member"}, {Name: "sdb", Type: "ssd", Serial: "B", Size: 1e12, Content: "mdraid member"}}}
	only := wire.Hardware{Identity: both.Identity, Disks: []wire.Disk{system}}
	placed := anyNVMe
	placed.Serial = "SYS1"
	nameless := system
	nameless.Serial, nameless.WWN = "", ""
	unread := &wire.Hardware{Identity: both.Identity} // by plain programs: no disks
	for _, tt := range []struct {
		name   string
		block  inventory.Disk
		root   *wire.Disk
		hw     *wire.Hardware // nil: never told
		write  *Written
		named  string
		first  bool   // no reinstall
		shows  string // in what is erased
		refuse string // in the cause; "": not refused
	}{
		{"the disk of its system", anyNVMe, &system, &both, nil, "", false, "serial SYS1", ""},
		{"the disk of its system, disks not seen", anyNVMe, &system, unread, nil, "", false, "serial SYS1", ""},
		{"the disk of its system, nothing else seen", anyNVMe, &system, nil, nil, "", false, "serial SYS1", ""},
		{"not known, two fit", anyNVMe, nil, &both, nil, "", false, "", "2 disks fit"},
		{"not known, one fits and is not blank", anyNVMe, nil, &only, nil, "", false, "", "not blank"},
		{"not known, disks not seen", anyNVMe, nil, unread, nil, "", false, "", "not known"},
		{"nothing but the host key is known", anyNVMe, nil, nil, nil, "", false, "", "not known"},
		{"a disk without serial number and WWN", anyNVMe, &nameless, &both, nil, "", false, "", "2 disks fit"},
		{"on two disks of RAID beside a blank one that alone fits", anyNVMe, nil, &raid, nil, "", false, "serial SPARE", ""},
		{"not known, and named", anyNVMe, nil, &both, nil, "SYS1", false, "serial SYS1", ""},
		{"not known, and the block names it", placed, nil, &both, nil, "", false, "serial SYS1", ""},
		{"not known, and it carries the node's marker", anyNVMe, nil, &wire.Hardware{Identity: both.Identity, Disks: []wire.Disk{data, marked}}, nil, "", false, "serial SYS1", ""},
		{"installed by ironrail, two fit", anyNVMe, nil, &both, &Written{Key: "n1/a/write", Complete: true, Disk: &system}, "", false, "serial SYS1", ""},
		{"a first install", anyNVMe, nil, &both, nil, "", true, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := nodeOn(tt.block)
			n.Serial = "SN1"
			facts := knownFacts{}
			if !tt.first {
				tell(t, facts, HostKeyFact, "ssh-ed25519 AAAA", "SN1")
			}
			if tt.root != nil || tt.hw != nil && !tt.first {
				tell(t, facts, SystemFact, System{Kernel: "6.1", Root: tt.root}, "SN1")
			}
			if tt.hw != nil {
				tell(t, facts, HardwareFact, *tt.hw, "SN1")
			}
			if tt.write != nil {
				tell(t, facts, WriteFact, *tt.write, "SN1")
			}
			step := plan.Step{ID: "n1/install.write", Stage: Name, Subject: subject.OfNode("n1"), May: plan.Effects(plan.Erase)}
			named := map[string]string{}
			if tt.named != "" {
				named["n1"] = tt.named
			}
			inv := &inventory.Inventory{Nodes: []*inventory.Node{n}}
			opt := plan.Options{Ambiguous: Ambiguous(inv, facts, named), Replace: map[string]bool{"n1": !tt.first}}
			p, err := plan.Diff([]plan.Step{step}, plan.Prior{Nodes: map[string]plan.NodeState{"n1": {Adopted: !tt.first}}}, opt)
			if err == nil {
				err = ShowDisks(inv, facts, p, named)
			}
			if err != nil {
				t.Fatal(err)
			}
			if text := p.Steps[0].Erases; !strings.Contains(text, tt.shows) || tt.shows == "" && strings.Contains(text, "serial SYS1") {
				t.Errorf("the plan says %q, want %q", text, tt.shows)
			}
			if tt.refuse == "" {
				if len(p.Refusals) != 0 || len(p.Erase.Nodes) != 1 {
					t.Errorf("refused: %+v, erases %v", p.Refusals, p.Erase.Nodes)
				}
				return
			}
			if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Cause, tt.refuse) || !strings.Contains(p.Refusals[0].Action, "rebuild n1 --disk SERIAL") || len(p.Erase.Nodes) != 0 {
				t.Errorf("refusals %+v, erases %v", p.Refusals, p.Erase.Nodes)
			}
		})
	}
}

// TestSystemOfAnotherChassis: what another chassis ran from says nothing.
func TestSystemOfAnotherChassis(t *testing.T) {
	t.Parallel()
	system, _, _ := twoDisks(true)
	n := nodeOn(anyNVMe)
	n.Serial = "SN2"
	facts := knownFacts{}
	tell(t, facts, SystemFact, System{Root: &system}, "SN1")
	tell(t, facts, HostKeyFact, "ssh-ed25519 AAAA", "SN1")
	if k, err := installOf(facts, n); err != nil || k.adopted || k.last != nil {
		t.Errorf("%+v, %v", k, err)
	}
}
