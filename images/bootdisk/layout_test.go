// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/internal/lvm"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// TestPeerGrubFindsRoot boots a disk with the loaders of layouts, on BIOS and UEFI: as
// the image has it, with its root found by UUID, and with an XFS root in its place, made
// as the agent makes it, also as a logical volume.
func TestPeerGrubFindsRoot(t *testing.T) {
	t.Parallel()
	const code, vars = "/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"
	const uuid = "11111111-2222-4333-8444-555555555555"
	peertest.Need(t, "qemu-system-x86_64", code)
	peertest.Need(t, "mkfs.xfs")
	const config = "echo reached $root $prefix $grub_platform end\nhalt\n"
	disk := small(t, config, inventory.StorageLVM, inventory.StorageTree, inventory.StorageXFS)
	dir := t.TempDir()
	xfs, logical := filepath.Join(dir, "disk"), filepath.Join(dir, "logical")
	for _, to := range []string{xfs, logical} {
		if out, err := exec.CommandContext(t.Context(), "cp", "--sparse=always", disk, to).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, out)
		}
		text, err := loadercfg.ByUUID(uuid)
		must(t, err)
		replaceConfig(t, to, text)
	}
	putXFS(t, xfs, rootStart, uuid, config)
	must(t, os.Truncate(logical, rootStart+350*mib))
	putXFS(t, logical, rootStart+putGroup(t, logical), uuid, config)
	for _, c := range []struct{ name, disk, want, firmware string }{
		{"bios", disk, "reached hd0,gpt3 (hd0,gpt3)/boot/grub pc end", ""},
		{"uefi", disk, "reached hd0,gpt3 (hd0,gpt3)/boot/grub efi end", code},
		{"bios, xfs by UUID", xfs, "reached hd0,gpt3 (hd0,gpt3)/boot/grub pc end", ""},
		{"uefi, xfs by UUID", xfs, "reached hd0,gpt3 (hd0,gpt3)/boot/grub efi end", code},
		{"bios, logical volume", logical, "reached lvm/vg0-root (lvm/vg0-root)/boot/grub pc end", ""},
		{"uefi, logical volume", logical, "reached lvm/vg0-root (lvm/vg0-root)/boot/grub efi end", code},
	} {
		argv := []string{"-machine", "q35", "-accel", "tcg,tb-size=64", "-m", "256", "-display", "none", "-nic", "none", "-serial", "stdio", "-monitor", "none",
			"-drive", "file=" + c.disk + ",if=none,id=d,format=raw,snapshot=on,file.locking=off", "-device", "virtio-blk-pci,drive=d,bootindex=0"}
		if c.firmware != "" {
			argv = append(argv, "-drive", "if=pflash,format=raw,unit=0,readonly=on,file="+c.firmware, "-drive", "if=pflash,format=raw,unit=1,snapshot=on,file="+vars)
		}
		if said := console(t, argv, " end"); !strings.Contains(said, c.want) {
			t.Errorf("%s: console does not say %q:\n%s", c.name, c.want, said)
		}
	}
}

// replaceConfig writes another configuration onto the EFI system partition, as the agent
// does.
func replaceConfig(t *testing.T, disk string, text []byte) {
	t.Helper()
	f, err := os.OpenFile(disk, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	esp := make([]byte, ESPSize)
	_, err = f.ReadAt(esp, ESPStart)
	must(t, err)
	must(t, loadercfg.Replace(esp, text))
	_, err = f.WriteAt(esp, ESPStart)
	must(t, err)
}

// putGroup makes a volume group in place of the root, with two logical volumes, and returns
// where the second begins in it.
func putGroup(t *testing.T, disk string) int64 {
	t.Helper()
	peertest.Need(t, "losetup")
	peertest.Need(t, "pvcreate")
	out, err := exec.CommandContext(t.Context(), "losetup", "-f", "--show", "-o", strconv.Itoa(rootStart), disk).Output()
	must(t, err)
	loop := strings.TrimSpace(string(out))
	defer exec.Command("losetup", "-d", loop).Run() //nolint:errcheck,noctx // the machine of a test
	for _, argv := range []string{"pvcreate " + loop, "vgcreate vg0 " + loop, "lvcreate -an -Zn -Wn --name first --extents 3 vg0", "lvcreate -an -Zn -Wn --name root --extents 100%FREE vg0"} {
		words := append(strings.Fields(argv), "--yes", "--driverloaded", "n", "--config", `devices{global_filter=["a|^`+loop+`$|","r|.*|"] obtain_device_list_from_udev=0} backup{backup=0 archive=0} global{locking_dir="`+t.TempDir()+`"}`)
		cmd := exec.CommandContext(t.Context(), "lvm", words...)
		cmd.Env = append(os.Environ(), "LVM_SYSTEM_DIR=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", argv, err, out)
		}
	}
	f, err := os.Open(loop)
	must(t, err)
	defer f.Close()
	g, ok, err := lvm.Read(f, 350*mib)
	if err != nil || !ok || len(g.Volumes) != 2 {
		t.Fatalf("%+v, %v, %v", g, ok, err)
	}
	return g.Volumes[0].At
}

// putXFS makes an XFS with the node's configuration at a place of a disk.
func putXFS(t *testing.T, disk string, place int64, uuid, config string) {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(at("grub.cfg"), []byte("if [ $grub_platform = pc ]; then\nserial --unit=0 --speed=115200\nterminal_output console serial\nfi\n"+config), 0o644)) // UEFI's console is the serial port already
	must(t, os.WriteFile(at("proto"), fmt.Appendf(nil, "/\n0 0\nd--755 0 0\nboot d--755 0 0\ngrub d--755 0 0\ngrub.cfg ---644 0 0 %s\n$\n$\n$\n", at("grub.cfg")), 0o644))
	must(t, os.WriteFile(at("xfs"), nil, 0o644))
	must(t, os.Truncate(at("xfs"), 310<<20))
	out, err := exec.CommandContext(t.Context(), "mkfs.xfs", "-q", "-p", at("proto"), "-L", "ironrail-os", "-i", "nrext64=0", "-m", "uuid="+uuid+",bigtime=0,inobtcount=0,rmapbt=0", at("xfs")).CombinedOutput()
	if err != nil {
		t.Fatalf("mkfs.xfs: %v\n%s", err, out)
	}
	from, err := os.Open(at("xfs"))
	must(t, err)
	defer from.Close()
	to, err := os.OpenFile(disk, os.O_RDWR, 0)
	must(t, err)
	defer to.Close()
	_, err = io.Copy(io.NewOffsetWriter(to, place), from)
	must(t, err)
}

func TestPackTree(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: files of an image belong to many users")
	}
	m := &Maker{Dir: t.TempDir(), Say: func(string) {}}
	m.Root = m.Path("root")
	must(t, os.MkdirAll(m.Root, 0o755))
	must(t, m.PackTree(t.Context()))
	if _, err := os.Stat(m.Path(manifest.TreeFile)); err == nil || len(m.TreeFiles()) != 0 {
		t.Error("a tree that no layout needs")
	}
	m.Storage = []string{inventory.StorageTree}
	must(t, os.WriteFile(filepath.Join(m.Root, "zeroes"), make([]byte, 9<<20), 0o644))
	must(t, m.PackTree(t.Context()))
	var list manifest.Manifest
	b, err := os.ReadFile(m.Path(manifest.TreeFile))
	must(t, err)
	must(t, json.Unmarshal(b, &list))
	must(t, list.Check())
	info, err := os.Stat(m.Path(manifest.TreeBlob))
	must(t, err)
	if info.Size() != list.Blob || list.Size < 9<<20 || list.Blob > 1<<20 {
		t.Errorf("blob of %d bytes, list of %+v", info.Size(), list)
	}
}

// TestPeerPackLoaders: a disk of loaders alone is what the agent takes them from.
func TestPeerPackLoaders(t *testing.T) {
	t.Parallel()
	for _, x := range Tools(inventory.AMD64) {
		peertest.Need(t, x.Name)
	}
	peertest.Need(t, "sgdisk", "mdir")
	family, _ := distribution.Find(distribution.Debian)
	m := &Maker{Family: family, Dir: t.TempDir(), Seed: "sha256:test", Say: func(string) {}, Storage: []string{inventory.StorageTree}}
	must(t, m.PackLoaders(t.Context()))
	disk := m.Path(loadersDisk)
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"sgdisk", "-v", disk}, "No problems found"},
		{[]string{"mdir", "-i", fmt.Sprintf("%s@@%d", disk, ESPStart), "::/EFI/BOOT"}, "BOOTX64  EFI"},
	} {
		out, err := exec.CommandContext(t.Context(), c.argv[0], c.argv[1:]...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: %v\n%s", c.argv, err, out)
		}
	}
	text, err := loadercfg.ByUUID("11111111-2222-4333-8444-555555555555")
	must(t, err)
	replaceConfig(t, disk, text)
	var list manifest.Manifest
	b, err := os.ReadFile(m.Path(manifest.LoadersFile))
	must(t, err)
	must(t, json.Unmarshal(b, &list))
	must(t, list.Check())
	info, err := os.Stat(m.Path(manifest.LoadersBlob))
	must(t, err)
	if info.Size() != list.Blob || list.Size != rootStart+gptEnd || list.Blob > 4<<20 {
		t.Errorf("blob of %d bytes, list of %d bytes of %d", info.Size(), list.Blob, list.Size)
	}
}
