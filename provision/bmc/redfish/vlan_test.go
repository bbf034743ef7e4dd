// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

// TestVLAN: the interface that the BMC is reached by counts; where nobody knows which that is, or it
// shows no VLAN, nothing is said.
func TestVLAN(t *testing.T) {
	t.Parallel()
	const here = "/redfish/v1/Managers/BMC"
	addresses := func(a string) []map[string]any { return []map[string]any{{"Address": a}} }
	vlan := func(on, id any) map[string]any { return map[string]any{"VLANEnable": on, "VLANId": id} }
	other := map[string]any{"IPv4Addresses": addresses("192.0.2.9"), "VLAN": vlan(true, 31)}
	for name, c := range map[string]struct {
		interfaces []map[string]any
		want       int // -1: Unsupported
	}{
		"by its address":    {[]map[string]any{other, {"IPv4Addresses": addresses(bmcAddr.Addr().String()), "VLAN": vlan(true, 30)}}, 30},
		"untagged":          {[]map[string]any{{"IPv4Addresses": addresses(bmcAddr.Addr().String()), "VLAN": vlan(false, 30)}}, 0},
		"the only one":      {[]map[string]any{{"VLAN": vlan(true, 30)}}, 30},
		"none of several":   {[]map[string]any{other, other}, -1},
		"no VLAN":           {[]map[string]any{{"IPv4Addresses": addresses(bmcAddr.Addr().String())}}, -1},
		"VLAN without a ID": {[]map[string]any{{"VLAN": vlan(true, nil)}}, -1},
		"null":              {[]map[string]any{{"VLAN": vlan(nil, nil)}}, -1},
		"no interfaces":     {nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.docs[here] = map[string]any{"EthernetInterfaces": map[string]any{"@odata.id": here + "/EthernetInterfaces"}}
			var members []any
			for i, doc := range c.interfaces {
				path := here + "/EthernetInterfaces/" + string(rune('1'+i))
				f.docs[path] = doc
				members = append(members, map[string]any{"@odata.id": path})
			}
			f.docs[here+"/EthernetInterfaces"] = map[string]any{"Members": members}
			rig(t, f, nil, func(ctx context.Context, cl *Client) {
				if err := cl.Open(ctx); err != nil {
					t.Fatal(err)
				}
				got, err := cl.VLAN(ctx)
				if c.want < 0 && errkind.Of(err) == errkind.Unsupported {
					return
				}
				if err != nil || got != c.want {
					t.Errorf("got %d, %v; want %d", got, err, c.want)
				}
			})
		})
	}
}
