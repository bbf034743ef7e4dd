// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"bytes"
	"encoding/hex"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/secureboot"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// secureInit is /init of a ramdisk that shows what the kernel shows of Secure Boot: the
// second initrd is the module of efivarfs.
const secureInit = `package main

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

func main() {
	mount := func(kind, at string) {
		os.MkdirAll(at, 0o755)
		fmt.Println(kind, syscall.Mount(kind, at, kind, 0, ""))
	}
	mount("sysfs", "/sys")
	mount("securityfs", "/sys/kernel/security")
	module, err := os.ReadFile("/efivarfs.ko")
	if err != nil {
		fmt.Println(err)
	} else {
		none := []byte{0}
		_, _, e := syscall.Syscall(syscall.SYS_INIT_MODULE, uintptr(unsafe.Pointer(&module[0])), uintptr(len(module)), uintptr(unsafe.Pointer(&none[0])))
		fmt.Println("efivarfs.ko", e)
	}
	mount("efivarfs", "/sys/firmware/efi/efivars")
	for _, name := range []string{"firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "firmware/efi/efivars/SetupMode-8be4df61-93ca-11d2-aa0d-00e098032b8c", "firmware/efi/efivars/db-d719b2cb-3d3a-4596-a3bc-dad00e67656f", "kernel/security/lockdown"} {
		b, err := os.ReadFile("/sys/" + name)
		fmt.Printf("\nSHOWN sys/%s %x %v\n", name, b, err)
	}
	fmt.Println("\nSHOWN-ALL")
	select {}
}
`

// signedFiles is a folder with shimx64.efi, grubx64.efi (grubnetx64.efi.signed) and
// vmlinuz of Debian 13, which no controller of Debian 12 has installed, and efivarfs.ko of
// the same kernel, not packed.
const signedFiles = "IRONRAIL_TEST_SECUREBOOT"

// OVMF with Secure Boot, and with Microsoft's keys in it.
const (
	secureCode = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd"
	secureVars = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"
)

// secureMachine starts a machine whose firmware enforces Secure Boot. Its variables are
// written in system management mode alone.
func secureMachine(t *testing.T, args ...string) func() string {
	t.Helper()
	peertest.Need(t, secureCode)
	vars, err := os.ReadFile(secureVars)
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(t.TempDir(), "vars.fd")
	if err := os.WriteFile(mine, vars, 0o600); err != nil {
		t.Fatal(err)
	}
	return emulate(t, "qemu-system-x86_64", append([]string{"-machine", "q35,smm=on,graphics=off", "-m", "1024",
		"-global", "driver=cfi.pflash01,property=secure,value=on",
		"-drive", "if=pflash,format=raw,unit=0,readonly=on,file=" + secureCode, "-drive", "if=pflash,format=raw,unit=1,file=" + mine,
		"-device", "virtio-net-pci,netdev=n0,romfile=,mac=" + nodeMAC + ",bootindex=0",
		"-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n"}, args...)...)
}

// TestPeerSecureBoot boots OVMF with Microsoft's keys through shim and GRUB to a Linux whose
// kernel is locked down: by PXE, where GRUB goes on by HTTP, and by UEFI HTTP boot; also from the
// folder of a distribution.
func TestPeerSecureBoot(t *testing.T) {
	http := []string{"-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n"}
	for _, c := range []struct {
		name, signed string
		args         []string
	}{{"pxe", "", nil}, {"http", "", http}, {"pxe of ubuntu", "ubuntu", nil}, {"http of rhel", "rhel", http}} {
		t.Run(c.name, func(t *testing.T) {
			if inNamespace(t, "qemu-system-x86_64", secureCode) {
				bootSecurely(t, c.args, c.signed)
			}
		})
	}
}

func bootSecurely(t *testing.T, args []string, signed string) {
	t.Helper()
	dir := os.Getenv(signedFiles)
	if dir == "" {
		t.Skip("needs " + signedFiles + ": a folder with shimx64.efi, grubx64.efi (grubnetx64.efi.signed), vmlinuz and efivarfs.ko of Debian 13")
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	files := map[string][]byte{"/boot/a1/vmlinuz": read("vmlinuz"), "/boot/a1/initrd": cpio("init", 0o100755, buildProgram(t, secureInit)),
		"/boot/a1/node": cpio("efivarfs.ko", 0o100644, read("efivarfs.ko"))}
	mount := netboot.Mount{Prefix: "/boot/", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(files[r.URL.Path]))
	})}
	bridge(t)
	src, d := newOne(t), newDiary()
	src.client.SecureBoot, src.client.Signed = true, signed
	src.attempt = &netboot.Attempt{ID: "a1", Node: "n1", Kernel: "/boot/a1/vmlinuz", Initrds: []string{"/boot/a1/initrd", "/boot/a1/node"},
		Args: []string{"console=ttyS0", "panic=-1"}}
	c := config(mount)
	c.Loaders = loader.Set{loader.In(signed, loader.ShimX64): read("shimx64.efi"), loader.In(signed, loader.GRUBX64): read("grubx64.efi")}
	serve(t, c, src, d)
	serial := secureMachine(t, args...)
	defer func() {
		if t.Failed() {
			t.Logf("\n%s\n%s", d, serial())
		}
	}()
	d.wait(t, 8*time.Minute, "initrd", saw("http", "initrd.end"))
	until(t, 4*time.Minute, serial, "\nSHOWN-ALL")
	for _, want := range []string{"secureboot: Secure boot enabled", "Kernel is locked down from EFI Secure Boot"} {
		if !strings.Contains(serial(), want) {
			t.Errorf("the kernel does not say %q\n%s", want, serial())
		}
	}
	shows := secureboot.Read(sysfs.Of(shown(t, serial())))
	if shows == nil || shows.State != wire.SecureBootOn || shows.Lockdown != "integrity" || shows.Damaged || !slices.Contains(shows.Authorities, "Microsoft Corporation UEFI CA 2011") {
		t.Errorf("the agent reads %+v", shows)
	}
	t.Logf("userland after %.1f s, %+v\n%s", time.Since(d.start).Seconds(), shows, d)
}

// shown are the files that secureInit printed.
func shown(t *testing.T, console string) fs.FS {
	t.Helper()
	tree := fstest.MapFS{}
	for line := range strings.Lines(console) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "SHOWN" || f[3] != "<nil>" {
			continue
		}
		b, err := hex.DecodeString(f[2])
		if err != nil {
			t.Errorf("%s: %v", f[1], err)
		}
		tree[f[1]] = &fstest.MapFile{Data: b}
	}
	return tree
}

// TestPeerSecureBootRefuses: iPXE is offered to a node whose hardware block says nothing of
// Secure Boot. Its firmware refuses it, and that is named as the cause.
func TestPeerSecureBootRefuses(t *testing.T) {
	if !inNamespace(t, "qemu-system-x86_64", secureCode) {
		return
	}
	mount, attempt := bootFiles(t, "ipxe.efi")
	bridge(t)
	src, d := newOne(t), newDiary()
	src.attempt = attempt
	serve(t, config(mount), src, d)
	serial := secureMachine(t)
	until(t, 4*time.Minute, serial, "Access Denied")
	var seen []install.BootEvent
	for _, e := range d.all() {
		seen = append(seen, install.BootEvent{Evidence: e})
	}
	node := &inventory.Node{Name: "n1", BootMAC: src.client.MACs[0], Hardware: &inventory.Hardware{Name: "gpu"}}
	got := install.Diagnose(node, seen, strings.Split(serial(), "\n"))
	if got.Part != "Secure Boot" || got.Cause != "Secure Boot refuses the first loader" {
		t.Errorf("%+v\n%s\n%s", got, d, serial())
	}
	t.Logf("%+v", got)
}
