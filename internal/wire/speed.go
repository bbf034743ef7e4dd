// SPDX-License-Identifier: Apache-2.0

package wire

// SpeedParams is what `ironrail-agent speed` reads from its standard input.
type SpeedParams struct {
	Memory int     `json:"memory"` // times that the memory is measured, a second each
	CPU    int     `json:"cpu"`    // times that the CPUs are, a second each
	Disk   float64 `json:"disk"`   // seconds that a disk is read at most; 0: none is read
	Bytes  int64   `json:"bytes"`  // of a disk that are read at most
}

// Speed is how fast the host of a node is: `ironrail-agent speed` prints it. All cores work
// at once, one thread on each.
type Speed struct {
	CPU   CPU         `json:"cpu"`
	DIMMs []Module    `json:"dimms,omitempty"` // every slot; an empty one has no size
	NUMA  []NUMASpeed `json:"numa,omitempty"`  // NUMA nodes with CPUs, in the order of their numbers
	Cores []CoreSpeed `json:"cores,omitempty"` // in the order of their numbers
	Disks []DiskSpeed `json:"disks,omitempty"`
	Gaps  []string    `json:"gaps,omitempty"` // sentences: what was not measured, and why
	Error *TaskError  `json:"error,omitempty"`
}

// NUMASpeed is the memory bandwidth that the cores of a NUMA node reach together, each in
// memory of its own node: the triad of STREAM, which counts 24 bytes for each element.
type NUMASpeed struct {
	Node  int     `json:"node"`
	Cores int     `json:"cores"` // that worked
	Rate  float64 `json:"rate"`  // bytes a second, the best of all times, as STREAM has it
}

// CoreSpeed is what a core computes while all others work: rounds of dependent integer
// operations in registers, which follow its clock.
type CoreSpeed struct {
	CPU  int     `json:"cpu"`  // its first thread, by the kernel's number
	Node int     `json:"node"` // NUMA node
	Rate float64 `json:"rate"` // rounds a second, the median of all times
}

// DiskSpeed is how fast a disk was read from its start, past the page cache.
type DiskSpeed struct {
	Disk
	Read    int64   `json:"read"`    // bytes
	Seconds float64 `json:"seconds"` // that it took
	// Failed says that the disk itself could not read what is on it, and Why what went wrong.
	Failed bool   `json:"failed,omitempty"`
	Why    string `json:"why,omitempty"`
}

// Rate is the bytes a second; 0 where nothing was read.
func (d DiskSpeed) Rate() float64 {
	if d.Seconds <= 0 {
		return 0
	}
	return float64(d.Read) / d.Seconds
}
