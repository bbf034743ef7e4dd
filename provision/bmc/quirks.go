package bmc

import (
	"time"

	"github.com/bougou/go-ipmi/pkg/types"
)

// quirks is how one BMC differs from the specification, as far as the IPMI
// driver acts on it. The zero value is a BMC as specified.
type quirks struct {
	// flagsPartly: only the boot device is kept of the boot flags; the valid,
	// UEFI and persistent bits read back as zero whatever was written.
	flagsPartly bool
	// uefiDisk is the boot device selector for "disk, UEFI" where it is not the
	// standard's 0x02. Zero: standard.
	uefiDisk types.BootDeviceSelector
	// offDwell is how long a node stays off in a power cycle. Zero: defaultDwell.
	offDwell time.Duration
	// noDwell: power may return at once.
	noDwell bool
}

// defaultDwell is how long a node stays off in a power cycle, so that supplies
// discharge and NICs and DPUs lose their state too.
const defaultDwell = 5 * time.Second

// dwell returns the off time of a power cycle.
func (q quirks) dwell() time.Duration {
	switch {
	case q.noDwell:
		return 0
	case q.offDwell > 0:
		return q.offDwell
	}
	return defaultDwell
}

// anyProduct in a quirk row stands for every product of the manufacturer.
const anyProduct = -1

// quirkRow is one line of the table: who, which firmware, what, and where it was
// learned.
type quirkRow struct {
	name         string
	manufacturer uint32   // IANA enterprise number of Get Device ID
	product      int      // product id of Get Device ID; anyProduct: all
	from, before Firmware // firmware range, from included, before excluded; zero: open end
	quirks       quirks
	source       string
}

// quirkTable is searched from the top; the first row that fits is the one that
// counts, so rows for single products stand before those for a manufacturer.
var quirkTable = []quirkRow{
	{
		name: "OpenIPMI ipmi_sim", manufacturer: 0x1291, product: 0x0f02,
		quirks: quirks{flagsPartly: true, noDwell: true},
		source: "seen on ipmi_sim 2.0.33 with a chassis_control script: get boot flags answers 00 SS 00 00 00",
	},
	{
		name: "Supermicro", manufacturer: 10876, product: anyProduct,
		quirks: quirks{uefiDisk: types.BootDeviceSelectorForceRemoteMedia},
		source: "ironic drivers/modules/ipmitool.py:186: UEFI hard disk is 0x24, not 0x08",
	},
	{
		name: "Supermicro (second enterprise number)", manufacturer: 47488, product: anyProduct,
		quirks: quirks{uefiDisk: types.BootDeviceSelectorForceRemoteMedia},
		source: "ironic drivers/modules/ipmitool.py:186: UEFI hard disk is 0x24, not 0x08",
	},
	{
		name: "Lenovo", manufacturer: 19046, product: anyProduct,
		quirks: quirks{offDwell: 10 * time.Second},
		source: "libredfish lenovo.rs:136: a restart can hang SR675 V3; off, 10 s, verify, on",
	},
}

// quirksOf returns what is known about a BMC.
func quirksOf(manufacturer uint32, product uint16, fw Firmware) quirks {
	for _, row := range quirkTable {
		if row.manufacturer == manufacturer &&
			(row.product == anyProduct || row.product == int(product)) &&
			(row.from == Firmware{} || !fw.less(row.from)) &&
			(row.before == Firmware{} || fw.less(row.before)) {
			return row.quirks
		}
	}
	return quirks{}
}
