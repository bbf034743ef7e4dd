// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/kinds"
	"github.com/ironrail/ironrail/images/raw"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/oob"
)

// Hang deadlines: what no healthy node needs. They end a step that would wait
// forever; they are not estimates.
const (
	bootLimit    = 20 * time.Minute          // power-on to the agent's hello; servers with 32 DIMMs train memory for minutes
	inspectLimit = bootLimit + 5*time.Minute // both may have to boot a node again that was switched off
	writeLimit   = 2 * time.Hour
	configLimit  = bootLimit + 10*time.Minute
	initrdLimit  = 30 * time.Minute // of configLimit besides, where the node makes its initrd
	diskLimit    = 20 * time.Minute // reboot to SSH
	verifyLimit  = time.Hour
)

// DrainStep is the id of the step that drains a node before it is erased; the
// handover stage plans it.
func DrainStep(node string) plan.StepID { return plan.StepID(node + "/handover.drain") }

func actionOf(st plan.Step) string {
	_, action, _ := strings.Cut(string(st.ID), "/"+Name+".")
	return action
}

func imageOf(st plan.Step) string { return strings.TrimPrefix(string(st.ID), "site/image.") }

// imageStep is the whole check of an image on the controller.
func (s *Stage) imageStep(img *inventory.Image) plan.Step {
	return plan.Step{ID: ImageStep(img.Name), Stage: Name, Subject: subject.ID{Kind: subject.Site, Name: "image." + img.Name},
		Title: "verify image " + img.Name + " whole, before any node boots for it", Only: plan.WhenNeeded,
		Decl: stage.Source(img.Decl), Deadline: plan.Budget{Limit: verifyLimit, Expected: 5 * time.Second},
		Inputs: []plan.Input{s.imageInput(img)}, Version: Version}
}

func (s *Stage) imageInput(img *inventory.Image) plan.Input {
	block, _, _ := strings.Cut(img.Name, PinMark)
	return plan.Input{Name: "image." + block, Value: s.digest[img.Name], Decl: stage.Source(img.Decl)}
}

// setup is what nodes have in common whose image, disk layout and hardware are the
// same.
type setup struct {
	image    *inventory.Image
	disks    *inventory.DiskLayout
	hardware *inventory.Hardware
}

// common is what the steps of such nodes say alike.
type common struct {
	inspect, write string       // titles
	inputs         []plan.Input // without a serial; never changed
	image          plan.StepID
}

// shared holds it while a site is planned: thousands of nodes share one setup.
type shared map[setup]*common

func (all shared) of(s *Stage, n *inventory.Node) *common {
	k := setup{n.Image, n.Disks, n.Hardware}
	c := all[k]
	if c == nil {
		write := writeWords(n)
		c = &common{inspect: "identify the node and compare it with hardware." + n.Hardware.Name, image: ImageStep(n.Image.Name), write: write, inputs: s.installInputs(n)}
		all[k] = c
	}
	return c
}

// writeWords says which way a system takes to the disks of a node: the disk of its image
// as it is, or its files.
func writeWords(n *inventory.Node) string {
	switch {
	case n.Diskless():
		return fmt.Sprintf("bring image %s into memory and verify it; no disk is touched", n.Image.Name)
	case !n.Disks.Whole():
		return fmt.Sprintf("make disk_layout %s (%s), put the files of image %s onto the layout and read them back", n.Disks.Name, layoutWords(n.Disks), n.Image.Name)
	case n.Image.Kind == raw.Kind{}.Name():
		return fmt.Sprintf("write the disk image %s as it is to disk %q and read it back", n.Image.Name, n.Disks.On)
	}
	return fmt.Sprintf("write image %s to disk %q and read it back", n.Image.Name, n.Disks.On)
}

// streams is what a write of an image holds; never changed.
var streams = []plan.Use{{Resource: "streams", Units: 1, Hold: plan.ForStep}}

// nodeSteps appends the five steps of a node, and that of its certificate.
func (s *Stage) nodeSteps(to []plan.Step, n *inventory.Node, inrush *power.Inrush, all shared) []plan.Step {
	me, c, decl := subject.OfNode(n.Name), all.of(s, n), stage.Source(n.Decl)
	to = slices.Grow(to, 6) // what step returns stays in it
	step := func(action, title string, may plan.EffectSet, limit, expected time.Duration, needs ...plan.Need) *plan.Step {
		to = append(to, plan.Step{ID: StepOf(n.Name, action), Stage: Name, Subject: me, Title: title, Needs: needs, May: may,
			Decl: decl, Deadline: plan.Budget{Limit: limit, Expected: expected}, Version: Version, DepthKey: n.Name})
		return &to[len(to)-1]
	}
	after := func(st *plan.Step) plan.Need { return plan.Need{Step: st.ID, On: plan.Success, Triggers: true} }
	reach := plan.Effects(plan.Power, plan.Config) // any step may have to bring the agent back

	inputs := withSerial(c.inputs, n)
	netboot := step(Netboot, "power on and boot the install ramdisk", reach, bootLimit, 45*time.Second,
		plan.Need{Step: oob.StepOf(n.Name), On: plan.Success}, plan.Need{Step: c.image, On: plan.Success})
	if n.HandedOver() {
		netboot.Needs = append(netboot.Needs, plan.Need{Step: DrainStep(n.Name), On: plan.Success})
	}
	netboot.Uses = InrushOf(n, inrush)
	netboot.Yields = []fact.Key{AttemptFact.Of(me), IdentityFact.Of(me)}
	netboot.Inputs = inputs

	first := []plan.Need{after(netboot)}
	if EnrolsMOK(n) {
		mok := step(MOK, "enrol the site's certificate for kernel modules in shim's list (MOK), at the console, where the node does not have it", reach, mokLimit, 20*time.Second, first...)
		// No node that is installed already is restarted for it: an inspection needs it, or nobody does.
		mok.Only, mok.Uses, mok.Yields = plan.WhenNeeded, InrushOf(n, inrush), []fact.Key{AttemptFact.Of(me), IdentityFact.Of(me)}
		first = append(first, plan.Need{Step: mok.ID, On: plan.Success})
	}
	inspect := step(Inspect, c.inspect, reach, inspectLimit, 3*time.Second, first...)
	inspect.Yields = []fact.Key{HardwareFact.Of(me)}

	write := step(Write, c.write, reach, writeLimit, 60*time.Second, after(inspect))
	if write.Reinstalls = n.Diskless(); !write.Reinstalls {
		erases(n, inspect, write)
	}
	write.Yields = []fact.Key{WriteFact.Of(me)}
	write.Uses, write.Inputs = streams, inputs

	configure := step(Configure, "write host settings; make the SSH host key on the node", reach, configLimit, 10*time.Second, after(write))
	if kinds.LeavesInitrd(n.Image) {
		configure.Title += ", and its initrd"
		configure.Deadline = plan.Budget{Limit: configLimit + initrdLimit, Expected: 45 * time.Second}
	}
	configure.Yields = []fact.Key{HostKeyFact.Of(me), cabling.NeighboursFact.Of(me)}
	boot := step(Boot, "boot from disk and log in with the pinned host key", reach, diskLimit*boots(n), 45*time.Second, after(configure))
	if n.Diskless() {
		boot.Title = "start the system in memory and log in with the pinned host key"
	}
	if n.Hardware.Kexec {
		boot.Title = "start the installed system from the ramdisk and log in with the pinned host key"
		boot.Deadline.Limit += kexecSilence
		configure.Yields = append(configure.Yields, KexecFact.Of(me))
	}
	boot.Reads, boot.Yields = []fact.Key{HostKeyFact.Of(me)}, []fact.Key{SystemFact.Of(me)}
	if n.Hardware.Kexec {
		boot.Reads = append(boot.Reads, KexecFact.Of(me))
	}
	return to
}

// erases makes a write one that erases the disks that its node's inspection chooses.
func erases(n *inventory.Node, inspect, write *plan.Step) {
	me := subject.OfNode(n.Name)
	inspect.Yields = append(inspect.Yields, DiskFact.Of(me))
	write.May = plan.Effects(plan.Power, plan.Config, plan.Erase)
	write.Erases = "EVERYTHING on disk " + strconv.Quote(n.Disks.On) + " of " + n.Name
	write.Reads = []fact.Key{DiskFact.Of(me)}
	if !n.Disks.Whole() {
		inspect.Yields = append(inspect.Yields, DisksFact.Of(me))
		write.Reads = append(write.Reads, DisksFact.Of(me))
		write.Erases = "EVERYTHING" + keptWords(n.Disks) + " on the disks of disk_layout " + n.Disks.Name + " of " + n.Name
	}
}

// boots is how often a node starts from its disk until it can be logged in to: twice where
// the first boot gives labels to the files.
func boots(n *inventory.Node) time.Duration {
	if d := distribution.OfDisk(n.Image); d != nil && d.Relabels && !n.Diskless() {
		return 2
	}
	return 1
}

// InrushUses begins the names of what is claimed while a node is switched on: of
// circuits in watts, and of racks whose power is not known in nodes.
const InrushUses = "inrush/"

// settles is how long supplies and fans draw more than the chassis ever does at
// work, counted from power-on. An estimate on the safe side: capacitors are charged
// within a second, and fans fall from full speed once the BMC reads temperatures.
const settles = time.Minute

// InrushOf are held from power-on until the supplies have settled, or until the
// agent's hello where that comes first. A reboot does not switch supplies and claims
// nothing.
func InrushOf(n *inventory.Node, inrush *power.Inrush) []plan.Use {
	claims := inrush.Of(n.Name)
	if len(claims) == 0 {
		return []plan.Use{{Resource: InrushUses + n.Rack.Name, Units: 1, Hold: plan.UntilReleased, Settles: settles}}
	}
	uses := make([]plan.Use, len(claims))
	for i, c := range claims {
		uses[i] = plan.Use{Resource: InrushUses + c.Circuit, Units: c.Watts, Hold: plan.UntilReleased, Settles: settles}
	}
	return uses
}

// installInputs are what a reinstall is decided by: the image and where it goes.
func (s *Stage) installInputs(n *inventory.Node) []plan.Input {
	if n.Diskless() {
		return []plan.Input{s.imageInput(n.Image)}
	}
	return []plan.Input{s.imageInput(n.Image),
		{Name: "disk_layout." + n.Disks.Name, Value: layoutInput(n.Disks), Decl: stage.Source(n.Disks.Decl)}}
}

// withSerial adds to shared inputs which chassis a node must be.
func withSerial(in []plan.Input, n *inventory.Node) []plan.Input {
	if n.Serial == "" {
		return in
	}
	own := append(make([]plan.Input, 0, len(in)+1), in...)
	return append(own, plan.Input{Name: "serial", Value: n.Serial, Decl: stage.Source(n.Ranges.Serial)})
}

// NotBuilt is the Extra of the diagnostic about an image that is not there yet.
type NotBuilt struct{}

// installable says what this stage cannot do for a node, with the place.
func (s *Stage) installable(n *inventory.Node) (d hcl.Diagnostics) {
	no := func(r hcl.Range, summary, detail string, args ...any) {
		d = append(d, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(detail, args...), Subject: &r})
	}
	if _, err := kinds.Of(n.Image); err != nil {
		no(n.Image.Decl, "Image cannot be installed", "%s.", capitalize(err.Error()))
	} else if s.digest[n.Image.Name] == "" {
		no(n.Image.Decl, "Image is not built", "Image %q is neither in the image store nor pinned by a digest. Build it: `ironrail image build %s`.", n.Image.Name, n.Image.Name)
		d[0].Extra = NotBuilt{}
	}
	switch {
	case n.Hardware == nil:
		no(n.Decl, "Node without hardware", "Node %q has no hardware block, so that nothing says what it must be. Set hardware in the node or its role.", n.Name)
	case n.Disks == nil && !n.Diskless():
		no(n.Decl, "Node without a disk layout", "Node %q has an image and no disk layout to put it on. Set disks in its role.", n.Name)
	case n.BootMAC.IsZero() || !n.Address.IsValid():
		no(n.Decl, "Node cannot netboot", "Node %q needs boot_mac and a boot NIC on a network, so that it is known when it asks.", n.Name)
	case n.Disks != nil:
		s.layoutSupported(n, no)
	}
	if err := bmc.Supported(bmc.Protocol(n.BMC.Protocol)); err != nil {
		no(n.Decl, "BMC protocol cannot be driven", "Node %q: %v.", n.Name, err)
	}
	return d
}

// capitalize begins a message of an error as a sentence.
func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// layoutSupported refuses layouts that this stage would silently not honour.
func (s *Stage) layoutSupported(n *inventory.Node, no func(hcl.Range, string, string, ...any)) {
	l := n.Disks
	if _, ok := n.Hardware.Disk(l.On); !ok {
		no(l.Decl, "Disk layout names an unknown disk", "disk_layout %q is on disk %q, which hardware %q does not have.", l.Name, l.On, n.Hardware.Name)
	}
	if !LayoutSupported(l) {
		no(l.Decl, "Disk layout cannot be installed",
			"disk_layout %q asks for RAID %d. This ironrail makes RAID 1 and 10, and layouts without RAID, and does not begin what it cannot finish.", l.Name, l.RAID)
	}
}

// LayoutSupported reports whether this stage can make a disk layout.
func LayoutSupported(l *inventory.DiskLayout) bool { return l.Made() }
