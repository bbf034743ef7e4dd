// SPDX-License-Identifier: Apache-2.0

// Package quirk is the table of how BMCs differ from their specifications where a
// driver cannot find out by itself: one row for each condition, with its source. It
// decides nothing: drivers tell what they know of a BMC and act on the set they get.
package quirk

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Set is the quirks of one BMC. The zero value is a BMC as specified.
type Set uint16

// The quirks.
const (
	// AnyMatch: changes over Redfish carry "If-Match: *".
	AnyMatch Set = 1 << iota
	// SerialIsSKU: the node's serial number, as on its label and in SMBIOS type 1,
	// is Redfish's property SKU; SerialNumber is the mainboard's.
	SerialIsSKU
	// SlotAccounts: accounts are slots: one is made by filling an empty one, and
	// slot 1 is the BMC's own.
	SlotAccounts
	// NoPXE: the firmware of this product boots from the network by UEFI HTTP only.
	NoPXE
	// NoContinuous: a boot override of Redfish lasts for one boot only.
	NoContinuous
	// MinimalBoot: the mode of Redfish's boot override must not be sent.
	MinimalBoot
	// NoRestart: Redfish's ForceRestart can hang the node; off, wait, on is used instead.
	NoRestart
	// DeviceOnly: of IPMI's boot flags only the boot device is kept; the valid, UEFI
	// and persistent bits read back as zero whatever was written.
	DeviceOnly
	// UEFIDisk24: IPMI's boot device selector for "disk, UEFI" is 24h.
	UEFIDisk24
	// LongDwell: a node stays off for 10 s in a power cycle.
	LongDwell
	// NoDwell: power may return at once.
	NoDwell
)

// Has reports whether a quirk is in the set.
func (s Set) Has(q Set) bool { return s&q != 0 }

// How long a node stays off in a power cycle, so that supplies discharge and NICs
// and DPUs lose their state too.
const (
	dwell     = 5 * time.Second
	longDwell = 10 * time.Second
)

// Dwell returns the off time of a power cycle.
func (s Set) Dwell() time.Duration {
	switch {
	case s.Has(NoDwell):
		return 0
	case s.Has(LongDwell):
		return longDwell
	}
	return dwell
}

// Firmware is the revision of Get Device ID (IPMI 2.0, 20.1).
type Firmware struct{ Major, Minor uint8 }

// String writes the revision as ipmitool does: 9.08.
func (f Firmware) String() string { return fmt.Sprintf("%d.%02d", f.Major, f.Minor) }

func (f Firmware) less(o Firmware) bool {
	return f.Major < o.Major || f.Major == o.Major && f.Minor < o.Minor
}

// BMC is what a driver knows of one: numbers over IPMI, texts over Redfish.
type BMC struct {
	Manufacturer uint32 // IANA enterprise number of Get Device ID; 0: not IPMI
	Product      uint16 // product id of Get Device ID
	Firmware     Firmware
	Vendor       string // Vendor of Redfish's service root, or Manufacturer of the system; "": not Redfish
	Model        string // Product of the service root, or Model of the system
}

// row is one line of the table: which BMCs, what, and where it was learned. A row
// with numbers and a vendor is about both protocols.
type row struct {
	name          string
	manufacturers []uint32
	product       uint16   // 0: every product of the manufacturers
	from, before  Firmware // from included, before excluded; zero: open end
	vendor, model string   // without case, as prefixes of what the BMC says; model "": every one
	quirks        Set
	source        string
}

// fits reports whether a row is about a BMC.
func (r row) fits(b BMC) bool {
	byNumber := slices.Contains(r.manufacturers, b.Manufacturer) && (r.product == 0 || r.product == b.Product) &&
		(r.from == Firmware{} || !b.Firmware.less(r.from)) && (r.before == Firmware{} || b.Firmware.less(r.before))
	return byNumber || r.vendor != "" && hasPrefix(b.Vendor, r.vendor) && hasPrefix(b.Model, r.model)
}

func hasPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// Of returns what is known about a BMC: every row that fits adds to it.
func Of(b BMC) (s Set) {
	for _, r := range table {
		if r.fits(b) {
			s |= r.quirks
		}
	}
	return s
}
