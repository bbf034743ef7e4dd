// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

// TestLight: the switch comes before the older property, the chassis has the light where the system
// has none, and a light that knows one of lit and blinking does what it can.
func TestLight(t *testing.T) {
	t.Parallel()
	const enclosure = "/redfish/v1/Chassis/1"
	for name, c := range map[string]struct {
		at     string
		doc    map[string]any // of that resource
		refuse string         // a value that is refused
		want   Light
		writes string
		reads  string
	}{
		"switch":             {sysPath, map[string]any{"LocationIndicatorActive": false, "IndicatorLED": "Off"}, "", LightBlink, `PATCH ` + sysPath + ` {"LocationIndicatorActive":true}`, "LocationIndicatorActive reads true, IndicatorLED Off"},
		"switch off":         {sysPath, map[string]any{"LocationIndicatorActive": true}, "", LightOff, `PATCH ` + sysPath + ` {"LocationIndicatorActive":false}`, "LocationIndicatorActive reads false"},
		"LED of the chassis": {enclosure, map[string]any{"IndicatorLED": "Off"}, "", LightOn, `PATCH ` + enclosure + ` {"IndicatorLED":"Lit"}`, "IndicatorLED reads Lit"},
		"only blinking":      {enclosure, map[string]any{"IndicatorLED": "Off"}, "Lit", LightOn, `PATCH ` + enclosure + ` {"IndicatorLED":"Blinking"}`, "IndicatorLED reads Blinking"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			for k, v := range c.doc {
				f.docs[c.at][k] = v
			}
			f.hook = func(f *fake, w http.ResponseWriter, r *http.Request) bool { return setsLight(f, w, r, c.refuse) }
			rig(t, f, nil, func(ctx context.Context, cl *Client) {
				if err := cl.Open(ctx); err != nil {
					t.Fatal(err)
				}
				if err := cl.SetLight(ctx, c.want); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(f.writes, "; "); got != c.writes {
					t.Errorf("wrote %s", got)
				}
				now, err := cl.Light(ctx)
				if err != nil || now.String() != c.reads || !now.Fits(c.want) {
					t.Errorf("%s, %v", now, err)
				}
			})
		})
	}
	rig(t, newFake(), nil, func(ctx context.Context, cl *Client) {
		if err := cl.Open(ctx); err != nil {
			t.Fatal(err)
		}
		if err := cl.SetLight(ctx, LightOn); errkind.Of(err) != errkind.Unsupported {
			t.Errorf("no light: %v", err)
		}
	})
}

// setsLight takes a PATCH of a light, unless its value is the one that this BMC does not know.
func setsLight(f *fake, w http.ResponseWriter, r *http.Request, refused string) bool {
	if r.Method != http.MethodPatch || !f.known(r) {
		return false
	}
	body, _ := io.ReadAll(r.Body)
	if refused != "" && strings.Contains(string(body), refused) {
		refuse(w, http.StatusBadRequest, "Base.1.8.PropertyValueNotInList", "not in the list")
		return true
	}
	f.writes = append(f.writes, "PATCH "+r.URL.Path+" "+string(body))
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	maps.Copy(f.docs[r.URL.Path], in)
	w.WriteHeader(http.StatusNoContent)
	return true
}
