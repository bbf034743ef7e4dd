// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// vlan is an interface of a tagged network that a kernel has made on another one.
type vlan struct {
	netdev
	id   int
	over string
}

// procVLAN is the folder in which the kernel describes VLAN interfaces.
const (
	procNet  = "proc/net"
	procVLAN = procNet + "/vlan"
)

// AddVLAN makes a VLAN interface; it is there once, however often it is made, and not without what
// it is on.
func (k *Kernel) AddVLAN(name string, id int, over string) {
	mtu := k.mtuOf(over)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.vlans == nil {
		k.vlans = map[string]*vlan{}
	}
	if k.vlans[name] == nil && mtu > 0 {
		k.vlans[name] = &vlan{netdev: netdev{mtu: mtu, up: true}, id: id, over: over}
	}
}

// mtuOf is the MTU of a port or a bond, bytes; 0: there is none of that name.
func (k *Kernel) mtuOf(name string) int {
	if b := k.bond(name); b.mode != "" {
		return b.mtu
	}
	if i, err := k.port(name); err == nil {
		return k.mtu(i)
	}
	return 0
}

// VLANs are the names of the VLAN interfaces.
func (k *Kernel) VLANs() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.vlans))
}

// vlan is a VLAN interface as it is: with no larger MTU than what it is on. The zero value where
// there is none.
func (k *Kernel) vlan(name string) vlan {
	k.mu.Lock()
	v := k.vlans[name]
	if v == nil {
		k.mu.Unlock()
		return vlan{}
	}
	x := *v
	k.mu.Unlock()
	x.mtu = min(x.mtu, k.mtuOf(x.over))
	return x
}

// changeVLAN changes a VLAN interface; false: there is none of that name.
func (k *Kernel) changeVLAN(name string, do func(*netdev)) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.vlans[name]
	if v != nil {
		do(&v.netdev)
	}
	return v != nil
}

// vlanAddresses are the addresses of a VLAN interface; false: there is none of that name.
func (k *Kernel) vlanAddresses(name string) ([]netip.Prefix, bool) {
	v := k.vlan(name)
	return slices.Clone(v.addresses), v.id != 0
}

// vlanFiles are the files of a VLAN interface below its folder in sys/class/net.
func (k *Kernel) vlanFiles(v vlan) map[string]string {
	mac, on := "", v.over
	if b := k.bond(v.over); b.mode != "" {
		mac, on = b.mac.String(), k.Carrying(v.over)
	}
	up, speed := false, int64(-1)
	if i, err := k.port(on); err == nil {
		if up = k.carrier(i); up && k.node.shape.ports[i].speed > 0 {
			speed = k.node.rate(i) / 1e6
		}
		mac = cmp.Or(mac, k.netAddress(i))
	}
	return map[string]string{"address": mac, "mtu": strconv.Itoa(v.mtu), "type": "1", "speed": strconv.FormatInt(speed, 10), "carrier": formatFlag(up), "operstate": chooseText(up, "up", "lowerlayerdown")}
}

// vlanEntry is a file or folder of a VLAN interface; nil: it is none.
func (k *Kernel) vlanEntry(path string) *file {
	if (path == procVLAN || path == procNet) && len(k.VLANs()) > 0 {
		return &file{mode: fs.ModeDir | 0o555}
	}
	if name, is := strings.CutPrefix(path, procVLAN+"/"); is {
		if v := k.vlan(name); v.id != 0 {
			return &file{mode: 0o600, data: fmt.Sprintf("%s  VID: %d\t REORDER_HDR: 1  dev->priv_flags: 1021\nDevice: %s\n", name, v.id, v.over)}
		}
		return nil
	}
	rest, below := strings.CutPrefix(path, classNet+"/")
	if !below {
		return nil
	}
	name, rest, _ := strings.Cut(rest, "/")
	v := k.vlan(name)
	if v.id == 0 {
		return nil
	}
	if rest == "" {
		return &file{mode: fs.ModeDir | 0o755}
	}
	if text, ok := k.vlanFiles(v)[rest]; ok {
		return &file{mode: 0o444, data: text + "\n"}
	}
	return nil
}

// vlanNames adds what VLAN interfaces bring to the names of a folder.
func (k *Kernel) vlanNames(dir string, names []string) []string {
	if dir == classNet {
		names = append(slices.Clone(names), k.VLANs()...)
		slices.Sort(names)
		return names
	}
	if v := k.vlan(strings.TrimPrefix(dir, classNet+"/")); v.id != 0 {
		return slices.Sorted(maps.Keys(k.vlanFiles(v)))
	}
	return names
}
