// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Profile is what of a node decides how long its steps take.
type Profile struct {
	Hardware string       // name of its hardware block: nodes of one are alike in the history
	Vendor   string       // as SMBIOS says it
	Product  string       // as SMBIOS says it
	Boot     string       // bios, uefi or uefi-http
	GPUs     int          // of the chassis
	Memory   unit.Bytes   // of the chassis
	NIC      unit.BitRate // of the NIC that boots; zero: not given
	Disk     string       // type of the disk that is installed on: nvme, sata, sas, virtio
	// NoFirmware says that the ramdisk starts the system: one in memory, or by kexec.
	NoFirmware bool
}

// Profiles returns the profile of every node of the site that has a hardware block.
func Profiles(inv *inventory.Inventory) map[string]Profile {
	out := make(map[string]Profile, len(inv.Nodes))
	for _, n := range inv.Nodes {
		if n.Hardware != nil {
			out[n.Name] = profileOf(n)
		}
	}
	return out
}

func profileOf(n *inventory.Node) Profile {
	h := n.Hardware
	p := Profile{Hardware: h.Name, Vendor: h.Vendor, Product: h.Product, Boot: string(h.Boot), GPUs: h.GPUCount(), Memory: h.Memory.Size, NoFirmware: n.Diskless() || h.Kexec}
	if nic, ok := h.BootNIC(); ok {
		p.NIC = nic.Speed
	}
	if n.Disks != nil {
		if d, ok := h.Disk(n.Disks.On); ok {
			p.Disk = d.Type
		}
	}
	return p
}

// ImageOf returns how much an image moves. Chunks of zeroes are not written as
// such, and not sent.
func ImageOf(m manifest.Manifest) Image {
	out := Image{Wire: unit.Bytes(m.Blob)}
	for _, c := range m.Chunks {
		if !c.Zero() {
			out.Disk += unit.Bytes(c.Plain)
		}
	}
	return out
}

// KindOf names what a step does, the same for all nodes: install.write,
// drivers.rdma, validate.pair; site.image.os for things of the site.
func KindOf(s plan.Step) string { return kindOf(s.ID, s.Subject.Kind) }

func kindOf(id plan.StepID, on subject.Kind) string {
	id = id.Base()                                                // a wave is no other kind of work
	kind := string(id[strings.LastIndexByte(string(id), '/')+1:]) // names of PDUs and switches have a slash
	if on == subject.Site {
		return "site." + kind
	}
	return kind
}

// hardwareOf joins the hardware names of the nodes that a step works on.
func hardwareOf(members []subject.ID, profiles map[string]Profile) string {
	if len(members) == 1 && members[0].Kind == subject.Node {
		return profiles[members[0].Name].Hardware
	}
	var names []string
	for _, m := range members {
		if h := profiles[m.Name].Hardware; m.Kind == subject.Node && h != "" && !slices.Contains(names, h) {
			names = append(names, h)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "+")
}

// membersOf lists what a step works on.
func membersOf(s plan.Step) []subject.ID {
	if s.Group != nil {
		return s.Group.Members
	}
	return []subject.ID{s.Subject}
}
