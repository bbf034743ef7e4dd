// SPDX-License-Identifier: Apache-2.0

package ramdisk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// tree makes files below a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFindNIC(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"sys/devices/pci0000:00/0000:00:14.0/usb1/net/usb0/address": "52:54:00:77:00:11\n",
		"sys/devices/pci0000:00/0000:00:03.0/net/eth0/address":      "52:54:00:77:00:11\n",
		"sys/devices/pci0000:00/0000:00:04.0/net/eth1/address":      "52:54:00:77:10:11\n",
		"sys/devices/pci0000:00/0000:00:05.0/net/eth2/address":      "52:54:00:77:20:11\n",
		"sys/devices/pci0000:00/0000:00:06.0/net/eth3/address":      "52:54:00:77:20:11\n",
		"sys/devices/virtual/net/br0/address":                       "52:54:00:77:00:99\n",
		"sys/class/net/.keep":                                       "",
	})
	for name, device := range map[string]string{"eth0": "pci0000:00/0000:00:03.0", "eth1": "pci0000:00/0000:00:04.0", "eth2": "pci0000:00/0000:00:05.0", "eth3": "pci0000:00/0000:00:06.0", "usb0": "pci0000:00/0000:00:14.0/usb1", "br0": "virtual"} {
		os.Symlink("../../devices/"+device+"/net/"+name, filepath.Join(dir, "sys/class/net", name))
		if name != "br0" {
			os.Symlink("../..", filepath.Join(dir, "sys/devices", device, "net", name, "device"))
		}
	}
	fs := sysfs.Dir(dir)
	for mac, want := range map[string]string{"52:54:00:77:00:11": "eth0", "52:54:00:77:10:11": "eth1", "52:54:00:77:00:99": "", "02:00:00:00:00:01": "", "52:54:00:77:20:11": "eth2 eth3"} {
		m, err := addr.ParseMAC(mac)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(findNICs(fs, m), " "); got != want {
			t.Errorf("%s: got %q, want %q", mac, got, want)
		}
	}
	const twice = "52:54:00:77:20:11 at 0000:00:05.0, 52:54:00:77:20:11 at 0000:00:06.0"
	if got := describe(fs); got != "52:54:00:77:00:11 at 0000:00:03.0, 52:54:00:77:10:11 at 0000:00:04.0, "+twice {
		t.Errorf("describe: %q", got)
	}
	mac := addr.MAC{0x52, 0x54, 0, 0x77, 0x20, 0x11}
	if err := noNIC(fs, mac, findNICs(fs, mac)); errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "2 NICs have the boot MAC") || !strings.Contains(err.Error(), twice) {
		t.Errorf("two NICs: %v", err)
	}
}
