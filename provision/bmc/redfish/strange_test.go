// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	schema "github.com/stmcginnis/gofish/redfish"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Answers that are not as specified.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	first := func(answer func(w http.ResponseWriter, r *http.Request)) func(*fake, http.ResponseWriter, *http.Request) bool {
		done := false
		return func(_ *fake, w http.ResponseWriter, r *http.Request) bool {
			if done || r.URL.Path != sysPath {
				return false
			}
			done = true
			answer(w, r)
			return true
		}
	}
	tests := []struct {
		name string
		hook func(*fake, http.ResponseWriter, *http.Request) bool
		kind errkind.Kind
		text string // "": it works
		wait time.Duration
	}{
		{"not ready, with a time", first(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(503)
		}), 0, "", 7 * time.Second},
		{"SYS518", first(func(w http.ResponseWriter, _ *http.Request) { refuse(w, 400, "IDRAC.2.8.SYS518", "not ready") }), 0, "", readyWait},
		{"406 to identity", first(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(406) }), 0, "", 0},
		{"500 once", first(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }), 0, "", authWait},
		{"redirect", first(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example"+sysPath+"/")
			w.WriteHeader(308)
		}), errkind.Unsupported, "404", 0},
		{"not ready forever", func(_ *fake, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == sysPath {
				w.WriteHeader(503)
			}
			return r.URL.Path == sysPath
		}, errkind.Refused, "not ready", readyLimit},
		{"no JSON", first(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }), errkind.Internal, "no JSON", 0},
		{"empty", first(func(http.ResponseWriter, *http.Request) {}), errkind.Internal, "empty", 0},
		{"too long", first(func(w http.ResponseWriter, _ *http.Request) {
			part := make([]byte, 1<<20)
			for range maxBody>>20 + 1 {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}), errkind.Internal, "longer than", 0},
		{"connection closed", first(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), 0, "", 0},
		{"silence", first(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), errkind.Timeout, "no answer", 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			rig(t, f, nil, func(ctx context.Context, c *Client) {
				if err := c.Open(ctx); err != nil {
					t.Fatal(err)
				}
				f.mu.Lock()
				f.hook = tt.hook
				f.mu.Unlock()
				start := time.Now()
				_, err := c.PowerState(ctx)
				if (err == nil) != (tt.text == "") || err != nil && (errkind.Of(err) != tt.kind || !strings.Contains(err.Error(), tt.text)) {
					t.Errorf("got %v (%s)", err, errkind.Of(err))
				}
				if spent := time.Since(start); spent != tt.wait {
					t.Errorf("took %s, want %s", spent, tt.wait)
				}
				if _, err := c.PowerState(ctx); err != nil && tt.name != "not ready forever" {
					t.Errorf("afterwards: %v", err)
				}
			})
		})
	}
}

// A service that does not stand kept connections loses one request, not each
// second one.
func TestClosesConnections(t *testing.T) {
	t.Parallel()
	f := newFake()
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		if err := c.Open(ctx); err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		used := map[string]bool{}
		f.hook = func(_ *fake, _ http.ResponseWriter, r *http.Request) bool {
			if used[r.RemoteAddr] {
				panic(http.ErrAbortHandler)
			}
			used[r.RemoteAddr] = true
			return false
		}
		f.mu.Unlock()
		bad := 0
		for range 10 {
			if err := c.Reset(ctx, schema.OnResetType); err != nil {
				bad++
				if errkind.Of(err) != errkind.Timeout {
					t.Errorf("got %v", err)
				}
			}
		}
		if bad != 1 || !c.alone {
			t.Errorf("%d requests were lost", bad)
		}
	})
}

// Some services want the trailing slash, and some lists are null.
func TestShapes(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.docs["/redfish/v1/Systems/"] = f.docs["/redfish/v1/Systems"]
	delete(f.docs, "/redfish/v1/Systems")
	f.docs[sysPath]["Links"] = map[string]any{"ManagedBy": nil, "Chassis": "x"}
	f.docs["/redfish/v1/Managers"] = map[string]any{"Members": nil}
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		if err := c.Open(ctx); err != nil {
			t.Fatal(err)
		}
		id, err := c.Identity(ctx)
		if err != nil || id.Serial != "SN1" || len(id.Gaps) != 2 {
			t.Errorf("%+v, %v", id, err)
		}
	})
}

func TestNoSystem(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.docs["/redfish/v1/Systems"] = map[string]any{"Members": nil}
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		if err := c.Open(ctx); errkind.Of(err) != errkind.Unsupported || errkind.Action(err) == "" {
			t.Errorf("got %v", err)
		}
		if len(f.sessions) != 0 || c.LoggedIn() {
			t.Errorf("%d sessions are left open on a BMC without a system", len(f.sessions))
		}
	})
}
