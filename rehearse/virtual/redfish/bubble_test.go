// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// rack is many BMCs on a network in memory.
type rack struct {
	net    *network.Memory
	bmcs   []*chassis.Chassis
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// newRack starts n BMCs of a personality; it is called in a bubble.
func newRack(t testing.TB, n int, p Personality, timing chassis.Timing, o Options) *rack {
	t.Helper()
	r := &rack{net: network.NewMemory()}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	for i := range n {
		at := netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		cfg := config(p, timing)
		cfg.Node = fmt.Sprintf("r%02dn%02d", i/64, i%64)
		c := chassis.New(cfg)
		c.SetBoard(board{c})
		ln, err := r.net.At(at).Listen(ctx, "tcp", netip.AddrPortFrom(at, 443).String())
		if err != nil {
			t.Fatal(err)
		}
		own := o
		own.Address = at
		r.bmcs = append(r.bmcs, c)
		r.done.Go(func() { _ = c.Run(ctx) })
		r.done.Go(func() {
			if err := Serve(ctx, ln, c, p, own); err != nil {
				t.Errorf("serve: %v", err)
			}
		})
	}
	return r
}

func (r *rack) stop() {
	r.cancel()
	r.done.Wait()
}

// client is an HTTP client on the controller's address.
func (r *rack) client() *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext:     r.net.At(netip.MustParseAddr("10.0.0.1")).Dial,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

// ask does one request with a token and returns the answer's object.
func ask(client *http.Client, at, method, path, body, token string) (int, http.Header, map[string]any, error) {
	req, err := http.NewRequest(method, at+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	if token != "" {
		req.Header.Set("X-Auth-Token", token)
	}
	req.Header.Set("If-Match", "*")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	o := map[string]any{}
	if len(raw) > 0 {
		err = json.Unmarshal(raw, &o)
	}
	return resp.StatusCode, resp.Header, o, err
}

// job is what a controller does to a BMC: log in, set the boot, switch on, read
// back, log out.
func job(client *http.Client, at string, p Personality) error {
	_, h, _, err := ask(client, at, http.MethodPost, root+"/SessionService/Sessions", `{"UserName":"root","Password":"`+password+`"}`, "")
	if err != nil {
		return err
	}
	token := h.Get("X-Auth-Token")
	sys := root + "/Systems/" + p.System
	for _, x := range []struct{ method, path, body string }{
		{http.MethodPatch, sys, bootPXE},
		{http.MethodGet, sys, ""},
		{http.MethodPost, sys + "/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`},
		{http.MethodGet, sys, ""},
		{http.MethodDelete, strings.TrimPrefix(h.Get("Location"), at), ""},
	} {
		status, _, _, err := ask(client, at, x.method, x.path, x.body, token)
		if err != nil || status >= 300 {
			return fmt.Errorf("%s %s: %d %w", x.method, x.path, status, err)
		}
	}
	return nil
}

// TestVirtualTime runs a BMC through an hour of its life on virtual time: the
// durations are those of real hardware and exact.
func TestVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := openBMC()
		r := newRack(t, 1, p, chassis.Timing{}, Options{Quirks: &Quirks{NotReady: 2 * time.Minute, SessionTimeout: 10 * time.Minute}, Update: 5 * time.Minute})
		defer r.stop()
		client := r.client()
		defer client.CloseIdleConnections()
		const at = "https://10.1.0.0"
		begin := time.Now()
		wait := func(what string, limit time.Duration, reached func() bool) {
			t.Helper()
			for from := time.Now(); !reached(); time.Sleep(time.Second) {
				if time.Since(from) > limit {
					t.Fatalf("%s: not within %v", what, limit)
				}
			}
		}
		wait("ready", 2*time.Minute+time.Second, func() bool {
			status, _, _, err := ask(client, at, http.MethodPost, root+"/SessionService/Sessions", `{"UserName":"root","Password":"`+password+`"}`, "")
			return err == nil && status == http.StatusCreated
		})
		if d := time.Since(begin); d != 2*time.Minute {
			t.Errorf("ready after %v", d)
		}
		if err := job(client, at, p); err != nil {
			t.Fatal(err)
		}
		wait("on", 6*time.Second, func() bool { return r.bmcs[0].Power() == chassis.On })

		r.bmcs[0].Mains(0, false)
		r.bmcs[0].Mains(1, false)
		from := time.Now()
		if _, _, _, err := ask(client, at, http.MethodGet, root, "", ""); err == nil {
			t.Error("a dead BMC answers")
		}
		if d := time.Since(from); d != 30*time.Second {
			t.Errorf("a dead BMC cost %v, not the client's patience", d)
		}
		r.bmcs[0].Mains(0, true)
		wait("the BMC is back", time.Minute+time.Second, func() bool {
			status, _, _, err := ask(client, at, http.MethodGet, root, "", "")
			return err == nil && status == 200
		})
		if r.bmcs[0].Power() != chassis.Off {
			t.Errorf("power %s", r.bmcs[0].Power())
		}
	})
}

// TestTagsOutliveTheClock: a resource that shows the time keeps its tag, and
// shows the time once.
func TestTagsOutliveTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := openBMC()
		s := newServer(t.Context(), chassis.New(config(p, quick)), p, Options{})
		read := func() (string, string) {
			body, tag := s.encode(getManager(&call{s: s}))
			if !json.Valid(body) || strings.Count(string(body), `"DateTime":`) != 1 {
				t.Errorf("%s", body)
			}
			return string(body), tag
		}
		before, tag := read()
		time.Sleep(time.Minute)
		if after, now := read(); now != tag || after == before {
			t.Errorf("tag %s, then %s", tag, now)
		}
	})
}

// TestBMCResetDropsWhatIsUnderWay: a reset that the BMC has not carried out is
// forgotten when the BMC itself restarts.
func TestBMCResetDropsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := openBMC()
		r := newRack(t, 1, p, chassis.Timing{}, Options{Quirks: &Quirks{SlowReset: 2 * time.Minute}})
		defer r.stop()
		client := r.client()
		defer client.CloseIdleConnections()
		if err := job(client, "https://10.1.0.0", p); err != nil {
			t.Fatal(err)
		}
		r.bmcs[0].ResetBMC()
		time.Sleep(10 * time.Minute)
		if r.bmcs[0].Power() != chassis.Off {
			t.Errorf("power %s", r.bmcs[0].Power())
		}
	})
}

// TestManyAtOnce has many BMCs do their job at the same time on virtual time.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := dgxH100()
		r := newRack(t, 64, p, chassis.Timing{}, Options{})
		defer r.stop()
		var wg sync.WaitGroup
		for i := range r.bmcs {
			wg.Go(func() {
				client := r.client()
				defer client.CloseIdleConnections()
				if err := job(client, fmt.Sprintf("https://10.1.%d.%d", i>>8, i&255), p); err != nil {
					t.Errorf("bmc %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		time.Sleep(10 * time.Second)
		for i, c := range r.bmcs {
			if c.Power() != chassis.On {
				t.Errorf("bmc %d is %s", i, c.Power())
			}
		}
	})
}
