// SPDX-License-Identifier: Apache-2.0

package qemu

// BootNIC is the QEMU id of the management NIC, whose bootindex decides.
const BootNIC = "nic0"

// The boot indices: the system disk has diskIndex always, the NIC stands before or
// behind it, further disks behind both.
const (
	netFirst  = 0 // bootindex of the NIC for a netboot
	diskIndex = 1
	diskFirst = 2 // bootindex of the NIC otherwise
)

// Source is what a boot tries first.
type Source string

// The two sources; each falls back on the other, as real firmware does.
const (
	Net  Source = "net"
	Disk Source = "disk"
)

// SourceOf returns what a machine boots first while its NIC has this index.
func SourceOf(nicIndex int) Source {
	if nicIndex == netFirst {
		return Net
	}
	return Disk
}

// BootOrder is the "boot once" of a BMC: a boot device asked for holds for the
// next power on or reset, whichever comes first, and is then forgotten. It has
// no lock; its owner has. The zero BootOrder asks for nothing.
type BootOrder struct{ asked string }

// Ask remembers the device of IPMI's boot flags in ipmi_sim's words: none, pxe,
// default (the disk), cdrom, bios. Only pxe changes the order.
func (b *BootOrder) Ask(device string) { b.asked = device }

// Asked returns the device asked for and not yet used, "none" if there is none.
func (b *BootOrder) Asked() string {
	if b.asked == "" {
		return "none"
	}
	return b.asked
}

// Take uses the request up and returns the NIC's bootindex for this one boot.
func (b *BootOrder) Take() int {
	asked := b.asked
	b.asked = ""
	if asked == "pxe" {
		return netFirst
	}
	return diskFirst
}
