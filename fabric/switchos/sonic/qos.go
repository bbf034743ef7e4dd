// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"net/netip"
	"strconv"
)

// maps are the tables that all ports share.
func (s *Switch) maps(c Config) {
	dscp, group, same := Entry{}, Entry{}, Entry{}
	for d := range 64 {
		dscp[strconv.Itoa(d)] = strconv.Itoa(s.Lossless.PriorityOf(d))
	}
	for tc := range 8 {
		n := strconv.Itoa(tc)
		same[n], group[n] = n, "0"
	}
	priority := strconv.Itoa(s.Lossless.Priority)
	group[priority] = priority
	c.Set("DSCP_TO_TC_MAP", profile, dscp)
	c.Set("TC_TO_QUEUE_MAP", profile, same)
	c.Set("TC_TO_PRIORITY_GROUP_MAP", profile, group)
	c.Set("MAP_PFC_PRIORITY_TO_QUEUE", profile, same)
	c.Set("SCHEDULER", profile+"_DATA", Entry{"type": "DWRR", "weight": "50"})
	c.Set("SCHEDULER", profile+"_OTHER", Entry{"type": "DWRR", "weight": "7"}) // of each of the others
	c.Set("SCHEDULER", profile+"_CNP", Entry{"type": "STRICT"})
	if s.Lossless.PFC {
		c.Set("PFC_WD", "GLOBAL", Entry{"POLL_INTERVAL": "200"})
	}
	if s.Lossless.ECN {
		c.Set("WRED_PROFILE", profile, wredProfile())
	}
}

// wredProfile returns the profile that marks packets: between 1 and 2 MiB of a queue ever
// more, as in SONiC's own AZURE_LOSSLESS. With ecn_all nothing is dropped that can
// be marked. Source: qos_config.j2 of sonic-buildimage.
func wredProfile() Entry {
	e := Entry{"ecn": "ecn_all"}
	for _, colour := range []string{"green", "yellow", "red"} {
		e["wred_"+colour+"_enable"] = "true"
		e[colour+"_min_threshold"], e[colour+"_max_threshold"], e[colour+"_drop_probability"] = "1048576", "2097152", "5"
	}
	return e
}

// allow is the route map that lets routes in and out: BGP to other autonomous
// systems takes none without a policy (RFC 8212).
const allow = "ROCE_ALLOW"

// routing is BGP to the switches at the other ends, which tells them the links
// and the loopback of this one.
func (s *Switch) routing(c Config) {
	family := "ipv4"
	if s.Loopback.Addr().Is6() {
		family = "ipv6"
	}
	c.Set("BGP_GLOBALS", "default", Entry{"local_asn": strconv.FormatUint(uint64(s.ASN), 10), "router_id": s.routerID(), "load_balance_mp_relax": "true"})
	c.Set("BGP_GLOBALS_AF", "default|"+family+"_unicast", Entry{"max_ebgp_paths": "64"})
	c.Set("ROUTE_REDISTRIBUTE", "default|connected|bgp|"+family, nil)
	c.Set("ROUTE_MAP_SET", allow, nil) // what route maps are referred to by
	c.Set("ROUTE_MAP", allow+"|10", Entry{"route_operation": "permit"})
	for i := range s.Ports {
		p := &s.Ports[i]
		far := s.asn[p.Far.Switch]
		if p.Far.Switch == nil || far == 0 || !p.There.IsValid() {
			continue // a node, which routes by its gateway
		}
		key := "default|" + p.There.String()
		c.Set("BGP_NEIGHBOR", key, Entry{"asn": strconv.FormatUint(uint64(far), 10), "local_addr": p.Here.Addr().String(), "name": hostnameOf(p.Far.Switch), "admin_status": "up"})
		c.Set("BGP_NEIGHBOR_AF", key+"|"+family+"_unicast", Entry{"admin_status": "up", "route_map_in": allow, "route_map_out": allow})
	}
}

// routerID is the loopback, or of an IPv6 one its last four bytes.
func (s *Switch) routerID() string {
	a := s.Loopback.Addr()
	if a.Is4() {
		return a.String()
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:])).String()
}
