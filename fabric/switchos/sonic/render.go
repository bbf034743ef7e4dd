// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// profile is the name of every map and profile that Render makes. SONiC's own
// are called AZURE; they stay as they are.
const profile = "ROCE"

// smallestMTU is what SONiC's ports have by default, bytes of IP.
const smallestMTU = 9100

// Port is a port of a switch on the fabric.
type Port struct {
	Name   string // SONiC's
	End    inventory.CableEnd
	Far    inventory.CableEnd
	Speed  unit.BitRate // 0: not known
	Length unit.Length  // 0: not known
	Here   netip.Prefix // the address of this end, where links have addresses
	There  netip.Addr   // of the far end
}

// Switch is what one switch is to be.
type Switch struct {
	Switch   *inventory.Switch
	Fabric   *inventory.Fabric
	Lossless roce.Lossless
	Paused   bool // the fabric has a lossless block
	Ports    []Port
	Loopback netip.Prefix // invalid: none
	ASN      uint32       // 0: no BGP

	asn map[*inventory.Switch]uint32
}

// Switches lists the SONiC switches of a fabric with their ports, in the order of
// the site. links are the fabric's addresses; nil where it has none.
func Switches(inv *inventory.Inventory, f *inventory.Fabric, links *roce.Links) []*Switch {
	l, paused := roce.LosslessOf(f)
	by := map[*inventory.Switch]*Switch{}
	numbers := map[*inventory.Switch]uint32{}
	var list []*Switch
	add := func(s *inventory.Switch) *Switch {
		if s == nil || !strings.EqualFold(s.OS, Name) {
			return nil
		}
		if by[s] == nil {
			by[s] = &Switch{Switch: s, Fabric: f, Lossless: l, Paused: paused, asn: numbers}
			list = append(list, by[s])
		}
		return by[s]
	}
	for _, s := range inv.Switches {
		if s.Fabric == f {
			add(s)
		}
	}
	for _, c := range roce.FabricCables(inv, f) {
		for _, ends := range [][2]inventory.CableEnd{{c.From, c.To}, {c.To, c.From}} {
			if s := add(ends[0].Switch); s != nil {
				s.Ports = append(s.Ports, Port{Name: PortName(ends[0], splitOf(f, ends[0].Switch)), End: ends[0], Far: ends[1], Speed: speedOf(c, f), Length: c.Length})
			}
		}
	}
	if links != nil {
		setAddresses(by, numbers, links)
	}
	for _, s := range list {
		slices.SortFunc(s.Ports, func(a, b Port) int { return laneOf(a.Name) - laneOf(b.Name) })
	}
	return list
}

// speedOf returns that of a cable, else that of the fabric.
func speedOf(c *inventory.Cable, f *inventory.Fabric) unit.BitRate {
	if c.Speed > 0 {
		return c.Speed
	}
	return f.Link
}

func laneOf(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "Ethernet"))
	return n
}

// setAddresses gives ports the addresses of their links, and switches their loopback
// and the number of their autonomous system.
func setAddresses(by map[*inventory.Switch]*Switch, numbers map[*inventory.Switch]uint32, links *roce.Links) {
	for i, s := range links.Switches {
		loopback := links.Loopback(i)
		numbers[s] = asNumber(s, loopback, links)
		if by[s] != nil {
			by[s].Loopback, by[s].ASN = loopback, numbers[s]
		}
	}
	for i, k := range links.Links {
		lower, upper := links.Link(i)
		for _, end := range []struct {
			at          inventory.CableEnd
			here, there netip.Prefix
		}{{k.Lower(), lower, upper}, {k.Upper(), upper, lower}} {
			s := by[end.at.Switch]
			if end.at.Switch == nil || s == nil {
				continue
			}
			name := PortName(end.at, splitOf(s.Fabric, end.at.Switch))
			if j := slices.IndexFunc(s.Ports, func(p Port) bool { return p.Name == name }); j >= 0 {
				s.Ports[j].Here, s.Ports[j].There = end.here, end.there.Addr()
			}
		}
	}
}

// firstASN is the first private number of four bytes (RFC 6996).
const firstASN = 4_200_000_000

// asNumber returns a switch's autonomous system: spines of a pod share one, and so do
// all cores, so that no path leads through one tier twice (RFC 7938, 5.2.1); a
// leaf has its own, after its loopback, which the lock file keeps.
func asNumber(s *inventory.Switch, loopback netip.Prefix, links *roce.Links) uint32 {
	const pods, leaves = 1000, 10_000
	switch s.Tier {
	case inventory.Spine:
		return firstASN + uint32(s.Pod%pods)
	case inventory.Core:
		return firstASN + pods
	}
	pool := links.Pools[len(links.Pools)-1].Prefix
	if !loopback.IsValid() || !pool.IsValid() {
		return 0
	}
	a, b := loopback.Addr().As16(), pool.Masked().Addr().As16()
	var offset uint32
	for i := range a {
		offset = offset<<8 | uint32(a[i]^b[i])
	}
	return firstASN + leaves + offset%80_000_000
}

// Render makes the part of CONFIG_DB that follows from the site. Lanes, aliases,
// buffer pools and everything else that belongs to the platform stays as it is on
// the switch: it is merged (`config load`), or patched in (Patch).
func (s *Switch) Render() Config {
	c := Config{}
	s.host(c)
	for i := range s.Ports {
		s.port(c, &s.Ports[i])
	}
	if s.Paused {
		s.maps(c)
	}
	if s.ASN != 0 {
		s.routing(c)
	}
	return c
}

// host is the switch itself.
func (s *Switch) host(c Config) {
	e := Entry{"hostname": hostnameOf(s.Switch)}
	if s.ASN != 0 {
		e["bgp_asn"] = strconv.FormatUint(uint64(s.ASN), 10)
		e["docker_routing_config_mode"], e["frr_mgmt_framework_config"] = "unified", "true"
	}
	c.Set("DEVICE_METADATA", "localhost", e)
	if s.Loopback.IsValid() {
		c.Set("LOOPBACK_INTERFACE", "Loopback0", nil)
		c.Set("LOOPBACK_INTERFACE", "Loopback0|"+s.Loopback.String(), nil)
	}
}

// hostnameOf returns a name of a switch as a host name: "r01/leaf-1" is r01-leaf-1.
func hostnameOf(s *inventory.Switch) string { return strings.ReplaceAll(s.Name, "/", "-") }

// port is what one port has: its speed, its addresses, and how it sorts, pauses
// and schedules.
func (s *Switch) port(c Config, p *Port) {
	e := Entry{"admin_status": "up", "mtu": strconv.Itoa(s.mtu()), "description": p.Far.String()}
	if p.Speed > 0 {
		e["speed"], e["fec"] = strconv.FormatInt(int64(p.Speed)/1_000_000, 10), fecOf(p.Speed)
	}
	c.Set("PORT", p.Name, e)
	if p.Here.IsValid() {
		c.Set("INTERFACE", p.Name, nil)
		c.Set("INTERFACE", p.Name+"|"+p.Here.String(), nil)
	}
	if !s.Paused {
		return
	}
	qos := Entry{"dscp_to_tc_map": profile, "tc_to_queue_map": profile, "tc_to_pg_map": profile, "pfc_to_queue_map": profile}
	priority := strconv.Itoa(s.Lossless.Priority)
	if s.Lossless.PFC {
		qos["pfc_enable"], qos["pfcwd_sw_enable"] = priority, priority
		c.Set("PFC_WD", p.Name, Entry{"action": "drop", "detection_time": "200", "restoration_time": "200"})
		c.Set("CABLE_LENGTH", "AZURE", Entry{p.Name: cableLength(p.Length)})
		if dynamicBuffers(s.Switch.Model) {
			c.Set("BUFFER_PG", p.Name+"|"+priority, Entry{"profile": "NULL"}) // the switch computes it of speed and cable
		}
	}
	c.Set("PORT_QOS_MAP", p.Name, qos)
	for q := range 8 {
		c.Set("QUEUE", fmt.Sprintf("%s|%d", p.Name, q), s.queue(q))
	}
}

// queue is how one queue is scheduled and marked.
func (s *Switch) queue(q int) Entry {
	switch {
	case q == s.Lossless.Priority && s.Lossless.ECN:
		return Entry{"scheduler": profile + "_DATA", "wred_profile": profile}
	case q == s.Lossless.Priority:
		return Entry{"scheduler": profile + "_DATA"}
	case q == s.Lossless.CNPPriority():
		return Entry{"scheduler": profile + "_CNP"}
	}
	return Entry{"scheduler": profile + "_OTHER"}
}

// mtu is that of the ports, bytes of IP: never less than SONiC's own.
func (s *Switch) mtu() int { return max(s.Fabric.MTU, smallestMTU) }

// cableLength is a length as CABLE_LENGTH takes it, rounded up to whole metres.
// A cable whose length is not known counts as 40 m, SONiC's own value for
// switches of one room, since too little headroom drops packets.
func cableLength(l unit.Length) string {
	if l <= 0 {
		return "40m"
	}
	n := int(l)
	if float64(n) < float64(l) {
		n++
	}
	return strconv.Itoa(n) + "m"
}

// dynamicBuffers reports whether SONiC computes buffer profiles on a model by
// itself (buffer_model "dynamic"): NVIDIA's Spectrum.
func dynamicBuffers(model string) bool {
	return strings.HasPrefix(strings.ToUpper(model), "SN") || strings.HasPrefix(strings.ToUpper(model), "MSN")
}
