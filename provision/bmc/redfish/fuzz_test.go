// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
)

// Whatever a service answers, it is read without a panic, texts are one line, and
// references stay on the BMC.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"error":{"code":"Base.1.8.GeneralError","message":"m","@Message.ExtendedInfo":[{"MessageId":"Base.1.8.X","Message":"a\nb","Resolution":null}]}}`))
	f.Add([]byte(`{"@odata.id":"/redfish/v1/Systems/1","Boot":{"BootSourceOverrideTarget":3},"Links":{"ManagedBy":[{"@odata.id":"//x/y"}]},"SerialNumber":{}}`))
	f.Add([]byte(`{"Members":null,"Members@odata.nextLink":"/redfish/v1/x?$skip=1"}`))
	f.Add([]byte(`{"Attributes":{"A":1,"B":null,"C":[{}]},"@Redfish.Settings":{"SettingsObject":{"@odata.id":"/a"}}}`))
	f.Add([]byte(`{"PowerControl":[{"PowerConsumedWatts":"12"}],"Temperatures":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a := answer{path: "/x", status: http.StatusBadRequest, header: http.Header{}, body: b}
		err := a.fault()
		if s := err.Error(); strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) }) >= 0 || len(s) > 2000 {
			t.Errorf("error %q", s)
		}
		_ = a.etag()
		var s system
		var m struct {
			Members links
			Next    link `json:"Members@odata.nextLink"`
		}
		var bi bios
		_, _, _ = a.decode(&s), a.decode(&m), a.decode(&bi)
		_ = bi.texts()
		for _, l := range append(append(append(m.Members, m.Next), s.Links.ManagedBy...), s.Links.Chassis...) {
			u, err := url.Parse(string(l))
			if l != "" && (err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(string(l), "/")) {
				t.Errorf("reference %q leaves the BMC", l)
			}
		}
	})
}

func FuzzLeaves(f *testing.F) {
	f.Add("2024-01-01T00:00:00-0600", `"12.5"`)
	f.Add("00:00:00Z", `null`)
	f.Add("0000-00-00T00:00:00Z", `NaN`)
	f.Fuzz(func(t *testing.T, when, raw string) {
		if at := parseTime(when); !at.IsZero() && at.Year() < 1 {
			t.Errorf("time %v of %q", at, when)
		}
		var n number
		_ = n.UnmarshalJSON([]byte(raw))
		if n.value != nil && *n.value != *n.value {
			t.Error("not a number")
		}
		var tx text
		_ = tx.UnmarshalJSON([]byte(raw))
		_, _ = typed(json.RawMessage(raw), when)
		if d := retryAfter(http.Header{"Retry-After": {raw}}, time.Second); d <= 0 || d > time.Hour {
			t.Errorf("wait %s", d)
		}
	})
}
