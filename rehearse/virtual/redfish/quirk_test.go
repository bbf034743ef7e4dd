// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

const bootPXE = `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe","BootSourceOverrideMode":"UEFI"}}`

// quirky starts an openbmc with one quirk.
func quirky(t *testing.T, q Quirks) *bmc { return start(t, openBMC(), Options{Quirks: &q}) }

func TestQuirks(t *testing.T) {
	t.Parallel()
	const sys = root + "/Systems/system"
	tests := []struct {
		name string
		q    Quirks
		test func(*testing.T, *bmc)
	}{
		{"RequireETag", Quirks{RequireETag: true}, func(t *testing.T, b *bmc) {
			if a := b.do(t, http.MethodPatch, sys, bootPXE); a.status != 428 || !strings.HasSuffix(a.id(), "PreconditionRequired") {
				t.Errorf("without If-Match: %d %s", a.status, a.id())
			}
			if a := b.do(t, http.MethodPatch, sys, bootPXE, `If-Match: "stale"`); a.status != 412 {
				t.Errorf("with a stale tag: %d", a.status)
			}
			if a := b.do(t, http.MethodPatch, sys, bootPXE, "If-Match: *"); a.status != 204 {
				t.Errorf("with any: %d", a.status)
			}
		}},
		{"WeakETag", Quirks{WeakETag: true}, func(t *testing.T, b *bmc) {
			tag := b.do(t, http.MethodGet, sys, "").header.Get("ETag")
			if !strings.HasPrefix(tag, `W/"`) {
				t.Fatalf("tag %s", tag)
			}
			if a := b.do(t, http.MethodPatch, sys, bootPXE, "If-Match: "+tag); a.status != 412 {
				t.Errorf("with the weak tag: %d", a.status)
			}
			if a := b.do(t, http.MethodPatch, sys, bootPXE, "If-Match: "+strings.TrimPrefix(tag, "W/")); a.status != 204 {
				t.Errorf("with it made strong: %d", a.status)
			}
		}},
		{"Flaky401", Quirks{Flaky401: 4}, func(t *testing.T, b *bmc) {
			refused := 0
			for range 200 {
				if b.do(t, http.MethodGet, sys, "").status == 401 {
					refused++
				}
			}
			if refused < 25 || refused > 80 {
				t.Errorf("%d of 200 refused, about 50 expected", refused)
			}
			if b.c.Locked(user) {
				t.Error("refusals that are not failed log-ins locked the account")
			}
		}},
		{"LoseBoot", Quirks{LoseBoot: true}, func(t *testing.T, b *bmc) {
			if a := b.do(t, http.MethodPatch, sys, bootPXE); a.status != 204 {
				t.Errorf("answered %d", a.status)
			}
			if b.c.Override().Enabled != "Disabled" {
				t.Error("kept")
			}
		}},
		{"MembersNull", Quirks{MembersNull: true}, func(t *testing.T, b *bmc) {
			a := b.do(t, http.MethodGet, root+"/TaskService/Tasks", "")
			if v, has := a.body["Members"]; !has || v != nil {
				t.Errorf("%s", a.raw)
			}
		}},
		{"SessionTimeout", Quirks{SessionTimeout: 20 * time.Millisecond}, func(t *testing.T, b *bmc) {
			token := b.do(t, http.MethodPost, root+"/SessionService/Sessions", `{"UserName":"root","Password":"`+password+`"}`, "Anonymous: yes").header.Get("X-Auth-Token")
			made := time.Now()
			eventually(t, "past", func() bool { return time.Since(made) > 25*time.Millisecond })
			if a := b.do(t, http.MethodGet, sys, "", "X-Auth-Token: "+token); a.status != 401 {
				t.Errorf("an old session: %d", a.status)
			}
		}},
		{"NotReadyRequests", Quirks{NotReadyRequests: 3}, func(t *testing.T, b *bmc) {
			for i := range 4 {
				want := 503
				if i == 3 {
					want = 200
				}
				if a := b.do(t, http.MethodGet, sys, ""); a.status != want {
					t.Errorf("request %d: %d", i, a.status)
				}
				if a := b.do(t, http.MethodGet, root, ""); a.status != 200 {
					t.Errorf("the root is not there: %d", a.status)
				}
			}
			b.c.ResetBMC()
			eventually(t, "live", b.c.Live)
			if a := b.do(t, http.MethodGet, sys, ""); a.status != 503 || a.header.Get("Retry-After") == "" {
				t.Errorf("after a restart: %d", a.status)
			}
		}},
		{"NotReady", Quirks{NotReady: time.Hour}, func(t *testing.T, b *bmc) {
			if a := b.do(t, http.MethodPost, root+"/SessionService/Sessions", `{}`, "Anonymous: yes"); a.status != 503 {
				t.Errorf("%d", a.status)
			}
		}},
		{"SlowReset", Quirks{SlowReset: 100 * time.Millisecond}, func(t *testing.T, b *bmc) {
			asked := time.Now()
			if a := b.do(t, http.MethodPost, sys+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`); a.status != 204 {
				t.Errorf("%d", a.status)
			}
			if b.c.Power() != chassis.Off && time.Since(asked) < 100*time.Millisecond {
				t.Error("at once")
			}
			eventually(t, "on", func() bool { return b.c.Power() == chassis.On })
		}},
		{"TrailingSlash", Quirks{TrailingSlash: true}, func(t *testing.T, b *bmc) {
			if with, without := b.do(t, http.MethodGet, sys+"/", ""), b.do(t, http.MethodGet, sys, ""); with.status != 200 || without.status != 404 {
				t.Errorf("with %d, without %d", with.status, without.status)
			}
		}},
		{"NoSessionService", Quirks{NoSessionService: true}, func(t *testing.T, b *bmc) {
			if a := b.do(t, http.MethodGet, root, ""); a.body["SessionService"] != nil {
				t.Error("the root has one")
			}
			if a := b.do(t, http.MethodPost, root+"/SessionService/Sessions", `{"UserName":"root","Password":"`+password+`"}`, "Anonymous: yes"); a.status != 404 {
				t.Errorf("%d", a.status)
			}
			if a := b.do(t, http.MethodGet, sys, ""); a.status != 200 {
				t.Errorf("basic: %d", a.status)
			}
		}},
		{"BootNeedsFullObject", Quirks{BootNeedsFullObject: true}, func(t *testing.T, b *bmc) {
			if a := b.do(t, http.MethodPatch, sys, `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`); a.status != 400 {
				t.Errorf("without a mode: %d", a.status)
			}
			if a := b.do(t, http.MethodPatch, sys, bootPXE); a.status != 204 {
				t.Errorf("full: %d", a.status)
			}
		}},
		{"BootModeReverts", Quirks{BootModeReverts: true}, func(t *testing.T, b *bmc) {
			b.do(t, http.MethodPatch, sys, bootPXE)
			b.do(t, http.MethodPatch, sys, `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`)
			if b.c.Override().UEFI {
				t.Error("the mode was kept")
			}
		}},
		{"BootRejectsContinuous", Quirks{BootRejectsContinuous: true}, func(t *testing.T, b *bmc) {
			if a := b.do(t, http.MethodPatch, sys, strings.Replace(bootPXE, "Once", "Continuous", 1)); a.status != 400 {
				t.Errorf("%d", a.status)
			}
			if a := b.do(t, http.MethodGet, sys, ""); strings.Contains(string(a.raw), `"Continuous"`) {
				t.Error("it is offered")
			}
		}},
		{"BootRejectsPXE", Quirks{BootRejectsPXE: true}, func(t *testing.T, b *bmc) {
			if a := b.do(t, http.MethodPatch, sys, bootPXE); a.status != 400 {
				t.Errorf("PXE: %d", a.status)
			}
			if a := b.do(t, http.MethodPatch, sys, strings.Replace(bootPXE, "Pxe", "UefiHttp", 1)); a.status != 204 {
				t.Errorf("HTTP: %d", a.status)
			}
		}},
		{"BootBusyInPOST", Quirks{BootBusyInPOST: true}, func(t *testing.T, b *bmc) {
			_ = b.c.Press(chassis.PressOn)
			eventually(t, "OS", func() bool { return b.c.Phase() == "OS" })
			b.c.SetPhase("POST")
			if a := b.do(t, http.MethodPatch, sys, bootPXE); a.status != 503 {
				t.Errorf("in POST: %d", a.status)
			}
			b.c.SetPhase("OS")
			if a := b.do(t, http.MethodPatch, sys, bootPXE); a.status != 204 {
				t.Errorf("in the OS: %d", a.status)
			}
		}},
		{"MediaMinimal", Quirks{MediaMinimal: true}, func(t *testing.T, b *bmc) {
			insert := root + "/Managers/bmc/VirtualMedia/Slot_0/Actions/VirtualMedia.InsertMedia"
			if a := b.do(t, http.MethodPost, insert, `{"Image":"http://10.0.0.1/a.iso","Inserted":true}`); a.status != 400 {
				t.Errorf("%d", a.status)
			}
			if a := b.do(t, http.MethodPost, insert, `{"Image":"http://10.0.0.1/a.iso"}`); a.status != 204 || b.c.Media()["Slot_0"] == "" {
				t.Errorf("%d", a.status)
			}
		}},
		{"Extra", Quirks{ExtraSystems: []string{"HGX_Baseboard_0"}, ExtraFirst: true}, func(t *testing.T, b *bmc) {
			m, _ := b.do(t, http.MethodGet, root+"/Systems", "").body["Members"].([]any)
			if len(m) != 2 || m[0].(map[string]any)["@odata.id"] != root+"/Systems/HGX_Baseboard_0" {
				t.Errorf("members %v", m)
			}
			if a := b.do(t, http.MethodGet, root+"/Systems/HGX_Baseboard_0", ""); a.status != 200 || a.body["PowerState"] != nil || a.body["Boot"] != nil {
				t.Errorf("%d %s", a.status, a.raw)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, quirky(t, tt.q))
		})
	}
}

func TestFlakyInventory(t *testing.T) {
	t.Parallel()
	b := start(t, dgxH100(), Options{})
	refused := 0
	for range 200 {
		switch a := b.do(t, http.MethodGet, root+"/UpdateService/FirmwareInventory", ""); a.status {
		case 403:
			refused++
		case 200:
		default:
			t.Fatalf("%d %s", a.status, a.raw)
		}
	}
	if refused == 0 || refused > 40 {
		t.Errorf("%d of 200 refused", refused)
	}
}

func TestNotReadyInDellsWords(t *testing.T) {
	t.Parallel()
	q := Quirks{NotReadyRequests: 1}
	b := start(t, newIDRAC(), Options{Quirks: &q})
	if a := b.do(t, http.MethodGet, root+"/Systems", ""); a.status != 503 || !strings.Contains(a.id(), "SYS518") {
		t.Errorf("%d %s", a.status, a.id())
	}
}

func TestAMIAsksForAPrecondition(t *testing.T) {
	t.Parallel()
	b := start(t, dgxH100(), Options{})
	if a := b.do(t, http.MethodPatch, root+"/Systems/DGX/SD", bootPXE); a.status != 428 || a.id() != "Ami.1.0.PreconditionHeaderMissing" {
		t.Errorf("%d %s", a.status, a.id())
	}
	if a := b.do(t, http.MethodPatch, root+"/Systems/DGX/SD", bootPXE, "If-Match: *"); a.status != 204 || b.c.Override().Target != chassis.BootPXE {
		t.Errorf("%d", a.status)
	}
}

func TestDellSerials(t *testing.T) {
	t.Parallel()
	b := start(t, newIDRAC(), Options{})
	if a := b.do(t, http.MethodGet, root+"/Systems/System.Embedded.1", ""); a.body["SKU"] != "SN0001" || a.body["SerialNumber"] != "BD0001" {
		t.Errorf("SKU %v, SerialNumber %v", a.body["SKU"], a.body["SerialNumber"])
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	b := start(t, openBMC(), Options{})
	m, _ := b.do(t, http.MethodGet, root+"/Systems?$expand=.($levels=1)", "").body["Members"].([]any)
	if len(m) != 1 || m[0].(map[string]any)["PowerState"] != "Off" {
		t.Errorf("members %v", m)
	}
	tag := b.do(t, http.MethodGet, root+"/Managers/bmc", "").header.Get("ETag")
	if a := b.do(t, http.MethodGet, root+"/Managers/bmc", "", "If-None-Match: "+tag); a.status != http.StatusNotModified {
		t.Errorf("the manager's tag is not stable: %d", a.status)
	}
}

func TestForMaker(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ manufacturer, product, want string }{
		{"Dell Inc.", "PowerEdge XE9680", "idrac"}, {"Supermicro", "SYS-821GE-TNHR", "supermicro"}, {"NVIDIA", "DGXH100", "dgx-h100"},
		{"NVIDIA", "DGX H100", "dgx-h100"}, {"", "", "openbmc"}, {"QEMU", "Standard PC", "openbmc"},
	} {
		if got := ForMaker(tt.manufacturer, tt.product).Name; got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.manufacturer, tt.product, got, tt.want)
		}
		if p, ok := FindPersonality(tt.want); !ok || p.Name != tt.want {
			t.Errorf("Find(%q): %t", tt.want, ok)
		}
	}
	if _, ok := FindPersonality("ilo"); ok {
		t.Error("an unknown name was found")
	}
}

func TestFirmwareByWord(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		p.Firmware = []chassis.Component{{ID: "BMC", Name: "BMC", Version: "9.1", Updateable: true}, {ID: "BIOS", Name: "BIOS", Version: "9.2"}}
		b := start(t, p, Options{})
		if got := b.do(t, http.MethodGet, b.system(p), "").body["BiosVersion"]; got != "9.2" {
			t.Errorf("BIOS %v", got)
		}
		if got := b.do(t, http.MethodGet, root+"/Managers/"+p.Manager, "").body["FirmwareVersion"]; got != "9.1" {
			t.Errorf("BMC %v", got)
		}
	})
}
