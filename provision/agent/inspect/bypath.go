// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// The names of devices in a path below /sys/devices.
var (
	pciName  = lazyregexp.New(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	nvmeName = lazyregexp.New(`^nvme[0-9]+$`)
	scsiName = lazyregexp.New(`^([0-9]+):([0-9]+):([0-9]+):([0-9]+)$`) // host, channel, target, LUN
	hostName = lazyregexp.New(`^host([0-9]+)$`)
	usbName  = lazyregexp.New(`^[0-9]+-([0-9.]+:[0-9.]+)$`) // an interface
	usbAbove = lazyregexp.New(`^(usb[0-9]+|[0-9]+-[0-9.]+)$`)
)

// byPath returns the name of a disk's link in /dev/disk/by-path as udev forms it
// (path_id of systemd, version 247 and later), by the real path of the disk below
// /sys: the transport nearest to the disk first, then every device above it that
// has a place of its own. "" for a transport that has no such name.
func byPath(f sysfs.FS, name string) string {
	real := f.Real("sys/block", name)
	parts := strings.Split(strings.Trim(real, "/"), "/")
	out, transport := []string{}, false
	prepend := func(text string) { out = append([]string{text}, out...) }
	for i := len(parts) - 2; i >= 0; i-- {
		part := parts[i]
		switch {
		case nvmeName.MatchString(part):
			nsid := f.Text("sys/block", name, "nsid")
			if nsid == "" {
				return ""
			}
			prepend("nvme-" + nsid)
			transport = true
		case scsiName.MatchString(part):
			text, top := scsiPath(f, parts, i)
			if text == "" {
				return ""
			}
			prepend(text)
			transport, i = true, top
		case usbName.MatchString(part):
			prepend("usb-0:" + usbName.FindStringSubmatch(part)[1])
			i = topmost(usbAbove, parts, i) // past the device, and the hubs above it
		case strings.HasPrefix(part, "virtio"):
			transport = true
		case pciName.MatchString(part):
			prepend("pci-" + part)
			i = topmost(pciName, parts, i) // past the bridges above it
		}
	}
	if !transport || len(out) == 0 || !strings.HasPrefix(out[0], "pci-") {
		return ""
	}
	return strings.Join(out, "-")
}

// topmost is the index of the uppermost of the parts directly above parts[i] whose
// names are of a form; i when there is none.
func topmost(form *lazyregexp.Regexp, parts []string, i int) int {
	for i > 0 && form.MatchString(parts[i-1]) {
		i--
	}
	return i
}

// scsiPath names the SCSI device at parts[i], and returns the index of the topmost
// device that the name stands for.
func scsiPath(f sysfs.FS, parts []string, i int) (string, int) {
	id := scsiName.FindStringSubmatch(parts[i])
	lun := lunText(id[4])
	host := i
	for host > 0 && !hostName.MatchString(parts[host]) {
		host--
	}
	if host == 0 || i < 2 {
		return "", i
	}
	above := parts[host-1] // the controller, or its port
	for j := host; j < i; j++ {
		switch {
		case strings.HasPrefix(parts[j], "rport-"):
			if port := f.Text("sys/class/fc_transport", parts[i-1], "port_name"); port != "" {
				return "fc-" + port + "-" + lun, host
			}
			return "", i
		case strings.HasPrefix(parts[j], "end_device-"):
			return sasPath(f, parts, j, lun), host
		case strings.HasPrefix(parts[j], "session"):
			return "", i // iSCSI: no disk of this chassis
		}
	}
	if strings.HasPrefix(above, "ata") {
		port := f.Text("sys/class/ata_port", above, "port_no")
		switch {
		case port == "":
			return "", i
		case id[2] != "0": // behind a port multiplier
			return fmt.Sprintf("ata-%s.%s.0", port, id[2]), host
		}
		return fmt.Sprintf("ata-%s.%s", port, id[3]), host
	}
	// Any other host: its number among those of the same controller.
	number, least := hostNumber(parts[host]), hostNumber(parts[host])
	for _, sibling := range f.Names(parts[:host]...) {
		if hostName.MatchString(sibling) {
			least = min(least, hostNumber(sibling))
		}
	}
	return fmt.Sprintf("scsi-%d:%s:%s:%s", number-least, id[2], id[3], id[4]), host
}

func hostNumber(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "host")) // the pattern was matched
	return n
}

// lunText writes a LUN as udev does: those of 256 and above in the eight bytes of
// SCSI.
func lunText(text string) string {
	lun, err := strconv.ParseUint(text, 10, 32)
	if err != nil || lun < 256 {
		return "lun-" + text
	}
	return fmt.Sprintf("lun-0x%04x%04x00000000", lun&0xffff, lun>>16&0xffff)
}

// sasPath names a SAS or SATA disk below the end device at parts[j]: by the phy it
// is plugged to, of an expander or of the controller, or by its own address where
// several phys lead to it.
func sasPath(f sysfs.FS, parts []string, j int, lun string) string {
	device := func(name, attr string) string { return f.Text("sys/class/sas_device", name, attr) }
	port := parts[j-1]
	if f.Text("sys/class/sas_port", port, "num_phys") != "1" {
		address := device(parts[j], "sas_address")
		if address == "" {
			return ""
		}
		return "sas-" + address + "-" + lun
	}
	phy := device(parts[j], "phy_identifier")
	if phy == "" || j < 2 {
		return ""
	}
	if expander := device(parts[j-2], "sas_address"); expander != "" {
		return "sas-exp" + expander + "-phy" + phy + "-" + lun
	}
	return "sas-phy" + phy + "-" + lun
}

// bay returns the slot that a disk sits in as its enclosure names it (SES, the
// driver ses), else that of the PCIe slot that the disk itself is plugged into; ""
// when neither is known. A slot of a controller above the disk is none of the disk.
func bay(f sysfs.FS, name string) string {
	real := f.Real("sys/block", name)
	device := path.Dir(path.Dir(real)) // .../0:0:1:0/block/sda
	for _, enclosure := range f.Names("sys/class/enclosure") {
		for _, component := range f.Names("sys/class/enclosure", enclosure) {
			if at := f.Real("sys/class/enclosure", enclosure, component, "device"); at == "" || at != device {
				continue
			}
			if slot := f.Text("sys/class/enclosure", enclosure, component, "slot"); slot != "" {
				return slot
			}
			return component
		}
	}
	if !nvmeName.MatchString(path.Base(path.Dir(real))) && !strings.Contains(real, "/virtio") {
		return ""
	}
	function := sysfs.PCI(real)
	for _, slot := range f.Names("sys/bus/pci/slots") {
		if at := f.Text("sys/bus/pci/slots", slot, "address"); at != "" && strings.HasPrefix(function, at+".") {
			return slot
		}
	}
	return ""
}
