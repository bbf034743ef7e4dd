// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/rebuild"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
)

// withLayout is the demo site with other disks, another layout and another image; "": its
// own.
func withLayout(t *testing.T, disks, layout, image string) *inventory.Inventory {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(demo)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "site.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if image == "" {
		image = demoImage
	}
	for old, is := range map[string]string{
		demoImage: image,
		wholeDisk: disks, wholeLayout: layout,
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("the demo site has no %q", old)
		}
		text = strings.Replace(text, old, is, 1)
	}
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return load(t, dir, nil)
}

// The image of the demo site, and one that a vendor publishes.
const (
	demoImage   = "image \"debian\" \"os\" {\n  release  = \"bookworm\"\n  kernel   = \"linux-image-amd64\"\n  packages = [\"openssh-server\", \"chrony\"]\n}\n"
	vendorImage = "image \"raw\" \"os\" {\n  source   = \"https://vendor.example/os.qcow2\"\n  checksum = \"sha256:1111111111111111111111111111111111111111111111111111111111111111\"\n  os       = \"debian\"\n  release  = \"bookworm\"\n}\n"
)

// The disk and the layout of the demo site.
const (
	wholeDisk   = "  disk \"os\" {\n    type = \"nvme\"\n    size = \">= 900GB\"\n  }\n"
	wholeLayout = "  on = \"os\"\n  root {\n    size       = \"200GB\"\n    filesystem = \"ext4\"\n  }\n"
)

// Disks and layouts: a mirror with a data disk of another block.
const (
	threeDisks = "  disk \"os\" {\n    type  = \"nvme\"\n    count = 2\n    size  = \">= 900GB\"\n  }\n  disk \"data\" {\n    type = \"nvme\"\n    size = \">= 3TB\"\n    pci  = \"0000:64:00.0\"\n  }\n"
	mirror     = "  on       = \"os\"\n  raid     = 1\n  swap     = \"16GB\"\n  preserve = [\"label:scratch\"]\n  root {\n    size       = \"200GB\"\n    filesystem = \"xfs\"\n  }\n" +
		"  data \"scratch\" {\n    on         = \"data\"\n    mount      = \"/scratch\"\n    filesystem = \"xfs\"\n  }\n"
)

// writtenOf is the last write of a node.
func writtenOf(ctx context.Context, l *rehearsaltest.Later, node string) (install.Written, error) {
	f, version, err := state.Get[fact.Fact](ctx, l.Store, state.FactKey(install.WriteFact.Of(subject.OfNode(node))))
	if err != nil || version == state.Absent {
		return install.Written{}, fmt.Errorf("no write of %s is known: %v", node, err)
	}
	return install.WriteFact.Get(f)
}

// markersOf are the states of the install markers of a node's disks.
func markersOf(w *virtual.World, node string) (out string) {
	n, _ := w.Node(node)
	for _, d := range n.Metal().Disks() {
		m, _ := disk.ReadMarker(d)
		out += string(m.State) + " "
	}
	return strings.TrimSpace(out)
}

// TestLayouts: every kind of layout that a plan takes is brought up, also where the
// controller dies in the middle of a write.
func TestLayouts(t *testing.T) {
	t.Parallel()
	four := strings.Replace(threeDisks, "count = 2", "count = 4", 1)
	one := strings.Replace(threeDisks, "count = 2", "count = 1", 1)
	plain := strings.Replace(mirror, "  raid     = 1\n", "", 1)
	for _, c := range []struct {
		name, disks, layout, marked string
		faults                      string
		image                       string // in place of the demo site's
	}{
		{"RAID 1", threeDisks, mirror, "configured configured configured", "", ""},
		{"RAID 1, killed", threeDisks, mirror, "configured configured configured", "kind=controller-kill,at=install.write", ""},
		{"RAID 10", four, strings.Replace(mirror, "raid     = 1", "raid     = 10", 1), "configured configured configured configured configured", "", ""},
		{"no RAID", one, plain, "configured configured", "", ""},
		{"a disk image", threeDisks, mirror, "configured configured configured", "", vendorImage},
		{"data on the system disk", one, strings.Replace(plain, "    on         = \"data\"\n", "", 1), "configured ", "", ""},
		{"a disk image as it is", wholeDisk, wholeLayout, "configured ", "", vendorImage},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := rehearsal.Options{Seed: 7, Dir: t.TempDir()}
			if c.faults != "" {
				f, err := fault.Parse(c.faults)
				if err != nil {
					t.Fatal(err)
				}
				o.Faults = []fault.Fault{f}
			}
			o.Then = func(ctx context.Context, r *rehearsal.Rehearsal) error {
				l := rehearsaltest.Of(r)
				for _, n := range l.Site.Inv.Nodes {
					if got := markersOf(l.World, n.Name); got != strings.TrimSpace(c.marked) {
						t.Errorf("%s: markers %q, want %q", n.Name, got, c.marked)
					}
				}
				return nil
			}
			sum, err := rehearsal.Run(context.Background(), withLayout(t, c.disks, c.layout, c.image), o)
			if err != nil || len(sum.Accepted) != 8 {
				t.Errorf("accepted %v, quarantined %+v: %v", sum.Accepted, sum.Quarantined, err)
			}
		})
	}
}

// TestLayoutReinstall: a plan names every disk that it erases, what is preserved stays
// with its identifier, and a disk of the mirror that holds data is not erased unless it is
// named.
func TestLayoutReinstall(t *testing.T) {
	t.Parallel()
	const kept, used = "r01-u01", "r01-u09"
	var sum string
	otherOf := func(w *virtual.World) *metal.Disk {
		n, _ := w.Node(used)
		return n.Metal().Disks()[1]
	}
	o := rehearsal.Options{Seed: 7, Dir: t.TempDir(), OnRack: func(_ context.Context, w *virtual.World) error {
		err := otherOf(w).Fill(1080, []byte("\x53\xef"))
		sum = otherOf(w).Sum()
		return err
	}}
	o.Then = func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		other := otherOf(l.World)
		found, err := quarantineOf(ctx, l, used)
		if err != nil {
			return err
		}
		if !strings.Contains(found, "1 disk of disk_layout os holds") || !strings.Contains(found, "--disk "+other.Serial()+"`") || other.Sum() != sum || markersOf(l.World, used) != "" {
			t.Errorf("a disk that holds data: %q", found)
		}
		was, err := writtenOf(ctx, l, kept)
		if err != nil || len(was.Disks) != 3 {
			return fmt.Errorf("%+v, %w", was.Disks, err)
		}
		p, res, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{kept}})
		if err != nil {
			return err
		}
		text := erases(p, kept)
		for _, d := range was.Disks {
			if !strings.Contains(text, d.Disk.Serial) {
				t.Errorf("the plan does not name disk %s: %q", d.Disk.Serial, text)
			}
		}
		if !strings.Contains(text, "but file systems with the label scratch") {
			t.Errorf("the plan does not say what stays: %q", text)
		}
		is, err := writtenOf(ctx, l, kept)
		if err != nil || !done(res, kept) {
			return fmt.Errorf("%s: %s: %w", kept, findingOf(res, kept), err)
		}
		before, now := was.Result.Layout.Volumes, is.Result.Layout.Volumes
		for i, v := range now {
			if same := v.UUID == before[i].UUID; v.Kept != (v.Name == "scratch") || same != v.Kept {
				t.Errorf("%s: kept %v, with the identifier of before: %v", v.Name, v.Kept, same)
			}
		}
		p, res, err = l.Rebuild(ctx, &rebuild.Request{Nodes: []string{used}, Disk: other.Serial()})
		if err != nil || !done(res, used) || other.Sum() == sum || !strings.Contains(erases(p, used), other.Serial()) {
			t.Errorf("named: %v, %q, %q", err, findingOf(res, used), erases(p, used))
		}
		_, res, err = l.Rebuild(ctx, &rebuild.Request{Nodes: []string{used}, Disk: "NOBODY"})
		if err != nil || done(res, used) || !strings.Contains(findingOf(res, used), "NOBODY") {
			t.Errorf("a disk that is not there: %v, %q", err, findingOf(res, used))
		}
		return nil
	}
	sumOf, err := rehearsal.Run(context.Background(), withLayout(t, threeDisks, mirror, ""), o)
	if err != nil || len(sumOf.Accepted) != 7 {
		t.Errorf("accepted %v: %v", sumOf.Accepted, err)
	}
}
