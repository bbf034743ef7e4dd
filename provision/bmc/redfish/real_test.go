// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"
	"reflect"
	"testing"

	schema "github.com/stmcginnis/gofish/redfish"
)

// Parts of what real services answered, from the fixtures of bmclib v2.3.5
// (Apache-2.0).
var realSystems = []struct {
	name, body string
	want       system
	soft       bool // GracefulShutdown is known
}{
	{name: "Supermicro SYS-510T-MR",
		body: `{"@odata.id":"/redfish/v1/Systems/1","SystemType":"Physical","Manufacturer":"Supermicro","Model":"SYS-510T-MR-EI018","SerialNumber":"S482931X2814218",
			"SKU":"To be filled by O.E.M.","UUID":"B11CC600-6D10-11EC-8000-3CECEFC846F8","PowerState":"On","BiosVersion":"2.0",
			"MemorySummary":{"TotalSystemMemoryGiB":64,"Status":null},"IndicatorLED":"Off",
			"Boot":{"BootSourceOverrideEnabled":"Continuous","BootSourceOverrideMode":"UEFI","BootSourceOverrideTarget":"Hdd","BootOptions":{"@odata.id":"/redfish/v1/Systems/1/BootOptions"},"BootNext":null,
			  "BootSourceOverrideTarget@Redfish.AllowableValues":["None","Pxe","UefiHttp"]},
			"Bios":{"@odata.id":"/redfish/v1/Systems/1/Bios"},"Links":{"Chassis":[{"@odata.id":"/redfish/v1/Chassis/1"}],"ManagedBy":[{"@odata.id":"/redfish/v1/Managers/1"}]},
			"Actions":{"Oem":{},"#ComputerSystem.Reset":{"target":"/redfish/v1/Systems/1/Actions/ComputerSystem.Reset","@Redfish.ActionInfo":"/redfish/v1/Systems/1/ResetActionInfo",
			  "ResetType@Redfish.AllowableValues":["On","ForceOff","GracefulShutdownGracefulRestart","ForceRestart","Nmi","ForceOn"]}}}`,
		want: system{ID: "/redfish/v1/Systems/1", SystemType: "Physical", Manufacturer: "Supermicro", Model: "SYS-510T-MR-EI018", SerialNumber: "S482931X2814218", SKU: "To be filled by O.E.M.",
			UUID: "B11CC600-6D10-11EC-8000-3CECEFC846F8", PowerState: "On", BiosVersion: "2.0",
			Boot: &bootProperties{Enabled: "Continuous", Target: "Hdd", Mode: "UEFI", Targets: []text{"None", "Pxe", "UefiHttp"}}, Bios: "/redfish/v1/Systems/1/Bios"},
		soft: true},
	{name: "Dell PowerEdge R6515",
		body: `{"@odata.id":"/redfish/v1/Systems/System.Embedded.1","SystemType":"Physical","Manufacturer":"Dell Inc.","Model":"PowerEdge R6515","SerialNumber":"CNCMU0005400IJ","SKU":"FOOXD53",
			"UUID":"4c4c4544-004c-4410-8058-c6c04f443533","PowerState":"On","BiosVersion":"2.2.4","Bios":{"@odata.id":"/redfish/v1/Systems/System.Embedded.1/Bios"},
			"Boot":{"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideMode":"Legacy","BootSourceOverrideTarget":"None","UefiTargetBootSourceOverride":null},
			"Actions":{"#ComputerSystem.Reset":{"target":"/redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset","ResetType@Redfish.AllowableValues":["On","ForceOff"]}}}`,
		want: system{ID: "/redfish/v1/Systems/System.Embedded.1", SystemType: "Physical", Manufacturer: "Dell Inc.", Model: "PowerEdge R6515", SerialNumber: "CNCMU0005400IJ", SKU: "FOOXD53",
			UUID: "4c4c4544-004c-4410-8058-c6c04f443533", PowerState: "On", BiosVersion: "2.2.4", Boot: &bootProperties{Enabled: "Disabled", Target: "None", Mode: "Legacy"}, Bios: "/redfish/v1/Systems/System.Embedded.1/Bios"}},
}

func TestRealSystems(t *testing.T) {
	t.Parallel()
	for _, tt := range realSystems {
		var got system
		if err := (answer{body: []byte(tt.body), header: http.Header{}}).decode(&got); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		soft := false
		for _, v := range got.Actions.Reset.Values {
			soft = soft || allows(string(v), string(schema.GracefulShutdownResetType))
			if allows(string(v), string(schema.OnResetType)) != (v == "On") {
				t.Errorf("%s: %q is taken for On", tt.name, v)
			}
		}
		if soft != tt.soft {
			t.Errorf("%s: soft off known: %t", tt.name, soft)
		}
		got.Actions.Reset, got.Links.Chassis, got.Links.ManagedBy = nil, nil, nil
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", tt.name, got, tt.want)
		}
	}
}

// A log that begins with the newest entry, one page of which has references only.
func TestEventLogOrder(t *testing.T) {
	t.Parallel()
	f := newFake()
	at := "/redfish/v1/Managers/BMC/LogServices"
	ref := func(p string) map[string]any { return map[string]any{"@odata.id": p} }
	f.docs["/redfish/v1/Managers/BMC"]["LogServices"] = ref(at)
	f.docs[at] = map[string]any{"Members": []any{ref(at + "/Lclog"), ref(at + "/Sel")}}
	f.docs[at+"/Sel"] = map[string]any{"Entries": ref(at + "/Sel/Entries")}
	f.docs[at+"/Sel/Entries"] = map[string]any{"Members": []any{
		map[string]any{"Id": "3", "Created": "2023-01-03T00:00:00-06:00", "Message": "newest"}, ref(at + "/Sel/Entries/2")},
		"Members@odata.nextLink": at + "/Sel/More"}
	f.docs[at+"/Sel/Entries/2"] = map[string]any{"Id": "2", "Created": "2023-01-02T00:00:00-0600", "Message": "middle"}
	f.docs[at+"/Sel/More"] = map[string]any{"Members": []any{map[string]any{"Id": "1", "Created": "2023-01-01T00:00:00Z", "Message": "oldest"}}}
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		_ = c.Open(ctx)
		got, err := c.EventLog(ctx, 2)
		if err != nil || len(got) != 2 || got[0].Message != "middle" || got[1].Message != "newest" || got[0].Created.IsZero() {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
