// SPDX-License-Identifier: Apache-2.0

// Package lspci reads what lspci prints: the devices of the PCI buses, plain, with
// numbers (-n, -nn), with drivers (-k), with their capabilities (-v to -vvv), in
// the forms for programs (-mm, -vmm), and as a tree (-t, -tv).
// Source: the manual page lspci(8), and lspci.c and ls-caps.c of pciutils.
package lspci

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Name is the kind's name.
const Name = "lspci"

// Devices is the content.
type Devices struct {
	Devices []Device `json:"devices"`
}

// Device is one function. What was not asked for, or not readable, is empty.
type Device struct {
	Address         string `json:"address"` // domain:bus:device.function, such as 0000:17:00.0
	Class           string `json:"class,omitempty"`
	ClassID         string `json:"class_id,omitempty"`  // such as 0302
	Name            string `json:"name,omitempty"`      // vendor and device in words
	VendorID        string `json:"vendor_id,omitempty"` // such as 10de
	DeviceID        string `json:"device_id,omitempty"`
	Revision        string `json:"revision,omitempty"`
	Subsystem       string `json:"subsystem,omitempty"`
	SubsystemVendor string `json:"subsystem_vendor_id,omitempty"`
	SubsystemDevice string `json:"subsystem_device_id,omitempty"`
	Slot            string `json:"physical_slot,omitempty"`
	NUMA            *int   `json:"numa_node,omitempty"`
	IOMMU           *int   `json:"iommu_group,omitempty"`
	Driver          string `json:"driver,omitempty"`
	Modules         string `json:"modules,omitempty"`
	Parent          string `json:"parent,omitempty"` // of a tree, and of -PP: the bridge that it is below; empty: on a root bus

	LinkCapability *Link `json:"link_capability,omitempty"`
	LinkStatus     *Link `json:"link_status,omitempty"`
	Downgraded     bool  `json:"downgraded,omitempty"` // slower or narrower than the device can; idle GPUs slow down by themselves
	MaxPayload     int   `json:"max_payload_bytes,omitempty"`
	MaxReadRequest int   `json:"max_read_request_bytes,omitempty"`

	ACS    *ACS `json:"acs,omitempty"`
	AER    *AER `json:"aer,omitempty"`
	Denied bool `json:"access_denied,omitempty"` // capabilities: only root may read them

	line int
	ids  bool
}

// Link is LnkCap or LnkSta. Speed is in GT/s; 0 is not known.
type Link struct {
	Speed float64 `json:"speed_gts"`
	Width int     `json:"width"`
	Note  string  `json:"note,omitempty"` // what lspci adds: "speed downgraded"
}

// ACS is access control between the ports of a PCIe switch: what it can do and
// what is on, by lspci's names such as ReqRedir.
type ACS struct {
	Capability map[string]bool `json:"capability,omitempty"`
	Control    map[string]bool `json:"control,omitempty"`
}

// AER is the errors that a device has noted, by lspci's names.
type AER struct {
	Uncorrectable []string `json:"uncorrectable"`
	Correctable   []string `json:"correctable"`
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		if hex.Match(data) && head.Match(data) {
			return 92 // -x: a launcher's labels look like its addresses, and are none
		}
		if slotLine.Match(data) || machineLine.Match(data) || isTree(data) {
			return 90
		}
		for _, m := range head.FindAllSubmatch(data[:min(len(data), 32<<10)], 20) {
			if classes.Match(m[5]) {
				return 90
			}
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	head  = lazyregexp.New(`(?m)^[ \t]*(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7]) ([A-Z0-9][^:\n]*?|[0-9a-f]{4}): (\S.*?)[ \t]*\r?$`)
	cut   = lazyregexp.New(`^(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7](?:\s|$)`)
	extra = lazyregexp.New(`^(.*?)(?: \(rev ([0-9a-fA-F]{2})\))?(?: \(prog-if [^)]*\)?)?$`)
	ids   = lazyregexp.New(`^(?:(.*) )?\[?([0-9a-f]{4}):([0-9a-f]{4})\]?$`)
	hex   = lazyregexp.New(`(?m)^[ \t]*[0-9a-f]{2,3}:(?: [0-9a-f]{2}){16}[ \t]*\r?$`)
	// classes are words of which the name of every class of pci.ids has one.
	classes = lazyregexp.New(`^[0-9a-f]{4}$|\[[0-9a-f]{4}\]$|(?i)bridge|controller|peripheral|device|memory|accelerator|processor|interface|decoder|adapter|instrumentation|class|modem|bus|link|port|infiniband|fibre channel|firewire|bluetooth|counters|timer|clock|signal|encryption|synchronizer|canbus|^PIC$`)
	class   = lazyregexp.New(`^(.*) \[([0-9a-f]{4})\]$`)
	// bare is a class of -n in old versions.
	bare = lazyregexp.New(`^(?:Class )?([0-9a-f]{4})$`)
	// path is the way to a device through each bridge: of -PP with the bus of each,
	// and of -P with devices and functions only.
	path = lazyregexp.New(`^((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])((?:/(?:[0-9a-f]{2}:)?[0-9a-f]{2}\.[0-7])+)( .*)$`)
)

// Parse reads any of the forms.
func Parse(data []byte) (*Devices, tool.Problems, error) {
	r := reader{content: Devices{Devices: []Device{}}, at: map[string]int{}}
	read := r.read
	if isTree(data) {
		return r.tree(data)
	}
	if slotLine.Match(data) || machineLine.Match(data) {
		read = r.machine
	}
	for text := range strings.SplitSeq(string(data), "\n") {
		r.line++
		if text = strings.TrimSpace(text); text == "" {
			r.whole = r.line
			continue
		}
		read(text)
	}
	if len(r.content.Devices) == 0 {
		return nil, nil, errors.New("it has no device")
	}
	r.finish(len(data) > 0 && data[len(data)-1] == '\n')
	return &r.content, r.problems, nil
}

type reader struct {
	content  Devices
	problems tool.Problems
	line     int
	whole    int    // the last line that was understood to its end
	cap      string // the capability whose lines are read
	at       map[string]int
}

func (r *reader) read(text string) {
	address := strings.IndexByte(text[:min(len(text), 9)], ':') >= 2 && strings.IndexByte("0123456789abcdefABCDEF", text[0]) >= 0
	if address {
		parent := ""
		if m := path.FindStringSubmatch(text); m != nil {
			if parent, text = alongPath(m); text == "" {
				if len(r.problems) >= mostProblems {
					return
				}
				r.problems.Add(tool.Missing, r.line, "The bus of the device at %s%s is not in the output: -P leaves it out.", m[1], m[2])
				return
			}
		}
		if m := head.FindStringSubmatch(text); m != nil {
			r.device(m)
			r.content.Devices[len(r.content.Devices)-1].Parent = parent
			return
		}
	}
	switch {
	case address && cut.MatchString(text):
		r.problems.Add(tool.Truncated, r.line, "The line of a device ends before its name.")
		r.whole = r.line
	case len(r.content.Devices) > 0:
		r.detail(&r.content.Devices[len(r.content.Devices)-1], text)
	}
}

// alongPath returns the bridge above a device and the line without the way to it;
// empty where the way has no bus.
func alongPath(m []string) (parent, text string) {
	steps := strings.Split(m[1]+m[2], "/")
	last, before := steps[len(steps)-1], steps[len(steps)-2]
	if strings.Count(last, ":") == 0 {
		return "", ""
	}
	domain := "0000:"
	if i := strings.LastIndexByte(m[1], ':') - 2; i > 0 {
		domain = m[1][:i]
	}
	if strings.Count(before, ":") == 1 {
		before = domain + before
	}
	return before, domain + last + m[3]
}

// device reads the first line of a device.
func (r *reader) device(m []string) {
	domain := m[1]
	if domain == "" {
		domain = "0000"
	}
	d := Device{Address: strings.ToLower(fmt.Sprintf("%s:%s:%s.%s", domain, m[2], m[3], m[4])), Class: m[5], line: r.line}
	if c := bare.FindStringSubmatch(m[5]); c != nil {
		d.Class, d.ClassID = "", c[1]
	} else if c := class.FindStringSubmatch(m[5]); c != nil {
		d.Class, d.ClassID = c[1], c[2]
	}
	e := extra.FindStringSubmatch(m[6])
	d.Name, d.Revision = e[1], e[2]
	if i := ids.FindStringSubmatch(d.Name); i != nil {
		d.Name, d.VendorID, d.DeviceID, d.ids = i[1], i[2], i[3], true
	}
	if before, again := r.at[d.Address]; again {
		r.problems.Add(tool.Inconsistent, r.line, "Device %s is here and on line %d: outputs of two nodes are in one file.", d.Address, before)
	}
	r.at[d.Address], r.cap = r.line, ""
	if last := m[6][len(m[6])-1]; last == ')' || d.ids && (last == ']' || d.Class == "") {
		r.whole = r.line
	}
	r.content.Devices = append(r.content.Devices, d)
}

// finish notes what could not be read, and an end within a line.
func (r *reader) finish(newline bool) {
	denied, first := 0, 0
	numbers := 0
	for i := range r.content.Devices {
		d := &r.content.Devices[i]
		if d.Denied {
			if denied++; first == 0 {
				first = d.line
			}
		}
		if d.ids {
			numbers++
		}
		if d.Revision == "ff" {
			r.problems.Add(tool.Failed, d.line, "Device %s answers with ones only: it is off the bus, or without power.", d.Address)
		}
		r.link(d)
	}
	if denied > 0 {
		r.problems.Add(tool.Missing, first, "The capabilities of %d of %d devices were not readable: lspci ran without the rights of root, so that links, ACS and AER are not known.", denied, len(r.content.Devices))
	}
	last := r.content.Devices[len(r.content.Devices)-1]
	switch {
	case !newline && r.whole != r.line:
		r.problems.Add(tool.Truncated, r.line, "The output ends within its last line.")
	case numbers > 0 && numbers == len(r.content.Devices)-1 && !last.ids:
		r.problems.Add(tool.Truncated, last.line, "Device %s has no numbers, and all others have.", last.Address)
	}
}

// link compares what a link runs at with what the device can.
func (r *reader) link(d *Device) {
	c, s := d.LinkCapability, d.LinkStatus
	if c == nil || s == nil {
		if c != nil {
			r.problems.Add(tool.Missing, d.line, "Device %s has LnkCap and no LnkSta.", d.Address)
		}
		return
	}
	// Width 0 is a port that nothing is connected to.
	d.Downgraded = s.Width > 0 && (strings.Contains(s.Note, "downgraded") || s.Speed < c.Speed || s.Width < c.Width)
	if s.Speed > c.Speed && c.Speed > 0 && !strings.Contains(s.Note, "overdriven") || s.Width > c.Width && !strings.Contains(s.Note, "strange") {
		r.problems.Add(tool.Inconsistent, d.line, "The link of %s runs at %g GT/s x%d, more than the %g GT/s x%d that it can.", d.Address, s.Speed, s.Width, c.Speed, c.Width)
	}
}

// Summary names devices whose link is slower or narrower than they can, those
// with noted errors, and counts the rest.
func (d *Devices) Summary() []string {
	lines := []string{fmt.Sprintf("%d devices", len(d.Devices))}
	for _, v := range d.Devices {
		if v.Downgraded {
			lines = append(lines, fmt.Sprintf("%s %s runs at %g GT/s x%d of %g GT/s x%d", v.Address, v.Name, v.LinkStatus.Speed, v.LinkStatus.Width, v.LinkCapability.Speed, v.LinkCapability.Width))
		}
		if v.AER != nil && len(v.AER.Uncorrectable) > 0 {
			lines = append(lines, fmt.Sprintf("%s %s has noted uncorrectable errors: %s", v.Address, v.Name, strings.Join(v.AER.Uncorrectable, ", ")))
		}
	}
	return lines
}
