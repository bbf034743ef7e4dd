// SPDX-License-Identifier: Apache-2.0

package wire

// InfiniBand is the answer of `infiniband`: the RDMA ports of a node.
type InfiniBand struct {
	Ports []InfiniBandPort `json:"ports"`
	Error *TaskError       `json:"error,omitempty"`
}

// InfiniBandPort is one port of an RDMA device as the kernel shows it.
type InfiniBandPort struct {
	Device   string   `json:"device"` // mlx5_0
	PCI      string   `json:"pci,omitempty"`
	Number   int      `json:"number"`                // of the port, from 1
	HCA      string   `json:"hca,omitempty"`         // node GUID, as 0x506b4b03005c2740
	GUID     string   `json:"guid,omitempty"`        // of the port
	Layer    string   `json:"layer"`                 // "InfiniBand" or "Ethernet"
	State    string   `json:"state"`                 // ACTIVE, INIT, ARMED, DOWN
	Physical string   `json:"physical"`              // LinkUp, Polling, Disabled
	Rate     string   `json:"rate"`                  // "400 Gb/sec (4X NDR)"
	LID      int      `json:"lid,omitempty"`         // 0: none yet
	PKeys    []uint16 `json:"pkeys,omitempty"`       // with their membership bits, without free entries
	Netdev   string   `json:"netdev,omitempty"`      // of IPoIB
	Downed   *int64   `json:"link_downed,omitempty"` // how often its link has gone down since the counters were cleared
}
