// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"net/http"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// openBMC is bmcweb as most open firmware ships it: resources "system" and
// "bmc", accounts by name, tasks numbered from 0, $expand.
func openBMC() Personality {
	return Personality{
		Name: "openbmc", Vendor: "OpenBMC", Product: "OpenBMC", Version: "1.17.0", Base: "1.18",
		Manufacturer: "OpenBMC", Model: "Reference", ManagerModel: "OpenBmc",
		System: "system", Manager: "bmc", Chassis: "chassis", BMCFirmware: "bmc_active", BIOSFirmware: "bios_active",
		Targets: allTargets(), Resets: allResets(),
		Logs: []Place{{"Systems", "EventLog"}}, Dump: Place{"Managers", "Dump"},
		Media: Place{"Managers", "VirtualMedia"}, Slots: []Slot{{"Slot_0", []string{"CD", "USBStick"}}, {"Slot_1", []string{"CD", "USBStick"}}},
		Settings: "Settings", Registry: "BiosAttributeRegistry", NIC: "eth%d",
		Accounts: "name", TaskName: "%d", Monitor: "TaskService/TaskMonitors/%s", PushURI: "UpdateService/update-multipart", Multipart: true,
		ResetStatus: http.StatusNoContent, PatchStatus: http.StatusNoContent, PasswordMin: 8, BusyStatus: http.StatusServiceUnavailable, Expand: true,
		Headers: map[string]string{"Strict-Transport-Security": "max-age=31536000; includeSubdomains"},
		Firmware: []chassis.Component{
			{ID: "bmc_active", Name: "BMC", Version: "2.14.0-dev-421", Updateable: true},
			{ID: "bios_active", Name: "BIOS", Version: "1.08.02", Updateable: true},
			{ID: "cpld", Name: "Mainboard CPLD", Version: "0x17", Updateable: false},
		},
		Attributes: map[string]string{"SriovSupport": "Disabled", "HyperThreading": "Enabled", "NumaPerSocket": "NPS1", "BootMode": "Uefi", "QuietBoot": "Enabled"},
		AdminID:    1,
	}
}

// newIDRAC is iDRAC9: embedded ids, account slots, settings as jobs, 409 for a
// power action that changes nothing.
func newIDRAC() Personality {
	return Personality{
		Name: "idrac", Vendor: "Dell", Product: "Integrated Dell Remote Access Controller", Version: "1.17.0", Base: "1.12",
		Manufacturer: "Dell Inc.", Model: "PowerEdge XE9680", ManagerModel: "16G Monolithic",
		System: "System.Embedded.1", Manager: "iDRAC.Embedded.1", Chassis: "System.Embedded.1",
		BMCFirmware: "Installed-25227-7.10.30.00", BIOSFirmware: "Installed-159-2.1.5",
		Targets: allTargets(), Resets: allResets(),
		Logs:  []Place{{"Managers", "Sel"}},
		Media: Place{"Systems", "VirtualMedia"}, Slots: []Slot{{"1", []string{"CD", "DVD", "USBStick"}}, {"2", []string{"CD", "DVD", "USBStick"}}},
		Settings: "Settings", Registry: "BiosAttributeRegistry.v1_0_0", NIC: "NIC.Slot.%d-1-1", NICFirst: 1,
		Accounts: "slots", AccountSlots: 16, TaskName: "JID_4676960%05d", Monitor: "TaskService/TaskMonitors/%s",
		PushURI: "UpdateService/MultipartUpload", Multipart: true,
		ResetStatus: http.StatusNoContent, PatchStatus: http.StatusOK, PasswordMin: 1, SerialAtSKU: true,
		BusyStatus: http.StatusConflict, AlreadyFails: true, ConfigJobs: true, Expand: true,
		NotReadyCode: "IDRAC.2.8.SYS518", NotReadyText: "iDRAC is not ready. The configuration values cannot be accessed. Please retry after a few minutes.",
		AlreadyCode: "IDRAC.2.8.PSU501", AlreadyText: "The requested power control operation could not be performed because the server is already in that power state.",
		RootOem: map[string]any{"Dell": map[string]any{"@odata.type": "#DellServiceRoot.v1_0_0.DellServiceRoot", "IsBranded": 0}},
		SysOem:  map[string]any{"Dell": map[string]any{"DellSystem": map[string]any{"@odata.type": "#DellSystem.v1_4_0.DellSystem", "SystemGeneration": "16G Monolithic"}}},
		MgrOem:  map[string]any{"Dell": map[string]any{"@odata.type": "#DellOem.v1_3_0.DellOemLinks"}},
		Quirks:  Quirks{SessionLimit: 8},
		Firmware: []chassis.Component{
			{ID: "Installed-25227-7.10.30.00", Name: "Integrated Dell Remote Access Controller", Version: "7.10.30.00", Updateable: true},
			{ID: "Installed-159-2.1.5", Name: "BIOS", Version: "2.1.5", Updateable: true},
			{ID: "Installed-28897-1.1.6", Name: "System CPLD", Version: "1.1.6", Updateable: true},
			{ID: "Installed-0-PSU.Slot.1", Name: "PWR SPLY,2800W", Version: "00.1D.7D", Updateable: false},
		},
		Attributes: map[string]string{"SriovGlobalEnable": "Disabled", "LogicalProc": "Enabled", "SysProfile": "PerfPerWattOptimizedDapc", "BootMode": "Uefi", "NumLock": "On", "HttpDevNTlsMode": "OneWay"},
		AdminID:    2,
	}
}

// newSupermicro returns the X13/H13 service: everything is "1", settings at SD, the
// boot mode must be sent with every override.
func newSupermicro() Personality {
	return Personality{
		Name: "supermicro", Vendor: "Supermicro", Product: "", Version: "1.14.0", Base: "1.11",
		Manufacturer: "Supermicro", Model: "SYS-821GE-TNHR", ManagerModel: "ASPEED",
		System: "1", Manager: "1", Chassis: "1", BMCFirmware: "BMC", BIOSFirmware: "BIOS",
		Targets: allTargets(), Resets: allResets(),
		Logs:  []Place{{"Systems", "Log1"}, {"Managers", "Log1"}},
		Media: Place{"Managers", "VirtualMedia"}, Slots: []Slot{{"VirtualMedia1", []string{"CD", "DVD"}}, {"VirtualMedia2", []string{"CD", "DVD"}}},
		Settings: "SD", Registry: "BiosAttributeRegistry.1.0.0", NIC: "%d", NICFirst: 1,
		Accounts: "number", TaskName: "%d", Monitor: "TaskService/TaskMonitors/%s", PushURI: "UpdateService/upload", Multipart: true,
		ResetStatus: http.StatusOK, PatchStatus: http.StatusOK, PasswordMin: 8, BusyStatus: http.StatusServiceUnavailable,
		RootOem: map[string]any{"Supermicro": map[string]any{"@odata.type": "#SmcServiceRootExtensions.v1_0_0.ServiceRoot"}},
		SysOem:  map[string]any{"Supermicro": map[string]any{"@odata.type": "#SmcSystemExtensions.v1_0_0.System", "NodeManager": map[string]any{}}},
		Quirks:  Quirks{RequireETag: true, BootModeReverts: true, SessionLimit: 16},
		Firmware: []chassis.Component{
			{ID: "BMC", Name: "BMC", Version: "01.02.88", Updateable: true},
			{ID: "BIOS", Name: "BIOS", Version: "2.1", Updateable: true},
			{ID: "CPLD_Motherboard_1", Name: "CPLD Motherboard", Version: "F1.A1.25", Updateable: true},
		},
		Attributes: map[string]string{"SR-IOVSupport#0074": "Disabled", "Hyper-Threading#0018": "Enable", "BootModeSelect#00A8": "UEFI", "IPv4HTTPSupport#00C3": "Disabled", "QuietBoot#002E": "Enabled"},
		AdminID:    2,
	}
}

// dgxH100 is the DGX H100's MegaRAC: members that are not the node, If-Match
// demanded, SD for future state, refusals of the firmware inventory.
func dgxH100() Personality {
	return Personality{
		Name: "dgx-h100", Vendor: "AMI", Product: "AMI Redfish Server", Version: "1.11.0", Base: "1.12",
		Manufacturer: "NVIDIA", Model: "DGXH100", ManagerModel: "DGXH100",
		System: "DGX", Manager: "BMC", Chassis: "DGX", BMCFirmware: "HostBMC_0", BIOSFirmware: "HostBIOS_0",
		Targets: allTargets(), Resets: allResets(),
		Logs: []Place{{"Managers", "SEL"}, {"Chassis", "Logs"}}, Dump: Place{"Managers", "Dump"},
		Media: Place{"Managers", "VirtualMedia"}, Slots: []Slot{{"CD1", []string{"CD", "DVD"}}, {"HD1", []string{"USBStick"}}},
		Settings: "SD", Registry: "BiosAttributeRegistry0.21.0", NIC: "EthernetInterface%d",
		Accounts: "number", TaskName: "%d", Monitor: "TaskService/TaskMonitors/%s", PushURI: "UpdateService/upload", Multipart: true,
		ResetStatus: http.StatusAccepted, PatchStatus: http.StatusNoContent, PasswordMin: 13, BusyStatus: http.StatusServiceUnavailable, FutureState: true,
		RootOem: map[string]any{"Ami": map[string]any{"@odata.type": "#AMIServiceRoot.v1_0_0.AMIServiceRoot", "RtpVersion": "1.8.a"}},
		SysOem:  map[string]any{"Ami": map[string]any{"@odata.type": "#AMIComputerSystem.v1_0_0.AMIComputerSystem"}},
		Quirks: Quirks{RequireETag: true, Flaky403: 16, ExtraSystems: []string{"HGX_Baseboard_0"},
			ExtraManagers: []string{"HGX_BMC_0", "HGX_FabricManager_0"}, ExtraChassis: []string{"HGX_Chassis_0"}, ExtraFirst: true},
		Firmware: []chassis.Component{
			{ID: "HostBMC_0", Name: "HostBMC_0", Version: "24.01.05", Updateable: true},
			{ID: "HostBIOS_0", Name: "HostBIOS_0", Version: "01.01.03", Updateable: true},
			{ID: "CPLDMB_0", Name: "CPLDMB_0", Version: "0.2.1.6", Updateable: true},
			{ID: "HGX_FW_BMC_0", Name: "HGX_FW_BMC_0", Version: "HGX-22.10-1-rc57", Updateable: true},
		},
		Attributes: map[string]string{"SRIOVSupport": "Enabled", "HyperThreading": "Enabled", "BootMode": "UEFI", "PXERetry": "3", "NetworkStack": "Enabled"},
		AdminID:    2,
	}
}
