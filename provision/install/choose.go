// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// lastInstall is what is known of the disk that a node's system is on, or is to be
// on, before its disks are seen.
type lastInstall struct {
	named string       // serial number or WWN that the operator gave; empty: none
	last  *wire.Disk   // that was erased for the node before; nil: not known
	all   []LayoutDisk // that were, where they are several, with last
	key   string       // of the last write: the marker on its disk
	// adopted: its system runs, and none of our writes is known to have made it; last is
	// the disk that it was seen to run from.
	adopted bool
}

// installOf reads what is known of the last install of a node, or of the system that
// it was adopted with.
func installOf(view factReader, n *inventory.Node) (lastInstall, error) {
	k := lastInstall{named: n.InstallDisk}
	w, written, err := ofChassis(view, WriteFact, n)
	switch {
	case err != nil:
		return k, err
	case !written:
		return k, k.ofAdopted(view, n)
	}
	k.key = w.Key
	switch {
	case w.Memory:
	case w.Complete && w.Disk == nil:
		k.last, err = chosenBefore(view, n)
	case w.Complete || w.Ours:
		k.last = w.Disk
	}
	for _, d := range w.Disks {
		if w.Complete || d.Ours {
			k.all = append(k.all, d)
		}
	}
	return k, err
}

// ofAdopted reads what is known of a system that no write of ours has made.
func (k *lastInstall) ofAdopted(view factReader, n *inventory.Node) error {
	var err error
	_, k.adopted, err = ofChassis(view, HostKeyFact, n) // an adoption pins it, whatever else it can read
	if err != nil || !k.adopted {
		return err
	}
	sys, _, err := ofChassis(view, SystemFact, n)
	if d := sys.Root; d != nil && Identified(*d) {
		k.last = d
	}
	return err
}

// chosenBefore is the disk of a write that does not say it, as those of the first
// version do not: the one that was chosen last before it ended. nil where another
// choice came after it.
func chosenBefore(view factReader, n *inventory.Node) (*wire.Disk, error) {
	written, _ := view.Fact(WriteFact.Of(subject.OfNode(n.Name)))
	f, ok := view.Fact(DiskFact.Of(subject.OfNode(n.Name)))
	if !ok || f.Part != written.Part || f.Observed.After(written.Observed) {
		return nil, nil
	}
	d, err := DiskFact.Get(f)
	if err != nil || nameOf(d) == "" {
		return nil, err
	}
	return &d, nil
}

// ofChassis reads a fact of a node's chassis; false where it is not known, or was read
// from another one.
func ofChassis[T any](view factReader, name fact.Name[T], n *inventory.Node) (v T, ok bool, err error) {
	f, ok := view.Fact(name.Of(subject.OfNode(n.Name)))
	if !ok || f.Part != "" && n.Serial != "" && f.Part != n.Serial {
		return v, false, nil
	}
	v, err = name.Get(f)
	return v, err == nil, err
}

// choice is the disk that a node is installed on. Ours: what lies on it is the
// node's own system, or the operator named the disk, so that a reinstall may erase
// it unless it is blank.
type choice struct {
	disk wire.Disk
	ours bool
}

// chooseDisk finds the disk that the layout is on: the one that the operator
// named, that of the last install, the one with the node's install marker, or else
// the only one that fits and is blank. There is no first among several.
func chooseDisk(n *inventory.Node, hw wire.Hardware, known lastInstall) (choice, error) {
	d, ok := n.Hardware.Disk(n.Disks.On)
	if !ok {
		return choice{}, errkind.New(errkind.Internal, "disk layout %s names no disk of the hardware", n.Disks.Name)
	}
	own, err := known.find(n, hw)
	if err != nil {
		return choice{}, err
	}
	if own != nil && !diskFits(*d, *own) {
		return choice{}, errkind.New(errkind.Mismatch, "%s of %s does not fit hardware.%s disk %q (%s): %s%s", known.words(), n.Name, n.Hardware.Name, d.Name, describeRule(*d), describeDisk(*own),
			describeOthers(hw.Disks, []wire.Disk{*own})).
			Do(fmt.Sprintf("Nothing was erased. Put the disk back into its slot, or correct the disk block; to install on another disk, name it: `ironrail rebuild %s --disk SERIAL`.", n.Name))
	}
	if own != nil {
		c := choice{*own, known.owns(n, *own)}
		if !c.ours { // it was this node's, and another has used it since
			return c, known.notBlank(n, *d, *own)
		}
		return c, nil
	}
	fit := shareDisks(n.Hardware, hw, "", nil).of[d.Name]
	switch {
	case len(fit) == 0:
		return choice{}, errkind.New(errkind.Mismatch, "no disk fits hardware.%s disk %q (%s)%s", n.Hardware.Name, d.Name, describeRule(*d), describeOthers(hw.Disks, nil)).Do("Reseat or replace the disk; or correct the disk block.")
	case len(fit) > 1:
		return choice{}, errkind.New(errkind.Refused, "%d disks fit hardware.%s disk %q: %s%s", len(fit), n.Hardware.Name, d.Name, describeDisks(fit), describePaths(fit)).Do(suggestDiskSelector(n, *d, fit))
	case d.Identified():
		return choice{fit[0], known.owns(n, fit[0])}, nil
	case fit[0].Content != "" || fit[0].Marker != "":
		return choice{}, known.notBlank(n, *d, fit[0])
	}
	return choice{disk: fit[0]}, nil
}

// notBlank refuses the only disk that fits, since nothing says that what lies on
// it may be lost.
func (k lastInstall) notBlank(n *inventory.Node, d inventory.Disk, is wire.Disk) error {
	do := fmt.Sprintf("Nothing was erased. Look whether the data is needed. `ironrail rebuild %s --disk %s` erases this very disk.", n.Name, nameOf(is))
	if nameOf(is) == "" {
		do = "Nothing was erased. The disk has neither serial number nor WWN to name it by: blank it by hand if the data is not needed (wipefs -a)."
	}
	if k.last != nil && !sameDisk(*k.last, is) {
		return errkind.New(errkind.Refused, "disk is not blank, and it is not %s of %s (%s), which is gone: hardware.%s disk %q would be %s", k.disk(), n.Name, IdentifyDisk(*k.last), n.Hardware.Name, d.Name, describeDisk(is)).Do(do)
	}
	return errkind.New(errkind.Refused, "disk is not blank, and nothing says that it is the system disk of %s: hardware.%s disk %q would be %s", n.Name, n.Hardware.Name, d.Name, describeDisk(is)).Do(do)
}

// nameOf is what install_disk and --disk name a disk by.
func nameOf(d wire.Disk) string {
	if s := strings.TrimSpace(d.Serial); s != "" {
		return s
	}
	return d.WWN
}

// words is what find found, in words.
func (k lastInstall) words() string {
	switch {
	case k.named != "":
		return "install_disk"
	case k.last != nil:
		return k.disk()
	}
	return "the disk with the install marker"
}

// disk says which disk last is.
func (k lastInstall) disk() string {
	if k.adopted {
		return "the disk of the running system"
	}
	return "the disk of the last install"
}

// marks reports whether a disk carries the marker of the node's last write, or
// where that is not known, of any.
func (k lastInstall) marks(n *inventory.Node, d wire.Disk) bool {
	return d.Marker != "" && (d.Marker == k.key || strings.HasPrefix(d.Marker, n.Name+"/"))
}

// owns reports whether a reinstall may erase a disk whatever lies on it: it is the
// node's own, or the operator named it.
func (k lastInstall) owns(n *inventory.Node, d wire.Disk) bool {
	on := ""
	if n.Disks != nil {
		on = n.Disks.On
	}
	return k.ownsAs(n, on, d)
}

// ownsAs is owns of a disk that belongs to a disk block; "": none is known.
func (k lastInstall) ownsAs(n *inventory.Node, block string, d wire.Disk) bool {
	named := k.isNamed(d)
	if b, ok := n.Hardware.Disk(block); ok && b.Identified() {
		named = named || diskFits(*b, d)
	}
	was := k.last != nil && sameDisk(*k.last, d) || k.had(d)
	return named || was && d.Marker == "" || k.marks(n, d)
}

// had reports whether a disk was one of the layout of the last install.
func (k lastInstall) had(d wire.Disk) bool {
	return slices.ContainsFunc(k.all, func(x LayoutDisk) bool { return sameDisk(x.Disk, d) })
}

// layout are those disks of a node that were of the layout of its last install.
func (k lastInstall) layout(hw wire.Hardware) map[wire.Disk]bool {
	is := map[wire.Disk]bool{}
	for _, d := range hw.Disks {
		if k.had(d) {
			is[d] = true
		}
	}
	return is
}

// names are the serial numbers or World Wide Names that the operator gave.
func (k lastInstall) names() (names []string) {
	for name := range strings.SplitSeq(k.named, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// isNamed reports whether the operator named a disk.
func (k lastInstall) isNamed(d wire.Disk) bool {
	return slices.ContainsFunc(k.names(), func(name string) bool { return hasName(d, name) })
}

// isElsewhere reports whether a disk is known to be a data disk of the layout: it was one
// in the last install, or fits a block of higher rank than the layout's own.
func (k lastInstall) isElsewhere(n *inventory.Node, d wire.Disk) bool {
	if n.Disks == nil {
		return false
	}
	if i := slices.IndexFunc(k.all, func(x LayoutDisk) bool { return sameDisk(x.Disk, d) }); i >= 0 {
		return k.all[i].Block != n.Disks.On
	}
	fit := highestPriority(n.Hardware.Disks, func(b inventory.Disk) bool { return diskFits(b, d) })
	return len(fit) > 0 && !slices.ContainsFunc(fit, func(b inventory.Disk) bool { return b.Name == n.Disks.On })
}

// find returns the disk that was named, that of the last install, or that with the
// node's marker; nil where none of these is there. What is not certain is an error.
func (k lastInstall) find(n *inventory.Node, hw wire.Hardware) (*wire.Disk, error) {
	if k.named != "" {
		d, err := onlyDisk(n, hw, fmt.Sprintf("install_disk %q", k.named), k.isNamed)
		if d == nil && err == nil {
			err = errkind.New(errkind.NotFound, "no disk of %s has the serial number or WWN %q (install_disk)%s", n.Name, k.named, describeOthers(hw.Disks, nil)).
				Do("Nothing was erased. Correct install_disk, or put that disk in.")
		}
		return d, err
	}
	marked, err := onlyDisk(n, k.system(n, hw), "marked by the last write", func(d wire.Disk) bool { return k.key != "" && d.Marker == k.key })
	if err != nil {
		return nil, err
	}
	if k.last != nil {
		last, err := onlyDisk(n, hw, k.disk(), func(d wire.Disk) bool { return sameDisk(*k.last, d) })
		switch {
		case err != nil:
			return nil, err
		case last != nil && marked != nil && !sameDisk(*last, *marked):
			return nil, errkind.New(errkind.Refused, "the last install of %s was on one disk, and another carries its marker: %s", n.Name, describeDisks([]wire.Disk{*last, *marked})).
				Do(fmt.Sprintf("Nothing was erased. Name the one to install on: `ironrail rebuild %s --disk SERIAL`.", n.Name))
		case last != nil:
			return last, nil
		}
	}
	if marked != nil {
		return marked, nil
	}
	return onlyDisk(n, k.system(n, hw), "marked as installed for this node", func(d wire.Disk) bool { return k.marks(n, d) })
}

// system is hw without the data disks of layouts of which the last write left its marker
// on several disks.
func (k lastInstall) system(n *inventory.Node, hw wire.Hardware) wire.Hardware {
	marked := 0
	for _, d := range hw.Disks {
		if k.marks(n, d) {
			marked++
		}
	}
	if marked > 1 {
		hw.Disks = slices.DeleteFunc(slices.Clone(hw.Disks), func(d wire.Disk) bool { return k.marks(n, d) && k.isElsewhere(n, d) })
	}
	return hw
}

// onlyDisk is the one disk of which something is so; nil where it is so of none, and an
// error where of several, unless the site's files say by which path.
func onlyDisk(n *inventory.Node, hw wire.Hardware, what string, is func(wire.Disk) bool) (*wire.Disk, error) {
	found := slices.DeleteFunc(disksByPlace(hw.Disks), func(d wire.Disk) bool { return !is(d) })
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	}
	if path := declaredPath(n, found); path != nil {
		return path, nil
	}
	do := fmt.Sprintf("Nothing was erased. Take one of them out; or name the other by its WWN: `ironrail rebuild %s --disk WWN`.", n.Name)
	if onePath(found) && n.Disks != nil {
		if d, ok := n.Hardware.Disk(n.Disks.On); ok {
			do = suggestDiskSelector(n, *d, found)
		}
	}
	return nil, errkind.New(errkind.Refused, "%d disks of %s are %s: %s%s", len(found), n.Name, what, describeDisks(found), describePaths(found)).Do(do)
}

// place is the block of the system disk and that disk, where both are known: what
// tells it from others that fit. An error of find is that of chooseDisk.
func (k lastInstall) place(n *inventory.Node, hw wire.Hardware) (on string, own *wire.Disk) {
	if n.Disks != nil && n.Disks.RAID >= 0 {
		return "", nil // it is on all disks of its block
	}
	own, err := k.find(n, hw)
	if err != nil || own == nil {
		return "", nil
	}
	if n.Disks != nil {
		if d, ok := n.Hardware.Disk(n.Disks.On); ok && diskFits(*d, *own) {
			return d.Name, own
		}
		return "", nil
	}
	for _, d := range n.Hardware.Disks { // of a node that leaves: it has no layout any more
		if diskFits(d, *own) {
			if on != "" {
				return "", nil
			}
			on = d.Name
		}
	}
	return on, own
}

// blameDisk records a finding about the choice of the disk, and returns the error
// of the step.
func blameDisk(ctx context.Context, run stage.Run, n *inventory.Node, err error) error {
	if k := errkind.Of(err).Base(); k != errkind.Refused && k != errkind.Mismatch {
		return err
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "disk " + n.Disks.On}}, Cause: "which disk to erase is not certain", Evidence: []string{err.Error()}, Action: errkind.Action(err)}
	if berr := run.Blame(ctx, f); berr != nil {
		return berr
	}
	return err
}
