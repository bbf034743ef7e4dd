// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"fmt"
	"testing"
)

// Where services show the node's ports differs; the answer does not.
func TestNICs(t *testing.T) {
	t.Parallel()
	ref := func(p string) map[string]any { return map[string]any{"@odata.id": p} }
	refs := func(p ...string) map[string]any {
		var all []any
		for _, q := range p {
			all = append(all, ref(q))
		}
		return map[string]any{"Members": all}
	}
	for name, c := range map[string]struct {
		docs map[string]map[string]any
		want string
	}{
		"interfaces of the system, one twice, one without a MAC": {map[string]map[string]any{
			sysPath + "/EthernetInterfaces":   refs(sysPath+"/EthernetInterfaces/1", sysPath+"/EthernetInterfaces/2", sysPath+"/EthernetInterfaces/3", sysPath+"/EthernetInterfaces/gone"),
			sysPath + "/EthernetInterfaces/1": {"Id": "1", "MACAddress": "AA-BB-CC-00-00-01", "PermanentMACAddress": "AA:BB:CC:00:00:02", "SpeedMbps": 25000},
			sysPath + "/EthernetInterfaces/2": {"Id": "2", "MACAddress": "aa:bb:cc:00:00:02", "SpeedMbps": nil},
			sysPath + "/EthernetInterfaces/3": {"Id": "3", "MACAddress": ""},
		}, "[{1 aa:bb:cc:00:00:02 25000}]"},
		"device functions of adapters": {map[string]map[string]any{
			"/redfish/v1/Chassis/1":                              {"SerialNumber": "CH1", "NetworkAdapters": ref("/redfish/v1/Chassis/1/NetworkAdapters")},
			"/redfish/v1/Chassis/1/NetworkAdapters":              refs("/redfish/v1/Chassis/1/NetworkAdapters/A"),
			"/redfish/v1/Chassis/1/NetworkAdapters/A":            {"NetworkDeviceFunctions": ref("/redfish/v1/Chassis/1/NetworkAdapters/A/F"), "Ports": ref("/never")},
			"/redfish/v1/Chassis/1/NetworkAdapters/A/F":          refs("/redfish/v1/Chassis/1/NetworkAdapters/A/F/1"),
			"/redfish/v1/Chassis/1/NetworkAdapters/A/F/1":        {"Id": "F1", "Ethernet": map[string]any{"PermanentMACAddress": "02:00:00:00:00:01", "MACAddress": "02:00:00:00:00:01"}},
			"/redfish/v1/Chassis/1/NetworkAdapters/A/F/multicas": {"Id": "F2"},
		}, "[{F1 02:00:00:00:00:01 0}]"},
		"ports of adapters": {map[string]map[string]any{
			"/redfish/v1/Chassis/1":                       {"NetworkAdapters": ref("/redfish/v1/Chassis/1/NetworkAdapters")},
			"/redfish/v1/Chassis/1/NetworkAdapters":       refs("/redfish/v1/Chassis/1/NetworkAdapters/A"),
			"/redfish/v1/Chassis/1/NetworkAdapters/A":     {"NetworkPorts": ref("/redfish/v1/Chassis/1/NetworkAdapters/A/P")},
			"/redfish/v1/Chassis/1/NetworkAdapters/A/P":   refs("/redfish/v1/Chassis/1/NetworkAdapters/A/P/1"),
			"/redfish/v1/Chassis/1/NetworkAdapters/A/P/1": {"Id": "P1", "AssociatedNetworkAddresses": []string{"02:00:00:00:00:0A", "01:00:5e:00:00:01", "nonsense"}},
		}, "[{P1 02:00:00:00:00:0a 0}]"},
		"none before the first POST": {nil, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			for path, doc := range c.docs {
				f.docs[path] = doc
			}
			rig(t, f, nil, func(ctx context.Context, cl *Client) {
				_ = cl.Open(ctx)
				got, err := cl.NICs(ctx)
				if err != nil || fmt.Sprint(got) != c.want {
					t.Errorf("got %v, %v; want %s", got, err, c.want)
				}
			})
		})
	}
}
