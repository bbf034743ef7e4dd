// SPDX-License-Identifier: Apache-2.0

package lspci

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

var (
	link = lazyregexp.New(`Speed (unknown|[0-9.]+GT/s)(?: \(([a-z?]+)\))?, Width x([0-9]+)(?: \(([a-z?]+)\))?`)
	// older is a link as pciutils 2 prints it, by the key "Link" alone: what it can
	// do and what it does.
	older   = lazyregexp.New(`^(Supported )?Speed (unknown|[0-9.]+)(?:Gb/s)?, Width x([0-9]+)(?:,|$)`)
	request = lazyregexp.New(`^MaxPayload ([0-9]+) bytes, MaxReadReq ([0-9]+) bytes$`)
	flag    = lazyregexp.New(`([A-Za-z0-9_]+)([+-])`)
)

// detail reads one indented line of a device.
func (r *reader) detail(d *Device, text string) {
	key, value, found := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	if strings.HasPrefix(text, "MaxPayload") {
		m := request.FindStringSubmatch(text)
		if m == nil {
			return
		}
		d.MaxPayload, d.MaxReadRequest = parseNumber(m[1]), parseNumber(m[2])
		return
	}
	if strings.HasPrefix(text, "!!! Unknown header type") {
		r.problems.Add(tool.Failed, r.line, "Device %s does not answer: %s", d.Address, text)
		r.whole = r.line
		return
	}
	if !found {
		return
	}
	switch key {
	case "Subsystem", "DeviceName":
		if key == "Subsystem" {
			d.subsystem(value)
		}
	case "Physical Slot":
		d.Slot = value
	case "NUMA node":
		d.NUMA = r.index(key, value)
	case "IOMMU group":
		d.IOMMU = r.index(key, value)
	case "Kernel driver in use":
		d.Driver, r.whole = value, r.line
	case "Kernel modules":
		d.Modules, r.whole = value, r.line
	case "Capabilities":
		d.Denied = d.Denied || value == "<access denied>"
		if d.Denied {
			r.whole = r.line
		}
	default:
		r.capability(d, key, value)
	}
}

// capability reads a line of a PCI Express capability.
func (r *reader) capability(d *Device, key, value string) {
	switch key {
	case "Link", "Device":
		r.older(d, value)
	case "LnkCap":
		d.LinkCapability = r.parseLink(key, value)
	case "LnkSta":
		d.LinkStatus = r.parseLink(key, value)
	case "ACSCap", "ACSCtl":
		if d.ACS == nil {
			d.ACS = &ACS{}
		}
		if key == "ACSCap" {
			d.ACS.Capability = parseFlags(value)
		} else {
			d.ACS.Control = parseFlags(value)
		}
	case "UESta", "CESta":
		if d.AER == nil {
			d.AER = &AER{Uncorrectable: []string{}, Correctable: []string{}}
		}
		if key == "UESta" {
			d.AER.Uncorrectable = listSetFlags(value)
		} else {
			d.AER.Correctable = listSetFlags(value)
		}
	}
}

// older reads lines of pciutils 2: "Supported Speed 2.5Gb/s, Width x8, ASPM L0s,
// Port 8", "Speed 2.5Gb/s, Width x4", "MaxPayload 128 bytes, MaxReadReq 512 bytes".
func (r *reader) older(d *Device, value string) {
	if m := request.FindStringSubmatch(value); m != nil {
		d.MaxPayload, d.MaxReadRequest = parseNumber(m[1]), parseNumber(m[2])
	}
	m := older.FindStringSubmatch(value)
	if m == nil {
		return
	}
	l := &Link{Width: parseNumber(m[3])}
	l.Speed, _ = strconv.ParseFloat(m[2], 64)
	if m[1] != "" {
		d.LinkCapability = l
	} else {
		d.LinkStatus = l
	}
}

// parseLink reads "Port #0, Speed 32GT/s, Width x16, ASPM not supported" and
// "Speed 16GT/s (downgraded), Width x16 (ok)".
func (r *reader) parseLink(key, value string) *Link {
	m := link.FindStringSubmatch(value)
	if m == nil {
		r.problems.Add(tool.Truncated, r.line, "%s %q has no speed and width.", key, value)
		return nil
	}
	l := Link{Width: parseNumber(m[3])}
	l.Speed, _ = strconv.ParseFloat(strings.TrimSuffix(m[1], "GT/s"), 64)
	var notes []string
	for i, what := range map[int]string{2: "speed ", 4: "width "} {
		if m[i] != "" && m[i] != "ok" {
			notes = append(notes, what+m[i])
		}
	}
	if len(notes) == 2 {
		notes = []string{"speed " + m[2], "width " + m[4]}
	}
	l.Note = strings.Join(notes, ", ")
	return &l
}

// subsystem reads "NVIDIA Corporation Device 1463" with or without numbers.
func (d *Device) subsystem(value string) {
	d.Subsystem = value
	if m := ids.FindStringSubmatch(value); m != nil {
		d.Subsystem, d.SubsystemVendor, d.SubsystemDevice = m[1], m[2], m[3]
	}
}

func (r *reader) index(key, value string) *int {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		r.problems.Add(tool.Truncated, r.line, "%s %q is no number.", key, value)
		return nil
	}
	i := int(n)
	return &i
}

// parseFlags reads "SrcValid+ TransBlk-".
func parseFlags(text string) map[string]bool {
	on := map[string]bool{}
	for _, m := range flag.FindAllStringSubmatch(text, -1) {
		on[m[1]] = m[2] == "+"
	}
	return on
}

// listSetFlags returns the flags that are on, in their order.
func listSetFlags(text string) []string {
	on := []string{}
	for _, m := range flag.FindAllStringSubmatch(text, -1) {
		if m[2] == "+" {
			on = append(on, m[1])
		}
	}
	return on
}

func parseNumber(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}
