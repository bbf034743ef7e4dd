// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// arm64Files is a folder with shimaa64.efi, grubaa64.efi (grubnetaa64.efi.signed) and
// vmlinuz of Debian 13 for arm64, which no controller has installed.
const arm64Files = "IRONRAIL_TEST_ARM64"

// TestPeerBootARM64 boots AAVMF through shim and GRUB to a Linux kernel: by PXE, where
// GRUB goes on by HTTP, and by UEFI HTTP boot; and with Microsoft's keys, where the kernel is locked
// down.
func TestPeerBootARM64(t *testing.T) {
	pxe := []string{"-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n"}
	http := []string{"-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n", "-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n"}
	const plain, secure, started, locked = "AAVMF_VARS.fd", "AAVMF_VARS.ms.fd", "Linux version", "Kernel is locked down from EFI Secure Boot"
	for _, c := range []struct {
		name string
		args []string
		vars string // of the firmware
		says string // the kernel
	}{{"pxe", pxe, plain, started}, {"http", http, plain, started}, {"pxe with Secure Boot", pxe, secure, locked}, {"http with Secure Boot", http, secure, locked}} {
		t.Run(c.name, func(t *testing.T) {
			if inNamespace(t, "qemu-system-aarch64", "/usr/share/AAVMF/AAVMF_CODE.fd") {
				bootARM64(t, c.args, c.vars, c.says)
			}
		})
	}
}

func bootARM64(t *testing.T, args []string, variables, says string) {
	t.Helper()
	dir := os.Getenv(arm64Files)
	if dir == "" {
		t.Skip("needs " + arm64Files + ": a folder with shimaa64.efi, grubaa64.efi and vmlinuz of Debian 13 for arm64")
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	files := map[string][]byte{"/boot/a1/vmlinuz": read("vmlinuz"), "/boot/a1/initrd": cpio("node.json", 0o100644, []byte(`{"node":"n1"}`))}
	mount := netboot.Mount{Prefix: "/boot/", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(files[r.URL.Path]))
	})}
	bridge(t)
	src, d := newOne(t), newDiary()
	src.client.SecureBoot = says != "Linux version"
	src.attempt = &netboot.Attempt{ID: "a1", Node: "n1", Kernel: "/boot/a1/vmlinuz", Initrds: []string{"/boot/a1/initrd"},
		Args: []string{"console=ttyAMA0", "panic=-1"}}
	c := config(mount)
	c.Loaders = loader.Set{loader.ShimARM64: read("shimaa64.efi"), loader.GRUBARM64: read("grubaa64.efi")}
	serve(t, c, src, d)
	peertest.Need(t, "/usr/share/AAVMF/AAVMF_CODE.fd")
	vars, err := os.ReadFile(filepath.Join("/usr/share/AAVMF", variables))
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(t.TempDir(), "vars.fd")
	if err := os.WriteFile(mine, vars, 0o600); err != nil {
		t.Fatal(err)
	}
	serial := emulate(t, "qemu-system-aarch64", append([]string{"-machine", "virt", "-cpu", "cortex-a57",
		"-drive", "if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/AAVMF/AAVMF_CODE.fd", "-drive", "if=pflash,format=raw,unit=1,file=" + mine,
		"-device", "virtio-net-pci,netdev=n0,romfile=,mac=" + nodeMAC + ",bootindex=0"}, args...)...)
	defer func() {
		if t.Failed() {
			t.Logf("\n%s\n%s", d, serial())
		}
	}()
	d.wait(t, 8*time.Minute, "initrd", saw("http", "initrd.end"))
	until(t, 4*time.Minute, serial, says)
	t.Logf("kernel after %.1f s\n%s", time.Since(d.start).Seconds(), d)
}
