// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

// Log is what nvidia-smi says of a node: all of it with -q, less in the table and
// with -L.
type Log struct {
	Time     string `json:"time,omitempty"` // as printed; without a zone
	Driver   string `json:"driver"`
	CUDA     string `json:"cuda"`     // the newest version that the driver serves
	Attached *int64 `json:"attached"` // how many GPUs the driver says there are
	GPUs     []GPU  `json:"gpus"`
}

// GPU is one GPU. Strings are empty and pointers nil where it says nothing.
type GPU struct {
	Index           int                `json:"index"`  // in the order of the output, which is that of the bus
	BusID           string             `json:"bus_id"` // as in sysfs
	Name            string             `json:"name"`
	Architecture    string             `json:"architecture,omitempty"`
	UUID            string             `json:"uuid,omitempty"`
	Serial          string             `json:"serial,omitempty"`
	Minor           *int64             `json:"minor"` // of /dev/nvidiaN
	BoardPartNumber string             `json:"board_part_number,omitempty"`
	PartNumber      string             `json:"part_number,omitempty"`
	ModuleID        *int64             `json:"module_id"` // place on the baseboard
	VBIOS           string             `json:"vbios,omitempty"`
	InfoROM         string             `json:"inforom,omitempty"`
	GSPFirmware     string             `json:"gsp_firmware,omitempty"`
	Persistence     *bool              `json:"persistence"`
	ComputeMode     string             `json:"compute_mode,omitempty"`
	MIG             Mode               `json:"mig"`
	C2C             *bool              `json:"c2c,omitempty"` // the link of a Grace CPU and its GPU
	State           string             `json:"performance_state,omitempty"`
	ECC             ECC                `json:"ecc"`
	RetiredPages    RetiredPages       `json:"retired_pages"`
	RemappedRows    RemappedRows       `json:"remapped_rows"`
	RecoveryAction  string             `json:"recovery_action,omitempty"` // None, Reset, Reboot, Drain P2P, Drain and Reset; from driver 565
	ResetRequired   *bool              `json:"reset_required"`            // until driver 560
	DrainAndReset   *bool              `json:"drain_and_reset"`           // until driver 560
	PCIe            PCIe               `json:"pcie"`
	Power           Power              `json:"power"`
	ModulePower     Power              `json:"module_power"` // of GPU and CPU together, Grace only
	Clocks          Clocks             `json:"clocks_mhz"`
	MaxClocks       Clocks             `json:"max_clocks_mhz"`
	Reasons         map[string]bool    `json:"clocks_event_reasons,omitempty"`    // by the element's name: hw_slowdown, hw_power_brake_slowdown
	ReasonTime      map[string]float64 `json:"clocks_event_reasons_us,omitempty"` // microseconds since the driver was loaded
	Temperature     Temperature        `json:"temperature_c"`
	Memory          Memory             `json:"memory_mib"`
	Utilization     *float64           `json:"utilization_percent"`
	Fabric          Fabric             `json:"fabric"`
	Platform        Platform           `json:"platform"`
	Processes       []Process          `json:"processes,omitempty"`
	MIGDevices      []MIGDevice        `json:"mig_devices,omitempty"` // of -L and of the table
}

// MIGDevice is a part of a GPU that is used as one.
type MIGDevice struct {
	Profile string `json:"profile,omitempty"` // 1g.10gb; of -L
	Index   int    `json:"index"`
	UUID    string `json:"uuid,omitempty"` // of -L
	// The following are of the table.
	Instance *int64   `json:"gpu_instance,omitempty"`
	Compute  *int64   `json:"compute_instance,omitempty"`
	Used     *float64 `json:"memory_used_mib,omitempty"`
	Total    *float64 `json:"memory_total_mib,omitempty"`
	SMs      *int64   `json:"sms,omitempty"`
}

// Mode is a setting that needs a reset to change.
type Mode struct {
	Current *bool `json:"current"`
	Pending *bool `json:"pending"`
}

// ECC is the mode and the counts of memory errors.
type ECC struct {
	Mode
	Volatile          ECCCounts `json:"volatile"`  // since the driver was loaded
	Aggregate         ECCCounts `json:"aggregate"` // of the GPU's life
	ThresholdExceeded *bool     `json:"sram_threshold_exceeded"`
	ChannelRepair     *bool     `json:"channel_repair_pending"`
	TPCRepair         *bool     `json:"tpc_repair_pending"`
	Unrepairable      *bool     `json:"unrepairable_memory"`
}

// ECCCounts are counts of memory errors. Correctable and Uncorrectable are the
// totals that were printed, or else the sums of the parts that were.
type ECCCounts struct {
	Correctable       *int64 `json:"correctable"`
	Uncorrectable     *int64 `json:"uncorrectable"`
	SRAMCorrectable   *int64 `json:"sram_correctable"`
	SRAMUncorrectable *int64 `json:"sram_uncorrectable"` // parity and SEC-DED together
	DRAMCorrectable   *int64 `json:"dram_correctable"`
	DRAMUncorrectable *int64 `json:"dram_uncorrectable"`
}

// RetiredPages are the pages that a GPU before Ampere took out of use.
type RetiredPages struct {
	SingleBit *int64 `json:"single_bit"`
	DoubleBit *int64 `json:"double_bit"`
	Pending   *bool  `json:"pending"`
}

// RemappedRows are the rows of HBM that were replaced by spare ones, Ampere and
// later.
type RemappedRows struct {
	Correctable   *int64           `json:"correctable"`
	Uncorrectable *int64           `json:"uncorrectable"`
	Pending       *bool            `json:"pending"` // at the next reset
	Failure       *bool            `json:"failure"` // no spare row was left
	Banks         map[string]int64 `json:"banks,omitempty"`
}

// PCIe is the link to the host. An idle GPU may have lowered its generation.
type PCIe struct {
	Generation     *int64 `json:"generation"`
	MaxGeneration  *int64 `json:"max_generation"`
	HostGeneration *int64 `json:"host_max_generation"`
	Width          *int64 `json:"width"`
	MaxWidth       *int64 `json:"max_width"`
	Replays        *int64 `json:"replays"`
	DeviceID       string `json:"device_id,omitempty"` // device and vendor, 233010DE
}

// Power is in watts.
type Power struct {
	Draw    *float64 `json:"draw_w"`
	Limit   *float64 `json:"limit_w"` // that is in force
	Default *float64 `json:"default_limit_w"`
	Min     *float64 `json:"min_limit_w"`
	Max     *float64 `json:"max_limit_w"`
}

// Clocks are in MHz.
type Clocks struct {
	SM     *float64 `json:"sm"`
	Memory *float64 `json:"memory"`
}

// Temperature is in degrees Celsius; Limit is the distance to the slowdown.
type Temperature struct {
	GPU    *float64 `json:"gpu"`
	Memory *float64 `json:"memory"`
	Limit  *float64 `json:"limit"`
	// Slowdown is where the clocks are held down, of drivers that state it as a
	// temperature; SlowdownLimit is the Limit at which they are, of those that
	// state that.
	Slowdown      *float64 `json:"slowdown,omitempty"`
	SlowdownLimit *float64 `json:"slowdown_limit,omitempty"`
}

// Memory is the frame buffer, in MiB.
type Memory struct {
	Total *float64 `json:"total"`
	Used  *float64 `json:"used"`
	Free  *float64 `json:"free"`
}

// Fabric is the GPU's part in an NVLink domain with switches.
type Fabric struct {
	State   string            `json:"state,omitempty"`  // Completed when it is in
	Status  string            `json:"status,omitempty"` // Success
	Cluster string            `json:"cluster_uuid,omitempty"`
	Clique  *int64            `json:"clique_id"`
	Health  map[string]string `json:"health,omitempty"` // summary, bandwidth, route_unhealthy and so on
}

// Platform is where the GPU is in a rack of NVLink trays.
type Platform struct {
	Chassis  string `json:"chassis_serial,omitempty"`
	Slot     *int64 `json:"slot"`
	Tray     *int64 `json:"tray"`
	Host     *int64 `json:"host"`
	Peer     string `json:"peer_type,omitempty"`
	ModuleID *int64 `json:"module"`
	GUID     string `json:"fabric_guid,omitempty"`
}

// Process is a program that uses the GPU.
type Process struct {
	PID    int64    `json:"pid"`
	Type   string   `json:"type"`
	Name   string   `json:"name"`
	Memory *float64 `json:"memory_mib"`
}
