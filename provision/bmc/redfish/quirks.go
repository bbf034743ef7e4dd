package redfish

import (
	"strings"
	"time"
)

// Quirks is how one kind of BMC differs from the specification where the client
// cannot find out by itself. The zero value is a BMC as specified.
type Quirks struct {
	// AnyMatch: changes carry "If-Match: *".
	AnyMatch bool
	// SerialIsSKU: the node's serial number, as on its label and in SMBIOS type 1,
	// is the property SKU; SerialNumber is the mainboard's.
	SerialIsSKU bool
	// NoPXE: the firmware of this product boots from the network by UEFI HTTP only.
	NoPXE bool
	// NoContinuous: a boot override lasts for one boot only.
	NoContinuous bool
	// MinimalBoot: the boot override's mode must not be sent.
	MinimalBoot bool
	// NoRestart: ForceRestart can hang the node; off, wait, on is used instead.
	NoRestart bool
	// OffDwell is how long a node stays off in a power cycle. Zero: the caller's.
	OffDwell time.Duration
	// SlotAccounts: accounts are slots: one is made by filling an empty one, and
	// slot 1 is the BMC's own.
	SlotAccounts bool
}

// row is one line of the table. Empty fields fit everything; texts are compared
// without case, as prefixes of what the BMC says.
type row struct {
	name    string
	vendor  string // Vendor of the service root, or Manufacturer of the system
	product string // Product of the service root, or Model of the system
	quirks  Quirks
	source  string // where it was learned
}

// table is read from the top; every row that fits adds what it knows.
var table = []row{
	{name: "Dell", vendor: "Dell", quirks: Quirks{SerialIsSKU: true, SlotAccounts: true},
		source: "iDRAC Redfish guide: SKU is the service tag; libredfish dell.rs:76-98: root is slot 2, new accounts fill a slot from 3"},
	{name: "Dell XE9680", vendor: "Dell", product: "PowerEdge XE9680", quirks: Quirks{NoPXE: true},
		source: "libredfish dell.rs:355-358: cannot boot by PXE"},
	{name: "Lenovo", vendor: "Lenovo", quirks: Quirks{NoContinuous: true, NoRestart: true, OffDwell: 10 * time.Second},
		source: "bmclib providers/lenovo/boot.go:20; libredfish lenovo.rs:136-150: ForceRestart can hang SR675 V3"},
	{name: "HPE DL160 Gen10", vendor: "HPE", product: "ProLiant DL160 Gen10", quirks: Quirks{MinimalBoot: true},
		source: "bmclib internal/redfishwrapper/boot_device.go:121-127"},
	{name: "NVIDIA DGX H100", vendor: "NVIDIA", product: "DGXH100", quirks: Quirks{AnyMatch: true, NoRestart: true},
		source: "NVIDIA's DGX guide uses If-Match: *; infra-controller handler.rs:9422 avoids its Redfish restart"},
	{name: "NVIDIA DGX H100 (AMI's name)", vendor: "AMI", product: "DGX", quirks: Quirks{AnyMatch: true, NoRestart: true},
		source: "nv-redfish bmc_quirks.rs: vendor AMI, product with DGX"},
}

// learn adds what is known about a vendor and product.
func (c *Client) learn(vendor, product string) {
	for _, r := range table {
		if hasPrefix(vendor, r.vendor) && hasPrefix(product, r.product) {
			c.quirks = c.quirks.with(r.quirks)
		}
	}
}

func hasPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// with joins two sets of quirks.
func (q Quirks) with(o Quirks) Quirks {
	return Quirks{AnyMatch: q.AnyMatch || o.AnyMatch, SerialIsSKU: q.SerialIsSKU || o.SerialIsSKU,
		NoPXE: q.NoPXE || o.NoPXE, NoContinuous: q.NoContinuous || o.NoContinuous, MinimalBoot: q.MinimalBoot || o.MinimalBoot,
		NoRestart: q.NoRestart || o.NoRestart, OffDwell: max(q.OffDwell, o.OffDwell), SlotAccounts: q.SlotAccounts || o.SlotAccounts}
}
