// SPDX-License-Identifier: Apache-2.0

package bootfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
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
	return sysfs.Dir(dir)
}

func TestRead(t *testing.T) {
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
		{"bad VLAN", map[string]string{wire.BootFile: strings.Replace(boot, "}", `,"vlan":4095}`, 1)}, "", "VLAN 4095"},
		{"bad gateway", map[string]string{wire.BootFile: strings.Replace(other, "10.77.0.1\"", "x\"", 1)}, "", "gateway"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(tree(t, c.files))
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
