// SPDX-License-Identifier: Apache-2.0

package wire

// BurnParams is what `ironrail-agent burn` reads from its standard input.
type BurnParams struct {
	Program []string `json:"program"` // loads every GPU of the node until it ends
	Vendor  string   `json:"vendor"`  // of the GPUs that are watched: nvidia or amd
	Every   float64  `json:"every"`   // seconds between two looks at the GPUs
	Limit   float64  `json:"limit"`   // seconds after which the program is ended
}

// BurnResult is what was seen while a program loaded the GPUs.
type BurnResult struct {
	Exit    int       `json:"exit"`              // of the program; -1 when a signal ended it
	Output  string    `json:"output"`            // what the program printed, as far as it was kept
	Errors  string    `json:"errors,omitempty"`  // its standard error
	Ended   string    `json:"ended,omitempty"`   // why it was ended; empty: it ended by itself
	Seconds float64   `json:"seconds"`           // that it ran
	Looks   int       `json:"looks"`             // at the GPUs
	Blind   int       `json:"blind,omitempty"`   // looks that saw nothing
	GPUs    []BurnGPU `json:"gpus,omitempty"`    // in the order of their addresses
	Without []string  `json:"without,omitempty"` // why looks saw nothing, or less than they could
	// KFD maps the numbers by which ROCm's programs call GPUs to PCI addresses.
	KFD map[string]string `json:"kfd,omitempty"`
	// Arrays are those of md as they were when the load began; one that is copied onto
	// its disks is a load of its own.
	Arrays []Array    `json:"arrays,omitempty"`
	Error  *TaskError `json:"error,omitempty"`
}

// BurnGPU is one GPU under load. A span without values was never seen.
type BurnGPU struct {
	Address string         `json:"address"`               // PCI, as in sysfs
	Core    Span           `json:"core_c"`                // hottest sensor of the chip, degrees Celsius
	Memory  Span           `json:"memory_c"`              // of the HBM
	Power   Span           `json:"power_w"`               // watts
	Clock   Span           `json:"clock_mhz"`             // of the compute units
	Left    Span           `json:"headroom_c"`            // degrees that were left to the limit that the driver states
	MemLeft Span           `json:"memory_headroom_c"`     // the same of the HBM
	Held    map[string]int `json:"clocks_held,omitempty"` // looks at which a reason held the clocks down, by its name
}

// Span is what a value was over time.
type Span struct {
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	Mean  float64 `json:"mean"`
	Count int     `json:"count"` // of values; 0: there was none
}

// Add takes one value in.
func (s *Span) Add(v float64) {
	if s.Count == 0 || v < s.Least {
		s.Least = v
	}
	if s.Count == 0 || v > s.Most {
		s.Most = v
	}
	s.Count++
	s.Mean += (v - s.Mean) / float64(s.Count)
}
