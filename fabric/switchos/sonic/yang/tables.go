// SPDX-License-Identifier: Apache-2.0

package yang

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// leaf is one leaf or leaf-list of a model.
type leaf struct {
	name      string
	kind      kind
	mandatory bool
	leafList  bool
	most      int // elements of a leaf-list; 0: no limit
}

// list is one list of a table: an entry whose key has as many parts as the list has
// keys. A container in place of a list has a fixed key.
type list struct {
	name   string // as in the model; that of the container when fixed
	fixed  string // the only key, of a container
	keys   []leaf
	fields []leaf
	inner  []leaf // of a map: the key and the value of an inner list, which is called like the table
	// must is what no type says; the problems need no table and key.
	must func(db DB, parts []string, fields DB) []Problem
}

// table is one table of CONFIG_DB.
type table struct {
	module string // and top container, without "sonic-"
	lists  []list
}

// listOf returns the list that an entry is of, and the parts of its key.
func (t table) listOf(key string) (list, []string, bool) {
	parts := strings.Split(key, "|")
	for _, l := range t.lists {
		if l.fixed != "" && l.fixed == key {
			return l, nil, true
		}
		if l.fixed == "" && len(l.keys) == len(parts) {
			return l, parts, true
		}
	}
	return list{}, nil, false
}

// The types that several tables use. Patterns of YANG are anchored (RFC 7950, 9.4.5).
var (
	anyText   = text{}
	adminUp   = enum{"up", "down"}
	mapName   = text{pattern: wholeMatch(`[a-zA-Z0-9]{1}([-a-zA-Z0-9_]{0,31})`)}
	asNumber  = number{from: 1, to: math.MaxUint32}
	threshold = number{to: math.MaxUint64, long: true}
	percent   = number{to: 100, long: true}
	digit     = text{pattern: wholeMatch(`[0-7]?`)}
	port      = reference{"PORT", "/sonic-port:sonic-port/sonic-port:PORT/sonic-port:PORT_LIST/sonic-port:name"}
	routeMap  = reference{"ROUTE_MAP_SET", "/sonic-route-map:sonic-route-map/sonic-route-map:ROUTE_MAP_SET/sonic-route-map:ROUTE_MAP_SET_LIST/sonic-route-map:name"}
	vrf       = reference{"BGP_GLOBALS", "/sonic-bgp-global:sonic-bgp-global/sonic-bgp-global:BGP_GLOBALS/sonic-bgp-global:BGP_GLOBALS_LIST/sonic-bgp-global:vrf_name"}
)

func wholeMatch(pattern string) *lazyregexp.Regexp { return lazyregexp.New(`\A(?:` + pattern + `)\z`) }

func keyLeaf(name string, k kind) leaf { return leaf{name: name, kind: k} }

// referTo returns a reference to the whole key of a table with one list.
func referTo(module, table string) reference {
	return reference{table, fmt.Sprintf("/sonic-%[1]s:sonic-%[1]s/sonic-%[1]s:%[2]s/sonic-%[1]s:%[2]s_LIST/sonic-%[1]s:name", module, table)}
}

// mapOf is a table of maps, such as DSCP_TO_TC_MAP.
func mapOf(module, table, from string, fromKind kind, to string, toKind kind) namedTable {
	return namedTable{table, tableOf(module, list{name: table + "_LIST", keys: []leaf{keyLeaf("name", mapName)}, inner: []leaf{keyLeaf(from, fromKind), keyLeaf(to, toKind)}})}
}

type namedTable struct {
	name string
	table
}

func tableOf(module string, lists ...list) table { return table{module, lists} }

// tables are the rules, by the name of the table. Source: sonic-buildimage,
// src/sonic-yang-models/yang-models, one file a module, as of August 2026.
var tables = byName([]namedTable{
	{"DEVICE_METADATA", tableOf("device_metadata", list{name: "localhost", fixed: "localhost", fields: []leaf{
		{name: "hostname", kind: text{pattern: wholeMatch(`(?s).{1,63}`)}},
		{name: "hwsku", kind: anyText},
		{name: "platform", kind: anyText},
		{name: "mac", kind: text{pattern: wholeMatch(`[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}`)}},
		{name: "type", kind: anyText},
		{name: "default_bgp_status", kind: adminUp},
		{name: "buffer_model", kind: text{pattern: wholeMatch(`dynamic|traditional`)}},
		{name: "bgp_asn", kind: number{to: math.MaxUint32}},
		{name: "docker_routing_config_mode", kind: text{pattern: wholeMatch(`separated|unified|split|split-unified`)}},
		{name: "frr_mgmt_framework_config", kind: boolean{}},
	}})},
	{"PORT", tableOf("port", list{name: "PORT_LIST", keys: []leaf{keyLeaf("name", text{most: 128})}, fields: []leaf{
		{name: "alias", kind: text{most: 128}},
		{name: "lanes", kind: text{most: 128}, mandatory: true},
		{name: "description", kind: text{most: 255}},
		{name: "speed", kind: number{from: 1, to: 1_600_000}, mandatory: true},
		{name: "mtu", kind: number{from: 68, to: 9216}},
		{name: "index", kind: number{to: math.MaxUint16}},
		{name: "admin_status", kind: adminUp},
		{name: "fec", kind: text{pattern: wholeMatch(`rs|fc|none|auto`)}},
	}})},
	{"INTERFACE", tableOf("interface",
		list{name: "INTERFACE_LIST", keys: []leaf{keyLeaf("name", port)}},
		list{name: "INTERFACE_IPPREFIX_LIST", keys: []leaf{keyLeaf("name", port), keyLeaf("ip-prefix", prefix{})}, must: needsInterface("INTERFACE")})},
	{"LOOPBACK_INTERFACE", tableOf("loopback-interface",
		list{name: "LOOPBACK_INTERFACE_LIST", keys: []leaf{keyLeaf("name", text{pattern: wholeMatch(`.{1,15}`)})}},
		list{name: "LOOPBACK_INTERFACE_IPPREFIX_LIST", keys: []leaf{keyLeaf("name", anyText), keyLeaf("ip-prefix", prefix{})}, must: needsInterface("LOOPBACK_INTERFACE")})},
	{"BGP_GLOBALS", tableOf("bgp-global", list{name: "BGP_GLOBALS_LIST", keys: []leaf{keyLeaf("vrf_name", enum{"default"})}, fields: []leaf{
		{name: "router_id", kind: address{}},
		{name: "local_asn", kind: asNumber},
		{name: "load_balance_mp_relax", kind: boolean{}},
	}})},
	{"BGP_GLOBALS_AF", tableOf("bgp-global", list{name: "BGP_GLOBALS_AF_LIST", keys: []leaf{keyLeaf("vrf_name", vrf), keyLeaf("afi_safi", anyText)}, fields: []leaf{
		{name: "max_ebgp_paths", kind: number{from: 1, to: 256}},
	}})},
	{"BGP_NEIGHBOR", tableOf("bgp-neighbor", list{name: "BGP_NEIGHBOR_LIST", keys: []leaf{keyLeaf("vrf_name", vrf), keyLeaf("neighbor", union{address{}, port})}, fields: []leaf{
		{name: "asn", kind: asNumber},
		{name: "local_addr", kind: union{address{}, port}},
		{name: "name", kind: anyText},
		{name: "admin_status", kind: adminUp},
	}})},
	{"BGP_NEIGHBOR_AF", tableOf("bgp-neighbor", list{name: "BGP_NEIGHBOR_AF_LIST", keys: []leaf{keyLeaf("vrf_name", vrf), keyLeaf("neighbor", anyText), keyLeaf("afi_safi", anyText)}, fields: []leaf{
		{name: "admin_status", kind: adminUp},
		{name: "route_map_in", kind: routeMap, leafList: true, most: 1},
		{name: "route_map_out", kind: routeMap, leafList: true, most: 1},
	}, must: needsNeighbor})},
	{"ROUTE_MAP_SET", tableOf("route-map", list{name: "ROUTE_MAP_SET_LIST", keys: []leaf{keyLeaf("name", anyText)}})},
	{"ROUTE_MAP", tableOf("route-map", list{name: "ROUTE_MAP_LIST", keys: []leaf{keyLeaf("name", anyText), keyLeaf("stmt_name", number{from: 1, to: math.MaxUint16})}, fields: []leaf{
		{name: "route_operation", kind: enum{"permit", "deny"}},
	}})},
	{"ROUTE_REDISTRIBUTE", tableOf("route-common", list{name: "ROUTE_REDISTRIBUTE_LIST",
		keys: []leaf{keyLeaf("vrf_name", enum{"default"}), keyLeaf("src_protocol", anyText), keyLeaf("dst_protocol", anyText), keyLeaf("addr_family", anyText)}})},
	mapOf("dscp-tc-map", "DSCP_TO_TC_MAP", "dscp", text{pattern: wholeMatch(`6[0-3]|[1-5][0-9]?|[0-9]?`)}, "tc", number{to: 15}),
	mapOf("tc-queue-map", "TC_TO_QUEUE_MAP", "tc", number{to: 15}, "qindex", text{pattern: wholeMatch(`[0-9]?`)}),
	mapOf("tc-priority-group-map", "TC_TO_PRIORITY_GROUP_MAP", "tc", number{to: 15}, "pg", digit),
	mapOf("pfc-priority-queue-map", "MAP_PFC_PRIORITY_TO_QUEUE", "pfc_priority", digit, "qindex", digit),
	mapOf("cable-length", "CABLE_LENGTH", "port", port, "length", text{pattern: wholeMatch(`[0-9]+m`)}),
	{"SCHEDULER", tableOf("scheduler", list{name: "SCHEDULER_LIST", keys: []leaf{keyLeaf("name", anyText)}, fields: []leaf{
		{name: "type", kind: enum{"DWRR", "WRR", "STRICT"}},
		{name: "weight", kind: number{from: 1, to: 100}},
	}})},
	{"WRED_PROFILE", tableOf("wred-profile", list{name: "WRED_PROFILE_LIST", keys: []leaf{keyLeaf("name", mapName)}, fields: wredFields(), must: maxAboveMin})},
	{"PFC_WD", tableOf("pfcwd", list{name: "PFC_WD_LIST", keys: []leaf{keyLeaf("ifname", union{port, enum{"GLOBAL"}})}, fields: []leaf{
		{name: "action", kind: enum{"drop", "forward", "alert"}},
		{name: "detection_time", kind: number{from: 100, to: 5000}},
		{name: "restoration_time", kind: number{from: 100, to: 60_000}},
		{name: "POLL_INTERVAL", kind: number{from: 100, to: 1000}},
	}, must: watchdogTimes})},
	{"PORT_QOS_MAP", tableOf("port-qos-map", list{name: "PORT_QOS_MAP_LIST", keys: []leaf{keyLeaf("ifname", union{port, enum{"global"}})}, fields: []leaf{
		{name: "dscp_to_tc_map", kind: referTo("dscp-tc-map", "DSCP_TO_TC_MAP")},
		{name: "tc_to_queue_map", kind: referTo("tc-queue-map", "TC_TO_QUEUE_MAP")},
		{name: "tc_to_pg_map", kind: referTo("tc-priority-group-map", "TC_TO_PRIORITY_GROUP_MAP")},
		{name: "pfc_to_queue_map", kind: referTo("pfc-priority-queue-map", "MAP_PFC_PRIORITY_TO_QUEUE")},
		{name: "pfc_enable", kind: text{pattern: wholeMatch(`([0-7](,[0-7])*)?`)}},
		{name: "pfcwd_sw_enable", kind: text{pattern: wholeMatch(`([0-7](,[0-7])*)?`)}},
	}})},
	{"QUEUE", tableOf("queue", list{name: "QUEUE_LIST", keys: []leaf{keyLeaf("ifname", union{port, enum{"CPU"}}), keyLeaf("qindex", anyText)}, fields: []leaf{
		{name: "scheduler", kind: referTo("scheduler", "SCHEDULER")},
		{name: "wred_profile", kind: referTo("wred-profile", "WRED_PROFILE")},
	}})},
	{"BUFFER_PG", tableOf("buffer-pg", list{name: "BUFFER_PG_LIST", keys: []leaf{keyLeaf("port", port), keyLeaf("pg_num", text{pattern: wholeMatch(`[0-7]((-)[0-7])?`)})}, fields: []leaf{
		{name: "profile", kind: union{referTo("buffer-profile", "BUFFER_PROFILE"), enum{"NULL"}}},
	}})},
})

func byName(list []namedTable) map[string]table {
	m := map[string]table{}
	for _, t := range list {
		m[t.name] = t.table
	}
	return m
}

// wredFields are the leaves of WRED_PROFILE, three of each sort.
func wredFields() []leaf {
	fields := []leaf{{name: "ecn", kind: enum{"ecn_none", "ecn_green", "ecn_yellow", "ecn_red", "ecn_green_yellow", "ecn_green_red", "ecn_yellow_red", "ecn_all"}}}
	for _, colour := range []string{"green", "yellow", "red"} {
		fields = append(fields, keyLeaf("wred_"+colour+"_enable", boolean{}), keyLeaf(colour+"_min_threshold", threshold),
			keyLeaf(colour+"_max_threshold", threshold), keyLeaf(colour+"_drop_probability", percent))
	}
	return fields
}

// needsInterface: an address is of an interface that has an entry of its own.
func needsInterface(table string) func(DB, []string, DB) []Problem {
	return func(db DB, parts []string, _ DB) []Problem {
		keys, _ := db[table].(DB)
		if _, ok := keys[parts[0]]; ok {
			return nil
		}
		return []Problem{{Value: parts[0], Rule: fmt.Sprintf("Must condition not satisfied, Try adding %s: {}", parts[0])}}
	}
}

// needsNeighbor: an address family is of a neighbor of the same VRF.
func needsNeighbor(db DB, parts []string, _ DB) []Problem {
	keys, _ := db["BGP_NEIGHBOR"].(DB)
	if _, ok := keys[parts[0]+"|"+parts[1]]; ok {
		return nil
	}
	return []Problem{{Value: parts[1], Rule: fmt.Sprintf("Leafref \"../../../BGP_NEIGHBOR/BGP_NEIGHBOR_LIST/neighbor\" of value %q points to a non-existing leaf.", parts[1])}}
}

// maxAboveMin: a profile marks from the smaller threshold to the larger one.
func maxAboveMin(_ DB, _ []string, fields DB) (list []Problem) {
	for _, colour := range []string{"green", "yellow", "red"} {
		from, hasFrom := uintOf(fields[colour+"_min_threshold"])
		to, hasTo := uintOf(fields[colour+"_max_threshold"])
		if hasTo && (!hasFrom || to < from) {
			list = append(list, Problem{Field: colour + "_max_threshold", Rule: strings.ToUpper(colour[:1]) + colour[1:] + " max threshold must be greater than or equal to min threshold"})
		}
	}
	return list
}

// watchdogTimes: the poll interval is of GLOBAL alone, and no time of a port is below it.
func watchdogTimes(db DB, parts []string, fields DB) (list []Problem) {
	global := parts[0] == "GLOBAL"
	for _, name := range []string{"action", "detection_time", "restoration_time"} {
		if _, given := fields[name]; given && global {
			list = append(list, Problem{Field: name, Rule: "Must condition \"../ifname != 'GLOBAL'\" not satisfied."})
		}
	}
	if _, given := fields["POLL_INTERVAL"]; given && !global {
		list = append(list, Problem{Field: "POLL_INTERVAL", Rule: "Must condition \"../ifname = 'GLOBAL'\" not satisfied."})
	}
	keys, _ := db["PFC_WD"].(DB)
	of, _ := keys["GLOBAL"].(DB)
	poll, known := uintOf(of["POLL_INTERVAL"])
	for _, name := range []string{"detection_time", "restoration_time"} {
		if n, given := uintOf(fields[name]); given && known && n < poll {
			list = append(list, Problem{Field: name, Rule: name + " must be greater than or equal to POLL_INTERVAL"})
		}
	}
	return list
}

func uintOf(v any) (uint64, bool) {
	s, ok := v.(string)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}
