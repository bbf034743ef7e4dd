// SPDX-License-Identifier: Apache-2.0

package kexec

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

func tree(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

const ownMenu = `# Written by ironrail; kernel arguments of this node are in ironrail.cfg.
if [ "$grub_platform" = "pc" ]; then
  serial --unit=0 --speed=115200
fi
set timeout=0
set ironrail_args="console=tty0 console=ttyS0,115200"
if [ -f /boot/grub/ironrail.cfg ]; then
  source /boot/grub/ironrail.cfg
fi
menuentry "Debian" {
  linux /vmlinuz root=LABEL=ironrail-root ro $ironrail_args
  initrd /initrd.img
}
`

func entryOf(release, options string) string {
	return "title Rocky Linux (" + release + ")\nversion " + release + "\nlinux /boot/vmlinuz-" + release + "\ninitrd /boot/initramfs-" + release + ".img $tuned_initrd\noptions " + options + "\ngrub_users $grub_users\n"
}

// What is started is what the loader starts: of ironrail's own menu with the node's arguments, of
// entries the one that GRUB has saved.
func TestFind(t *testing.T) {
	t.Parallel()
	const old, new = "boot/loader/entries/rocky-5.14.0-503.conf", "boot/loader/entries/rocky-5.14.0-570.conf"
	for name, c := range map[string]struct {
		files map[string]string
		want  Entry
	}{
		"own menu":       {map[string]string{menu: ownMenu}, Entry{"/vmlinuz", "/initrd.img", "root=LABEL=ironrail-root ro console=tty0 console=ttyS0,115200"}},
		"with arguments": {map[string]string{menu: ownMenu, ofNode: "set ironrail_args=\"iommu=pt console=ttyS1\"\n"}, Entry{"/vmlinuz", "/initrd.img", "root=LABEL=ironrail-root ro iommu=pt console=ttyS1"}},
		"last entry":     {map[string]string{old: entryOf("5.14.0-503", "root=LABEL=r ro"), new: entryOf("5.14.0-570", "root=LABEL=r ro $tuned_params")}, Entry{"/boot/vmlinuz-5.14.0-570", "/boot/initramfs-5.14.0-570.img", "root=LABEL=r ro"}},
		"saved entry": {map[string]string{old: entryOf("5.14.0-503", "root=LABEL=r ro"), new: entryOf("5.14.0-570", "root=LABEL=r ro"), env: "# GRUB Environment Block\nsaved_entry=rocky-5.14.0-503\n####"},
			Entry{"/boot/vmlinuz-5.14.0-503", "/boot/initramfs-5.14.0-503.img", "root=LABEL=r ro"}},
		"saved and gone": {map[string]string{new: entryOf("5.14.0-570", "root=LABEL=r ro"), env: "saved_entry=rocky-4\n"}, Entry{"/boot/vmlinuz-5.14.0-570", "/boot/initramfs-5.14.0-570.img", "root=LABEL=r ro"}},
	} {
		if got, err := Find(tree(c.files)); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

// What the loader alone can work out is left to it.
func TestFindRefuses(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"no menu":            {},
		"a menu of others":   {menu: "menuentry 'Ubuntu' {\n linux /vmlinuz root=UUID=1 ro\n initrd /initrd.img\n}\n"},
		"a variable":         {"boot/loader/entries/a.conf": entryOf("1", "$kernelopts")},
		"two initrds":        {"boot/loader/entries/a.conf": "linux /v\ninitrd /ucode.img /initrd.img\noptions ro\n"},
		"no initrd":          {"boot/loader/entries/a.conf": "linux /v\noptions ro\n"},
		"an entry of no use": {"boot/loader/entries/a.conf": "title x\n"},
	} {
		if got, err := Find(tree(files)); errkind.Of(err) != errkind.Unsupported {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// No kernel is left behind by one that has used a GPU, and only one that is loaded counts.
func TestPrepare(t *testing.T) {
	t.Parallel()
	system := tree(map[string]string{menu: ownMenu})
	for name, c := range map[string]struct {
		running map[string]string
		load    error
		want    string
	}{
		"loaded":           {map[string]string{"sys/kernel/kexec_loaded": "1\n"}, nil, ""},
		"a GPU was used":   {map[string]string{"sys/kernel/kexec_loaded": "1\n", "sys/module/nouveau/refcnt": "0\n"}, nil, "module nouveau of a GPU is loaded in the ramdisk"},
		"refused":          {map[string]string{"sys/kernel/kexec_loaded": "0\n"}, errkind.New(errkind.Refused, "kexec_file_load /vmlinuz: key rejected by service"), "key rejected"},
		"loaded, it seems": {map[string]string{"sys/kernel/kexec_loaded": "0\n"}, nil, "none is loaded"},
	} {
		asked := false
		got := Prepare(sysfs.Of(tree(c.running)), system, func(fs.FS, Entry) error { asked = true; return c.load })
		if (c.want == "") != (got.Problem == "") || !strings.Contains(got.Problem, c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
		if strings.Contains(name, "GPU") == asked {
			t.Errorf("%s: the kernel was asked to load: %v", name, asked)
		}
		if c.want == "" && got != (wire.Kexec{Kernel: "/vmlinuz", Args: "root=LABEL=ironrail-root ro console=tty0 console=ttyS0,115200"}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
