// SPDX-License-Identifier: Apache-2.0

package mlxconfig

import "strings"

// Model is a family of NVIDIA's NICs, by what its settings can do.
type Model struct {
	Name   string // as people write it: ConnectX-7
	Device string // as mlxconfig does: ConnectX7
	VPI    bool   // has cards whose ports are InfiniBand or Ethernet, by LINK_TYPE_P1 and P2
	DPU    []string
}

// bluefield3 and bluefield2 are what makes a BlueField a NIC (1) or a DPU (0): NVIDIA
// BlueField Modes of Operation (DOCA documentation), "NIC Mode for BlueField-3" and
// "for BlueField-2".
var (
	bluefield3 = []string{"INTERNAL_CPU_OFFLOAD_ENGINE"}
	bluefield2 = []string{"INTERNAL_CPU_PAGE_SUPPLIER", "INTERNAL_CPU_ESWITCH_MANAGER", "INTERNAL_CPU_IB_VPORT0", "INTERNAL_CPU_OFFLOAD_ENGINE"}
)

// models are the families, of names that begin alike the longest first. Names of devices:
// dev_mgt/tools_dev_types.c of Mellanox/mstflint. ConnectX-4 Lx, 6 Lx and 6 Dx are
// Ethernet alone (NVIDIA's product pages).
var models = []Model{
	{Name: "ConnectX-4 Lx", Device: "ConnectX4LX"},
	{Name: "ConnectX-4", Device: "ConnectX4", VPI: true},
	{Name: "ConnectX-5", Device: "ConnectX5", VPI: true},
	{Name: "ConnectX-6 Dx", Device: "ConnectX6DX"},
	{Name: "ConnectX-6 Lx", Device: "ConnectX6LX"},
	{Name: "ConnectX-6", Device: "ConnectX6", VPI: true},
	{Name: "ConnectX-7", Device: "ConnectX7", VPI: true},
	{Name: "ConnectX-8", Device: "ConnectX8", VPI: true},
	{Name: "BlueField-2", Device: "BlueField2", VPI: true, DPU: bluefield2},
	{Name: "BlueField-3", Device: "BlueField3", VPI: true, DPU: bluefield3},
}

// FindModel returns the family that a name of a part is of; false for parts of others,
// and for families that are not known.
func FindModel(name string) (Model, bool) {
	name = strings.ToLower(name)
	for _, m := range models {
		if strings.Contains(name, strings.ToLower(m.Name)) {
			return m, true
		}
	}
	return Model{}, false
}

// ModelNames are the names of the families of which ok says so; nil: of all.
func ModelNames(ok func(Model) bool) (names []string) {
	for _, m := range models {
		if ok == nil || ok(m) {
			names = append(names, m.Name)
		}
	}
	return names
}
