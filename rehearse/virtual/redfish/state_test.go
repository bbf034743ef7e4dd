// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
)

func TestSessionLife(t *testing.T) {
	t.Parallel()
	q := Quirks{SessionLimit: 2}
	b := start(t, openBMC(), Options{Quirks: &q})
	sessions := root + "/SessionService/Sessions"
	login := `{"UserName":"root","Password":"` + password + `"}`
	first := b.do(t, http.MethodPost, sessions, login, "Anonymous: yes")
	token, place := first.header.Get("X-Auth-Token"), first.header.Get("Location")
	if first.status != http.StatusCreated || token == "" || first.body["UserName"] != user || bytes.Contains(first.raw, []byte(token)) {
		t.Fatalf("log-in: %d %s", first.status, first.raw)
	}
	if a := b.do(t, http.MethodGet, root+"/Systems", "", "X-Auth-Token: "+token); a.status != 200 {
		t.Errorf("with the token: %d", a.status)
	}
	if a := b.do(t, http.MethodGet, root+"/Systems", "", "X-Auth-Token: wrong"); a.status != 401 || a.id() != "Base.1.18.NoValidSession" {
		t.Errorf("with a wrong token: %d %s", a.status, a.id())
	}
	b.do(t, http.MethodPost, sessions, login, "Anonymous: yes")
	if a := b.do(t, http.MethodPost, sessions, login, "Anonymous: yes"); a.status != 503 || a.id() != "Base.1.18.SessionLimitExceeded" {
		t.Errorf("third session of two: %d %s", a.status, a.id())
	}
	if a := b.do(t, http.MethodDelete, place, "", "X-Auth-Token: "+token); a.status != http.StatusNoContent {
		t.Errorf("log-out: %d", a.status)
	}
	if a := b.do(t, http.MethodGet, root+"/Systems", "", "X-Auth-Token: "+token); a.status != 401 {
		t.Errorf("after log-out: %d", a.status)
	}
	if a := b.do(t, http.MethodPost, sessions, login, "Anonymous: yes"); a.status != http.StatusCreated {
		t.Errorf("after log-out there is room: %d", a.status)
	}
	for body, want := range map[string]string{
		`{"UserName":"root"}`: "Base.1.18.PropertyMissing", `{"UserName":1,"Password":"x"}`: "Base.1.18.PropertyValueTypeError",
		`{`: "Base.1.18.MalformedJSON", `{"UserName":"root","Password":"no"}`: "Base.1.18.ResourceAtUriUnauthorized", `[]`: "Base.1.18.MalformedJSON",
	} {
		if a := b.do(t, http.MethodPost, sessions, body, "Anonymous: yes"); a.id() != want {
			t.Errorf("%s: %d %s, want %s", body, a.status, a.id(), want)
		}
	}
}

func TestLockout(t *testing.T) {
	t.Parallel()
	b := start(t, openBMC(), Options{})
	for range 5 {
		b.do(t, http.MethodPost, root+"/SessionService/Sessions", `{"UserName":"root","Password":"wrong"}`, "Anonymous: yes")
	}
	if a := b.do(t, http.MethodGet, root+"/Systems", ""); a.status != 401 {
		t.Errorf("a locked account with the right password: %d", a.status)
	}
}

func TestResetTakesTheNodeThroughItsStates(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		b := start(t, p, Options{})
		reset := b.system(p) + "/Actions/ComputerSystem.Reset"
		state := func() any { return b.do(t, http.MethodGet, b.system(p), "").body["PowerState"] }
		if got := state(); got != "Off" {
			t.Fatalf("at first %v", got)
		}
		if a := b.do(t, http.MethodPost, reset, `{"ResetType":"On"}`); a.status != p.ResetStatus {
			t.Fatalf("on: %d %s", a.status, a.raw)
		}
		eventually(t, "On", func() bool { return state() == "On" })
		a := b.do(t, http.MethodPost, reset, `{"ResetType":"On"}`)
		if want := map[bool]int{true: 409, false: p.ResetStatus}[p.AlreadyFails]; a.status != want {
			t.Errorf("on when on: %d %s", a.status, a.raw)
		}
		b.do(t, http.MethodPost, reset, `{"ResetType":"ForceOff"}`)
		eventually(t, "Off", func() bool { return state() == "Off" })
		if n := b.c.Counters(); n.PowerOns != 1 || n.PowerOffs != 1 {
			t.Errorf("%+v", n)
		}
		for body, want := range map[string]int{`{}`: 400, `{"ResetType":"Explode"}`: 400, `{"ResetType":7}`: 400, `x`: 400} {
			if a := b.do(t, http.MethodPost, reset, body); a.status != want {
				t.Errorf("%s: %d", body, a.status)
			}
		}
	})
}

func TestBootOverrideIsKeptAndConsumed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		b := start(t, p, Options{})
		boot := func() map[string]any { return b.do(t, http.MethodGet, b.system(p), "").body["Boot"].(map[string]any) }
		tag := b.do(t, http.MethodGet, b.system(p), "").header.Get("ETag")
		a := b.do(t, http.MethodPatch, b.system(p), `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe","BootSourceOverrideMode":"UEFI"}}`, "If-Match: "+tag)
		if a.status != p.PatchStatus {
			t.Fatalf("patch: %d %s", a.status, a.raw)
		}
		if got := boot(); got["BootSourceOverrideTarget"] != "Pxe" || got["BootSourceOverrideEnabled"] != "Once" || got["BootSourceOverrideMode"] != "UEFI" {
			t.Errorf("read back %v", got)
		}
		if a := b.do(t, http.MethodPatch, b.system(p), `{"Boot":{"BootSourceOverrideTarget":"Hdd"}}`, "If-Match: "+tag); a.status != 412 {
			t.Errorf("with a stale tag: %d", a.status)
		}
		b.do(t, http.MethodPost, b.system(p)+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
		eventually(t, "Once is consumed", func() bool { return boot()["BootSourceOverrideEnabled"] == "Disabled" })
		for body, want := range map[string]string{
			`{"Boot":{"BootSourceOverrideTarget":"Nowhere"}}`: "PropertyValueNotInList", `{"Boot":{"BootSourceOverrideEnabled":"Maybe","BootSourceOverrideTarget":"Pxe"}}`: "PropertyValueNotInList",
			`{"Boot":[]}`: "PropertyValueTypeError", `{"Boot":{"Boots":1}}`: "PropertyUnknown", `{"SerialNumber":"x"}`: "PropertyUnknown", `{}`: "PropertyMissing",
		} {
			if a := b.do(t, http.MethodPatch, b.system(p), body, "If-Match: *"); a.id() != "Base."+p.Base+"."+want {
				t.Errorf("%s: %d %s", body, a.status, a.id())
			}
		}
	})
}

func TestBIOSSettingsWaitForPOST(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		b := start(t, p, Options{})
		var name, value string
		for name, value = range p.Attributes {
			break
		}
		body, _ := json.Marshal(map[string]any{"Attributes": map[string]string{name: value + "X"}, "@Redfish.SettingsApplyTime": map[string]string{"ApplyTime": "OnReset"}})
		settings := b.system(p) + "/Bios/" + p.Settings
		a := b.do(t, http.MethodPatch, settings, string(body), "If-Match: *")
		if p.ConfigJobs && a.status != 202 || !p.ConfigJobs && a.status != p.PatchStatus {
			t.Fatalf("patch: %d %s", a.status, a.raw)
		}
		read := func(path string) any {
			return b.do(t, http.MethodGet, path, "").body["Attributes"].(map[string]any)[name]
		}
		if read(b.system(p)+"/Bios") != value || read(settings) != value+"X" {
			t.Error("the setting does not wait")
		}
		if p.ConfigJobs {
			if a := b.do(t, http.MethodPatch, settings, string(body)); a.status != 400 || a.id() != "IDRAC.2.8.SYS011" {
				t.Errorf("a second change while a job is pending: %d %s", a.status, a.id())
			}
			if got := b.do(t, http.MethodGet, a.header.Get("Location"), "").body["TaskState"]; got != "Pending" {
				t.Errorf("the job is %v", got)
			}
		}
		b.do(t, http.MethodPost, b.system(p)+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
		eventually(t, "in force", func() bool { return read(b.system(p)+"/Bios") == value+"X" })
		if p.ConfigJobs {
			if got := b.do(t, http.MethodGet, a.header.Get("Location"), "").body["TaskState"]; got != "Completed" {
				t.Errorf("the job is %v", got)
			}
		}
		if a := b.do(t, http.MethodPatch, settings, `{"Attributes":{"NoSuch":"1"}}`, "If-Match: *"); a.id() != "Base."+p.Base+".PropertyUnknown" {
			t.Errorf("unknown attribute: %d %s", a.status, a.id())
		}
	})
}

func TestIDRACSettingsNeedAJob(t *testing.T) {
	t.Parallel()
	p := newIDRAC()
	b := start(t, p, Options{})
	settings := b.system(p) + "/Bios/Settings"
	b.do(t, http.MethodPatch, settings, `{"Attributes":{"NumLock":"Off"}}`)
	b.do(t, http.MethodPost, b.system(p)+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
	eventually(t, "OS", func() bool { return b.c.Phase() == "OS" })
	if current, _ := b.c.BIOS(); current["NumLock"] != "On" {
		t.Error("settings without a job came into force")
	}
	jobs := root + "/Managers/" + p.Manager + "/Jobs"
	if a := b.do(t, http.MethodPost, jobs, `{"TargetSettingsURI":"`+settings+`"}`); a.status != 202 {
		t.Fatalf("job: %d %s", a.status, a.raw)
	}
	b.do(t, http.MethodPost, b.system(p)+"/Actions/ComputerSystem.Reset", `{"ResetType":"ForceRestart"}`)
	eventually(t, "in force", func() bool { current, _ := b.c.BIOS(); return current["NumLock"] == "Off" })
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		b := start(t, p, Options{})
		all := root + "/AccountService/Accounts"
		body := `{"UserName":"operator","Password":"another-Secret-1","RoleId":"Operator","Enabled":true}`
		place := all + "/3"
		if p.Accounts == "slots" {
			if a := b.do(t, http.MethodPost, all, body); a.status != 405 {
				t.Errorf("POST where accounts are slots: %d", a.status)
			}
			if a := b.do(t, http.MethodPatch, all+"/1", body); a.status != 400 {
				t.Errorf("the reserved slot: %d", a.status)
			}
			if a := b.do(t, http.MethodPatch, place, body); a.status != p.PatchStatus {
				t.Fatalf("free slot: %d %s", a.status, a.raw)
			}
		} else {
			a := b.do(t, http.MethodPost, all, body)
			if place = a.header.Get("Location"); a.status != 201 || place == "" {
				t.Fatalf("create: %d %s", a.status, a.raw)
			}
			if a := b.do(t, http.MethodPost, all, body); a.id() != "Base."+p.Base+".ResourceAlreadyExists" {
				t.Errorf("create again: %d %s", a.status, a.id())
			}
		}
		token := b.do(t, http.MethodPost, root+"/SessionService/Sessions", `{"UserName":"operator","Password":"another-Secret-1"}`, "Anonymous: yes").header.Get("X-Auth-Token")
		as := "X-Auth-Token: " + token
		if a := b.do(t, http.MethodPatch, place, `{"RoleId":"Administrator"}`, as, "If-Match: *"); a.status != 403 {
			t.Errorf("an operator makes himself administrator: %d", a.status)
		}
		if a := b.do(t, http.MethodPost, b.system(p)+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`, as); a.status != p.ResetStatus {
			t.Errorf("an operator switches on: %d", a.status)
		}
		if a := b.do(t, http.MethodGet, place, ""); a.body["Password"] != nil || a.body["RoleId"] != "Operator" {
			t.Errorf("account: %s", a.raw)
		}
	})
}
