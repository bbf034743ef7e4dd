// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/web/metrics"
	"github.com/ironrail/ironrail/web/webtest"
)

// TestMetrics: a server that stays counts what happens in one run after the other, also in those that
// are over before anybody could ask their owner.
func TestMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/"+webtest.Site); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, provision.StateFolder)
	run := func() {
		t.Helper()
		bus := event.NewBus(10)
		bus.Emit(event.Event{Type: event.StepSlow, Node: webtest.Healthy, Stage: "install", Step: webtest.Healthy + "/install.write"})
		bus.Emit(event.Event{Type: event.RunEnded, Text: "done"})
		bus.Close()
		if err := (&event.Log{Dir: filepath.Join(folder, "events")}).Follow(t.Context(), bus.Subscribe(0)); err != nil {
			t.Fatal(err)
		}
	}
	run() // before the server is there
	s := start(t, dir, Options{})
	scrape := func() string {
		t.Helper()
		resp, err := http.Get(s.URL() + "metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d, %v", resp.StatusCode, err)
		}
		return string(b)
	}
	if got := scrape(); strings.Contains(got, "ironrail_runs_ended_total{") || strings.Contains(got, "ironrail_bmc_requests_total") {
		t.Errorf("before a run: %s", got)
	}
	s.CountServices(func() provision.Counters { return provision.Counters{BMC: bmc.Counts{Requests: 7}} })
	for _, want := range []string{"1", "2"} {
		run()
		for range 2 {
			if got := scrape(); !strings.Contains(got, `ironrail_steps_slow_total{stage="install"} `+want+"\n") || !strings.Contains(got, `ironrail_runs_ended_total{outcome="done"} `+want+"\n") || !strings.Contains(got, "ironrail_bmc_requests_total 7\n") {
				t.Fatalf("after run %s: %s", want, got)
			}
		}
	}
}

// scrapesOf serves metrics alone until the test ends.
func scrapesOf(t *testing.T, folder string, l Listen) *Scrapes {
	t.Helper()
	s, err := OpenScrapes(l, folder, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, metrics.New(nil, metrics.Source{Version: "test"})) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestScrapes: metrics alone are read by everybody on loopback; elsewhere over TLS with the token, and
// nothing is answered in clear.
func TestScrapes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	near := scrapesOf(t, folder, Listen{Address: "127.0.0.1:0"})
	if _, err := os.Stat(filepath.Join(folder, "web.token")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("on loopback there is a token: %v", err)
	}
	far := scrapesOf(t, folder, Listen{Address: "0.0.0.0:0", Hosts: []string{"head.example"}})
	token, err := os.ReadFile(filepath.Join(folder, "web.token"))
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(far.URL())
	if err != nil || at.Scheme != "https" || at.Hostname() != "head.example" {
		t.Fatalf("%s, %v", far.URL(), err)
	}
	var shown string // SHA-256 of the certificate
	client := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, strings.Replace(addr, "head.example", "127.0.0.1", 1))
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(c tls.ConnectionState) error {
			sum := sha256.Sum256(c.PeerCertificates[0].Raw)
			shown = hex.EncodeToString(sum[:])
			return nil
		}}}}
	for _, c := range []struct {
		what, url, token string
		code             int
		says             string
	}{
		{"loopback", near.URL() + "metrics", "", http.StatusOK, "ironrail_build_info"},
		{"loopback, the root", near.URL(), "", http.StatusOK, metrics.Path},
		{"loopback, nothing else", near.URL() + "debug/pprof/", "", http.StatusNotFound, ""},
		{"without a token", far.URL() + "metrics", "", http.StatusUnauthorized, "token"},
		{"with another token", far.URL() + "metrics", "x", http.StatusUnauthorized, "token"},
		{"with the token", far.URL() + "metrics", strings.TrimSpace(string(token)), http.StatusOK, "ironrail_build_info"},
		{"another path", far.URL() + "nodes", "", http.StatusSeeOther, ""},
		{"the login", far.URL() + "login", "", http.StatusUnauthorized, "Bearer"},
		{"in clear", "http://" + at.Host + "/metrics", strings.TrimSpace(string(token)), http.StatusBadRequest, "HTTPS server"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.code || !strings.Contains(string(b), c.says) {
			t.Errorf("%s: %d %.300s", c.what, resp.StatusCode, b)
		}
	}
	if want := strings.ToLower(strings.ReplaceAll(far.Fingerprint(), ":", "")); shown != want {
		t.Errorf("the certificate has %s, and %s is said", shown, want)
	}
	if _, err := OpenScrapes(Listen{Address: "0.0.0.0:0"}, folder, time.Now); errkind.Of(err) != errkind.Invalid {
		t.Errorf("on every address without a name: %v", err)
	}
}
