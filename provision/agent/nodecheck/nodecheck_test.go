// SPDX-License-Identifier: Apache-2.0

package nodecheck

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"proc/sys/kernel/random/boot_id": "b1\n", "proc/uptime": "61.50 60.00\n",
		"sys/class/dmi/id/product_serial": "LAB0001\n", "sys/block/vda/size": "16384\n", "dev/vda": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "dev/vda"), 8<<20); err != nil {
		t.Fatal(err)
	}
	dev, err := disk.Open(filepath.Join(dir, "dev/vda"), disk.Shared)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if err := disk.PutMarker(dev, disk.Marker{Text: "n1 w1", State: disk.Configured, Digest: "sha256:ab"}); err != nil {
		t.Fatal(err)
	}
	systemctl := func(_ context.Context, args ...string) (string, error) {
		if args[0] == "is-system-running" {
			return "degraded\n", nil
		}
		return "chrony.service loaded failed failed chrony\n", nil
	}
	open := func(path string, use disk.Use) (disk.Device, error) { return disk.Open(filepath.Join(dir, path), use) }
	c := Checker{FS: sysfs.Dir(dir), Open: open, Systemctl: systemctl}
	r := c.Check(t.Context())
	if r.BootID != "b1" || r.Uptime != 61.5 || r.System != "degraded" || !slices.Equal(r.Failed, []string{"chrony.service"}) ||
		r.Marker != "n1 w1" || r.Install != "configured" || r.Digest != "sha256:ab" || r.Identity.Serial != "LAB0001" || r.Kernel == "" || r.Error != nil {
		t.Errorf("got %+v", r)
	}
	installed := filepath.Join(dir, "etc/ironrail/memory.json") // a system in memory is not that of a disk
	if err := errors.Join(os.MkdirAll(filepath.Dir(installed), 0o755), os.WriteFile(installed, []byte(`{"marker":"n1 w2","digest":"sha256:cd"}`), 0o644)); err != nil {
		t.Fatal(err)
	}
	if r := c.Check(t.Context()); r.Marker != "n1 w2" || r.Install != "configured" || r.Digest != "sha256:cd" || r.Error != nil {
		t.Errorf("in memory: %+v", r)
	}
	c.Systemctl = func(context.Context, ...string) (string, error) { return "", errors.New("not there") }
	if r := c.Check(t.Context()); r.Error == nil {
		t.Errorf("without systemd: %+v", r)
	}
}

// TestRootDisk: with an older install on the first disk, the node tells of the disk
// that it runs from.
func TestRootDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, marker := range map[string]string{"vda": "n1 old", "vdb": "n1 new"} {
		write("sys/block/"+name+"/size", "16384\n")
		write("sys/block/"+name+"/serial", "S-"+name+"\n")
		write("dev/"+name, "")
		if err := os.Truncate(filepath.Join(dir, "dev", name), 8<<20); err != nil {
			t.Fatal(err)
		}
		dev, err := disk.Open(filepath.Join(dir, "dev", name), disk.Shared)
		if err != nil {
			t.Fatal(err)
		}
		if err := disk.PutMarker(dev, disk.Marker{Text: marker, State: disk.Configured}); err != nil {
			t.Fatal(err)
		}
		dev.Close()
	}
	write("sys/block/vdb/vdb3/partition", "3\n")
	write("proc/self/mountinfo", "22 1 0:5 / / rw - rootfs rootfs rw\n24 1 254:19 / / rw,relatime shared:1 - ext4 /dev/vdb3 rw\n30 24 0:7 / /proc rw - proc proc rw\n")
	if err := os.MkdirAll(filepath.Join(dir, "sys/dev/block"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../block/vdb/vdb3", filepath.Join(dir, "sys/dev/block/254:19")); err != nil {
		t.Fatal(err)
	}
	open := func(path string, use disk.Use) (disk.Device, error) { return disk.Open(filepath.Join(dir, path), use) }
	c := Checker{FS: sysfs.Dir(dir), Open: open, Systemctl: func(context.Context, ...string) (string, error) { return "running\n", nil }}
	if r := c.Check(t.Context()); r.Root == nil || r.Root.Serial != "S-vdb" || r.Marker != "n1 new" {
		t.Errorf("got root %+v, marker %q", r.Root, r.Marker)
	}
}
