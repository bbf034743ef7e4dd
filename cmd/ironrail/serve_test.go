// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// served runs a serve of the tiny site until the function that it returns is called, which
// gives its exit code.
func served(t *testing.T, dir string, flags ...string) (answer struct{ URL, Link string }, end func() int) {
	t.Helper()
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	code := -1
	var said bytes.Buffer
	wg.Go(func() {
		a := &app{in: strings.NewReader(""), out: w, err: &said, environ: os.LookupEnv, now: time.Now}
		code = a.run(ctx, append([]string{"-C", dir, "serve", "--json"}, flags...))
		_ = w.Close()
	})
	if err := json.NewDecoder(r).Decode(&answer); err != nil {
		cancel()
		wg.Wait()
		t.Fatalf("%v: %s", err, said.String())
	}
	return answer, func() int { cancel(); wg.Wait(); return code }
}

// TestServe: the page of a site is there until the command is stopped; who has the link or the
// token holds nodes, in the state that other commands read.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := tinySite(t)
	at, end := served(t, dir, "--listen", "127.0.0.1:0")
	defer end()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	ask := func(method, path, token string, form url.Values) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, at.URL+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", strings.TrimSuffix(at.URL, "/"))
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, body := ask("GET", "api/v1/overview", "", nil); code != 200 || !strings.Contains(body, `"nodes":2`) {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := ask("POST", "api/v1/nodes/n1/hold", "", nil); code != 401 {
		t.Errorf("a change by anybody: %d", code)
	}
	token, err := os.ReadFile(filepath.Join(dir, ".ironrail", "web.token"))
	if err != nil {
		t.Fatal(err)
	}
	if code, body := ask("POST", "api/v1/nodes/n1/hold", strings.TrimSpace(string(token)), url.Values{"reason": {"riser"}}); code != 200 {
		t.Errorf("a change with the token: %d %s", code, body)
	}
	var out bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: io.Discard, environ: os.LookupEnv, now: time.Now}
	if code := a.run(t.Context(), []string{"-C", dir, "status"}); code != 0 || !strings.Contains(out.String(), "API token: riser") {
		t.Errorf("%d: %s", code, out.String())
	}
	out.Reset()
	listen := strings.TrimSuffix(strings.TrimPrefix(at.URL, "http://"), "/")
	if code := a.run(t.Context(), []string{"-C", dir, "serve", "link", "--listen", listen}); code != 0 || !strings.HasPrefix(out.String(), at.URL+"login?link=") {
		t.Errorf("%d: %s", code, out.String())
	}
	link, err := url.Parse(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	form := link.Query()
	form.Set("name", "ann")
	if code, body := ask("POST", "login", "", form); code != 200 || !strings.Contains(body, "Log out") {
		t.Errorf("with the link: %d %.300s", code, body)
	}
	if end() != exitDone {
		t.Error("it did not end well")
	}
	if _, err := client.Get(at.URL); err == nil {
		t.Error("it is there still")
	}
}
