// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/model"
)

// ipRow is one interface as `ip -j` writes it.
type ipRow struct {
	Index    int      `json:"ifindex"`
	Name     string   `json:"ifname"`
	Flags    []string `json:"flags"`
	MTU      int      `json:"mtu"`
	Qdisc    string   `json:"qdisc"`
	State    string   `json:"operstate"`
	Group    string   `json:"group"`
	TxQueue  int      `json:"txqlen"`
	Type     string   `json:"link_type"`
	Address  string   `json:"address"`
	Brd      string   `json:"broadcast"`
	AddrInfo []ipAddr `json:"addr_info,omitempty"`
}

type ipAddr struct {
	Family string `json:"family"`
	Local  string `json:"local"`
	Bits   int    `json:"prefixlen"`
	Scope  string `json:"scope"`
	Label  string `json:"label"`
	Valid  int64  `json:"valid_life_time"`
	Pref   int64  `json:"preferred_life_time"`
}

// forever is a lifetime without end.
const forever = 1<<32 - 1

func (n *node) ipRows() []ipRow {
	rows := []ipRow{{Index: 1, Name: "lo", Flags: []string{"LOOPBACK", "UP", "LOWER_UP"}, MTU: 65536, Qdisc: "noqueue", State: "UNKNOWN", Group: "default", TxQueue: 1000,
		Type: "loopback", Address: "00:00:00:00:00:00", Brd: "00:00:00:00:00:00", AddrInfo: []ipAddr{{"inet", "127.0.0.1", 8, "host", "lo", forever, forever}}}}
	for _, p := range n.cfg.Ports {
		at := func(name string) string { return n.fs.Text("sys/class/net", p.Netdev, name) }
		if at("address") == "" {
			continue
		}
		r := ipRow{Index: n.ifindex(p.Netdev), Name: p.Netdev, Flags: []string{"BROADCAST", "MULTICAST"}, MTU: int(n.fs.Int("sys/class/net", p.Netdev, "mtu")),
			Qdisc: "mq", State: "DOWN", Group: "default", TxQueue: 1000, Type: "ether", Address: at("address"), Brd: "ff:ff:ff:ff:ff:ff"}
		if at("type") == "32" {
			r.Type, r.Brd = "infiniband", "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff"
		}
		switch carrier := at("carrier"); {
		case carrier == "1":
			r.Flags, r.State = append(r.Flags, "UP", "LOWER_UP"), "UP"
		case carrier == "0":
			r.Flags = append([]string{"NO-CARRIER"}, append(r.Flags, "UP")...)
		}
		r.AddrInfo = n.addressesOf(p.Netdev)
		rows = append(rows, r)
	}
	for i, name := range n.cfg.Kernel.Bonds() {
		rows = append(rows, n.madeRow(len(rows)+1+i, name, "MASTER"))
	}
	for _, name := range n.cfg.Kernel.VLANs() {
		rows = append(rows, n.madeRow(len(rows)+1, name))
	}
	return rows
}

// madeRow is a bond or a VLAN interface.
func (n *node) madeRow(index int, name string, flags ...string) ipRow {
	at := func(file string) string { return n.fs.Text("sys/class/net", name, file) }
	r := ipRow{Index: index, Name: name, Flags: append(append([]string{"BROADCAST", "MULTICAST"}, flags...), "UP"), MTU: int(n.fs.Int("sys/class/net", name, "mtu")),
		Qdisc: "noqueue", State: "DOWN", Group: "default", TxQueue: 1000, Type: "ether", Address: at("address"), Brd: "ff:ff:ff:ff:ff:ff"}
	if at("carrier") == "1" {
		r.Flags, r.State = append(r.Flags, "LOWER_UP"), "UP"
	}
	r.AddrInfo = n.addressesOf(name)
	return r
}

// addressesOf are the addresses of an interface.
func (n *node) addressesOf(name string) (rows []ipAddr) {
	list, err := n.cfg.Kernel.Addresses(name)
	if err != nil {
		return nil
	}
	for _, a := range list {
		family := "inet"
		if a.Addr().Is6() {
			family = "inet6"
		}
		rows = append(rows, ipAddr{family, a.Addr().String(), a.Bits(), "global", name, forever, forever})
	}
	return rows
}

// runIP is iproute2's ip: addr and link, to look only.
func runIP(_ context.Context, c call) int {
	o, words := splitOperands(c.Argv, "")
	if len(words) == 0 {
		return c.fail("no object")
	}
	address := strings.HasPrefix("address", words[0])
	if !address && !strings.HasPrefix("link", words[0]) {
		_, _ = fmt.Fprintf(c.Err, "Object \"%s\" is unknown, try \"ip help\".\n", words[0])
		return 1
	}
	only := ""
	for i, w := range words {
		if w == "dev" && i+1 < len(words) {
			only = words[i+1]
		}
	}
	var rows []ipRow
	for _, r := range c.n.ipRows() {
		if only != "" && r.Name != only {
			continue
		}
		if !address {
			r.AddrInfo = nil
		}
		rows = append(rows, r)
	}
	if only != "" && len(rows) == 0 {
		_, _ = fmt.Fprintf(c.Err, "Device \"%s\" does not exist.\n", only)
		return 1
	}
	if hasOption(o, 'j') {
		b, err := json.Marshal(rows)
		if err != nil {
			return 1
		}
		c.print(string(b) + "\n")
		return 0
	}
	c.printRows(rows)
	return 0
}

// printRows prints interfaces as ip does without -j.
func (c call) printRows(rows []ipRow) {
	for _, r := range rows {
		c.print(fmt.Sprintf("%d: %s: <%s> mtu %d qdisc %s state %s group default qlen %d\n    link/%s %s brd %s\n", r.Index, r.Name, strings.Join(r.Flags, ","), r.MTU, r.Qdisc, r.State, r.TxQueue, r.Type, r.Address, r.Brd))
		for _, a := range r.AddrInfo {
			c.print(fmt.Sprintf("    %s %s/%d scope %s %s\n       valid_lft forever preferred_lft forever\n", a.Family, a.Local, a.Bits, a.Scope, a.Label))
		}
	}
}

// runEthtool prints the settings of a link, and with -S what it counted.
func runEthtool(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "")
	if len(names) == 0 {
		return c.fail("bad command line argument(s)")
	}
	p, ok := c.n.portOf(names[0])
	if !ok || p.Netdev != names[0] || !c.n.tree.exists("sys/class/net/"+p.Netdev) {
		_, _ = fmt.Fprintf(c.Err, "netlink error: no device matches name (offset 24)\nnetlink error: No such device\n")
		return 75
	}
	if hasOption(o, 'S') {
		c.print("NIC statistics:\n" + formatStatistics(c.n.cfg.Site.model.Counters(p.ID)))
		return 0
	}
	state := c.n.cfg.Site.model.State(p.ID)
	if hasOption(o, 'm') {
		c.print("\tIdentifier                                : 0x1e (QSFP+ or later with Common Management Interface Specification (CMIS))\n" +
			"\tPower class                               : 5\n\tRevision Compliance                       : Rev. 5.0\n")
		return 0
	}
	speed, link := "Unknown!", "no"
	if state.Up && c.n.fs.Text("sys/class/net", p.Netdev, "carrier") == "1" {
		link = "yes"
		if state.Speed > 0 {
			speed = fmt.Sprintf("%dMb/s", int64(state.Speed)/1e6)
		}
	}
	c.print(fmt.Sprintf("Settings for %s:\n\tSpeed: %s\n", p.Netdev, speed))
	if link == "yes" && state.Speed > 0 {
		c.print(fmt.Sprintf("\tLanes: %d\n", state.Lanes))
	}
	c.print("\tDuplex: Full\n\tAuto-negotiation: on\n\tPort: FIBRE\n\tPHYAD: 0\n\tTransceiver: internal\n\tLink detected: " + link + "\n")
	return 0
}

// formatStatistics are counters under the names of mlx5's ethtool -S.
func formatStatistics(k model.Counters) string {
	text := ""
	for _, s := range []struct {
		name  string
		value int64
	}{
		{"rx_vport_rdma_unicast_bytes", k.RcvBytes}, {"tx_vport_rdma_unicast_bytes", k.XmitBytes}, {"rx_crc_errors_phy", k.PortRcvErrors},
		{"rx_symbol_err_phy", k.SymbolError}, {"link_down_events_phy", k.LinkDowned + k.LinkErrorRecovery}, {"rx_discards_phy", 0}, {"tx_errors_phy", 0},
	} {
		text += fmt.Sprintf("     %s: %d\n", s.name, s.value)
	}
	return text
}
