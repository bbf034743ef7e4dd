// SPDX-License-Identifier: Apache-2.0

// Package redfish is the Redfish front end of a virtual BMC (DSP0266): a
// stateful service over TLS on the physical part in package chassis. What
// differs between makers, names, members and faults of their firmware, is a
// Personality: data, never code paths of its own.
package redfish

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
)

// Options describes one BMC beyond its personality. Everything in it is only
// read and may be shared between BMCs.
type Options struct {
	// Quirks replaces those of the personality; nil keeps them. To change one,
	// copy Personality.Quirks first.
	Quirks *Quirks
	// Address is the BMC's own, for its certificate and its network interface.
	Address netip.Addr
	// MAC is that of the BMC's own port.
	MAC addr.MAC
	// VLAN is the ID of the VLAN that its port tags frames with now, 0 for untagged; nil: untagged.
	VLAN func() int
	// Hardware is what the BMC has learned of the node; nil: nothing but its
	// identity.
	Hardware *Hardware
	// SecureBoot reports whether the node's firmware has it switched on; nil: it has not.
	SecureBoot func() bool
	// Update is how long the installation of a firmware image takes; 0: 90 s.
	Update time.Duration
	// Fetch reads the image of a SimpleUpdate. nil: nothing is read, and the
	// version is taken from the URL's last part.
	Fetch func(ctx context.Context, url string) (io.ReadCloser, error)
}

// Hardware is the inventory that a BMC shows below a system.
type Hardware struct {
	Processors []Processor
	DIMMs      []DIMM
	PCIe       []PCIe
	NICs       []NIC
	Drives     []Drive
}

// Processor is a CPU or a GPU.
type Processor struct {
	ID, Model, Manufacturer string
	Cores, Threads          int
	GPU                     bool
	Serial                  string
}

// DIMM is one memory module; an empty slot is left out.
type DIMM struct {
	Slot, Manufacturer, Part, Serial string
	MiB                              int
	MTs                              int // transfer rate, 10^6 transfers a second
}

// PCIe is one PCIe device.
type PCIe struct {
	ID, Name, Manufacturer, Model, Serial, Firmware string
	VendorID, DeviceID                              uint16
	Lanes                                           int
}

// NIC is one network port of the node, in the order of the boot order.
type NIC struct {
	ID     string // empty: the personality's numbering
	MAC    addr.MAC
	Now    func() addr.MAC // the MAC of the port that is there now; nil: MAC. Must not block
	Mbps   int
	Linked func() bool // nil: linked whenever the node is on; must not block
}

// Drive is one disk.
type Drive struct {
	ID, Model, Serial string
	Bytes             int64
	SSD               bool
}
