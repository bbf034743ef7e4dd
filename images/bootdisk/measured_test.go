// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/peertest"
)

// pcrInit is /init of an initrd that shows PCR 7 as the kernel does.
const pcrInit = `package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	os.MkdirAll("/sys", 0o755)
	fmt.Println("sysfs", syscall.Mount("sysfs", "/sys", "sysfs", 0, ""))
	b, err := os.ReadFile("/sys/class/tpm/tpm0/pcr-sha256/7")
	fmt.Printf("\nPCR7 %s%v END\n", b, err)
	select {}
}
`

// initrdOf packs one program as /init, in the form of cpio that the kernel reads (newc).
func initrdOf(t *testing.T, program []byte) string {
	t.Helper()
	var b bytes.Buffer
	entry := func(name string, mode int, data []byte) {
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00", 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
		b.Write(make([]byte, -b.Len()&3))
		b.Write(data)
		b.Write(make([]byte, -b.Len()&3))
	}
	entry("init", 0o100755, program)
	entry("TRAILER!!!", 0, nil)
	return b.String()
}

// pcr7 is PCR 7 of a machine with an emulated TPM, which starts from a disk with variables of its
// firmware.
func pcr7(t *testing.T, disk, vars string) string {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "tpm.sock")
	tpm := exec.CommandContext(t.Context(), "swtpm", "socket", "--tpm2", "--tpmstate", "dir="+dir, "--ctrl", "type=unixio,path="+socket, "--terminate")
	must(t, tpm.Start())
	defer func() { _ = tpm.Process.Kill(); _ = tpm.Wait() }()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatal("swtpm opens no socket")
		}
	}
	said := console(t, []string{"-machine", "q35,smm=on", "-accel", "tcg,tb-size=128", "-m", "512", "-display", "none", "-nic", "none", "-no-reboot",
		"-global", "driver=cfi.pflash01,property=secure,value=on", "-serial", "stdio", "-monitor", "none",
		"-chardev", "socket,id=tpm,path=" + socket, "-tpmdev", "emulator,id=tpm0,chardev=tpm", "-device", "tpm-tis,tpmdev=tpm0",
		"-drive", "if=pflash,format=raw,unit=0,readonly=on,file=" + secureCode, "-drive", "if=pflash,format=raw,unit=1,file=" + vars,
		"-drive", "file=" + disk + ",if=none,id=d,format=raw,snapshot=on,file.locking=off", "-device", "virtio-blk-pci,drive=d,bootindex=0"}, " END")
	_, rest, found := strings.Cut(said, "\nPCR7 ")
	value, _, ok := strings.Cut(rest, "\n")
	if value = strings.TrimSpace(value); !found || !ok || len(value) != 64 || strings.Trim(value, "0") == "" {
		t.Fatalf("the node shows no PCR 7:\n%s", said)
	}
	return value
}

// TestPeerPCR7: with Secure Boot on, PCR 7 is the same at a second start, after the variables of the
// firmware were lost, and for another disk whose loaders and kernel have the same signers; it is
// another one with Secure Boot off. Encrypted volumes are bound to it.
func TestPeerPCR7(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "qemu-system-x86_64", "swtpm", secureCode, "mke2fs", "mkfs.vfat", "mcopy", "sgdisk", "grub-mkimage", "/usr/lib/grub/i386-pc/boot.img")
	from, path := packagesOf(t, securePackages, "shim-signed, shim-helpers-amd64-signed, grub-efi-amd64-signed and linux-image-amd64 of Debian 13")
	kernel, err := os.ReadFile(path)
	must(t, err)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "main.go"), pcrInit)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "init"), filepath.Join(dir, "main.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "init"))
	must(t, err)
	disk := func(arguments string) string {
		family, _ := distribution.Find(distribution.Debian)
		m := &Maker{Family: family, SecureBoot: true, Dir: t.TempDir(), Seed: "sha256:test" + arguments, Say: func(string) {}}
		m.Root = m.Path("root")
		must(t, os.Symlink(filepath.Join(from, "packages"), m.Path(loadersDir)))
		put(t, filepath.Join(m.Root, "boot/grub/grub.cfg"), grubConfig(m.Family, m.Arch))
		put(t, filepath.Join(m.Root, "boot/grub/ironrail.cfg"), "linux /vmlinuz console=ttyS0 panic=-1 rdinit=/init "+arguments+"\ninitrd /initrd\nboot\n")
		put(t, filepath.Join(m.Root, "vmlinuz"), string(kernel))
		put(t, filepath.Join(m.Root, "initrd"), initrdOf(t, program))
		signedDisk(t, m)
		return m.Path(DiskFile)
	}
	variables := func(of string) string {
		b, err := os.ReadFile(of)
		must(t, err)
		file := filepath.Join(t.TempDir(), "vars.fd")
		put(t, file, string(b))
		return file
	}
	own, kept := disk("quiet"), variables(secureVars)
	first := pcr7(t, own, kept)
	for name, c := range map[string]struct {
		disk, vars string
		same       bool
	}{
		"again":                    {own, kept, true},
		"variables lost":           {own, variables(secureVars), true},
		"another, same signers":    {disk("other"), kept, true},
		"Secure Boot switched off": {own, variables("/usr/share/OVMF/OVMF_VARS_4M.fd"), false},
	} {
		if is := pcr7(t, c.disk, c.vars); (is == first) != c.same {
			t.Errorf("%s: PCR 7 is %s, and was %s", name, is, first)
		}
	}
}
