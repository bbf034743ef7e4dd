// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/modalias"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// checkDrivers refuses an image that has no driver for what the node boots and works
// with: boot NIC, disk controller, array, rails. It asks before anything is erased: the
// ramdisk has drivers of its own choice, and a node that came up by them need not come up
// from its disk. That a driver is there does not say that it works.
func (s *Stage) checkDrivers(run stage.Run, n *inventory.Node, hw wire.Hardware, disks []wire.Disk) error {
	if s.w.Images == nil {
		return nil
	}
	img, err := s.w.Images.Image(n.Image.Name)
	if err != nil {
		return err
	}
	if img.Drivers == nil {
		run.Emit(event.Event{Type: event.StepProgress, Text: "image " + n.Image.Name + " does not say which drivers it has: not judged"})
		return nil
	}
	list, err := img.Drivers()
	if err != nil {
		return fmt.Errorf("drivers of image %s: %w", n.Image.Name, err)
	}
	missing := missingDrivers(list, n, hw, disks)
	if len(missing) == 0 {
		return nil
	}
	return errkind.New(errkind.Unsupported, "image %s has no driver for %s", n.Image.Name, strings.Join(missing, ", ")).
		Do("Add to the image the kernel package that has it (Ubuntu: linux-modules-extra; Debian: linux-image-amd64 in place of the cloud kernel) and the linux-firmware of the device, build it, and run `ironrail apply` again. Nothing was erased.")
}

// missingDrivers says what a kernel has no driver for.
func missingDrivers(list *modalias.List, n *inventory.Node, hw wire.Hardware, disks []wire.Disk) (missing []string) {
	asked := map[string]bool{"": true} // what is on no PCI bus is not judged
	need := func(what, address string) {
		if asked[address] {
			return
		}
		asked[address] = true
		i := slices.IndexFunc(hw.PCI, func(p wire.PCI) bool { return p.Address == address })
		if i < 0 {
			return
		}
		p := hw.PCI[i]
		if !list.HasDriver(modalias.Function{Vendor: p.Vendor, Device: p.Device, Class: p.Class, Alias: p.Modalias, Driver: p.Driver}) {
			missing = append(missing, fmt.Sprintf("%s %s (%s:%s)", what, p.Address, p.Vendor, p.Device))
		}
	}
	for _, nic := range hw.NICs {
		if nic.MAC == n.BootMAC && !n.BootMAC.IsZero() {
			need("boot NIC", nic.PCI)
		}
	}
	for _, d := range disks {
		need("the controller of disk "+d.Name, d.PCI)
	}
	missing = append(missing, missingModules(list, n.Disks)...)
	if bringsNICDrivers(n) {
		return missing
	}
	for _, nic := range n.Hardware.NICs {
		if nic.Fabric == nil {
			continue
		}
		for i, p := range nic.Ports {
			need(fmt.Sprintf("nic %s/%d of fabric %s at", nic.Name, i, nic.Fabric.Name), p.PCI)
		}
	}
	return missing
}

// missingModules says what of a disk layout a kernel cannot do.
func missingModules(list *modalias.List, l *inventory.DiskLayout) (missing []string) {
	if l == nil {
		return nil
	}
	for _, level := range []int{1, 10} {
		if module := fmt.Sprintf("raid%d", level); l.RAID == level && !list.HasModule(module) {
			missing = append(missing, "an array of RAID "+fmt.Sprint(level)+" (module "+module+")")
		}
	}
	if slices.Contains(l.Storage(), inventory.StorageLVM) && !list.HasModule("dm_mod") {
		missing = append(missing, "volume groups (module dm-mod)")
	}
	if slices.Contains(l.Storage(), inventory.StorageTPM2) && !list.HasModule("dm_crypt") {
		missing = append(missing, "encrypted volumes (module dm-crypt)")
	}
	if slices.Contains(l.Storage(), inventory.StorageXFS) && !list.HasModule("xfs") {
		missing = append(missing, "XFS (module xfs)")
	}
	return missing
}

// bringsNICDrivers reports whether a driver stack of a node brings kernel modules for the
// NICs of its fabrics: those of the image are not what they run with.
func bringsNICDrivers(n *inventory.Node) bool {
	return slices.ContainsFunc(n.Drivers, func(d *inventory.Driver) bool { return d.Kind == "doca" })
}
