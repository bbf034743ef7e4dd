// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rdmaPort is the one port of an RDMA device as sysfs has it.
type rdmaPort struct {
	device, hca, firmware, node string
	netdev                      string
	state, physical             string // without their numbers
	stateNumber, physNumber     int
	rate, generation            string // "400", "4X NDR"
	lid                         int
	ethernet                    bool
	guid                        string
	activeMTU                   int
}

// rdmaPorts reads the RDMA devices of the node.
func (n *node) rdmaPorts() []rdmaPort {
	var list []rdmaPort
	for _, device := range n.fs.Names("sys/class/infiniband") {
		at := func(name string) string { return n.fs.Text("sys/class/infiniband", device, name) }
		p := rdmaPort{device: device, hca: at("hca_type"), firmware: at("fw_ver"), node: at("node_guid")}
		if q, ok := n.portOf(device); ok {
			p.netdev = q.Netdev
		}
		p.stateNumber, p.state = splitNumbered(at("ports/1/state"))
		p.physNumber, p.physical = splitNumbered(at("ports/1/phys_state"))
		rate, rest, _ := strings.Cut(at("ports/1/rate"), " Gb/sec")
		p.rate, p.generation = rate, strings.Trim(rest, " ()")
		lid, _ := strconv.ParseInt(at("ports/1/lid"), 0, 32)
		p.lid = int(lid)
		p.ethernet = at("ports/1/link_layer") == "Ethernet"
		p.guid = strings.ReplaceAll(p.node, ":", "")
		if gid := strings.Split(at("ports/1/gids/0"), ":"); len(gid) == 8 && !isEmptyGID(strings.Join(gid, ":")) {
			p.guid = strings.Join(gid[4:], "")
		}
		p.activeMTU = 4096
		if p.ethernet {
			p.activeMTU = activeMTU(int(n.fs.Int("sys/class/net", p.netdev, "mtu")))
		}
		list = append(list, p)
	}
	return list
}

// splitNumbered splits "4: ACTIVE".
func splitNumbered(s string) (int, string) {
	number, word, _ := strings.Cut(s, ": ")
	n, _ := strconv.Atoi(number)
	return n, word
}

// portState is a state as the diagnostic programs write it.
func portState(s string) string {
	switch s {
	case "ACTIVE":
		return "Active"
	case "INIT":
		return "Initializing"
	case "ARMED":
		return "Armed"
	}
	return "Down"
}

func formatGUID(s string) string { return "0x" + strings.ReplaceAll(s, ":", "") }

// runIbstat prints as infiniband-diags' ibstat does.
func runIbstat(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "")
	ports := c.n.rdmaPorts()
	// ibstat lists names as strings: mlx5_10 before mlx5_2.
	slices.SortFunc(ports, func(a, b rdmaPort) int { return strings.Compare(a.device, b.device) })
	if len(names) > 0 {
		ports = slices.DeleteFunc(ports, func(p rdmaPort) bool { return p.device != names[0] })
		if len(ports) == 0 {
			_, _ = fmt.Fprintf(c.Err, "ibpanic: [%d] main: 'ca:%s' device not found: No such file or directory\n", c.pid, names[0])
			return 255
		}
	}
	for _, p := range ports {
		if hasOption(o, 'l') {
			c.print(p.device + "\n")
			continue
		}
		layer, capability, lid, sm := "InfiniBand", "0xa751e848", p.lid, 1
		if p.ethernet {
			layer, capability, lid, sm = "Ethernet", "0x00010000", 0, 0
		} else if p.state != "ACTIVE" {
			sm = 0
		}
		c.print(fmt.Sprintf("CA '%s'\n\tCA type: %s\n\tNumber of ports: 1\n\tFirmware version: %s\n\tHardware version: 0\n\tNode GUID: %s\n\tSystem image GUID: %s\n",
			p.device, p.hca, p.firmware, formatGUID(p.node), formatGUID(p.node)))
		c.print(fmt.Sprintf("\tPort 1:\n\t\tState: %s\n\t\tPhysical state: %s\n\t\tRate: %s\n\t\tBase lid: %d\n\t\tLMC: 0\n\t\tSM lid: %d\n\t\tCapability mask: %s\n\t\tPort GUID: %s\n\t\tLink layer: %s\n",
			portState(p.state), p.physical, p.rate, lid, sm, capability, formatGUID(p.guid), layer))
	}
	return 0
}

// ibvDevices prints as rdma-core's ibv_devices does.
func ibvDevices(_ context.Context, c call) int {
	c.print("    device          \t   node GUID\n    ------          \t----------------\n")
	for _, p := range c.n.rdmaPorts() {
		c.print(fmt.Sprintf("    %-16s\t%s\n", p.device, strings.ReplaceAll(p.node, ":", "")))
	}
	return 0
}

// ibvDevinfo prints as rdma-core's ibv_devinfo does.
func ibvDevinfo(_ context.Context, c call) int {
	o, _ := splitOperands(c.Argv, "di")
	found := false
	for _, p := range c.n.rdmaPorts() {
		if d, given := o['d']; given && d != p.device {
			continue
		}
		found = true
		if hasOption(o, 'l') {
			c.print(p.device + "\n")
			continue
		}
		layer, state := "InfiniBand", "PORT_"+strings.ToUpper(p.state)
		if p.ethernet {
			layer = "Ethernet"
		}
		c.print(fmt.Sprintf("hca_id:\t%s\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t%s\n\tnode_guid:\t\t\t%s\n\tsys_image_guid:\t\t\t%s\n\tvendor_id:\t\t\t0x02c9\n\tvendor_part_id:\t\t\t%s\n\thw_ver:\t\t\t\t0x0\n\tphys_port_cnt:\t\t\t1\n",
			p.device, p.firmware, p.node, p.node, partID(p.hca)))
		c.print(fmt.Sprintf("\t\tport:\t1\n\t\t\tstate:\t\t\t%s (%d)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t%d (%d)\n\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t%d\n\t\t\tport_lmc:\t\t0x00\n\t\t\tlink_layer:\t\t%s\n\n",
			state, p.stateNumber, p.activeMTU, mtuCode(p.activeMTU), p.lid, layer))
	}
	if !found {
		_, _ = fmt.Fprintln(c.Err, "No IB devices found")
		return 255
	}
	return 0
}

// mtuCode is enum ibv_mtu.
func mtuCode(mtu int) int {
	code := 1
	for size := 256; size < mtu; size *= 2 {
		code++
	}
	return code
}

func partID(hca string) string {
	if n, ok := strings.CutPrefix(hca, "MT"); ok {
		return n
	}
	return "0"
}

// rdmaProgram is iproute2's rdma: link and dev, as text or JSON.
func rdmaProgram(_ context.Context, c call) int {
	o, words := splitOperands(c.Argv, "")
	if len(words) == 0 {
		words = []string{"link"}
	}
	type linkRow struct {
		Index    int    `json:"ifindex"`
		Port     int    `json:"port"`
		Name     string `json:"ifname"`
		State    string `json:"state"`
		Physical string `json:"physical_state"`
		Netdev   string `json:"netdev,omitempty"`
		NetIndex int    `json:"netdev_index,omitempty"`
	}
	type devRow struct {
		Index int    `json:"ifindex"`
		Name  string `json:"ifname"`
		Type  string `json:"node_type"`
		FW    string `json:"fw,omitempty"`
		GUID  string `json:"node_guid"`
	}
	var links []linkRow
	var devs []devRow
	for i, p := range c.n.rdmaPorts() {
		physical := strings.ReplaceAll(upperSnake(p.physical), "LINKUP", "LINK_UP")
		r := linkRow{Index: i, Port: 1, Name: p.device, State: p.state, Physical: physical}
		if p.ethernet {
			r.Netdev, r.NetIndex = p.netdev, c.n.ifindex(p.netdev)
		}
		links, devs = append(links, r), append(devs, devRow{i, p.device, "ca", p.firmware, p.node})
	}
	var rows any = links
	if words[0] == "dev" {
		rows = devs
	} else if words[0] != "link" {
		return c.fail("Unknown argument: " + words[0])
	}
	if hasOption(o, 'j') {
		b, err := json.Marshal(rows)
		if err != nil {
			return 1
		}
		c.print(string(b) + " \n")
		return 0
	}
	if words[0] == "dev" {
		for _, d := range devs {
			c.print(fmt.Sprintf("%d: %s: node_type %s fw %s node_guid %s \n", d.Index, d.Name, d.Type, d.FW, d.GUID))
		}
		return 0
	}
	for _, l := range links {
		c.print(fmt.Sprintf("link %s/1 state %s physical_state %s ", l.Name, l.State, l.Physical))
		if l.Netdev != "" {
			c.print("netdev " + l.Netdev + " ")
		}
		c.print("\n")
	}
	return 0
}

func upperSnake(s string) string { return strings.ToUpper(strings.ReplaceAll(s, " ", "_")) }

// ifindex is the kernel's number of an interface: lo is 1.
func (n *node) ifindex(netdev string) int {
	return 2 + slices.IndexFunc(n.cfg.Ports, func(p Port) bool { return p.Netdev == netdev })
}
