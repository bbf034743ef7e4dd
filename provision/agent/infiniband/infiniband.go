// SPDX-License-Identifier: Apache-2.0

// Package infiniband reads the RDMA ports of a node from sysfs: who they are, how
// their links are, and which partitions the subnet manager has put them into. It
// changes nothing. Source: Documentation/ABI/stable/sysfs-class-infiniband of Linux.
package infiniband

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

const class = "sys/class/infiniband"

// Read reads all ports, in the order of their devices.
func Read(fs sysfs.FS) wire.InfiniBand {
	r, ipoib := wire.InfiniBand{Ports: []wire.InfiniBandPort{}}, netdevs(fs)
	for _, device := range fs.Names(class) {
		hca := ""
		if g, err := addr.ParseGUID(fs.Text(class, device, "node_guid")); err == nil {
			hca = g.String()
		}
		for _, number := range fs.Names(class, device, "ports") {
			p := port(fs, device, number)
			p.HCA, p.Netdev = hca, ipoib[p.PCI]
			r.Ports = append(r.Ports, p)
		}
	}
	return r
}

func port(fs sysfs.FS, device, number string) wire.InfiniBandPort {
	at := func(elem ...string) string {
		return fs.Text(append([]string{class, device, "ports", number}, elem...)...)
	}
	p := wire.InfiniBandPort{Device: device, PCI: sysfs.PCI(fs.Real(class, device, "device")), Layer: at("link_layer"), Rate: at("rate")}
	p.Number, _ = strconv.Atoi(number)
	_, p.State, _ = strings.Cut(at("state"), ": ")
	_, p.Physical, _ = strings.Cut(at("phys_state"), ": ")
	lid, _ := strconv.ParseUint(at("lid"), 0, 16) // 0 where there is none
	p.LID = int(lid)
	p.GUID = guid(at("gids", "0"))
	for _, i := range fs.Names(class, device, "ports", number, "pkeys") {
		if k, err := strconv.ParseUint(at("pkeys", i), 0, 16); err == nil && k&0x7fff != 0 {
			p.PKeys = append(p.PKeys, uint16(k))
		}
	}
	slices.Sort(p.PKeys)
	if n, err := strconv.ParseInt(at("counters/link_downed"), 10, 64); err == nil {
		p.Downed = &n
	}
	return p
}

// guid is the port GUID, the lower half of GID 0 (IBTA volume 1, 4.1.1); empty
// where that is not set.
func guid(gid string) string {
	groups := strings.Split(gid, ":")
	if len(groups) != 8 {
		return ""
	}
	g, err := addr.ParseGUID(strings.Join(groups[4:], ""))
	if err != nil || g == 0 {
		return ""
	}
	return g.String()
}

// netdevs are the IPoIB interfaces by their PCI function: ARPHRD_INFINIBAND is 32.
// Their children, one for each further partition, have a parent.
func netdevs(fs sysfs.FS) map[string]string {
	all := map[string]string{}
	for _, name := range fs.Names("sys/class/net") {
		if strings.Contains(name, ".") || fs.Text("sys/class/net", name, "type") != "32" {
			continue
		}
		if pci := fs.NetdevPCI(name); pci != "" && all[pci] == "" {
			all[pci] = name
		}
	}
	return all
}
