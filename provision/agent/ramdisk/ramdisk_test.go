package ramdisk

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/provision/addr"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/provision/agent/wire"
	"github.com/ironrail/ironrail/provision/errkind"
)

// tree makes files below a folder.
func tree(t *testing.T, files map[string]string) sysfs.FS {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return sysfs.FS(dir)
}

func TestReadBoot(t *testing.T) {
	t.Parallel()
	const boot = `{"version":1,"node":"n1","boot_mac":"52:54:00:77:00:11","address":"10.77.0.11/24"}`
	const other = `{"version":1,"node":"n1","address":"10.77.0.11/24","gateway":"10.77.0.1"}`
	for _, c := range []struct {
		name  string
		files map[string]string
		mac   string
		err   string
	}{
		{"file", map[string]string{wire.BootFile: boot}, "52:54:00:77:00:11", ""},
		{"another place", map[string]string{"x/b": boot, "proc/cmdline": "quiet ironrail.boot=/x/b"}, "52:54:00:77:00:11", ""},
		{"BOOTIF", map[string]string{wire.BootFile: other, "proc/cmdline": "BOOTIF=01-52-54-00-77-00-12 quiet\n"}, "52:54:00:77:00:12", ""},
		{"BOOTIF without type", map[string]string{wire.BootFile: other, "proc/cmdline": "BOOTIF=52:54:00:77:00:12"}, "52:54:00:77:00:12", ""},
		{"the file comes before BOOTIF", map[string]string{wire.BootFile: boot, "proc/cmdline": "BOOTIF=01-52-54-00-77-00-12"}, "52:54:00:77:00:11", ""},
		{"none", nil, "", "no boot file at /ironrail/boot.json"},
		{"damaged", map[string]string{wire.BootFile: `{"version`}, "", "boot file"},
		{"no NIC", map[string]string{wire.BootFile: other}, "", "says which NIC booted"},
		{"no address", map[string]string{wire.BootFile: `{"boot_mac":"52:54:00:77:00:11"}`}, "", "address"},
		{"bad gateway", map[string]string{wire.BootFile: strings.Replace(other, "10.77.0.1\"", "x\"", 1)}, "", "gateway"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := readBoot(tree(t, c.files))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || errkind.Action(err) == "" {
					t.Errorf("got %v, want %q with an action", err, c.err)
				}
				return
			}
			if err != nil || got.BootMAC.String() != c.mac {
				t.Errorf("got %v, %v", got.BootMAC, err)
			}
		})
	}
}

func TestFindNIC(t *testing.T) {
	t.Parallel()
	fs := tree(t, map[string]string{
		"sys/devices/pci0000:00/0000:00:14.0/usb1/net/usb0/address": "52:54:00:77:00:11\n",
		"sys/devices/pci0000:00/0000:00:03.0/net/eth0/address":      "52:54:00:77:00:11\n",
		"sys/devices/pci0000:00/0000:00:04.0/net/eth1/address":      "52:54:00:77:10:11\n",
		"sys/devices/virtual/net/br0/address":                       "52:54:00:77:00:99\n",
		"sys/class/net/.keep":                                       "",
	})
	for name, device := range map[string]string{"eth0": "pci0000:00/0000:00:03.0", "eth1": "pci0000:00/0000:00:04.0", "usb0": "pci0000:00/0000:00:14.0/usb1", "br0": "virtual"} {
		os.Symlink("../../devices/"+device+"/net/"+name, fs.Path("sys/class/net", name))
		if name != "br0" {
			os.Symlink("../..", fs.Path("sys/devices", device, "net", name, "device"))
		}
	}
	for mac, want := range map[string]string{"52:54:00:77:00:11": "eth0", "52:54:00:77:10:11": "eth1", "52:54:00:77:00:99": "", "02:00:00:00:00:01": ""} {
		m, err := addr.ParseMAC(mac)
		if err != nil {
			t.Fatal(err)
		}
		if got := findNIC(fs, m); got != want {
			t.Errorf("%s: got %q, want %q", mac, got, want)
		}
	}
	if got := describe(fs); got != "52:54:00:77:00:11 at 0000:00:03.0, 52:54:00:77:10:11 at 0000:00:04.0" {
		t.Errorf("describe: %q", got)
	}
}

func TestConsole(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := NewConsole(&b, false).With("node", "n1")
	log.Debug("not shown")
	log.Info("disk\x1b[2J found", "serial", "a\x1b]0;x\a", "size", 7, "empty", "")
	log.Error("no controller", "err", "connection refused", "hint", "Look at the cable.")
	want := "ironrail: disk.[2J found node=n1 serial=\"a\\x1b]0;x\\a\" size=7\r\n" +
		"ironrail: error: no controller node=n1 err=\"connection refused\"\r\nironrail:   next: Look at the cable.\r\n"
	if b.String() != want {
		t.Errorf("got %q\nwant %q", b.String(), want)
	}
}
