// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPCI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ real, want string }{
		{"/sys/devices/pci0000:00/0000:00:03.0/virtio0", "0000:00:03.0"},
		{"/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1", "0000:3b:00.1"},
		{"/sys/devices/pci0000:00/0000:00:14.0/usb1/1-14/1-14.3/1-14.3:2.0", ""}, // the BMC's USB NIC
		{"/sys/devices/virtual/net/lo", ""},
		{"/sys/devices/pci10000:e0/10000:e0:01.0/10000:e1:00.0/nvme/nvme0/nvme0n1", "10000:e1:00.0"}, // behind VMD
		{"", ""},
	} {
		if got := PCI(c.real); got != c.want {
			t.Errorf("%s: got %q, want %q", c.real, got, c.want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"a/eth10": "", "a/eth2": "", "a/eth1": "", "n": " 42\n", "s": "LAB0001 \x00\x00", "minus": "-1"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"d/up": "../a", "d/root": "/a/eth1", "d/self": "self"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f := Dir(dir)
	for name, want := range map[string]string{"d/up/eth2": "/a/eth2", "/d/root": "/a/eth1", "d/self": "", "": "/", "d/up/none": ""} {
		if got := f.Real(name); got != want {
			t.Errorf("real path of %q: got %q, want %q", name, got, want)
		}
	}
	if f.Target("d/up") != "../a" || f.Target("n") != "" || f.Link("d/root") != "eth1" {
		t.Error("Target or Link")
	}
	if got := f.Names("a"); !slices.Equal(got, []string{"eth1", "eth2", "eth10"}) {
		t.Errorf("names %q", got)
	}
	if f.Int("n") != 42 || f.Int("minus") != -1 || f.Int("s") != 0 || f.Int("absent") != 0 {
		t.Error("Int")
	}
	if f.Text("s") != "LAB0001" || f.Text("absent") != "" || f.Names("absent") != nil || f.Link("n") != "" || f.Real("absent") != "" {
		t.Error("Text, Names, Link or Real")
	}
}
