// SPDX-License-Identifier: Apache-2.0

package quirk

// table has one row for each condition; their order means nothing.
var table = []row{
	{
		name: "OpenIPMI ipmi_sim keeps the boot device only", manufacturers: []uint32{0x1291}, product: 0x0f02, quirks: DeviceOnly | NoDwell,
		source: "seen on ipmi_sim 2.0.33 with a chassis_control script: get boot flags answers 00 SS 00 00 00",
	},
	{
		name: "Supermicro's selector for a UEFI disk", manufacturers: []uint32{10876, 47488}, quirks: UEFIDisk24,
		source: "ironic drivers/modules/ipmitool.py:186: UEFI hard disk is 0x24, not 0x08",
	},
	{
		name: "Lenovo stays off for longer", manufacturers: []uint32{19046}, vendor: "Lenovo", quirks: LongDwell,
		source: "libredfish lenovo.rs:136-150: off, 10 s, verify, on",
	},
	{
		name: "Lenovo hangs in a restart", vendor: "Lenovo", quirks: NoRestart,
		source: "libredfish lenovo.rs:136-150: ForceRestart can hang SR675 V3",
	},
	{
		name: "Lenovo refuses Continuous", vendor: "Lenovo", quirks: NoContinuous,
		source: "bmclib providers/lenovo/boot.go:20",
	},
	{
		name: "Dell's service tag is the SKU", vendor: "Dell", quirks: SerialIsSKU,
		source: "iDRAC Redfish guide: SKU is the service tag",
	},
	{
		name: "Dell's accounts are slots", vendor: "Dell", quirks: SlotAccounts,
		source: "libredfish dell.rs:76-98: root is slot 2, new accounts fill a slot from 3",
	},
	{
		name: "Dell XE9680 has no PXE", vendor: "Dell", model: "PowerEdge XE9680", quirks: NoPXE,
		source: "libredfish dell.rs:355-358: cannot boot by PXE",
	},
	{
		name: "HPE DL160 Gen10 refuses the boot mode", vendor: "HPE", model: "ProLiant DL160 Gen10", quirks: MinimalBoot,
		source: "bmclib internal/redfishwrapper/boot_device.go:121-127",
	},
	{
		name: "DGX H100 wants If-Match: *", vendor: "NVIDIA", model: "DGXH100", quirks: AnyMatch,
		source: "NVIDIA's DGX guide uses If-Match: * (infra-controller site-explorer/src/redfish.rs:230)",
	},
	{
		name: "DGX H100 is not restarted by Redfish", vendor: "NVIDIA", model: "DGXH100", quirks: NoRestart,
		source: "infra-controller machine-controller/src/handler.rs:9422 avoids its Redfish restart",
	},
	{
		name: "DGX H100 by AMI's name", vendor: "AMI", model: "DGX", quirks: AnyMatch | NoRestart,
		source: "nv-redfish bmc_quirks.rs: vendor AMI, product with DGX; the two rows above",
	},
}
