// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
)

// Bounds of one look.
const (
	nodeWait  = 30 * time.Second // for what the node says of itself
	bmcWait   = 60 * time.Second // for all that its BMC is asked
	hearWait  = 50 * time.Second // for the neighbours; they speak every 30 s
	maxValues = 4096             // BIOS settings; real boards have some 1,000
)

// What each source tells.
var (
	nodeKinds = []string{wire.ItemHardware, wire.ItemImage, wire.ItemKernel, wire.ItemDrivers, wire.ItemPackages, wire.ItemNetwork, wire.ItemLink, wire.ItemSecureBoot}
	bmcKinds  = []string{BIOS}
)

// Observer looks at nodes. It is safe for concurrent use.
type Observer struct {
	Nodes onnode.Nodes
	// BMC returns a node's BMC; nil: none is asked.
	BMC func(node string) (*bmc.Handle, error)
	// Neighbours is whom a node's ports heard when that was asked last; nil: the node is
	// asked to listen, which takes half a minute.
	Neighbours func(node string) []wire.Neighbour
	Want       func(kind string) bool // nil: every kind
	// Hardware asks for the whole report of an inspection, and for the disks of the root
	// file system, as well.
	Hardware bool
	known    *digests
}

// digests are those of the package lists that are kept. It is safe for concurrent
// use.
type digests struct {
	mu  sync.Mutex // guards all
	all map[string]bool
}

// NewObserver makes an observer that asks no BMC and lets nodes listen.
func NewObserver(nodes onnode.Nodes, want func(kind string) bool) *Observer {
	return &Observer{Nodes: nodes, Want: want, known: &digests{all: map[string]bool{}}}
}

// Observation is what one look has shown: a snapshot, the lists that it names, and the
// answer of the BMC by itself.
type Observation struct {
	Snapshot
	Lists      map[string]Set
	Neighbours []wire.Neighbour
	// Of the system, where Hardware was wanted and told: the report of an inspection,
	// and the disks that the root file system lies on.
	Hardware *wire.Hardware
	Root     []wire.Disk
	BMC      *Snapshot // nil: it was not asked
}

// Know notes that a list is kept, and need not be sent again.
func (o *Observer) Know(digest string) {
	o.known.mu.Lock()
	defer o.known.mu.Unlock()
	if digest != "" {
		o.known.all[digest] = true
	}
}

// mostKnown is how many digests a node is told.
const mostKnown = 64

// lists returns some digests that are known.
func (o *Observer) lists() (some []string) {
	o.known.mu.Lock()
	defer o.known.mu.Unlock()
	for d := range o.known.all {
		if len(some) < mostKnown {
			some = append(some, d)
		}
	}
	return some
}

func (o *Observer) wants(kinds ...string) bool {
	return o.Want == nil || slices.ContainsFunc(kinds, o.Want)
}

// Observe looks at one node. What does not answer is a gap.
func (o *Observer) Observe(ctx context.Context, n *inventory.Node, now time.Time) Observation {
	s := Observation{Snapshot: Snapshot{Format: Format, Node: n.Name, At: now.UTC()}, Lists: map[string]Set{}}
	var wg sync.WaitGroup
	var heard wire.Neighbours
	var heardErr error
	if o.wants(Cables) && o.Neighbours == nil {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, hearWait)
			defer cancel()
			heardErr = onnode.Agent(ctx, o.Nodes, n.Name, nil, &heard, "neighbours")
		})
	}
	if o.BMC != nil && o.wants(BIOS, wire.ItemFirmware, wire.ItemNetwork) {
		wg.Go(func() { s.BMC = o.askBMC(ctx, n, now, s.Lists) })
	}
	var own Snapshot
	var b wire.Baseline
	lists := map[string]Set{}
	wg.Go(func() { own, b = o.askNode(ctx, n, lists) })
	wg.Wait()
	s.Hardware, s.Root = b.Hardware, b.Root
	s.take(own)
	for d, l := range lists {
		s.Lists[d] = l
	}
	if o.Neighbours != nil {
		heard.Neighbours = o.Neighbours(n.Name)
	}
	s.Neighbours = heard.Neighbours
	s.cables(heard.Neighbours, heardErr)
	return s
}

// take adds what another look has shown.
func (s *Snapshot) take(other Snapshot) {
	s.Items = append(s.Items, other.Items...)
	s.Counters = append(s.Counters, other.Counters...)
	s.Gaps = append(s.Gaps, other.Gaps...)
	for kind, digest := range other.Sets {
		if s.Sets == nil {
			s.Sets = map[string]string{}
		}
		s.Sets[kind] = digest
	}
	if other.BootID != "" {
		s.BootID, s.Uptime = other.BootID, other.Uptime
	}
	if s.Serial == "" {
		s.Serial = other.Serial
	}
	s.Plain = s.Plain || other.Plain
}

// askNode asks the node's own system: the agent, or plain programs where there is
// none or an older one.
func (o *Observer) askNode(ctx context.Context, n *inventory.Node, lists map[string]Set) (s Snapshot, b wire.Baseline) {
	ctx, cancel := context.WithTimeout(ctx, nodeWait)
	defer cancel()
	err := onnode.Agent(ctx, o.Nodes, n.Name, wire.BaselineParams{Known: o.lists(), Hardware: o.Hardware}, &b, "baseline")
	if noAgent(err) {
		s.Plain = true
		b, err = readPlain(ctx, o.Nodes, n.Name)
	}
	if err != nil {
		s.gap(err.Error(), nodeKinds...)
		return s, wire.Baseline{}
	}
	s.Serial, s.BootID, s.Uptime = b.Identity.Serial, b.BootID, b.Uptime
	s.Items, s.Counters = b.Items, b.Counters
	for _, g := range b.Gaps {
		s.gap(g.Why, g.Kind)
	}
	if len(b.List) > 0 {
		set := setOfPackages(b.List)
		b.Packages = digestOf(set)
		lists[b.Packages] = set
	}
	if b.Packages != "" {
		s.Sets = map[string]string{wire.ItemPackages: b.Packages}
	}
	return s, b
}

// askBMC asks a BMC for versions and settings, in one session.
func (o *Observer) askBMC(ctx context.Context, n *inventory.Node, now time.Time, lists map[string]Set) *Snapshot {
	s := &Snapshot{Format: Format, Node: n.Name, At: now.UTC()}
	ctx, cancel := context.WithTimeout(ctx, bmcWait)
	defer cancel()
	h, err := o.BMC(n.Name)
	if err != nil {
		s.gap(err.Error(), bmcKinds...)
		return s
	}
	id, err := h.Identity(ctx)
	if err != nil {
		s.gap(err.Error(), bmcKinds...)
		return s
	}
	s.Serial = id.Serial()
	if n.Serial != "" && s.Serial != "" && s.Serial != n.Serial {
		s.gap(fmt.Sprintf("the BMC at %s is that of serial %q, not of %s", n.BMC.Address, s.Serial, n.Name), bmcKinds...)
		s.Serial = ""
		return s
	}
	s.version(partBMC, id.Version())
	s.tag(ctx, n, h)
	if bmc.Protocol(n.BMC.Protocol) != bmc.Redfish {
		s.gap(strings.ToUpper(n.BMC.Protocol)+" does not report BIOS settings", bmcKinds...)
		return s
	}
	s.components(ctx, h, id.Version())
	s.settings(ctx, h, lists)
	return s
}

// version adds a firmware version.
func (s *Snapshot) version(part, version string) {
	if version != "" {
		s.Items = append(s.Items, wire.Item{Kind: wire.ItemFirmware, Part: part, Name: "version", Value: version})
	}
}

// The item of the VLAN of a BMC.
const (
	partBMC  = "BMC"
	vlanName = "vlan"
)

// tag adds the VLAN that a BMC tags its frames with, where the files name one. A BMC that does not say is let be.
func (s *Snapshot) tag(ctx context.Context, n *inventory.Node, h *bmc.Handle) {
	if p := n.BMC.Profile; (p == nil || p.VLAN == 0) && (n.BMC.Network == nil || n.BMC.Network.VLAN == 0) {
		return
	}
	var id int
	if err := bmc.Use(ctx, h, "read the VLAN", func(b bmc.VLANTagger) (err error) { id, err = b.VLAN(ctx); return err }); err != nil {
		return
	}
	value := "untagged"
	if id != 0 {
		value = fmt.Sprintf("VLAN %d", id)
	}
	s.Items = append(s.Items, wire.Item{Kind: wire.ItemNetwork, Part: partBMC, Name: vlanName, Value: value})
}

// components adds the firmware inventory, but for what stands in it twice: the
// BMC itself, and the BIOS, which the node's own tables tell.
func (s *Snapshot) components(ctx context.Context, h *bmc.Handle, own string) {
	var list []bmc.Component
	err := bmc.Use(ctx, h, "read the firmware inventory", func(b bmc.Components) (err error) {
		list, err = b.Components(ctx)
		return err
	})
	if err != nil {
		return // the version of the BMC itself is known; the others are left out, which is no drift
	}
	for _, c := range list {
		if c.Version == own || strings.Contains(strings.ToLower(c.ID+" "+c.Name), "bios") {
			continue
		}
		s.version(c.ID, c.Version)
	}
}

// settings adds the settings of the node's firmware that are in force.
func (s *Snapshot) settings(ctx context.Context, h *bmc.Handle, lists map[string]Set) {
	var now map[string]string
	err := bmc.Use(ctx, h, "read the BIOS settings", func(b bmc.BIOS) (err error) {
		now, _, err = b.BIOS(ctx)
		return err
	})
	if err == nil && len(now) > maxValues {
		err = errkind.New(errkind.Unsupported, "the BMC lists %d BIOS settings", len(now))
	}
	if err != nil {
		s.gap(err.Error(), bmcKinds...)
		return
	}
	digest := digestOf(now)
	lists[digest], s.Sets = now, map[string]string{BIOS: digest}
}

// cables adds whom the ports hear. A port that hears nobody says nothing: its link
// does.
func (s *Snapshot) cables(list []wire.Neighbour, err error) {
	if err != nil {
		s.gap(err.Error(), Cables)
		return
	}
	if len(list) == 0 {
		s.gap("no port has heard a neighbour", Cables)
		return
	}
	for _, n := range list {
		if n.PCI != "" {
			s.Items = append(s.Items, wire.Item{Kind: Cables, Part: n.PCI, Name: "neighbour", Value: strings.TrimSpace(n.SystemName + " " + n.PortID)})
		}
	}
}

// Join returns the whole picture: the node's own words and those of its BMC, the
// latter from an earlier answer when it was not asked now. none says why there is
// none.
func (s Observation) Join(earlier Snapshot, none string) Snapshot {
	all := s.Snapshot
	b := earlier
	if s.BMC != nil {
		b = *s.BMC
	}
	if b.At.IsZero() {
		all.gap(none, bmcKinds...)
		return all
	}
	boot, up := all.BootID, all.Uptime
	all.take(b)
	all.BootID, all.Uptime = boot, up
	return all
}

// With returns an observer of the same nodes that also asks BMCs.
func (o *Observer) With(handle func(node string) (*bmc.Handle, error)) *Observer {
	return &Observer{Nodes: o.Nodes, BMC: handle, Neighbours: o.Neighbours, Want: o.Want, Hardware: o.Hardware, known: o.known}
}
