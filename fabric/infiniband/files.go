// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
)

// Names of the files below the subnet manager's folder.
const (
	confFile       = "opensm.conf"
	partitionsFile = "partitions.conf"
	rootsFile      = "root_guids.conf"
	computeFile    = "cn_guids.conf"
	ioFile         = "io_guids.conf"
	orderFile      = "guid_routing_order.conf"
	namesFile      = "node_name_map.conf"
)

// File is one file of a subnet manager.
type File struct {
	Name    string // below its folder
	Content []byte
	// Restart: opensm reads a change of it only when it starts; of the others, at
	// every heavy sweep.
	Restart bool
}

// Known is what the files need to know of the world: the ports of the nodes, and
// which switch has which GUID. Both may be in part.
type Known struct {
	Members  []Member
	Switches map[addr.GUID]*inventory.Switch // by node GUID
}

// Render makes the files of one subnet manager of a fabric: priority 0 is the
// first of run_on, the master. folder is where they will lie. It is pure, and the
// same site and knowledge give the same bytes.
func Render(inv *inventory.Inventory, f *inventory.Fabric, k Known, folder string, standby int) []File {
	files := []File{
		{Name: partitionsFile, Content: renderPartitions(f, k.Members)},
		{Name: namesFile, Content: renderNames(f, k)},
	}
	if roots := renderRoots(inv, f, k); roots != nil {
		files = append(files, File{Name: rootsFile, Content: roots})
	}
	compute, io := splitMembers(k.Members)
	if len(compute) > 0 && len(io) > 0 { // else all are of one kind, which is what opensm assumes
		files = append(files, File{Name: computeFile, Content: renderGUIDs(f, "ports of compute nodes", compute)},
			File{Name: ioFile, Content: renderGUIDs(f, "ports of nodes without a GPU", io)})
	}
	files = append(files, File{Name: orderFile, Content: renderGUIDs(f, "order of routing, rail by rail", byRail(k.Members))})
	files = append(files, File{Name: confFile, Content: renderConf(inv, f, folder, standby, files), Restart: true})
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files
}

// highestPriority is that of the master. opensm takes 0 to 15; 15 is left to
// whoever must take the subnet over by hand.
const highestPriority = 14

// priorityOf returns that of a place in run_on, from 0: the master's.
func priorityOf(place int) int { return max(1, highestPriority-place) }

// renderConf writes opensm.conf: what differs from the defaults of opensm 3.3, and
// the defaults that this program relies on. Source: opensm(8), opensm -c.
func renderConf(inv *inventory.Inventory, f *inventory.Fabric, folder string, standby int, files []File) []byte {
	var b bytes.Buffer
	writeHeading(&b, f, "options")
	has := func(name string) bool {
		return slices.ContainsFunc(files, func(x File) bool { return x.Name == name })
	}
	file := func(option, name string) {
		if has(name) {
			fmt.Fprintf(&b, "%s %s\n", option, path.Join(folder, name))
		}
	}
	b.WriteString("\n# Of several managers the one with the highest priority is the master.\n")
	fmt.Fprintf(&b, "sm_priority %d\nsminfo_polling_timeout 1000\npolling_retry_number 4\n", priorityOf(standby))
	b.WriteString("\n# Routes: the first engine that can route the fabric.\n")
	fmt.Fprintf(&b, "routing_engine %s\nuse_ucast_cache TRUE\nlmc 0\n", strings.Join(RoutingEngines(inv, f), ","))
	file("root_guid_file", rootsFile)
	file("cn_guid_file", computeFile)
	file("io_guid_file", ioFile)
	file("guid_routing_order_file", orderFile)
	b.WriteString("\n# Ports keep their LIDs, also when this manager was away.\nreassign_lids FALSE\nhonor_guid2lid_file TRUE\n")
	b.WriteString("\n# Partitions, enforced by the switches.\n")
	file("partition_config_file", partitionsFile)
	b.WriteString("part_enforce both\n")
	b.WriteString("\n# How the fabric is watched.\nsweep_interval 10\nsubnet_timeout 18\nmax_wire_smps 8\nbabbling_port_policy TRUE\nqos FALSE\n")
	file("node_name_map_name", namesFile)
	b.WriteString("\n# The log is read back: its lines must not wait in a buffer.\nlog_flags 0x03\nforce_log_flush TRUE\n")
	return b.Bytes()
}

// renderRoots lists the switches of the top tier, of which fat-tree routing starts;
// nil where none of them is known.
func renderRoots(inv *inventory.Inventory, f *inventory.Fabric, k Known) []byte {
	top := inventory.NoTier
	for _, s := range inv.Switches {
		if s.Fabric == f && (s.Tier == inventory.Core || s.Tier == inventory.Spine && top != inventory.Core) {
			top = s.Tier
		}
	}
	if top == inventory.NoTier {
		return nil
	}
	var b bytes.Buffer
	writeHeading(&b, f, "switches of the top tier")
	known := false
	for _, g := range sortedSwitches(k) {
		if s := k.Switches[g]; s.Fabric == f && s.Tier == top {
			fmt.Fprintf(&b, "%s # %s\n", g, s.Name)
			known = true
		}
	}
	if !known {
		return nil
	}
	return b.Bytes()
}

// renderGUIDs lists ports, one a line.
func renderGUIDs(f *inventory.Fabric, what string, members []Member) []byte {
	var b bytes.Buffer
	writeHeading(&b, f, what)
	for _, m := range members {
		fmt.Fprintf(&b, "%s # %s\n", m.GUID, m.Name())
	}
	return b.Bytes()
}

// renderNames names HCAs and switches as the site does, for opensm's log and the
// diagnostic programs. Source: the section "node name map" of ibnetdiscover(8).
func renderNames(f *inventory.Fabric, k Known) []byte {
	var b bytes.Buffer
	writeHeading(&b, f, "names of nodes and switches")
	for _, g := range sortedSwitches(k) {
		fmt.Fprintf(&b, "%s %q\n", g, k.Switches[g].Name)
	}
	for _, ports := range byNode(k.Members) {
		for _, m := range ports {
			fmt.Fprintf(&b, "%s %q\n", m.HCA, fmt.Sprintf("%s rail %d", m.Node.Name, m.Rail()))
		}
	}
	return b.Bytes()
}

// splitMembers parts the ports of nodes with GPUs from those without.
func splitMembers(members []Member) (compute, io []Member) {
	for _, ports := range byNode(members) {
		if ports[0].Node.Hardware.GPUCount() > 0 {
			compute = append(compute, ports...)
		} else {
			io = append(io, ports...)
		}
	}
	return compute, io
}

// byRail orders ports so that the routes to one rail's ports are spread over the
// uplinks one after the other.
func byRail(members []Member) []Member {
	var list []Member
	for _, ports := range byNode(members) {
		list = append(list, ports...)
	}
	slices.SortStableFunc(list, func(a, b Member) int { return a.Rail() - b.Rail() })
	return list
}

func sortedSwitches(k Known) []addr.GUID {
	list := make([]addr.GUID, 0, len(k.Switches))
	for g := range k.Switches {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b addr.GUID) int {
		return strings.Compare(k.Switches[a].Name, k.Switches[b].Name)
	})
	return list
}
