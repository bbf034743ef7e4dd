package install

import (
	"encoding/json"
	"fmt"
	"slices"
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

// shown compares the disk that was chosen with the one that the plan shows.
func (t Target) shown(n *inventory.Node, is wire.Disk) error {
	if len(t.Disks) == 0 || t.has(is) {
		return nil
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
// operator gave for this plan, by node; a node's install_disk comes after them. The
// rebuild of a node that was adopted and whose disk is not certain is refused here,
// before anything is done to the node.
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
		if !ok || n.Hardware == nil {
			continue
		}
		d := shower{n: n, reinstall: replaced[n.Name]}
		if err := d.read(view, named[n.Name]); err != nil {
			return err
		}
		var t Target
		if action == Wipe {
			t, st.Erases = d.wiped()
		} else {
			var text string
			if t, text = d.written(); action == Write {
				st.Erases = text
				d.refuse(p, st)
			}
		}
		if t.Named != "" || len(t.Disks) > 0 {
			st.Params = map[string]plan.Value{targetParam: plan.Literal(t)}
		}
	}
	return nil
}

// Unsure are the nodes of which nothing says which disk an installation would erase,
// whatever an inspection finds: their layout is on a block that counts several disks,
// nobody named one, and no earlier install is known. named is as for ShowDisks.
func Unsure(inv *inventory.Inventory, view factReader, named map[string]string) (map[string]plan.Reason, error) {
	unsure := map[string]plan.Reason{}
	for _, n := range inv.Nodes {
		if n.Disks == nil || n.Hardware == nil || n.Disks.RAID >= 0 || n.Disks.Standin {
			continue
		}
		block, ok := n.Hardware.Disk(n.Disks.On)
		if !ok || block.Count <= 1 {
			continue
		}
		d := shower{n: n}
		if err := d.read(view, named[n.Name]); err != nil {
			return nil, err
		}
		if d.known.named != "" || d.known.last != nil {
			continue
		}
		if _, err := chooseDisk(n, d.hw, d.known); d.seen && err == nil {
			continue
		}
		unsure[n.Name] = plan.Reason{
			Cause:  fmt.Sprintf("nothing says which of %d disks of %s is erased: disk_layout %s is on disk %q of hardware.%s, and no earlier install is known", block.Count, n.Name, n.Disks.Name, block.Name, n.Hardware.Name),
			Action: "Say where the system disk is (pci, bay or by_path) in a disk block of its own with count = 1; or give the node install_disk, its serial number; or name it once: `ironrail rebuild " + n.Name + " --disk SERIAL`."}
	}
	return unsure, nil
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
	if d.hw, d.seen, err = known(view, HardwareFact, d.n.Name); err != nil {
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
		if c, err := chooseDisk(d.n, d.hw, d.known); err == nil {
			t.Disks = []wire.Disk{shownDisk(c.disk)}
		}
	} else if d.known.named == "" && d.known.last != nil && d.reinstall {
		t.Disks = []wire.Disk{shownDisk(*d.known.last)}
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

// refuse refuses the reinstall of an adopted node of which nothing says which disk is
// its own: its system lies on it, so that no disk is taken since it merely fits, and the
// node would stay drained in the ramdisk. For a node that ironrail installed the ramdisk
// finds the marker, or says which disks there are now.
func (d *shower) refuse(p *plan.Plan, st *plan.Step) {
	block, ok := d.n.Hardware.Disk(d.n.Disks.On)
	if !d.reinstall || !d.known.adopted || d.known.last != nil || d.known.named != "" || !ok || block.Identified() || d.n.Disks.Standin {
		return
	}
	if slices.ContainsFunc(p.Refusals, func(r plan.Refusal) bool { return r.Step == st.ID }) {
		return // see Unsure
	}
	cause := "which disk its system lies on is not known, and its disks were not seen"
	if d.seen && len(d.hw.Disks) > 0 {
		_, err := chooseDisk(d.n, d.hw, d.known)
		if errkind.Of(err) != errkind.Refused {
			return // it carries the node's marker; or the disks are not those of the block, which the inspection says
		}
		cause = err.Error()
	}
	p.Refusals = append(p.Refusals, plan.Refusal{Subject: st.Subject, Step: st.ID, Cause: fmt.Sprintf("%s was adopted and never installed, and which disk is erased is not certain: %s", d.n.Name, cause),
		Action: fmt.Sprintf("Name the disk: `ironrail rebuild %s --disk SERIAL`, or install_disk in node %s. `ironrail adopt %s` looks again where its system runs from one disk", d.n.Name, d.n.Name, d.n.Name)})
	p.Erase.Nodes = slices.DeleteFunc(p.Erase.Nodes, func(n string) bool { return n == d.n.Name })
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
		for _, x := range all {
			t.Disks = append(t.Disks, shownDisk(x))
		}
	}
	if len(t.Disks) == 0 {
		return t, fmt.Sprintf("EVERYTHING on the disk of %s that carries its install marker; no disk of the last inspection is known to be its own", d.n.Name)
	}
	var words []string
	for _, x := range t.Disks {
		words = append(words, IdentifyDisk(x))
	}
	return t, fmt.Sprintf("EVERYTHING on %s of %s: %s", countDisks(len(words)), d.n.Name, strings.Join(words, "; "))
}

func countDisks(n int) string {
	if n == 1 {
		return "1 disk"
	}
	return fmt.Sprintf("%d disks", n)
}

// shownDisk is who a disk is, without what lies on it and what differs from boot to
// boot.
func shownDisk(d wire.Disk) wire.Disk {
	d.Path, d.Content, d.Marker, d.State = "", "", "", ""
	return d
}
