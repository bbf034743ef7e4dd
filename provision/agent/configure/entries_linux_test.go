// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// bootEntry is what bootctl(1) tells of an entry.
type bootEntry struct {
	ID, Title, Version, Linux, Options string
	Initrd                             []string
}

// listEntries has bootctl list the entries of a system, by their identifier, and returns
// what it complains of. It takes no folder that is not a file system of its own.
func listEntries(t *testing.T, root rootfs.Root) (all map[string]bootEntry, complaints []string) {
	t.Helper()
	boot := t.TempDir()
	if err := unix.Mount("tmpfs", boot, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(boot, unix.MNT_DETACH) }()
	entries, err := fs.Sub(root.FS(), path.Dir(entriesGlob))
	if err == nil {
		err = os.CopyFS(filepath.Join(boot, "loader/entries"), entries)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bootctl", "list", "--json=short", "--esp-path="+boot)
	cmd.Env = append(os.Environ(), "SYSTEMD_RELAX_ESP_CHECKS=1") // it is no EFI system partition
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("bootctl: %v\n%s", err, said.String())
	}
	all = map[string]bootEntry{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var e bootEntry
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		all[e.ID] = e
	}
	return all, strings.Split(strings.ReplaceAll(strings.TrimSpace(said.String()), boot, ""), "\n")
}

// TestPeerEntries: bootctl, which reads entries of the Boot Loader Specification and is
// not GRUB, lists each one that was given a root and arguments, with these and as it was
// but for them, and complains of nothing but what is GRUB's own, as before.
func TestPeerEntries(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "bootctl")
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts")
	}
	root := entriesRoot(t)
	const written = "b-5.14.0-503.el9.x86_64.conf" // with tabs, a comment and several initrds
	if err := rootfs.WriteText(root, "boot/loader/entries/"+written, "# by kernel-install\ntitle\t\tRocky Linux (5.14.0-503.el9.x86_64) 9.5 (Blue Onyx)\nversion\t5.14.0-503.el9.x86_64\nsort-key\trocky\nlinux\t/vmlinuz-5.14.0-503.el9.x86_64\n"+
		"initrd\t/microcode.img\ninitrd\t/initramfs-5.14.0-503.el9.x86_64.img\noptions\troot=UUID=old\tro  console=ttyS1,9600 x=\"a b\"\ngrub_arg\t--unrestricted\n", 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := prepare(params(t))
	if err != nil {
		t.Fatal(err)
	}
	before, complained := listEntries(t, root)
	if err := s.entries(root, "UUID=0a-0b"); err != nil {
		t.Fatal(err)
	}
	after, complains := listEntries(t, root)
	const args = " mitigations=off console=tty0 console=ttyS0,115200"
	want := map[string]string{
		"a-0-rescue.conf":              "root=UUID=0a-0b ro rescue iommu=pt" + args,
		"a-5.14.0-427.el9.x86_64.conf": "root=UUID=0a-0b ro no_timer_check iommu=pt $tuned_params" + args,
		"a-5.14.0-70.el9.x86_64.conf":  "root=UUID=0a-0b ro crashkernel=1G-4G:192M iommu=pt" + args,
		written:                        "root=UUID=0a-0b ro x=\"a b\" iommu=pt" + args,
	}
	if len(before) != len(want) || len(after) != len(want) {
		t.Errorf("%d entries are listed, and %d of these after; want %d", len(before), len(after), len(want))
	}
	for id, options := range want {
		as := before[id]
		as.Options = options
		if got := after[id]; got.Linux == "" || !reflect.DeepEqual(got, as) {
			t.Errorf("%s is listed as\n%+v, want\n%+v", id, got, as)
		}
	}
	if !slices.Equal(complained, complains) {
		t.Errorf("bootctl complains of\n%q, and before of\n%q", complains, complained)
	}
	for _, c := range complains {
		if !strings.Contains(c, "Unknown line 'grub_") {
			t.Errorf("bootctl complains: %s", c)
		}
	}
}
