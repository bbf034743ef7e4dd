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
	c.Systemctl = func(context.Context, ...string) (string, error) { return "", errors.New("not there") }
	if r := c.Check(t.Context()); r.Error == nil {
		t.Errorf("without systemd: %+v", r)
	}
}
