// SPDX-License-Identifier: Apache-2.0

package sonic

import "slices"

// anyField stands for all fields of a table: maps, whose fields are numbers, and
// lengths of cables, whose fields are ports.
const anyField = "*"

// written are the tables and the fields that Render may write, and those that Compare
// looks at besides.
var written = map[string][]string{
	"BGP_GLOBALS":               {"local_asn", "router_id", "load_balance_mp_relax"},
	"BGP_GLOBALS_AF":            {"max_ebgp_paths"},
	"BGP_NEIGHBOR":              {"asn", "local_addr", "name", "admin_status"},
	"BGP_NEIGHBOR_AF":           {"admin_status", "route_map_in", "route_map_out"},
	"BUFFER_PG":                 {"profile"},
	"CABLE_LENGTH":              {anyField},
	"DEVICE_METADATA":           {"hostname", "bgp_asn", "docker_routing_config_mode", "frr_mgmt_framework_config"},
	"DSCP_TO_TC_MAP":            {anyField},
	"INTERFACE":                 {},
	"LOOPBACK_INTERFACE":        {},
	"MAP_PFC_PRIORITY_TO_QUEUE": {anyField},
	"PFC_WD":                    {"action", "detection_time", "restoration_time", "POLL_INTERVAL"},
	"PORT":                      {"admin_status", "mtu", "description", "speed", "fec"},
	"PORT_QOS_MAP":              {"dscp_to_tc_map", "tc_to_queue_map", "tc_to_pg_map", "pfc_to_queue_map", "pfc_enable", "pfcwd_sw_enable"},
	"QUEUE":                     {"scheduler", "wred_profile"},
	"ROUTE_MAP":                 {"route_operation"},
	"ROUTE_MAP_SET":             {},
	"ROUTE_REDISTRIBUTE":        {},
	"SCHEDULER":                 {"type", "weight"},
	"TC_TO_PRIORITY_GROUP_MAP":  {anyField},
	"TC_TO_QUEUE_MAP":           {anyField},
	"WRED_PROFILE": {"ecn", "wred_green_enable", "wred_yellow_enable", "wred_red_enable",
		"green_min_threshold", "green_max_threshold", "green_drop_probability",
		"yellow_min_threshold", "yellow_max_threshold", "yellow_drop_probability",
		"red_min_threshold", "red_max_threshold", "red_drop_probability"},
}

// Kept is the part of a switch's configuration that Compare may ever look at, whatever
// the site says: it can be remembered, since no table with a secret is in it and no
// field that holds one, such as the password of a BGP session.
func (c Config) Kept() Config {
	kept := Config{}
	for table, fields := range written {
		for key, e := range c[table] {
			some := Entry{}
			for name, value := range e {
				if slices.Contains(fields, name) || slices.Contains(fields, anyField) {
					some[name] = value
				}
			}
			kept.Set(table, key, some)
		}
	}
	return kept
}
