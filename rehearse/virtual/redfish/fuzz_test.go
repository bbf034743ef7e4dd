// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// FuzzRequest sends any request, as an administrator, to any personality: the
// answer is never a 500 by accident, errors are Redfish errors, and bodies are
// JSON.
func FuzzRequest(f *testing.F) {
	for _, p := range Personalities() {
		sys := root + "/Systems/" + p.System
		f.Add(http.MethodPatch, sys, bootPXE, "application/json", "*")
		f.Add(http.MethodPost, sys+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`, "application/json", "")
		f.Add(http.MethodPatch, sys+"/Bios/"+p.Settings, `{"Attributes":{"BootMode":null}}`, "application/json", `"x", "y"`)
		f.Add(http.MethodPost, root+"/"+p.PushURI, "--b\r\nContent-Disposition: form-data; name=\"UpdateFile\"; filename=\"x_1.2.bin\"\r\n\r\nx\r\n--b--\r\n", "multipart/form-data; boundary=b", "")
		f.Add(http.MethodGet, root+"/"+p.Media.Parent+"/"+p.Manager+"/VirtualMedia/"+p.Slots[0].ID, "", "", "")
		f.Add(http.MethodPatch, root+"/AccountService/Accounts/2", `{"Password":"x","Enabled":1}`, "", "*")
	}
	f.Add(http.MethodGet, "/redfish/v1/Systems?$expand=.", "", "", "")
	f.Add(http.MethodDelete, root+"/SessionService/Sessions/%2e%2e", "{}", "", "")
	f.Add(http.MethodPost, root+"/SessionService/Sessions", `{"UserName":{},"Password":[]}`, "", "")
	f.Fuzz(func(t *testing.T, method, target, body, kind, match string) {
		if !strings.HasPrefix(target, "/") || strings.ContainsAny(target, " \x00\r\n") {
			t.Skip()
		}
		for _, p := range Personalities() {
			p.Quirks.Flaky403 = 0
			r, err := http.NewRequest(method, "https://bmc"+target, strings.NewReader(body))
			if err != nil {
				t.Skip()
			}
			r.SetBasicAuth(user, password)
			r.Header.Set("Content-Type", kind)
			r.Header.Set("If-Match", match)
			s := newServer(t.Context(), chassis.New(config(p, quick)), p, Options{Hardware: hardware()})
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			s.cancel()
			s.work.Wait()
			check(t, r, w)
		}
	})
}

func check(t *testing.T, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	raw := w.Body.Bytes()
	if w.Header().Get("Content-Type") == "application/xml" {
		return
	}
	o := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatalf("%s %s: %v in %q", r.Method, r.URL, err, raw)
		}
	}
	if w.Code >= 400 && (answer{body: o}).id() == "" || w.Code == http.StatusInternalServerError {
		t.Fatalf("%s %s: %d %s", r.Method, r.URL, w.Code, raw)
	}
}

// FuzzIdentify reads any image: it never panics and never invents a version
// that cannot be shown.
func FuzzIdentify(f *testing.F) {
	f.Add(firmwareImage("BIOS", "1.2.3", 4), "x.bin")
	f.Add([]byte("MZ"), "http://10.0.0.1/BIOS_2.1.bin")
	f.Add([]byte{}, "")
	f.Fuzz(func(t *testing.T, head []byte, name string) {
		_, version := identifyImage(head, name)
		if strings.ContainsAny(version, " \n\t/") {
			t.Errorf("version %q", version)
		}
	})
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	tests := []struct {
		head               []byte
		name               string
		component, version string
	}{
		{firmwareImage("HostBIOS_0", "01.02.03", 10), "any.bin", "HostBIOS_0", "01.02.03"},
		{nil, "http://10.0.0.1/images/BIOS_2.1.5.EXE", "BIOS", "2.1.5"},
		{nil, "firmware.bin", "firmware.bin", ""},
		{[]byte("garbage"), "bmc_v12.04.01a.fwpkg", "bmc", "12.04.01a"},
	}
	for _, tt := range tests {
		component, version := identifyImage(tt.head, tt.name)
		if component != tt.component || version != tt.version {
			t.Errorf("%s: %q %q, want %q %q", tt.name, component, version, tt.component, tt.version)
		}
	}
}
