// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
)

// fetchedAt is grants whose ramdisk was fetched at a time.
type fetchedAt struct {
	grants
	at *time.Time
}

func (f fetchedAt) BootedSince(_ Grant, t time.Time) bool { return f.at.After(t) }

// ask makes one call with n1's token from its address, without a network.
func ask(t *testing.T, h *Hub, method, path string, body any) int {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(b))
	r.RemoteAddr = "127.0.0.1:4000"
	r.Header.Set("Authorization", "Bearer t")
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	return w.Code
}

// TestAgentGoesOnBesideAnotherBoot: the ramdisk of an attempt is fetched while its
// agent works, and that agent goes on: a machine with the node's MAC and address boots
// beside it. A node that was reset says hello first.
func TestAgentGoesOnBesideAnotherBoot(t *testing.T) {
	const poll = wire.PathTask + "?wait=0s"
	for _, tt := range []struct {
		name  string
		after []time.Duration // of the calls, from the fetch on; negative: a hello of the next boot
		want  int             // of the last call
	}{
		{"both go on", []time.Duration{time.Second, 31 * time.Second}, 403},
		{"the calls of the boot before come late", []time.Duration{time.Second, 2 * time.Second}, 204},
		{"it was reset", []time.Duration{time.Second, -60 * time.Second, 61 * time.Second, 120 * time.Second}, 204},
		{"it was reset while it was silent", []time.Duration{-60 * time.Second, 61 * time.Second, 120 * time.Second}, 204},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fetched time.Time
				saw := &notes{}
				h := New(Config{Grants: fetchedAt{grants{"t": n1}, &fetched}, Recorder: saw})
				fetched = time.Now()
				time.Sleep(time.Minute)
				ask(t, h, "POST", wire.PathHello, hello("b1"))
				for range 3 {
					time.Sleep(30 * time.Second)
					if code := ask(t, h, "GET", poll, nil); code != 204 {
						t.Fatalf("a poll: %d", code)
					}
				}
				fetched = time.Now()
				code := 0
				for _, at := range tt.after {
					time.Sleep(time.Until(fetched.Add(at.Abs())))
					if at < 0 {
						ask(t, h, "POST", wire.PathHello, hello("b2"))
						continue
					}
					code = ask(t, h, "GET", poll, nil)
				}
				if code != tt.want {
					t.Errorf("the last poll: %d, want %d", code, tt.want)
				}
				e, closed := saw.first(eventConflict)
				if closed != (tt.want == 403) || closed && !strings.Contains(e.Detail, "fetched") {
					t.Errorf("evidence %+v", e)
				}
			})
		})
	}
}
