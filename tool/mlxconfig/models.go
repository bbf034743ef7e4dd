// SPDX-License-Identifier: Apache-2.0

package mlxconfig

import (
	"slices"
	"strings"
)

// Model is a family of NVIDIA's NICs, by what its settings can do.
type Model struct {
	Name   string // as people write it: ConnectX-7
	Device string // as mlxconfig does: ConnectX7
	VPI    bool   // has cards whose ports are InfiniBand or Ethernet, by LINK_TYPE_P1 and P2
	DPU    []string
	Split  Split
}

// Split is how the one cage of a card can be shared out to several ports, each of which
// is then a function of its own.
type Split struct {
	Into      []int  // numbers of ports; nil: none is published
	Lanes     int    // of the cage, which the ports share
	Functions bool   // NUM_OF_PF is set too, and NUM_OF_PLANES_P1 where the card has it
	Says      string // what the description of a card has to say of it; empty: nothing
}

// The splits that are published. ConnectX-8 and BlueField-3: "breakout" of planes in
// software in bindata/spectrum-x/RA3.0.yaml of Mellanox/nic-configuration-operator, whose
// split into 2 is also that of NVIDIA's DGX OS guide for B300. ConnectX-7: MODULE_SPLIT_M0
// of MCX715105AS-WEAT into 4 ports of 100GbE in NVIDIA's manual of the card, whose
// description says that it can; people lost cards that do not say so to that setting, which
// they accept and which takes them off the bus at the next boot.
var (
	splitConnectX8  = Split{Into: []int{2, 4}, Lanes: 8, Functions: true}
	splitBlueField3 = Split{Into: []int{2, 4}, Lanes: 4, Functions: true}
	splitConnectX7  = Split{Into: []int{4}, Lanes: 4, Says: "Port Split Capable"}
)

// Names of settings, and of MODULE_SPLIT_M0 the number of its elements, which are numbers of
// ports from 1 by lane; Unused is a lane without a port.
const (
	ModuleSplit = "MODULE_SPLIT_M0"
	NumOfPF     = "NUM_OF_PF"
	NumOfPlanes = "NUM_OF_PLANES_P1"
	SplitLanes  = 16
	Unused      = 0xff
)

// Ports returns the port of each element of MODULE_SPLIT_M0; nil where no split into that
// many is published.
func (s Split) Ports(into int) (list []int) {
	if !slices.Contains(s.Into, into) {
		return nil
	}
	for i := range SplitLanes {
		port := Unused
		if i < s.Lanes {
			port = i*into/s.Lanes + 1
		}
		list = append(list, port)
	}
	return list
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
	{Name: "ConnectX-7", Device: "ConnectX7", VPI: true, Split: splitConnectX7},
	{Name: "ConnectX-8", Device: "ConnectX8", VPI: true, Split: splitConnectX8},
	{Name: "BlueField-2", Device: "BlueField2", VPI: true, DPU: bluefield2},
	{Name: "BlueField-3", Device: "BlueField3", VPI: true, DPU: bluefield3, Split: splitBlueField3},
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
