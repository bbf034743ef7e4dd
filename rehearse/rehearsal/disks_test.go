// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/adopt"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/rebuild"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
)

// layouts are what else stands in a node beside its system disk: always a disk of
// the same size and model, with data.
var layouts = []struct {
	name, node string
	lower      bool  // at the lower PCI address
	exchanged  bool  // and then the two change their slots
	at         int64 // where the data begins
	data       string
}{
	{"data disk lower", "r01-u01", true, false, 1080, "\x53\xef"},
	{"data disk higher", "r01-u09", false, false, 1080, "\x53\xef"},
	{"slots exchanged", "r01-u17", false, true, 1080, "\x53\xef"},
	{"md member", "r01-u25", true, false, 4096, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00"},
	{"LVM, slots exchanged", "r02-u01", true, true, 512, "LABELONE"},
	{"lost table", "r02-u09", true, false, 1<<20 + 1080, "\x53\xef"},
}

// dataDisk is a disk with data, and what it held when it was put in.
type dataDisk struct {
	serial, sum string
}

// addDataDisk puts a data disk into a node.
func addDataDisk(ctx context.Context, w *virtual.World, i int) (dataDisk, error) {
	l := layouts[i]
	n, ok := w.Node(l.node)
	if !ok {
		return dataDisk{}, fmt.Errorf("no node %s", l.node)
	}
	size := n.Metal().Disks()[0].Size()
	d, err := w.AddDisk(ctx, l.node, inventory.Disk{Name: "data", Type: "nvme", Size: sizeExactly(size)}, l.lower)
	if err != nil {
		return dataDisk{}, err
	}
	if err := d.Fill(l.at, []byte(l.data)); err != nil {
		return dataDisk{}, err
	}
	for _, at := range []int64{32 << 20, 1 << 30, size / 2} { // a file here and there
		if err := d.Fill(at, []byte("the only copy of a thesis")); err != nil {
			return dataDisk{}, err
		}
	}
	is := dataDisk{d.Serial(), d.Sum()}
	if l.exchanged {
		err = w.ExchangeBays(ctx, l.node, 0, 1)
	}
	return is, err
}

func sizeExactly(n int64) unit.Limit[unit.Bytes] {
	return unit.Limit[unit.Bytes]{Op: unit.Exactly, Value: unit.Bytes(n)}
}

// diskOf finds a disk of a node by serial number.
func diskOf(w *virtual.World, node, serial string) *metal.Disk {
	n, _ := w.Node(node)
	for _, d := range n.Metal().Disks() {
		if d.Serial() == serial {
			return d
		}
	}
	return nil
}

// intact reports a data disk of which a byte has changed.
func (d dataDisk) intact(t *testing.T, w *virtual.World, node, when string) {
	t.Helper()
	is := diskOf(w, node, d.serial)
	if is == nil {
		t.Errorf("%s: disk %s of %s is gone", when, d.serial, node)
	} else if sum := is.Sum(); sum != d.sum {
		t.Errorf("%s: the data disk %s of %s holds %s, and held %s", when, d.serial, node, sum, d.sum)
	} else if c := is.Counters(); c.Erases > 0 {
		t.Errorf("%s: the data disk %s of %s was discarded %d times", when, d.serial, node, c.Erases)
	}
}

// systemSerial is the serial number of a node's disk that is no data disk.
func systemSerial(w *virtual.World, node, data string) string {
	n, _ := w.Node(node)
	for _, d := range n.Metal().Disks() {
		if d.Serial() != data {
			return d.Serial()
		}
	}
	return ""
}

// findingOf returns the words of the finding about a node; "" for none.
func findingOf(res apply.Result, node string) string {
	for _, f := range res.Findings {
		for _, s := range f.Suspects {
			if s.Subject.Name == node {
				return f.Cause + ": " + strings.Join(f.Evidence, "; ") + ": " + f.Action
			}
		}
	}
	return ""
}

// erases is what a plan says that is erased of a node.
func erases(p *plan.Plan, node string) string {
	for _, st := range p.Steps {
		if st.Subject.Name == node && st.Erases != "" {
			return st.Erases
		}
	}
	return ""
}

// TestDisksOfFirstInstall: where two disks fit, nothing is erased and both are
// named, whatever lies on them; once the system disk is named, it alone is erased.
func TestDisksOfFirstInstall(t *testing.T) {
	t.Parallel()
	var data []dataDisk
	o := rehearsal.Options{Seed: 7, Dir: t.TempDir()}
	o.OnRack = func(ctx context.Context, w *virtual.World) error {
		for i := range layouts {
			d, err := addDataDisk(ctx, w, i)
			if err != nil {
				return err
			}
			data = append(data, d)
		}
		return nil
	}
	o.Then = func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		inv := load(t, demo, nil)
		for i, x := range layouts {
			system := systemSerial(l.World, x.node, data[i].serial)
			n, err := quarantineOf(ctx, l, x.node)
			if err != nil {
				return err
			}
			for _, word := range []string{system, data[i].serial, "SAMSUNG MZQL23T8HCLS", "PCI 0000:", "install_disk = ", "Nothing was erased"} {
				if !strings.Contains(n, word) {
					t.Errorf("%s: %q does not say %q", x.name, n, word)
				}
			}
			data[i].intact(t, l.World, x.node, x.name+", apply")
			if c := diskOf(l.World, x.node, system).Counters(); c.Writes > 0 || c.Erases > 0 {
				t.Errorf("%s: the system disk was written: %+v", x.name, c)
			}
			node, _ := inv.Node(x.node)
			node.InstallDisk = system
		}
		if err := l.Edit(ctx, inv); err != nil {
			return err
		}
		var nodes []string
		for _, x := range layouts {
			nodes = append(nodes, x.node)
		}
		p, res, err := l.Rebuild(ctx, &rebuild.Request{Nodes: nodes})
		if err != nil {
			return err
		}
		for i, x := range layouts {
			if text := erases(p, x.node); !strings.Contains(text, systemSerial(l.World, x.node, data[i].serial)) || strings.Contains(text, data[i].serial) {
				t.Errorf("%s: the plan says %q", x.name, text)
			}
			if !done(res, x.node) {
				t.Errorf("%s: %s", x.name, findingOf(res, x.node))
			}
			data[i].intact(t, l.World, x.node, x.name+", named")
		}
		return nil
	}
	if _, err := rehearsal.Run(context.Background(), load(t, demo, nil), o); err != nil {
		t.Error(err)
	}
}

// quarantineOf is why a node is in quarantine, in words.
func quarantineOf(ctx context.Context, l *rehearsaltest.Later, node string) (string, error) {
	nodes, err := state.ReadNodes(ctx, l.Store)
	if err != nil {
		return "", err
	}
	q := nodes[node].Quarantine
	if q == nil {
		return "", fmt.Errorf("%s is not in quarantine", node)
	}
	return q.Finding.Cause + ": " + strings.Join(q.Finding.Evidence, "; ") + ": " + q.Finding.Action, nil
}

// TestDisksOfReinstall: rebuild and --replace go to the disk of the last install,
// wherever it is, and change no byte of another.
func TestDisksOfReinstall(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"rebuild", "--replace"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
				for i, x := range layouts {
					d, err := addDataDisk(ctx, l.World, i)
					if err != nil {
						return err
					}
					system := systemSerial(l.World, x.node, d.serial)
					was := diskOf(l.World, x.node, system).Sum()
					p, res, err := reinstall(ctx, l, how, x.node)
					if err != nil {
						return err
					}
					if text := erases(p, x.node); !strings.Contains(text, "serial "+system) || strings.Contains(text, d.serial) {
						t.Errorf("%s: the plan says %q", x.name, text)
					}
					if !done(res, x.node) {
						t.Errorf("%s: %s", x.name, findingOf(res, x.node))
					}
					if diskOf(l.World, x.node, system).Sum() == was {
						t.Errorf("%s: the system disk was not written", x.name)
					}
					d.intact(t, l.World, x.node, x.name+", "+how)
				}
				return nil
			})
		})
	}
}

// reinstall reinstalls one node, as either command does.
func reinstall(ctx context.Context, l *rehearsaltest.Later, how, node string) (*plan.Plan, apply.Result, error) {
	if how == "rebuild" {
		return l.Rebuild(ctx, &rebuild.Request{Nodes: []string{node}})
	}
	p, err := l.Plan(ctx, provision.PlanOptions{Replace: []string{node}, Targets: []string{node}})
	if err != nil {
		return p, apply.Result{}, err
	}
	res, err := l.Apply(ctx, p)
	return p, res, err
}

// TestDiskReplaced: a blank disk in the place of the one that the plan shows is a
// new question; one with data is erased only when it is named.
func TestDiskReplaced(t *testing.T) {
	t.Parallel()
	const node = "r01-u09"
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		n, _ := l.World.Node(node)
		disk := n.Metal().Disks()[0]
		was := disk.Serial()
		if err := l.World.ReplaceDisk(ctx, node, 0, "spare"); err != nil {
			return err
		}
		is := disk.Serial()
		p, res, err := reinstall(ctx, l, "rebuild", node)
		if err != nil {
			return err
		}
		if text := findingOf(res, node); !strings.Contains(erases(p, node), was) || done(res, node) || !strings.Contains(text, was) || !strings.Contains(text, is) || !strings.Contains(text, "plan again") {
			t.Errorf("blank: plan %q, finding %q; want both %s and %s", erases(p, node), text, was, is)
		}
		if c := disk.Counters(); c.Writes > 0 || c.Erases > 0 {
			t.Errorf("blank: it was written: %+v", c)
		}
		p, res, err = reinstall(ctx, l, "rebuild", node)
		if err != nil {
			return err
		}
		if !strings.Contains(erases(p, node), is) || !done(res, node) {
			t.Errorf("planned again: %q, %q", erases(p, node), findingOf(res, node))
		}
		if err := l.World.ReplaceDisk(ctx, node, 0, "used"); err != nil {
			return err
		}
		if err := disk.Fill(1080, []byte("\x53\xef")); err != nil {
			return err
		}
		used := dataDisk{disk.Serial(), disk.Sum()}
		for range 3 {
			if p, res, err = reinstall(ctx, l, "rebuild", node); err != nil {
				return err
			}
			used.intact(t, l.World, node, "used")
		}
		if text := findingOf(res, node); done(res, node) || !strings.Contains(text, "--disk "+used.serial) || !strings.Contains(text, is) {
			t.Errorf("used: plan %q, finding %q", erases(p, node), text)
		}
		p, res, err = l.Rebuild(ctx, &rebuild.Request{Nodes: []string{node}, Disk: used.serial})
		if err != nil {
			return err
		}
		if !strings.Contains(erases(p, node), used.serial) || !done(res, node) {
			t.Errorf("named: plan %q, %q", erases(p, node), findingOf(res, node))
		}
		if _, _, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{node, "r02-u01"}, Disk: used.serial}); err == nil || errkind.Action(err) == "" {
			t.Errorf("a disk for two nodes: %v", err)
		}
		return nil
	})
}

// TestDisksOfNewChassis: another chassis has other disks; one that is blank may be
// taken when it alone fits, and a data disk beside it is left alone.
func TestDisksOfNewChassis(t *testing.T) {
	t.Parallel()
	i := 0
	node := layouts[i].node
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		if err := l.World.Replace(ctx, node, "spare 1"); err != nil {
			return err
		}
		d, err := addDataDisk(ctx, l.World, i)
		if err != nil {
			return err
		}
		time.Sleep(bmcStart)
		_, res, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{node}, Serial: newSerial(l, node)})
		if err != nil {
			return err
		}
		system := systemSerial(l.World, node, d.serial)
		if text := findingOf(res, node); done(res, node) || !strings.Contains(text, system) || !strings.Contains(text, d.serial) {
			t.Errorf("finding %q; want %s and %s", text, system, d.serial)
		}
		d.intact(t, l.World, node, "rebuild --serial")
		p, res, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{node}, Disk: system})
		if err != nil {
			return err
		}
		if !strings.Contains(erases(p, node), system) || !done(res, node) {
			t.Errorf("named: plan %q, %q", erases(p, node), findingOf(res, node))
		}
		d.intact(t, l.World, node, "rebuild --disk")
		return nil
	})
}

// TestDisksOfDecommission: the plan names the disks that are wiped by serial number,
// and a data disk that merely fits is none of them.
func TestDisksOfDecommission(t *testing.T) {
	t.Parallel()
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		const i = 1 // of the node that is gone
		d, err := addDataDisk(ctx, l.World, i)
		if err != nil {
			return err
		}
		system := systemSerial(l.World, gone, d.serial)
		inv, err := without(t)
		if err != nil {
			return err
		}
		if err := l.Edit(ctx, inv); err != nil {
			return err
		}
		p, err := l.Plan(ctx, provision.PlanOptions{Decommission: []string{gone}, Targets: []string{gone}})
		if err != nil {
			return err
		}
		if text := erases(p, gone); !strings.Contains(text, "serial "+system) || strings.Contains(text, d.serial) {
			t.Errorf("the plan says %q", text)
		}
		res, err := l.Apply(ctx, p)
		if err != nil || res.Outcome != state.RunDone {
			return fmt.Errorf("outcome %s %v: %+v", res.Outcome, err, res.Findings)
		}
		d.intact(t, l.World, gone, "decommission")
		if b := make([]byte, 4<<20); diskOf(l.World, gone, system) != nil {
			if _, err := diskOf(l.World, gone, system).ReadAt(b, 0); err != nil || strings.Trim(string(b), "\x00") != "" {
				t.Errorf("the system disk is not blank: %v", err)
			}
		}
		return nil
	})
}

// TestDisksOfAdopted: the rebuild of a node that was adopted, and never installed,
// goes to the disk that its system runs from, and changes no byte of another.
func TestDisksOfAdopted(t *testing.T) {
	t.Parallel()
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		var data []dataDisk
		var words []string
		l.LoseState()
		for i, x := range layouts {
			d, err := addDataDisk(ctx, l.World, i)
			if err != nil {
				return err
			}
			data, words = append(data, d), append(words, x.node)
			system := diskOf(l.World, x.node, systemSerial(l.World, x.node, d.serial))
			if err := system.Fill(disk.MarkerOffset, make([]byte, disk.MarkerSize)); err != nil { // ironrail did not write it
				return err
			}
			n, _ := l.World.Node(x.node)
			if err := n.Chassis().Press(chassis.PressOn); err != nil {
				return err
			}
		}
		time.Sleep(30 * time.Minute) // their systems come up
		list, err := l.Adopt(ctx, adopt.Options{All: true})
		if err != nil {
			return err
		}
		seen := map[string]string{}
		for _, n := range list {
			seen[n.Node] = strings.Join(n.Seen, "; ") + n.Error
		}
		p, res, err := l.Rebuild(ctx, &rebuild.Request{Nodes: words})
		if err != nil {
			return err
		}
		for i, x := range layouts {
			system := systemSerial(l.World, x.node, data[i].serial)
			if !strings.Contains(seen[x.node], "runs from disk") || !strings.Contains(seen[x.node], "serial "+system) {
				t.Errorf("%s: adopted: %s", x.name, seen[x.node])
			}
			if text := erases(p, x.node); !strings.Contains(text, "serial "+system) || strings.Contains(text, data[i].serial) {
				t.Errorf("%s: the plan says %q", x.name, text)
			}
			if !done(res, x.node) {
				t.Errorf("%s: %s", x.name, findingOf(res, x.node))
			}
			data[i].intact(t, l.World, x.node, x.name+", adopted")
		}
		return nil
	})
}

// placed is the demo site with four data disks beside the system disk, of the same
// size and model, and with lines in the system disk's block that tell it apart.
func placed(t *testing.T, lines string) *inventory.Inventory {
	t.Helper()
	inv, err := edited(t, map[string]func(string) string{"site.hcl": func(text string) string {
		const block = "    type = \"nvme\"\n    size = \">= 900GB\"\n  }\n"
		return strings.Replace(text, block, "    type = \"nvme\"\n    size = \"3.84TB\"\n"+lines+"  }\n  disk \"data\" {\n    type  = \"nvme\"\n    size  = \"3.84TB\"\n    count = 4\n  }\n", 1)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// TestDisksByPlace: a site that says where its system disk is rehearses, and only
// that disk is written. With another place in the files nothing is erased, and the
// refusal names every disk with its place.
func TestDisksByPlace(t *testing.T) {
	t.Parallel()
	const node = "r01-u01"
	for _, c := range []struct {
		name, lines, wrong string
		is                 func(wire.Disk) bool
		says               []string
	}{
		{"bay", "bay = \"4\"\n", "bay = \"7\"\n", func(d wire.Disk) bool { return d.Bay == "4" }, []string{"bay 7", "bay 0", "bay 1", "bay 2", "bay 3", "bay 4"}},
		{"by_path", "by_path = \"pci-0000:c1:00.0-nvme-1\"\n", "by_path = \"pci-0000:c2:00.0-nvme-1\"\n", func(d wire.Disk) bool { return d.ByPath == "pci-0000:c1:00.0-nvme-1" },
			[]string{"by-path pci-0000:c2:00.0-nvme-1", "by-path pci-0000:c1:00.0-nvme-1", "bay 1"}},
		{"pci", "pci = \"0000:c1:00.0\"\n", "pci = \"0000:c2:00.0\"\n", func(d wire.Disk) bool { return d.PCI == "0000:c1:00.0" }, []string{"PCI 0000:c2:00.0", "PCI 0000:c1:00.0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := rehearsal.Options{Seed: 7, Dir: t.TempDir()}
			o.Then = func(ctx context.Context, r *rehearsal.Rehearsal) error {
				l := rehearsaltest.Of(r)
				if n, out := accepted(ctx, l); len(out) > 0 {
					t.Errorf("%d nodes are accepted, and not %v", n, out)
				}
				on, err := installedOn(ctx, l, node)
				if err != nil {
					return err
				}
				written := map[string]int{}
				all, _ := l.World.Node(node)
				for _, d := range all.Metal().Disks() {
					written[d.Serial()] = d.Counters().Writes
					if (d.Counters().Writes > 0) != (d.Serial() == on.Serial) {
						t.Errorf("disk %s was written %d times, the system disk is %s", d.Serial(), d.Counters().Writes, on.Serial)
					}
				}
				if !c.is(on) || len(written) != 5 {
					t.Errorf("installed on %+v, one of %d", on, len(written))
				}
				if err := l.Edit(ctx, placed(t, c.wrong)); err != nil {
					return err
				}
				_, res, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{node}})
				if err != nil {
					return err
				}
				text := findingOf(res, node)
				for _, d := range all.Metal().Disks() {
					if !strings.Contains(text, d.Serial()) || d.Counters().Writes != written[d.Serial()] {
						t.Errorf("disk %s is not named, or was written %d times more: %q", d.Serial(), d.Counters().Writes-written[d.Serial()], text)
					}
				}
				for _, word := range c.says {
					if !strings.Contains(text, word) {
						t.Errorf("%q does not say %q", text, word)
					}
				}
				return nil
			}
			if _, err := rehearsal.Run(context.Background(), placed(t, c.lines), o); err != nil {
				t.Error(err)
			}
		})
	}
}

// installedOn is the disk that a node's system was written to, as its agent saw it.
func installedOn(ctx context.Context, l *rehearsaltest.Later, node string) (wire.Disk, error) {
	f, version, err := state.Get[fact.Fact](ctx, l.Store, state.FactKey(install.DiskFact.Of(subject.OfNode(node))))
	if err != nil || version == state.Absent {
		return wire.Disk{}, fmt.Errorf("the disk of %s is not known: %v", node, err)
	}
	return install.DiskFact.Get(f)
}
