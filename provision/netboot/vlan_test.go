// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/vlanport"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// trunkPort puts the node's NIC at a port of a switch that is a tagged member of a VLAN, and the
// boot network behind it; it returns QEMU's arguments of the NIC's backend, n1.
func trunkPort(t *testing.T, p vlanport.Port) []string {
	t.Helper()
	bridge(t)
	tap, err := vlanport.OpenTap("tap0")
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "port")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, at, tap) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return vlanport.Args("n1", at)
}

// taggingIPXE is the path of snponly.efi of Debian 13's package ipxe, or of another iPXE that makes a
// VLAN interface by the device path; that of Debian 12 does not.
const taggingIPXE = "IRONRAIL_TEST_IPXE"

const vlanID = 30

// TestPeerBootVLAN boots EDK2's PXE with a VLAN for its NIC, at a port that is a tagged member of it alone,
// through iPXE to a kernel.
func TestPeerBootVLAN(t *testing.T) {
	if !inNamespace(t, "qemu-system-x86_64", ovmfCode) {
		return
	}
	file := os.Getenv(taggingIPXE)
	if file == "" {
		t.Skip("needs " + taggingIPXE + ": snponly.efi of Debian 13's package ipxe")
	}
	snponly, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, serial := bootTagged(t, vlanport.Port{Tagged: vlanID}, loader.Set{loader.SNPOnly: snponly})
	defer func() { t.Logf("\n%s\n%s", d, serial()) }()
	d.wait(t, 240*time.Second, "initrd", saw("http", "initrd.end"))
	until(t, time.Minute, serial, fmt.Sprintf("net0-%d: 10.99.0.11", vlanID))
}

// TestPeerBootVLANOld: the iPXE of Debian 12 would send untagged frames, so that it is not offered.
func TestPeerBootVLANOld(t *testing.T) {
	if !inNamespace(t, "qemu-system-x86_64", ovmfCode) {
		return
	}
	peertest.Need(t, "/usr/lib/ipxe")
	d, _ := bootTagged(t, vlanport.Port{Tagged: vlanID}, nil)
	e := d.wait(t, 240*time.Second, "refusal", func(e netboot.Evidence) bool { return e.Refused })
	if !strings.Contains(e.Detail, "vlan = 30") || !strings.Contains(e.Detail, "1.0.0+git-20190125") {
		t.Errorf("%+v", e)
	}
}

// TestPeerBootVLANUntagged: at a port that is an untagged member nothing of such firmware is heard.
func TestPeerBootVLANUntagged(t *testing.T) {
	if !inNamespace(t, "qemu-system-x86_64", ovmfCode) {
		return
	}
	d, serial := bootTagged(t, vlanport.Port{}, nil)
	until(t, 240*time.Second, serial, "PXE-E")
	if len(d.all()) > 0 {
		t.Errorf("heard\n%s", d)
	}
}

// bootTagged starts a machine whose firmware has VLAN 30 for its NIC, at a port.
func bootTagged(t *testing.T, p vlanport.Port, loaders loader.Set) (*diary, func() string) {
	t.Helper()
	mount, attempt := bootFiles(t, "ipxe.efi")
	return bootTaggedWith(t, p, loaders, mount, attempt)
}

// bootTaggedWith is bootTagged of other files.
func bootTaggedWith(t *testing.T, p vlanport.Port, loaders loader.Set, mount netboot.Mount, attempt *netboot.Attempt) (*diary, func() string) {
	t.Helper()
	vars, err := os.ReadFile(ovmfVars)
	if err != nil {
		t.Fatal(err)
	}
	mac, err := net.ParseMAC(nodeMAC)
	if err != nil {
		t.Fatal(err)
	}
	if vars, err = vlanport.Firmware(vars, mac, vlanID); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(t.TempDir(), "vars.fd")
	if err := os.WriteFile(mine, vars, 0o600); err != nil {
		t.Fatal(err)
	}
	nic := trunkPort(t, p)
	// OVMF's driver of virtio takes 1,514 bytes with the tag: a full segment of TCP would not fit.
	sh(t, "ip link set boot0 mtu 1496")
	src, d := newOne(t), newDiary()
	src.attempt, src.client.VLAN = attempt, vlanID
	c := config(mount)
	c.Loaders = loaders
	serve(t, c, src, d)
	return d, machineOn(t, nic, "-drive", "if=pflash,format=raw,unit=0,readonly=on,file="+ovmfCode, "-drive", "if=pflash,format=raw,unit=1,file="+mine,
		"-device", "virtio-net-pci,netdev=n1,romfile=,mac="+nodeMAC+",bootindex=0", "-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n")
}

// ramdiskFiles is a folder with kernel and initrd of an image of kind debian, as `ironrail image build` keeps it
// in .ironrail/images.
const ramdiskFiles = "IRONRAIL_TEST_RAMDISK"

// TestPeerRamdiskVLAN boots a real kernel with the install ramdisk and the agent as /init: the agent calls the controller
// from its address on the VLAN.
func TestPeerRamdiskVLAN(t *testing.T) {
	if !inNamespace(t, "qemu-system-x86_64", ovmfCode) {
		return
	}
	ipxe, dir := os.Getenv(taggingIPXE), os.Getenv(ramdiskFiles)
	if ipxe == "" || dir == "" {
		t.Skip("needs " + taggingIPXE + ": snponly.efi of Debian 13's package ipxe, and " + ramdiskFiles + ": a folder with kernel and initrd of an image of kind debian")
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	agent := filepath.Join(t.TempDir(), "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", agent, "../../cmd/ironrail-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("needs the Go toolchain: %v\n%s", err, out)
	}
	mac, err := addr.ParseMAC(nodeMAC)
	if err != nil {
		t.Fatal(err)
	}
	node, err := ramdisk.NodeSegment(wire.Boot{Version: wire.Version, Node: "n1", Attempt: "a1", Token: "t", Controller: "https://10.99.0.2:8443", Pin: strings.Repeat("A", 43) + "=", BootMAC: mac, Address: "10.99.0.11/24", VLAN: vlanID})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"/boot/a1/vmlinuz": read(filepath.Join(dir, "kernel")), "/boot/a1/initrd": read(filepath.Join(dir, "initrd")), "/boot/a1/agent": cpio("init", 0o100755, read(agent)), "/boot/a1/node": node}
	mount := netboot.Mount{Prefix: "/boot/", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(files[r.URL.Path]))
	})}
	attempt := &netboot.Attempt{ID: "a1", Node: "n1", Kernel: "/boot/a1/vmlinuz", Initrds: []string{"/boot/a1/initrd", "/boot/a1/agent", "/boot/a1/node"}, Args: []string{"console=ttyS0", "panic=-1"}}
	d, serial := bootTaggedWith(t, vlanport.Port{Tagged: vlanID}, loader.Set{loader.SNPOnly: read(ipxe)}, mount, attempt)
	defer func() { t.Logf("\n%s\n%s", d, serial()) }()
	ln, err := net.Listen("tcp", "10.99.0.2:8443")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ln.(*net.TCPListener).SetDeadline(time.Now().Add(6 * time.Minute))
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if from := conn.RemoteAddr().String(); !strings.HasPrefix(from, "10.99.0.11:") {
		t.Errorf("the agent calls from %s", from)
	}
	until(t, time.Minute, serial, fmt.Sprintf("vlan=%d", vlanID))
}
