// SPDX-License-Identifier: Apache-2.0

package amdsmi

// Report is what amd-smi said of a node. Pointers are nil and strings empty where
// it said nothing.
type Report struct {
	GPUs     []GPU     `json:"gpus"`
	Links    []Link    `json:"links,omitempty"` // of topology and xgmi, each direction
	Versions *Versions `json:"versions,omitempty"`
}

// GPU is one GPU, or one partition of one. Sections that were not asked for are
// nil.
type GPU struct {
	GPU  int    `json:"gpu"`
	BDF  string `json:"bdf,omitempty"` // PCI address, as in sysfs
	UUID string `json:"uuid,omitempty"`
	// Partition is which part of one physical GPU it is; nil of the first, which
	// also stands for the whole.
	Partition *int64    `json:"partition,omitempty"`
	Static    *Static   `json:"static,omitempty"`
	Metric    *Metric   `json:"metric,omitempty"`
	BadPages  *BadPages `json:"bad_pages,omitempty"`
	// Firmware is the version of each part, by amd-smi's name of the part.
	Firmware map[string]string `json:"firmware,omitempty"`
	XGMI     *XGMI             `json:"xgmi,omitempty"`
	// Processes are those of process; nil where it was not asked.
	Processes []Process `json:"processes,omitempty"`
}

// Process is a process that uses a GPU.
type Process struct {
	PID  int64  `json:"pid"`
	Name string `json:"name"`
	VRAM string `json:"vram,omitempty"` // as printed, with its unit
}

// Static is what does not change while a node runs.
type Static struct {
	Name          string            `json:"name,omitempty"`
	DeviceID      string            `json:"device_id,omitempty"`
	Serial        string            `json:"serial,omitempty"` // of the ASIC
	OAM           *int64            `json:"oam_id"`           // place on the baseboard
	ProductSerial string            `json:"product_serial,omitempty"`
	ProductName   string            `json:"product_name,omitempty"`
	Model         string            `json:"model_number,omitempty"`
	MaxWidth      *int64            `json:"max_pcie_width"`
	MaxSpeed      *float64          `json:"max_pcie_speed_gts"` // GT/s
	Slot          string            `json:"slot_type,omitempty"`
	VBIOS         string            `json:"vbios,omitempty"` // its version, or part number where there is none
	Driver        string            `json:"driver_version,omitempty"`
	MaxPower      *float64          `json:"max_power_w"`
	PowerLimit    *float64          `json:"power_limit_w"`
	VRAM          *float64          `json:"vram_mb"`
	NUMA          *int64            `json:"numa_node"`
	Compute       string            `json:"compute_partition,omitempty"`
	Memory        string            `json:"memory_partition,omitempty"`
	RAS           map[string]string `json:"ras,omitempty"` // whether error correction is on, by block: UMC ENABLED
}

// Metric is what changes.
type Metric struct {
	Power       *float64       `json:"power_w"`
	Hotspot     *float64       `json:"hotspot_c"`
	MemoryTemp  *float64       `json:"memory_c"`
	Throttled   string         `json:"throttle_status,omitempty"`
	Width       *int64         `json:"pcie_width"`
	Speed       *float64       `json:"pcie_speed_gts"` // GT/s
	Replays     *int64         `json:"pcie_replays"`
	NAKReceived *int64         `json:"pcie_nak_received"`
	NAKSent     *int64         `json:"pcie_nak_sent"`
	ECC         ECC            `json:"ecc"`
	Blocks      map[string]ECC `json:"ecc_blocks,omitempty"`
	XGMIErrors  string         `json:"xgmi_errors,omitempty"`
	VRAMTotal   *float64       `json:"vram_total_mb"`
	VRAMUsed    *float64       `json:"vram_used_mb"`
	GFX         *float64       `json:"gfx_percent"`
	// Violations is for how much of the time something held the clocks down, in
	// percent, by its name in metric: ppt, socket_thermal, prochot.
	Violations map[string]float64 `json:"violations_percent,omitempty"`
	// Accumulated is in how many of the firmware's ticks something held the clocks down, by the
	// same names, and Ticks how many there were, since the driver was loaded: MI300 and later.
	Accumulated map[string]int64 `json:"throttle_accumulated,omitempty"`
	Ticks       *int64           `json:"throttle_ticks,omitempty"`
}

// ECC counts memory errors since the driver was loaded.
type ECC struct {
	Correctable   *int64 `json:"correctable"`
	Uncorrectable *int64 `json:"uncorrectable"`
	Deferred      *int64 `json:"deferred"` // found and not yet used
}

// BadPages are the pages of memory that are out of use. A list is nil where
// amd-smi could not say, and empty where there are none.
type BadPages struct {
	Retired      []Page `json:"retired"`
	Pending      []Page `json:"pending"` // at the next reset
	Unreservable []Page `json:"unreservable"`
}

// Page is one page.
type Page struct {
	Address string `json:"address"`
	Size    string `json:"size,omitempty"`
	Status  string `json:"status,omitempty"`
}

// XGMI is a GPU's links to other GPUs.
type XGMI struct {
	BitRate      *float64 `json:"bit_rate_gbps"`      // of one lane, Gb/s
	MaxBandwidth *float64 `json:"max_bandwidth_gbps"` // of one link, Gb/s
	Type         string   `json:"type,omitempty"`
	Status       []string `json:"status,omitempty"` // of each link: U up, D down, X disabled
}

// Link is what one GPU has to another.
type Link struct {
	From      int      `json:"from"`
	To        int      `json:"to"`
	FromBDF   string   `json:"from_bdf,omitempty"`
	ToBDF     string   `json:"to_bdf,omitempty"`
	Type      string   `json:"type,omitempty"`   // XGMI, PCIE
	Access    string   `json:"access,omitempty"` // ENABLED, DISABLED
	Weight    *int64   `json:"weight"`
	Hops      *int64   `json:"hops"`
	Bandwidth string   `json:"bandwidth,omitempty"` // least and most, as printed, in Mb/s
	Read      *float64 `json:"read_kb"`             // in units of 1024 bytes
	Written   *float64 `json:"written_kb"`
	Status    string   `json:"status,omitempty"` // of xgmi from ROCm 7 on: U up, D down, X disabled
}
