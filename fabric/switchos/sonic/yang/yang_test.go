// SPDX-License-Identifier: Apache-2.0

package yang_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/fabric/switchos/sonic/yang"
)

// valid is a small configuration that the models take; each case changes one thing.
const valid = `{
 "DEVICE_METADATA": {"localhost": {"hostname": "leaf-1", "bgp_asn": "4200010000", "docker_routing_config_mode": "unified", "frr_mgmt_framework_config": "true"}},
 "PORT": {"Ethernet0": {"lanes": "1,2,3,4", "speed": "400000", "mtu": "9100", "fec": "rs", "admin_status": "up"}},
 "INTERFACE": {"Ethernet0": {"NULL": "NULL"}, "Ethernet0|10.0.0.0/31": {}},
 "LOOPBACK_INTERFACE": {"Loopback0": {}, "Loopback0|10.9.0.1/32": {}},
 "BGP_GLOBALS": {"default": {"local_asn": "4200010000", "router_id": "10.9.0.1"}},
 "BGP_NEIGHBOR": {"default|10.0.0.1": {"asn": "4200000000", "local_addr": "10.0.0.0", "admin_status": "up"}},
 "BGP_NEIGHBOR_AF": {"default|10.0.0.1|ipv4_unicast": {"admin_status": "up", "route_map_in": ["ROCE_ALLOW"]}},
 "ROUTE_MAP_SET": {"ROCE_ALLOW": {}},
 "ROUTE_MAP": {"ROCE_ALLOW|10": {"route_operation": "permit"}},
 "DSCP_TO_TC_MAP": {"ROCE": {"26": "3"}},
 "SCHEDULER": {"ROCE_DATA": {"type": "DWRR", "weight": "50"}},
 "QUEUE": {"Ethernet0|3": {"scheduler": "ROCE_DATA"}},
 "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"}, "Ethernet0": {"action": "drop", "detection_time": "200", "restoration_time": "200"}},
 "WRED_PROFILE": {"ROCE": {"green_min_threshold": "1048576", "green_max_threshold": "2097152"}},
 "CABLE_LENGTH": {"AZURE": {"Ethernet0": "40m"}},
 "BUFFER_PG": {"Ethernet0|3": {"profile": "NULL"}}
}`

func parse(t *testing.T, text string) yang.DB {
	t.Helper()
	var db yang.DB
	if err := json.Unmarshal([]byte(text), &db); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	if got := yang.Check(parse(t, valid), yang.Whole); len(got) > 0 {
		t.Errorf("refused: %v", got)
	}
	part := strings.Replace(valid, `"lanes": "1,2,3,4", `, "", 1)
	if got := yang.Check(parse(t, part), yang.Part); len(got) > 0 {
		t.Errorf("a part is refused: %v", got)
	}
}

// refused are changes that the models refuse; a test with yanglint shows that they do.
var refused = []struct{ name, old, with, want string }{
	{"a status that is a boolean", `"local_addr": "10.0.0.0", "admin_status": "up"`, `"admin_status": "true"`, `BGP_NEIGHBOR|default|10.0.0.1 admin_status: Invalid enumeration value "true"`},
	{"the same of an address family", `"admin_status": "up", "route_map_in"`, `"admin_status": "true", "route_map_in"`, `BGP_NEIGHBOR_AF|default|10.0.0.1|ipv4_unicast admin_status: Invalid enumeration value "true"`},
	{"a route map without its set", `"ROUTE_MAP_SET": {"ROCE_ALLOW": {}},`, ``, `route_map_in: Leafref`},
	{"two route maps", `["ROCE_ALLOW"]`, `["ROCE_ALLOW", "ROCE_ALLOW"]`, `Too many "route_map_in" elements`},
	{"an address of a neighbor that is not there", `"BGP_NEIGHBOR": {"default|10.0.0.1"`, `"BGP_NEIGHBOR": {"default|10.0.0.3"`, `points to a non-existing leaf`},
	{"an MTU beyond the range", `"9100"`, `"9300"`, `PORT|Ethernet0 mtu: Value "9300" does not satisfy the constraint "68..9216"`},
	{"no lanes", `"lanes": "1,2,3,4", `, ``, `Missing required element "lanes"`},
	{"an FEC that does not exist", `"rs"`, `"rs528"`, `PORT|Ethernet0 fec`},
	{"a field that the model does not have", `"fec"`, `"forward_error"`, `has no leaf "forward_error"`},
	{"a port that is not there", `"Ethernet0|3": {"scheduler"`, `"Ethernet4|3": {"scheduler"`, `QUEUE|Ethernet4|3: Leafref`},
	{"an address without its interface", `"Ethernet0": {"NULL": "NULL"}, `, ``, `Try adding Ethernet0: {}`},
	{"a weight of 0", `"weight": "50"`, `"weight": "0"`, `SCHEDULER|ROCE_DATA weight`},
	{"a scheduler that is not there", `{"scheduler": "ROCE_DATA"}`, `{"scheduler": "OTHER"}`, `QUEUE|Ethernet0|3 scheduler: Leafref`},
	{"a time below the poll interval", `"detection_time": "200"`, `"detection_time": "100"`, `detection_time must be greater than or equal to POLL_INTERVAL`},
	{"thresholds exchanged", `"green_max_threshold": "2097152"`, `"green_max_threshold": "1024"`, `Green max threshold must be greater`},
	{"a length without a unit", `"40m"`, `"40"`, `CABLE_LENGTH|AZURE Ethernet0`},
	{"a DSCP of 64", `"26": "3"`, `"64": "3"`, `DSCP_TO_TC_MAP|ROCE 64`},
	{"a boolean that is a number", `"frr_mgmt_framework_config": "true"`, `"frr_mgmt_framework_config": "1"`, `Invalid boolean value "1"`},
	{"an AS number of 0", `"asn": "4200000000"`, `"asn": "0"`, `BGP_NEIGHBOR|default|10.0.0.1 asn`},
	{"a profile that is not there", `{"profile": "NULL"}`, `{"profile": "pg_lossless"}`, `BUFFER_PG|Ethernet0|3 profile: Leafref`},
	{"a key without its second part", `"ROCE_ALLOW|10"`, `"ROCE_ALLOW"`, `ROUTE_MAP|ROCE_ALLOW: All keys are not parsed`},
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(valid, c.old) {
				t.Fatalf("%q is not in the configuration", c.old)
			}
			got := yang.Check(parse(t, strings.Replace(valid, c.old, c.with, 1)), yang.Whole)
			if len(got) == 0 || !strings.Contains(got[0].String(), c.want) {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}
