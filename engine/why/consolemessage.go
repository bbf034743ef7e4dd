// SPDX-License-Identifier: Apache-2.0

package why

import "strings"

// ConsoleMessage is what a line of a console means.
type ConsoleMessage struct {
	Text   string `json:"text"` // part of the line by which it is known, in lower case
	Cause  string `json:"cause"`
	Action string `json:"action"`
	Source string `json:"source"` // where the text comes from

	ends bool // nothing comes after it: the node is stuck at once, not only when it is late
}

// The sources of several messages.
const (
	intelPXE = "Intel Boot Agent messages"
	edkPXE   = "EDK II, NetworkPkg/UefiPxeBcDxe"
	nvidia   = "NVIDIA driver, Xid errors"
)

// consoleMessages are the lines that name a cause; of two that fit a line the first counts.
var consoleMessages = []ConsoleMessage{
	// The end of a kernel.
	{"unable to mount root fs", "the kernel found no root file system", "Look whether the image has the driver of the boot disk, and whether root= names what was written.", "Linux, init/do_mounts.c", true},
	{"out of memory and no killable processes", "the kernel ran out of memory", "Look at the memory that the firmware reports, and for modules that it switched off.", "Linux, mm/oom_kill.c", true},
	{"fatal machine check", "the kernel stopped for a machine check: a CPU, memory or bus reported an error that cannot be corrected", "Read the lines [Hardware Error] before it and the BMC's event log: they name CPU and bank; replace what they name.", "Linux, arch/x86/kernel/cpu/mce/core.c", true},
	{"timeout: not all cpus entered broadcast exception handler", "the kernel stopped for a machine check that not all CPUs answered", "Read the BMC's event log for the CPU, and replace it if it happens again.", "Linux, arch/x86/kernel/cpu/mce/core.c", true},
	{"attempted to kill init", "the first program of the system ended, and the kernel stopped", "Read the lines before it: a missing library, a wrong architecture or a full memory ends init.", "Linux, kernel/exit.c", true},
	{"kernel panic - not syncing", "the kernel stopped", "Read the lines before it: they name the fault.", "Linux, kernel/panic.c", true},

	// Secure Boot.
	{"security violation", "Secure Boot refused a loader: its signature is not trusted by the firmware, or is revoked", "Look whether the certificate that signed the loader is in the firmware's db and not in dbx, and whether its SBAT level is revoked; see docs/secure-boot.md.", "shim, shim.c; EDK II", false},
	{"bad shim signature", "Secure Boot refused a kernel: shim does not trust its signature", "Serve the signed kernel that goes with this shim, or enrol the key that signed it.", "GRUB, kern/efi/sb.c", false},
	{"prohibited by secure boot policy", "Secure Boot refused what GRUB was to load", "Serve files that are signed, and modules that are part of the signed GRUB.", "GRUB, kern/efi/sb.c", false},
	{"loading of unsigned module is rejected", "Secure Boot refused a kernel module that is not signed", "Install a driver that is signed, or have its modules signed by the site's key.", "Linux, kernel/module/signing.c", false},
	{"loading of module with unavailable key is rejected", "Secure Boot refused a kernel module that is signed by a key which the kernel does not trust", "Enrol the certificate that signed it in the firmware's db or as a MOK.", "Linux, kernel/module/signing.c", false},

	// GPUs and their driver (NVRM: Xid (PCI:0000:1b:00): 79, ...).
	{"fallen off the bus", "a GPU has left the PCIe bus (Xid 79)", "Look at power, riser and seat of the GPU that the line names, then at its temperature; cycle the power of the node.", nvidia, false},
	{"timeout waiting for rpc from gsp", "the firmware of a GPU does not answer (Xid 119)", "Cycle the power of the node; replace the GPU that the line names if it happens again.", nvidia, false},
	{"nvrm: xid (", "the NVIDIA driver reports an error of a GPU (Xid)", "Look the number behind the PCI address up in NVIDIA's list of Xid errors; 48, 63, 64, 74, 79, 94 and 95 are of hardware.", nvidia, false},

	// Errors that hardware reports and the system outlives, or not.
	{"machine check events logged", "a CPU, memory or bus reported errors (machine check)", "Read the BMC's event log for CPU, channel and module, and the kernel's lines [Hardware Error].", "Linux, arch/x86/kernel/cpu/mce/core.c", false},
	{"[hardware error]: uncorrected", "the hardware reported an error that was not corrected", "Read the lines beside it and the BMC's event log: they name the part.", "Linux, drivers/firmware/efi/cper.c", false},
	{"[hardware error]: cpu", "a CPU, memory or bus reported an error (machine check)", "Read the BMC's event log for CPU, channel and module.", "Linux, arch/x86/kernel/cpu/mce/core.c", false},
	{"event severity: fatal", "the firmware reported a fatal error of the hardware", "Read the lines beside it and the BMC's event log: they name the part.", "Linux, drivers/firmware/efi/cper.c", false},
	{"memory training fail", "the memory could not be set up", "Reseat or replace the memory module that the line or the BMC's event log names.", "memory reference code of server firmware", false},

	// Network boot of the firmware.
	{"pxe-e05", "the memory of the boot NIC with its settings is damaged", "Write its settings anew with the maker's tool, or replace the NIC.", intelPXE, false},
	{"pxe-e11", "an address was asked for by ARP and nobody answered: the boot server or the gateway", "Look at the gateway that DHCP gives, and at the path from the boot network to this controller.", intelPXE, false},
	{"pxe-e12", "the boot NIC has no link", "Look at the cable and the switch port of the boot NIC.", edkPXE, false},
	{"pxe-e16", "no DHCP server made an offer that the boot NIC can use", "Look at the VLAN of its switch port, at a DHCP relay on the way, and whether its MAC is in the site.", edkPXE, false},
	{"pxe-e18", "the boot server did not answer in time", "Look at TFTP (UDP 69 and high ports) between the boot network and this controller.", edkPXE, false},
	{"pxe-e21", "network boot was cancelled at the console", "Nothing need be done: it boots by its order, or again at the next restart.", edkPXE, false},
	{"pxe-e22", "the boot server's port is closed, or a router refuses the path to it", "Look whether apply runs and serves this network, and at a firewall on the way.", edkPXE, false},
	{"pxe-e23", "the boot server has not got the file", "Look which file was asked for in `ironrail why`, and for another DHCP server that names it.", edkPXE, false},
	{"pxe-e32", "the boot server did not answer over TFTP", "Look at TFTP (UDP 69 and high ports) between the boot network and this controller.", intelPXE, false},
	{"pxe-e3b", "the boot server has not got the file", "Look which file was asked for in `ironrail why`, and for another DHCP server that names it.", intelPXE, false},
	{"pxe-t01", "the boot server has not got the file", "Look which file was asked for in `ironrail why`, and for another DHCP server that names it.", intelPXE, false},
	{"pxe-e51", "no DHCP server answered the boot NIC", "Look at the VLAN of its switch port, and at a DHCP relay on the way.", intelPXE, false},
	{"pxe-e52", "a server for network boot answered and no DHCP server did", "Find out why the DHCP server that gives addresses is silent.", intelPXE, false},
	{"pxe-e53", "a DHCP server answered and named no boot file: it was another than ironrail's", "Find the other DHCP server on the boot network.", intelPXE, false},
	{"pxe-e55", "the server for network boot did not answer at port 4011", "Look at UDP 4011 between the boot network and this controller.", intelPXE, false},
	{"pxe-e61", "the boot NIC has no link", "Look at the cable and the switch port of the boot NIC.", intelPXE, false},
	{"pxe-e74", "a DHCP server sent a boot menu that cannot be read: it was another than ironrail's", "Find the other DHCP server on the boot network.", intelPXE, false},
	{"pxe-e78", "the boot server that a DHCP server named was not found", "Find the other DHCP server on the boot network.", intelPXE, false},
	{"pxe-e79", "the loader is too large for the memory that the firmware has for it", "Boot this hardware by UEFI.", intelPXE, false},
	{"pxe-e99", "the firmware's network boot failed", "Update the firmware of the boot NIC, then look at its link and VLAN.", edkPXE, false},
	{"no bootable device", "the firmware found nothing to boot from", "Look at the boot order, and that network boot is enabled for the boot NIC.", "SeaBIOS, src/boot.c, and other firmware", false},
	{"no configuration methods succeeded", "iPXE got no address on the boot NIC", "Look at the VLAN of its switch port: spanning tree without an edge port, and LACP, keep a port closed for its first seconds.", "iPXE, net/netdevice.c", false},
}

// ExplainConsoleLine says what a line of a console means; false when it is not known.
func ExplainConsoleLine(line string) (ConsoleMessage, bool) {
	low := strings.ToLower(line)
	for _, s := range consoleMessages {
		if strings.Contains(low, s.Text) {
			return s, true
		}
	}
	return ConsoleMessage{}, false
}
