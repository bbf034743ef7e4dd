// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
)

// bond is an interface that a kernel has made of ports. The switches of the virtual rack
// speak LACP on every port and take all members into one aggregation.
type bond struct {
	netdev
	mode    string
	mac     addr.MAC
	members []int // ports
}

// bondModes are the numbers of the modes that the kernel shows beside their names
// (Documentation/networking/bonding.rst).
var bondModes = map[string]string{"balance-rr": "0", "active-backup": "1", "balance-xor": "2", "802.3ad": "4"}

const classNet = "sys/class/net"

// AddBond makes a bond without members; it is there once, however often it is made.
func (k *Kernel) AddBond(name, mode string, mac addr.MAC) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bonds == nil {
		k.bonds = map[string]*bond{}
	}
	if k.bonds[name] == nil && bondModes[mode] != "" {
		k.bonds[name] = &bond{netdev: netdev{mtu: 1500, up: true}, mode: mode, mac: mac}
	}
}

// Enslave makes an interface a member of a bond, and up.
func (k *Kernel) Enslave(name, to string) error {
	i, err := k.port(name)
	if err != nil {
		return err
	}
	if err := k.Up(name); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if b := k.bonds[to]; b != nil && !slices.Contains(b.members, i) {
		b.members = append(b.members, i)
	}
	return nil
}

// Bonds are the names of the bonds.
func (k *Kernel) Bonds() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.bonds))
}

// Carrying is the interface of the first member of a bond that has a link; "": there is
// none.
func (k *Kernel) Carrying(name string) string {
	for _, i := range k.bond(name).members {
		if k.carrier(i) {
			return k.node.shape.ports[i].netdev
		}
	}
	return ""
}

// bond is a bond as it is; the zero value where there is none.
func (k *Kernel) bond(name string) bond {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b := k.bonds[name]; b != nil {
		x := *b
		x.members = slices.Clone(b.members)
		return x
	}
	return bond{}
}

// bondOf is the bond that a port is a member of; false: none.
func (k *Kernel) bondOf(i int) (bond, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.bonds {
		if slices.Contains(b.members, i) {
			return *b, true
		}
	}
	return bond{}, false
}

// changeBond changes a bond, and gives its members its MTU; false: there is no such bond.
func (k *Kernel) changeBond(name string, do func(*netdev)) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.bonds[name]
	if b == nil {
		return false
	}
	before := b.mtu
	do(&b.netdev)
	for _, i := range b.members {
		if d := k.netdevs[i]; d != nil && b.mtu != before {
			d.mtu = b.mtu
		}
	}
	return true
}

// bondAddresses are the addresses of a bond; false: there is no such bond.
func (k *Kernel) bondAddresses(name string) ([]netip.Prefix, bool) {
	b := k.bond(name)
	return slices.Clone(b.addresses), b.mode != ""
}

// netAddress is what an interface shows as its MAC: that of its bond, if it is a member.
func (k *Kernel) netAddress(i int) string {
	if b, member := k.bondOf(i); member {
		return b.mac.String()
	}
	return k.node.netAddress(i)
}

// bondFiles are the files of a bond below its folder in sys/class/net.
func (k *Kernel) bondFiles(b bond) map[string]string {
	var slaves []string
	up := false
	for _, i := range b.members {
		slaves = append(slaves, k.node.shape.ports[i].netdev)
		up = up || k.carrier(i)
	}
	partner := "00:00:00:00:00:00"
	if up {
		partner = "02:00:00:00:00:01"
	}
	return map[string]string{"address": b.mac.String(), "mtu": strconv.Itoa(b.mtu), "type": "1", "carrier": formatFlag(up), "operstate": chooseText(up, "up", "down"),
		"bonding/mode": b.mode + " " + bondModes[b.mode], "bonding/slaves": strings.Join(slaves, " "), "bonding/mii_status": chooseText(up, "up", "down"),
		"bonding/ad_aggregator": "1", "bonding/ad_partner_mac": partner}
}

// bondEntry is a file or folder of a bond; nil: it is none.
func (k *Kernel) bondEntry(path string) *file {
	rest, below := strings.CutPrefix(path, classNet+"/")
	if !below {
		return nil
	}
	name, rest, _ := strings.Cut(rest, "/")
	b := k.bond(name)
	if b.mode == "" {
		return nil
	}
	if rest == "" || rest == "bonding" {
		return &file{mode: fs.ModeDir | 0o755}
	}
	if text, ok := k.bondFiles(b)[rest]; ok {
		return &file{mode: 0o444, data: text + "\n"}
	}
	return nil
}

// bondNames adds what bonds bring to the names of a folder.
func (k *Kernel) bondNames(dir string, names []string) []string {
	if dir == classNet {
		names = append(slices.Clone(names), k.Bonds()...)
		slices.Sort(names)
		return names
	}
	rest, below := strings.CutPrefix(dir, classNet+"/")
	if !below {
		return names
	}
	name, folder, _ := strings.Cut(rest, "/")
	b := k.bond(name)
	if b.mode == "" {
		return names
	}
	var own []string
	for path := range k.bondFiles(b) {
		above, file, nested := strings.Cut(path, "/")
		switch {
		case nested && above == folder:
			own = append(own, file)
		case folder == "":
			own = append(own, above)
		}
	}
	slices.Sort(own)
	return slices.Compact(own)
}

// addMember adds what a port shows as a member of a bond.
func addMember(b branch, i int) {
	is := b.there
	b.there = func(k *Kernel) bool {
		_, member := k.bondOf(i)
		return member && (is == nil || is(k))
	}
	b.live("mii_status", func(k *Kernel) string { return chooseText(k.carrier(i), "up", "down") })
	b.live("perm_hwaddr", func(k *Kernel) string { return k.node.netAddress(i) })
	inLACP := b
	inLACP.there = func(k *Kernel) bool {
		x, _ := k.bondOf(i)
		return x.mode == "802.3ad" && (is == nil || is(k))
	}
	inLACP.live("ad_aggregator_id", func(k *Kernel) string { return chooseText(k.carrier(i), "1", "2") })
	// All but defaulted and expired (IEEE 802.1AX, 6.4.2.3); without a link, the start value.
	inLACP.live("ad_actor_oper_port_state", func(k *Kernel) string { return chooseText(k.carrier(i), "63", "69") })
}
