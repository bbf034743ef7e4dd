// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// targetParam is the parameter of the steps of a plan that choose and erase disks:
// a Target.
const targetParam = "target"

// Target is which disks a plan shows as those that are erased. The format only
// grows.
type Target struct {
	Named string      `json:"named,omitempty"` // serial number or WWN that the operator gave
	Disks []wire.Disk `json:"disks,omitempty"` // who they are, as far as that is known; none: it is found out by the inspection
}

// targetOf reads what a step of a plan shows; false for a plan that says nothing.
func targetOf(st plan.Step) (t Target, ok bool, err error) {
	v, ok := st.Params[targetParam]
	if !ok {
		return t, false, nil
	}
	if err := json.Unmarshal(v.Literal, &t); err != nil {
		return t, false, errkind.New(errkind.Internal, "step %s: parameter %q: %w", st.ID, targetParam, err)
	}
	return t, true, nil
}

// knownFor is what is known of the last install of a step's node. Which disk the
// operator named stands in the plan that was approved.
func knownFor(run factReader, n *inventory.Node, st plan.Step) (lastInstall, Target, error) {
	k, err := installOf(run, n)
	if err != nil {
		return k, Target{}, err
	}
	t, ok, err := targetOf(st)
	if ok {
		k.named = t.Named
	}
	return k, t, err
}

// shown compares the disks that were chosen with those that the plan shows.
func (t Target) shown(n *inventory.Node, all []LayoutDisk) error {
	i := slices.IndexFunc(all, func(d LayoutDisk) bool { return !t.has(d.Disk) })
	if len(t.Disks) == 0 || i < 0 {
		return nil
	}
	is := all[i].Disk
	if len(all) > 1 || len(t.Disks) > 1 {
		return errkind.New(errkind.Refused, "the plan erases %s of %s, and disk serial %s would now be one of them, which it does not show: planned %s; there %s", countDisks(len(t.Disks)), n.Name, orUnknown(nameOf(is)), identifyDisks(t.Disks), describeDisk(is)).
			Do("Nothing was erased. Look whether a disk was replaced or exchanged; then plan again: the new plan shows the disks that are there now.")
	}
	return errkind.New(errkind.Refused, "the plan erases disk serial %s of %s, and that would now be disk serial %s: planned %s; there %s", orUnknown(nameOf(t.Disks[0])), n.Name, orUnknown(nameOf(is)), IdentifyDisk(t.Disks[0]), describeDisk(is)).
		Do("Nothing was erased. Look whether a disk was replaced or exchanged; then plan again: the new plan shows the disk that is there now.")
}

// has reports whether the plan shows a disk.
func (t Target) has(is wire.Disk) bool {
	return slices.ContainsFunc(t.Disks, func(d wire.Disk) bool { return sameShown(d, is) })
}

// ShowDisks writes into the steps of a plan which disks they erase, by serial
// number, as far as the facts of view tell. named are serial numbers or WWNs that the
// operator gave for this plan, by node; a node's install_disk comes after them.
func ShowDisks(inv *inventory.Inventory, view factReader, p *plan.Plan, named map[string]string) error {
	replaced := map[string]bool{} // by node: how its system disk is erased
	for _, st := range p.Steps {
		if st.Stage == Name && actionOf(st) == Write {
			replaced[st.Subject.Name] = st.Action == plan.Replace
		}
	}
	for i := range p.Steps {
		st := &p.Steps[i]
		action := actionOf(*st)
		if st.Stage != Name || action != Inspect && action != Write && action != Wipe {
			continue
		}
		n, ok := inv.Node(st.Subject.Name)
		if !ok || n.Hardware == nil || n.Diskless() && action != Wipe {
			continue
		}
		d := shower{n: n, reinstall: replaced[n.Name]}
		if err := d.read(view, named[n.Name]); err != nil {
			return err
		}
		d.show(st, action)
	}
	return nil
}

// show writes into a step which disks it is about.
func (d *shower) show(st *plan.Step, action string) {
	var t Target
	var text string
	if action == Wipe {
		t, text = d.wiped()
	} else {
		t, text = d.written()
	}
	if action != Inspect {
		st.Erases = text
	}
	if t.Named != "" || len(t.Disks) > 0 {
		st.Params = map[string]plan.Value{targetParam: plan.Literal(t)}
	}
}

// Ambiguous is the rule by which a plan refuses an installation of which nothing says which
// disk it would erase, before anything is done to its node: its layout is on a block that
// counts several disks and no earlier install is known, or its node was adopted and its
// system's disk is not certain. named is as for ShowDisks. The rule answers with the zero
// Reason where it refuses nothing; its error is that of reading the facts.
func Ambiguous(inv *inventory.Inventory, view factReader, named map[string]string) func(*plan.Step) (plan.Reason, error) {
	return func(st *plan.Step) (plan.Reason, error) {
		if st.Stage != Name || actionOf(*st) != Write {
			return plan.Reason{}, nil
		}
		n, ok := inv.Node(st.Subject.Name)
		if !ok || n.Hardware == nil || n.Disks == nil {
			return plan.Reason{}, nil
		}
		d := shower{n: n, reinstall: st.Action == plan.Replace}
		err := d.read(view, named[n.Name])
		if err != nil || d.known.named != "" || d.known.last != nil && (n.Disks.Whole() || !d.known.adopted) {
			return plan.Reason{}, err
		}
		return d.ambiguous(), nil
	}
}

// ambiguous is why a disk is not chosen of which only the layout is known.
func (d *shower) ambiguous() (why plan.Reason) {
	block, ok := d.n.Hardware.Disk(d.n.Disks.On)
	switch {
	case !ok:
	case d.n.Disks.RAID < 0 && block.Count > 1 && !d.chosen():
		return d.severalEqual(block)
	case d.reinstall && d.known.adopted && !block.Identified():
		return d.adopted()
	}
	return why
}

// chosen reports whether the last inspection says which disk it is.
func (d *shower) chosen() bool {
	if !d.seen {
		return false
	}
	_, err := chooseDisks(d.n, d.hw, d.known)
	return err == nil
}

func (d *shower) severalEqual(block *inventory.Disk) plan.Reason {
	return plan.Reason{
		Cause:  fmt.Sprintf("nothing says which of %d disks of %s is erased: disk_layout %s is on disk %q of hardware.%s, and no earlier install is known", block.Count, d.n.Name, d.n.Disks.Name, block.Name, d.n.Hardware.Name),
		Action: "Say where the system disk is (pci, bay or by_path) in a disk block of its own with count = 1; or give the node install_disk, its serial number; or name it once: `ironrail rebuild " + d.n.Name + " --disk SERIAL`."}
}

// adopted is why an adopted node is not reinstalled: its system lies on a disk, so that
// none is taken since it merely fits, and the node would stay drained in the ramdisk. For
// a node that ironrail installed the ramdisk finds the marker, or says which disks there
// are now.
func (d *shower) adopted() plan.Reason {
	cause := "which disk its system lies on is not known, and its disks were not seen"
	if d.seen && len(d.hw.Disks) > 0 {
		_, err := chooseDisks(d.n, d.hw, d.known)
		if errkind.Of(err) != errkind.Refused {
			return plan.Reason{} // it carries the node's marker; or the disks are not those of the block, which the inspection says
		}
		cause = err.Error()
	}
	return plan.Reason{
		Cause:  fmt.Sprintf("%s was adopted and never installed, and which disk is erased is not certain: %s", d.n.Name, cause),
		Action: fmt.Sprintf("Name the disk: `ironrail rebuild %s --disk SERIAL`, or install_disk in node %s. `ironrail adopt %s` looks again where its system runs from one disk", d.n.Name, d.n.Name, d.n.Name)}
}

// shower finds out which disks of one node are erased.
type shower struct {
	n         *inventory.Node
	reinstall bool
	known     lastInstall
	hw        wire.Hardware // as inspected last
	seen      bool          // of this very chassis
}

// read reads what the facts say of a node's disks.
func (d *shower) read(view factReader, named string) (err error) {
	if d.known, err = installOf(view, d.n); err != nil {
		return err
	}
	if named != "" {
		d.known.named = named
	}
	if d.hw, d.seen, err = readFact(view, HardwareFact, d.n.Name); err != nil {
		return err
	}
	if d.n.Serial != "" && !strings.EqualFold(d.n.Serial, d.hw.Identity.Serial) {
		d.seen = false
	}
	return nil
}

// written is the disk of a layout.
func (d *shower) written() (Target, string) {
	t := Target{Named: d.known.named}
	if d.n.Disks == nil {
		return t, ""
	}
	block, _ := d.n.Hardware.Disk(d.n.Disks.On)
	if d.seen && len(d.hw.Disks) > 0 && block != nil {
		if all, err := chooseDisks(d.n, d.hw, d.known); err == nil {
			t.Disks = shownDisks(disksIn(all))
		}
	} else if d.known.named == "" && d.known.last != nil && d.reinstall {
		if t.Disks = shownDisks(disksIn(d.known.all)); len(t.Disks) == 0 {
			t.Disks = shownDisks([]wire.Disk{*d.known.last})
		}
	}
	if !d.n.Disks.Whole() {
		return t, d.ofLayout(t)
	}
	const every = "EVERYTHING on disk "
	switch {
	case len(t.Disks) > 0:
		return t, every + t.Disks[0].Name + " of " + d.n.Name + ": " + strings.TrimPrefix(IdentifyDisk(t.Disks[0]), t.Disks[0].Name+" ")
	case t.Named != "":
		return t, fmt.Sprintf("%s%q of %s: the one with serial number or WWN %s", every, d.n.Disks.On, d.n.Name, t.Named)
	}
	rule := d.n.Disks.On
	if block != nil {
		rule = describeRule(*block)
	}
	text := fmt.Sprintf("%s%q of %s; which disk is known after inspect: the only one that fits hardware.%s disk %q (%s), if it is blank", every, d.n.Disks.On, d.n.Name, d.n.Hardware.Name, d.n.Disks.On, rule)
	if d.reinstall {
		text += " or carries this node's install marker"
	}
	return t, text
}

// wiped are the disks of a node that leaves.
func (d *shower) wiped() (t Target, text string) {
	if !d.seen {
		if d.known.last == nil {
			return t, fmt.Sprintf("EVERYTHING on the disk of %s that carries its install marker; its disks were never inspected, and no other is erased", d.n.Name)
		}
		t.Disks = []wire.Disk{shownDisk(*d.known.last)}
	} else {
		all, _ := disksToWipe(d.n, d.hw, d.known)
		t.Disks = shownDisks(all)
	}
	if len(t.Disks) == 0 {
		return t, fmt.Sprintf("EVERYTHING on the disk of %s that carries its install marker; no disk of the last inspection is known to be its own", d.n.Name)
	}
	return t, fmt.Sprintf("EVERYTHING on %s of %s: %s", countDisks(len(t.Disks)), d.n.Name, identifyDisks(t.Disks))
}

// identifyDisks is IdentifyDisk of several.
func identifyDisks(list []wire.Disk) string {
	var words []string
	for _, d := range list {
		words = append(words, IdentifyDisk(d))
	}
	return strings.Join(words, "; ")
}

// ofLayout says which disks a layout is made on that is not the image's own.
func (d *shower) ofLayout(t Target) string {
	l, every := d.n.Disks, "EVERYTHING"+keptWords(d.n.Disks)
	if len(t.Disks) > 0 {
		return fmt.Sprintf("%s on %s of %s: %s", every, countDisks(len(t.Disks)), d.n.Name, identifyDisks(t.Disks))
	}
	var rules []string
	for _, name := range blocksOf(l) {
		rule := strconv.Quote(name)
		if b, ok := d.n.Hardware.Disk(name); ok {
			count := max(1, b.Count)
			if name == l.On && l.RAID < 0 {
				count = 1
			}
			rule = fmt.Sprintf("%s that %s hardware.%s disk %q (%s)", countDisks(count), map[bool]string{true: "fits", false: "fit"}[count == 1], d.n.Hardware.Name, name, describeRule(*b))
		}
		rules = append(rules, rule)
	}
	text := fmt.Sprintf("%s on the disks of disk_layout %s of %s; which is known after inspect: %s, if blank", every, l.Name, d.n.Name, strings.Join(rules, ", "))
	if t.Named != "" {
		text += ", or with serial number or WWN " + t.Named
	}
	if d.reinstall {
		text += ", or with this node's install marker"
	}
	return text
}

func countDisks(n int) string {
	if n == 1 {
		return "1 disk"
	}
	return fmt.Sprintf("%d disks", n)
}

func shownDisks(list []wire.Disk) (shown []wire.Disk) {
	for _, d := range list {
		shown = append(shown, shownDisk(d))
	}
	return shown
}

// shownDisk is who a disk is, without what lies on it and what differs from boot to
// boot.
func shownDisk(d wire.Disk) wire.Disk {
	d.Path, d.Content, d.Marker, d.State = "", "", "", ""
	return d
}
