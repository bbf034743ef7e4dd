// SPDX-License-Identifier: Apache-2.0

package lspci

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

var (
	// slotLine begins a device of -vmm. A terminal makes blanks of its tab.
	slotLine = lazyregexp.New(`(?m)^[ \t]*Slot:[ \t]+((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])[ \t]*\r?$`)
	// machineLine is a device of -mm: its address and its class, vendor and device,
	// each quoted.
	machineLine = lazyregexp.New(`(?m)^[ \t]*((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ("[^"\n]*" "[^"\n]*" "[^"\n]*".*?)[ \t]*\r?$`)
	machineCut  = lazyregexp.New(`^(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] "`)
	words       = lazyregexp.New(`"([^"]*)"|(\S+)`)
	// named is a name with its number behind it (-nn), or a number alone (-n).
	named = lazyregexp.New(`^(?:(.*?) ?\[([0-9a-f]{4})\]|([0-9a-f]{4}))$`)
)

// field puts one value of the machine readable forms into a device: of -vmm by its
// tag, of -mm by its place.
func (d *Device) field(tag, value string) {
	name, id := value, ""
	if m := named.FindStringSubmatch(value); m != nil {
		name, id = m[1], m[2]+m[3]
	}
	switch tag {
	case "Class":
		d.Class, d.ClassID = name, id
	case "Vendor":
		d.Name, d.VendorID = name, id
	case "Device":
		d.Name, d.DeviceID, d.ids = strings.TrimSpace(d.Name+" "+name), id, id != ""
	case "SVendor":
		d.Subsystem, d.SubsystemVendor = name, id
	case "SDevice":
		d.Subsystem, d.SubsystemDevice = strings.TrimSpace(d.Subsystem+" "+name), id
	case "PhySlot":
		d.Slot = value
	case "Rev":
		d.Revision = value
	case "Driver":
		d.Driver = value
	case "Module":
		if len(d.Modules) > 4096 { // no device has so many
			return
		}
		d.Modules = strings.TrimPrefix(d.Modules+", "+value, ", ")
	case "NUMANode":
		d.NUMA = parseIndex(value)
	case "IOMMUGroup":
		d.IOMMU = parseIndex(value)
	}
}

// parseIndex returns a small number; nil when it is none.
func parseIndex(value string) *int {
	n, err := strconv.Atoi(value)
	if err != nil {
		return nil
	}
	return &n
}

// machine reads -vmm and -mm: a tag and its value on each line, or one line a
// device.
func (r *reader) machine(text string) {
	tag, value, tagged := strings.Cut(text, ":")
	tagged = tagged && (value == "" || value[0] == ' ' || value[0] == '\t')
	switch {
	case machineLine.MatchString(text):
		m := machineLine.FindStringSubmatch(text)
		r.begin(m[1])
		r.columns(&r.content.Devices[len(r.content.Devices)-1], words.FindAllStringSubmatch(m[2], -1))
		r.whole = r.line
	case machineCut.MatchString(text):
		r.problems.Add(tool.Truncated, r.line, "The line of a device ends before its name.")
		r.whole = r.line
	case tag == "Slot" && slotLine.MatchString(text):
		r.begin(strings.TrimSpace(value))
		r.whole = r.line
	case tagged && len(r.content.Devices) > 0:
		r.content.Devices[len(r.content.Devices)-1].field(tag, strings.TrimSpace(value))
		r.whole = r.line
	}
}

// columns are those of -mm: class, vendor, device, then options such as -ra1, then
// the subsystem's vendor and device.
func (r *reader) columns(d *Device, all [][]string) {
	tags := []string{"Class", "Vendor", "Device", "SVendor", "SDevice"}
	for _, w := range all {
		switch {
		case strings.HasPrefix(w[2], "-r"):
			d.Revision = w[2][2:]
		case strings.HasPrefix(w[2], "-"):
		case len(tags) > 0:
			if w[1] != "" {
				d.field(tags[0], w[1])
			}
			tags = tags[1:]
		}
	}
}

// begin adds a device of an address.
func (r *reader) begin(address string) {
	if strings.Count(address, ":") == 1 {
		address = "0000:" + address
	}
	if before, again := r.at[address]; again {
		r.problems.Add(tool.Inconsistent, r.line, "Device %s is here and on line %d: outputs of two nodes are in one file.", address, before)
	}
	r.at[address] = r.line
	r.content.Devices = append(r.content.Devices, Device{Address: address, line: r.line})
}
