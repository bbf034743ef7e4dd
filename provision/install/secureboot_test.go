// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
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
		{"another failure to load", byTFTP, []string{`BdsDxe: failed to load Boot0001 "UEFI PXEv4": Not Found`}, "never asked for the boot script"},
	} {
		d := Diagnose(n, c.seen, c.console)
		if !strings.Contains(d.Cause, c.want) || d.Action == "" {
			t.Errorf("%s: %+v; want cause with %q", c.name, d, c.want)
		}
		if refused := strings.Contains(c.want, "refuses"); refused && (d.Part != "Secure Boot" || !strings.Contains(d.Evidence[0], "its console says")) {
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
