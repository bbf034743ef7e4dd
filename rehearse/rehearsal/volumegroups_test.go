// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/provision/rebuild"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// grouped is mirror with its root and a further file system in a volume group on the
// mirror, and the data disk in another one.
const grouped = "  on       = \"os\"\n  raid     = 1\n  swap     = \"16GB\"\n  preserve = [\"label:scratch\", \"label:home\"]\n  volume_group \"vg0\" {}\n  volume_group \"vg1\" {\n    on = \"data\"\n  }\n" +
	"  root {\n    size         = \"200GB\"\n    filesystem   = \"xfs\"\n    volume_group = \"vg0\"\n  }\n" +
	"  data \"home\" {\n    mount        = \"/home\"\n    volume_group = \"vg0\"\n  }\n  data \"scratch\" {\n    mount        = \"/scratch\"\n    volume_group = \"vg1\"\n  }\n"

// TestVolumeGroups: roots and data in volume groups are brought up, on a mirror and on one
// disk, also where the controller dies while they are made; a second run has nothing to
// do; and an installation again, amid which the power fails, keeps what is preserved.
func TestVolumeGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, disks, layout string
		image               string        // in place of the demo site's
		device              string        // below the volume group of the root
		cut                 time.Duration // into the second installation, until its power fails
	}{
		{"on RAID 1", threeDisks, grouped, "", "md127", 1000 * time.Millisecond},
		{"on one disk", strings.Replace(threeDisks, "count = 2", "count = 1", 1), strings.Replace(grouped, "  raid     = 1\n", "", 1), "", "nvme0n1p3", 600 * time.Millisecond},
		{"a disk image on RAID 10", strings.Replace(threeDisks, "count = 2", "count = 4", 1), strings.Replace(grouped, "raid     = 1", "raid     = 10", 1), vendorImage, "md127", 1800 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := rehearsal.Options{Seed: 7, Dir: t.TempDir(), Kill: rehearsal.Kill{Step: "install.write", After: 1500 * time.Millisecond}}
			o.Then = func(ctx context.Context, r *rehearsal.Rehearsal) error {
				l := rehearsaltest.Of(r)
				for _, n := range l.Site.Inv.Nodes {
					wantInGroup(t, l.World, n.Name, c.device)
				}
				p, err := l.Plan(ctx, provision.PlanOptions{})
				if err != nil || !p.Empty() {
					t.Errorf("after the first run: %v, %d steps", err, len(p.Steps))
				}
				if d, err := l.Drift(ctx, observe.DriftOptions{}); err != nil || len(d.Changes)+len(d.Unknown) > 0 {
					t.Errorf("drift: %+v, %+v, %v", d.Changes, d.Unknown, err)
				}
				return reinstallAmidPowerCut(ctx, t, l, "r01-u01", c.cut)
			}
			sum, err := rehearsal.Run(context.Background(), withLayout(t, c.disks, c.layout, c.image), o)
			if err != nil || len(sum.Accepted) != 8 || sum.Runs != 2 {
				t.Errorf("accepted %v in %d runs, quarantined %+v: %v", sum.Accepted, sum.Runs, sum.Quarantined, err)
			}
		})
	}
}

// wantInGroup looks at what the kernel of a node has its root on.
func wantInGroup(t *testing.T, w *virtual.World, node, device string) {
	t.Helper()
	n, _ := w.Node(node)
	on, err := fs.ReadDir(n.Metal().FS(), "sys/dev/block/253:0/slaves")
	mounts, merr := fs.ReadFile(n.Metal().FS(), "proc/self/mountinfo")
	if err != nil || merr != nil || len(on) != 1 || on[0].Name() != device || !strings.Contains(string(mounts), " / / rw,relatime - xfs /dev/mapper/vg0-root ") {
		t.Errorf("%s: its root is on %v: %v, %v\n%s", node, on, err, merr, mounts)
	}
}

// reinstallAmidPowerCut installs a node again, fails its power while the layout is made,
// and ends the installation with a second run.
func reinstallAmidPowerCut(ctx context.Context, t *testing.T, l *rehearsaltest.Later, node string, cut time.Duration) error {
	was, err := writtenOf(ctx, l, node)
	if err != nil {
		return err
	}
	n, _ := l.World.Node(node)
	var technician sync.WaitGroup
	var pressed error
	technician.Go(func() {
		for began := time.Now(); time.Since(began) < time.Hour; time.Sleep(100 * time.Millisecond) {
			if m, _ := disk.ReadMarker(n.Metal().Disks()[0]); m.State == disk.Writing {
				time.Sleep(cut)
				pressed = n.Chassis().Press(chassis.ForceOff)
				return
			}
		}
		pressed = fmt.Errorf("%s was not written within an hour", node)
	})
	p, res, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{node}})
	technician.Wait()
	if pressed != nil || err != nil {
		return errors.Join(err, pressed)
	}
	if text := erases(p, node); !strings.Contains(text, "but file systems with the label scratch") {
		t.Errorf("the plan does not say what stays: %q", text)
	}
	if m, _ := disk.ReadMarker(n.Metal().Disks()[0]); done(res, node) || m.State != disk.Writing {
		t.Errorf("%s: %s, although its power failed", node, m.State)
	}
	if p, err = l.Plan(ctx, provision.PlanOptions{}); err != nil {
		return err
	}
	if res, err = l.Apply(ctx, p); err != nil {
		return err
	}
	is, err := writtenOf(ctx, l, node)
	if err != nil || !done(res, node) {
		return fmt.Errorf("%s: %s: %w", node, findingOf(res, node), err)
	}
	before := was.Result.Layout.Volumes
	for i, v := range is.Result.Layout.Volumes {
		stays := slices.Contains([]string{"home", "scratch", "vg0", "vg1"}, v.Name)
		if same := v.UUID == before[i].UUID; v.Kept != stays || v.Use != wire.VolumeGroup && same != v.Kept {
			t.Errorf("%s: kept %v, with the identifier of before: %v", v.Name, v.Kept, same)
		}
	}
	return nil
}
