// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/ironrail/ironrail/internal/addr"

// What ironrail asks of the agent on an installed node, over SSH: `ironrail-agent
// roce apply|check` takes RoCEParams on stdin and prints a RoCEResult;
// `ironrail-agent check` prints a NodeCheck. One JSON object, exit 0; exit 1 when
// Error is set.

// RoCEParams is how the rails of a node are to be.
type RoCEParams struct {
	MTU      int           `json:"mtu"` // of the network interfaces, bytes
	Ports    []RoCEPort    `json:"ports"`
	Lossless *RoCELossless `json:"lossless,omitempty"` // nil: RDMA packets are sorted like all others
}

// RoCELossless is how RDMA packets are kept from being dropped.
type RoCELossless struct {
	Priority     int  `json:"priority"`     // 0 to 7
	DSCP         int  `json:"dscp"`         // of RDMA packets
	CNP          int  `json:"cnp"`          // DSCP of congestion notifications
	CNPPriority  int  `json:"cnp_priority"` // 0 to 7
	TrafficClass int  `json:"traffic_class"`
	PFC          bool `json:"pfc"`
}

// Paused returns the priorities that are to be paused.
func (l RoCELossless) Paused() []int {
	if !l.PFC {
		return nil
	}
	return []int{l.Priority}
}

// RoCESorting is how a port sorts and pauses, as it was read.
type RoCESorting struct {
	Trust        string      `json:"trust,omitempty"`      // dscp or pcp
	Priorities   map[int]int `json:"priorities,omitempty"` // of DSCPs, those that are known
	Paused       []int       `json:"paused,omitempty"`     // priorities with PFC
	TrafficClass int         `json:"traffic_class"`        // of RDMA connections; -1: not read
}

// Set notes the priority of a DSCP.
func (s *RoCESorting) Set(dscp, priority int) {
	if s.Priorities == nil {
		s.Priorities = map[int]int{}
	}
	s.Priorities[dscp] = priority
}

// RoCEPort is one rail of a node. The port is found by PCI address, or by MAC
// where PCI is empty or has no network interface.
type RoCEPort struct {
	Rail         int      `json:"rail"`
	PCI          string   `json:"pci,omitempty"`
	MAC          addr.MAC `json:"mac"`
	Address      string   `json:"address"`                 // CIDR
	SoftwareRDMA string   `json:"software_rdma,omitempty"` // "rxe": make an RDMA device in the kernel
	Table        int      `json:"table,omitempty"`         // routing table of traffic from Address; 0: none
	Gateway      string   `json:"gateway,omitempty"`       // in that table
}

// RoCEResult is how the rails of a node are. Apply and check both end with
// looking.
type RoCEResult struct {
	Conforms bool            `json:"conforms"` // no port has a problem and the settings are persistent
	Changed  []string        `json:"changed,omitempty"`
	Ports    []RoCEPortState `json:"ports,omitempty"`
	Problems []string        `json:"problems,omitempty"` // of the node as a whole
	Error    *TaskError      `json:"error,omitempty"`
}

// RoCEPortState is one rail as it is.
type RoCEPortState struct {
	Rail       int      `json:"rail"`
	Netdev     string   `json:"netdev,omitempty"`
	RDMADevice string   `json:"rdma_device,omitempty"`
	GIDIndex   int      `json:"gid_index"` // -1: no GID of type RoCE v2 for Address
	GID        string   `json:"gid,omitempty"`
	GIDType    string   `json:"gid_type,omitempty"`
	State      string   `json:"state,omitempty"` // of the RDMA port: ACTIVE, DOWN, ...
	MTU        int      `json:"mtu,omitempty"`
	ActiveMTU  int      `json:"active_mtu,omitempty"` // of RDMA packets: the largest that fits into MTU
	Address    string   `json:"address,omitempty"`
	Problems   []string `json:"problems,omitempty"`

	Sorting *RoCESorting `json:"sorting,omitempty"` // where Lossless was asked for
}

// NodeCheck is the state of an installed node in short.
type NodeCheck struct {
	Hostname string   `json:"hostname"`
	Kernel   string   `json:"kernel"`
	BootID   string   `json:"boot_id"`
	Uptime   float64  `json:"uptime"`            // seconds
	System   string   `json:"system"`            // of systemd: running, degraded, starting, ...
	Failed   []string `json:"failed,omitempty"`  // units
	Marker   string   `json:"marker,omitempty"`  // of the install on the root disk, or on the first disk that has one where Root is not known
	Install  string   `json:"install,omitempty"` // state of the install: configured when it is whole
	Digest   string   `json:"digest,omitempty"`  // of the manifest of the image that was installed
	Identity Identity `json:"identity"`
	Root     *Disk    `json:"root,omitempty"` // that the root file system lies on, without a look at its content; nil: not known
	// Roots are those disks where they are several: an array, or a volume group.
	Roots  []Disk  `json:"roots,omitempty"`
	Arrays []Array `json:"arrays,omitempty"` // of md, that run
	// BootOrder is that of the firmware; nil: it is no UEFI, or does not report.
	BootOrder *BootOrder `json:"boot_order,omitempty"`
	// SecureBoot is as of Hardware.
	SecureBoot *SecureBoot `json:"secure_boot,omitempty"`
	Error      *TaskError  `json:"error,omitempty"`
}

// Array is one array of md, as the kernel shows it in /proc/mdstat.
type Array struct {
	Name    string  `json:"name"`              // md127
	Level   string  `json:"level"`             // raid1
	Disks   int     `json:"disks"`             // that it has room for
	Active  int     `json:"active"`            // that it has
	Doing   string  `json:"doing,omitempty"`   // resync, recovery, reshape or check
	Percent float64 `json:"percent,omitempty"` // of that
}
