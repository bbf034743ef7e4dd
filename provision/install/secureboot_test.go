// SPDX-License-Identifier: Apache-2.0

package install

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// ovmf is what OVMF 2022.11 with the keys of Microsoft printed on its serial console
// when it was offered Debian's unsigned snponly.efi.
func ovmf() []string {
	return []string{"  NBP file downloaded successfully.",
		`BdsDxe: loading Boot0001 "UEFI PXEv4 (MAC:525400123456)" from PciRoot(0x0)/Pci(0x1,0x0)/MAC(525400123456,0x1)/IPv4(0.0.0.0,0x0,DHCP,0.0.0.0,0.0.0.0,0.0.0.0)`,
		`BdsDxe: failed to load Boot0001 "UEFI PXEv4 (MAC:525400123456)" from PciRoot(0x0)/Pci(0x1,0x0)/MAC(525400123456,0x1)/IPv4(0.0.0.0,0x0,DHCP,0.0.0.0,0.0.0.0,0.0.0.0): Access Denied`,
		">>Start PXE over IPv6."}
}

// TestSecureBoot: a refusal that the console says is the cause, whichever program says
// it and however the loader was fetched.
func TestSecureBoot(t *testing.T) {
	t.Parallel()
	n := site().Nodes[0]
	saw := func(p boot.Proto, what string) BootEvent { return BootEvent{boot.Evidence{Proto: p, What: what}} }
	got := func(p boot.Proto, what, detail string) BootEvent {
		return BootEvent{boot.Evidence{Proto: p, What: what, Detail: detail}}
	}
	byTFTP := []BootEvent{saw(boot.DHCP, "ack"), saw(boot.TFTP, "done")}
	byHTTP := []BootEvent{saw(boot.DHCP, "ack"), saw(boot.HTTP, "loader")}
	kernel := []BootEvent{saw(boot.IPXE, "script"), saw(boot.HTTP, "kernel.end")}
	ramdisk := []BootEvent{saw(boot.HTTP, "kernel.end"), saw(boot.HTTP, "initrd.end")}
	for _, c := range []struct {
		name    string
		seen    []BootEvent
		console []string
		want    string // in the cause
	}{
		{"OVMF, loader by TFTP", byTFTP, ovmf(), "Secure Boot refuses the first loader"},
		{"OVMF, loader by HTTP", byHTTP, ovmf(), "Secure Boot refuses the first loader"},
		{"a loader by HTTP is no ramdisk", byHTTP, nil, "never asked for the boot script"},
		{"shim", byTFTP, []string{"Verification failed: (0x1A) Security Violation"}, "Secure Boot refuses the first loader"},
		{"shim's SBAT", byTFTP, []string{"Something has gone seriously wrong: SBAT self-check failed: Security Policy Violation"}, "Secure Boot refuses the first loader"},
		{"a firmware's box", byTFTP, []string{"| Invalid signature detected. Check Secure  |"}, "Secure Boot refuses the first loader"},
		{"GRUB", kernel, []string{"error: ../../grub-core/kern/efi/sb.c:182:bad shim signature."}, "Secure Boot refuses the install kernel"},
		{"GRUB's policy", kernel, []string{"error: prohibited by secure boot policy."}, "Secure Boot refuses the install kernel"},
		{"GRUB's policy about a font", ramdisk, []string{"shim_lock_verifier_init: prohibited by secure boot policy"}, "agent never called"},
		{"shim and nothing behind it", []BootEvent{saw(boot.DHCP, "ack"), got(boot.TFTP, "done", "shimx64.efi: asked for the size only"), got(boot.TFTP, "done", "shimx64.efi")}, nil, "fetched shimx64.efi, which never asked for grubx64.efi: the firmware refuses it"},
		{"shim by HTTP", []BootEvent{got(boot.HTTP, "loader", "HEAD shimaa64.efi"), got(boot.HTTP, "loader", "GET shimaa64.efi")}, nil, "fetched shimaa64.efi, which never asked for grubaa64.efi"},
		{"a part of shim", []BootEvent{got(boot.TFTP, "start", "shimx64.efi"), got(boot.TFTP, "failed", "shimx64.efi: 3 of 9 bytes: timeout")}, nil, "fetched its first loader, which never asked"},
		{"GRUB and no configuration", []BootEvent{got(boot.TFTP, "done", "shimx64.efi"), got(boot.TFTP, "done", "grubx64.efi")}, nil, "fetched grubx64.efi, which never asked for its configuration"},
		{"GRUB without HTTP", []BootEvent{got(boot.TFTP, "done", "shimx64.efi"), got(boot.TFTP, "done", "grubx64.efi"), got(boot.TFTP, "done", "/grub/x86_64-efi/grub.cfg")}, nil, "never the one by HTTP"},
		{"shim refuses GRUB", []BootEvent{got(boot.TFTP, "done", "shimx64.efi"), got(boot.TFTP, "done", "grubx64.efi")}, []string{"Verification failed: (0x1A) Security Violation"}, "Secure Boot refuses grubx64.efi"},
		{"another failure to load", byTFTP, []string{`BdsDxe: failed to load Boot0001 "UEFI PXEv4": Not Found`}, "never asked for the boot script"},
	} {
		d := Diagnose(n, c.seen, c.console)
		if !strings.Contains(d.Cause, c.want) || d.Action == "" {
			t.Errorf("%s: %+v; want cause with %q", c.name, d, c.want)
		}
		if refused := strings.Contains(c.want, "refuses"); refused && (d.Part != "Secure Boot" || c.console != nil && !strings.Contains(d.Evidence[0], "its console says")) {
			t.Errorf("%s: part %q, evidence %q", c.name, d.Part, d.Evidence)
		}
	}
}

// TestSecureBootFinding: what the console of a waited-for node says reaches its finding.
func TestSecureBootFinding(t *testing.T) {
	t.Parallel()
	c := whole()
	c.silent, c.console = true, ovmf()
	res, _ := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, []BootEvent{{boot.Evidence{Proto: boot.HTTP, What: "loader"}}})
	if f := res.Nodes[0].Finding; f == nil || f.Cause != "Secure Boot refuses the first loader" || f.Suspects[0].Part != "Secure Boot" {
		t.Errorf("finding %+v", f)
	}
}

// TestSecureBootAction: who asks for Secure Boot is not asked to switch it off.
func TestSecureBootAction(t *testing.T) {
	t.Parallel()
	refused := []string{"Verification failed: (0x1A) Security Violation"}
	loaded := []BootEvent{{boot.Evidence{Proto: boot.TFTP, What: "done", Detail: "shimx64.efi"}}}
	kernel := append(slices.Clone(loaded), BootEvent{boot.Evidence{Proto: boot.HTTP, What: "kernel.end"}})
	for _, c := range []struct {
		declared bool
		seen     []BootEvent
		want     string
	}{
		{false, loaded, "Switch Secure Boot off in the firmware of n1, or set secure_boot = true in hardware.h"},
		{true, loaded, "UEFI CA for third parties (2011 or 2023"}, {true, kernel, "a kernel package of Debian's own archive"},
	} {
		n := &inventory.Node{Name: "n1", Hardware: &inventory.Hardware{Name: "h", SecureBoot: c.declared}}
		if d := Diagnose(n, c.seen, refused); !strings.Contains(d.Action, c.want) || c.declared == strings.Contains(d.Action, "off") {
			t.Errorf("declared %v: %+v; want %q", c.declared, d, c.want)
		}
	}
	if d := Diagnose(&inventory.Node{Name: "n1"}, loaded, refused); !strings.Contains(d.Action, "Switch Secure Boot off in the firmware of n1") {
		t.Errorf("without hardware: %+v", d)
	}
}

// TestCompareSecureBoot: Secure Boot that is off is a fault where the hardware block asks for it,
// and one that cannot be read is not.
func TestCompareSecureBoot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		declared bool
		shown    *wire.SecureBoot
		fault    string // "": none
		says     string
	}{
		{true, nil, "", "not readable"}, {true, &wire.SecureBoot{}, "", "not readable"}, {false, &wire.SecureBoot{State: wire.SecureBootOff}, "", "off in the firmware"},
		{true, &wire.SecureBoot{State: wire.SecureBootOn, Lockdown: "integrity", Authorities: []string{"Microsoft UEFI CA 2023"}}, "", "is on; the kernel is locked down (integrity); db has Microsoft UEFI CA 2023"},
		{true, &wire.SecureBoot{State: wire.SecureBootOn}, "", "whether the kernel is locked down is not readable"},
		{true, &wire.SecureBoot{State: wire.SecureBootOn, Lockdown: "none", Damaged: true}, "", "the kernel is not locked down; db could not be read to its end"},
		{true, &wire.SecureBoot{State: wire.SecureBootOff}, "Secure Boot is off in the firmware", "off"}, {true, &wire.SecureBoot{State: wire.SecureBootSetup}, "setup mode", "setup mode"},
		{true, &wire.SecureBoot{State: wire.SecureBootAbsent}, "the firmware has no Secure Boot", "no Secure Boot"},
	} {
		n := &inventory.Node{Name: "n1", Hardware: &inventory.Hardware{Name: "h", SecureBoot: c.declared, Boot: inventory.BootUEFI}}
		faults := CompareHardware(n, wire.Hardware{SecureBoot: c.shown})
		if c.fault == "" && len(faults) > 0 || c.fault != "" && (len(faults) != 1 || faults[0].Part != "Secure Boot" || !strings.Contains(faults[0].Found, c.fault) || !strings.Contains(faults[0].Found, "hardware.h says")) {
			t.Errorf("declared %v, shown %+v: %+v", c.declared, c.shown, faults)
		}
		if got := secureBootOf(c.shown); !strings.Contains(got, c.says) {
			t.Errorf("%+v: %q; want %q", c.shown, got, c.says)
		}
	}
}

// moduleKey is the certificate of a site's key for kernel modules.
func moduleKey(t *testing.T) *modsign.Certificate {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := modsign.Create(path, "s", time.Now()); err != nil {
		t.Fatal(err)
	}
	key, err := modsign.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return &key.Certificate
}

// TestCompareModuleKey: a node that needs the site's certificate and whose firmware shows that it
// has not is at fault, and no other.
func TestCompareModuleKey(t *testing.T) {
	t.Parallel()
	key := moduleKey(t)
	shown := func(keys ...string) *wire.SecureBoot { return &wire.SecureBoot{State: wire.SecureBootOn, Keys: keys} }
	damaged := shown("other")
	damaged.Damaged = true
	cuda := &inventory.Driver{Block: inventory.Block{Kind: "cuda", Name: "gpu"}, Version: "535.261.03"}
	for name, c := range map[string]struct {
		secure bool
		driver *inventory.Driver
		signer *modsign.Certificate
		shown  *wire.SecureBoot
		fault  bool
	}{
		"it is there":        {true, cuda, key, shown("other", key.Fingerprint()), false},
		"it is not":          {true, cuda, key, shown("other"), true},
		"not shown":          {true, cuda, key, shown(), false},
		"not shown whole":    {true, cuda, key, damaged, false},
		"nothing is shown":   {true, cuda, key, nil, false},
		"no Secure Boot":     {false, cuda, key, shown("other"), false},
		"no such driver":     {true, &inventory.Driver{Block: inventory.Block{Kind: "inbox", Name: "rdma"}}, key, shown("other"), false},
		"a site without key": {true, cuda, nil, shown("other"), false},
	} {
		cuda.Value = cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal("proprietary")})
		n := &inventory.Node{Name: "n1", Hardware: &inventory.Hardware{Name: "h", SecureBoot: c.secure}, Drivers: []*inventory.Driver{c.driver},
			Image: &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm", Kernel: "linux-image-6.1.0-56-amd64"}}
		f := (&Stage{w: Dependencies{Signer: c.signer}}).compareModuleKey(n, c.shown)
		if (f != nil) != c.fault || f != nil && (f.Part != "Secure Boot" || !strings.Contains(f.Found, key.Fingerprint()) || !strings.Contains(f.Action, "n1")) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
