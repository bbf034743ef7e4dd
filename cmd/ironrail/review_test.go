// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/web/webtest"
)

// review is an apply at a terminal that shows its plan on the page and waits.
type review struct {
	dir    string
	user   *os.File // who sits before the terminal
	talk   *heard
	url    string
	digest string // as the terminal shows it
	code   chan int
}

// planShown is what is compared of the page's JSON.
type planShown struct {
	Review, Digest, Run string
	Steps               int
	Budget              int `json:"max_erase"`
	Expected, Power     []string
	Refusals            []struct{ Cause string }
	Erases              []struct{ Node, Serial, What string }
	Treatments          []struct {
		Of    []string
		Steps []struct{ Why []string }
	}
}

// reviewed begins an apply of the site of the scripts, with these changes to its file, that has a page.
func reviewed(t *testing.T, changes ...string) *review {
	t.Helper()
	dir := tinySite(t, changes...)
	r := waitingApply(t, dir, "The page shows the same plan and digest: ", "--ui=127.0.0.1:0")
	found := regexp.MustCompile(`same plan and digest: (http://\S+/)plan\n`)
	await(t, "the page", func() bool { return found.MatchString(r.talk.String()) })
	r.url = found.FindStringSubmatch(r.talk.String())[1]
	return r
}

// waitingApply begins an apply at a terminal, and waits until it says something after the digest of
// its plan.
func waitingApply(t *testing.T, dir, says string, flags ...string) *review {
	t.Helper()
	r := &review{dir: dir, talk: newHeard(says), code: make(chan int, 1)}
	var terminal *os.File
	terminal, r.user = pseudoTerminal(t)
	a := newApp(io.Discard, r.talk)
	a.in = terminal
	go func() { r.code <- a.run(t.Context(), append([]string{"-C", dir, "apply"}, flags...)) }()
	select {
	case <-r.talk.written:
	case c := <-r.code:
		t.Fatalf("exit code %d: %s", c, r.talk)
	}
	of := regexp.MustCompile(`Digest of the plan: (sha256:[0-9a-f]{64})\n`).FindStringSubmatch(r.talk.String())
	if of == nil {
		t.Fatalf("no digest: %s", r.talk)
	}
	r.digest = of[1]
	return r
}

// get reads the plan of the page as JSON.
func (r *review) get(t *testing.T) (p planShown) {
	t.Helper()
	resp, err := http.Get(r.url + "api/v1/plan")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestReview: the plan that waits in a terminal is on the page, with the digest of the terminal; the
// page cannot approve it, and a no in the terminal is one.
func TestReview(t *testing.T) {
	t.Parallel()
	r := reviewed(t, `boot_mac =`, "serial = \"SYS-${each.value}\"\n    boot_mac =")
	p := r.get(t)
	if p.Review != "waits" || p.Digest != r.digest || p.Steps == 0 || p.Run != "" {
		t.Errorf("review %q of run %q, digest %s, in the terminal %s, %d steps", p.Review, p.Run, p.Digest, r.digest, p.Steps)
	}
	erased := []string{}
	for _, e := range p.Erases {
		if erased = append(erased, e.Node); e.Serial == "" || !strings.Contains(e.What, "disk") {
			t.Errorf("%+v", e)
		}
	}
	if !slices.Equal(erased, []string{"n1", "n2"}) || p.Budget != 2 || len(p.Expected) == 0 || !strings.HasPrefix(p.Expected[0], "Expected time: ") {
		t.Errorf("erases %v of %d, expected %q", erased, p.Budget, p.Expected)
	}
	if n := p.Treatments[0]; !slices.Equal(n.Of, []string{"n1", "n2"}) && len(p.Treatments) < 2 || len(n.Steps) == 0 || len(n.Steps[0].Why) == 0 {
		t.Errorf("%+v", p.Treatments)
	}
	token, err := os.ReadFile(filepath.Join(r.dir, provision.StateFolder, "web.token"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"plan", "api/v1/plan", "api/v1/plan/approve"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+path, strings.NewReader("answer=yes"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, resp.StatusCode)
		}
	}
	if p := r.get(t); p.Review != "waits" {
		t.Errorf("afterwards: %q", p.Review)
	}
	r.answer(t, "no", 1, "not approved; nothing was done")
}

// TestReviewOfServe: the plan of an apply that waits is on the page of the owner, with its digest, and
// no longer once it was not approved.
func TestReviewOfServe(t *testing.T) {
	t.Parallel()
	dir := tinySite(t)
	at, stop := served(t, dir, "--listen", "127.0.0.1:0", "--boot", "never")
	defer stop()
	r := waitingApply(t, dir, "The page of serve shows the same plan and digest")
	r.url = at.URL
	p := r.get(t)
	if p.Review != "waits" || p.Digest != r.digest || p.Steps == 0 || len(p.Erases) != 2 || !slices.Equal(p.Power, []string{"n1", "n2"}) || len(p.Expected) == 0 {
		t.Errorf("%+v, in the terminal %s", p, r.digest)
	}
	r.end(t, "no", 1, "not approved; nothing was done")
	await(t, "the end of the review", func() bool { p := r.get(t); return p.Review == "" && p.Digest == "" })
}

// end types a line, and expects an end.
func (r *review) end(t *testing.T, line string, code int, says string) {
	t.Helper()
	if _, err := io.WriteString(r.user, line+"\r"); err != nil {
		t.Fatal(err)
	}
	if c := <-r.code; c != code || !strings.Contains(r.talk.String(), says) {
		t.Errorf("exit code %d: %s", c, r.talk)
	}
}

// answer is end where the page ends with apply.
func (r *review) answer(t *testing.T, line string, code int, says string) {
	t.Helper()
	r.end(t, line, code, says)
	if _, err := http.Get(r.url); err == nil { //nolint:noctx // it is refused at once
		t.Error("the page is served after its end")
	}
}

// TestPeerReview looks at a plan that waits for its approval in Chromium: there is a digest, no button
// approves, a hold is the only thing that a login could do, and the page of an apply that was refused
// stays until somebody at the terminal has looked.
func TestPeerReview(t *testing.T) {
	b := webtest.OpenBrowser(t)
	r := reviewed(t)
	b.Resize(390, 900)
	b.Open(r.url)
	b.Click(`#review a`)
	b.Wait(`location.pathname === "/plan" && document.readyState === "complete"`)
	var seen struct {
		Digest, Text  string
		Forms, Opened int
		Wide          int
	}
	b.Eval(`({Digest: document.getElementById("digest").textContent, Text: document.querySelector("main").innerText, Forms: document.querySelectorAll("main form, main button, main input").length,
		Opened: document.querySelectorAll("details.treatment[open]").length, Wide: document.documentElement.scrollWidth})`, &seen)
	if seen.Digest != r.digest || seen.Forms != 0 || seen.Opened == 0 || seen.Wide > 390 {
		t.Errorf("%+v, in the terminal %s", seen, r.digest)
	}
	for _, want := range []string{"waits for its approval", "Expected time", "erases EVERYTHING", "max_erase of the site is 2", "write image"} {
		if !strings.Contains(seen.Text, want) {
			t.Errorf("%q is not shown:\n%s", want, seen.Text)
		}
	}
	if errs := b.Errors(); len(errs) > 0 {
		t.Error(errs)
	}
	r.answer(t, "no", 1, "not approved; nothing was done")
}

// TestReviewRefused: the page of a plan that cannot be approved stays until somebody has looked.
func TestReviewRefused(t *testing.T) {
	t.Parallel()
	r := reviewed(t, `role "w" {`, "role \"w\" {\n  protect = true")
	await(t, "the question", func() bool { return strings.Contains(r.talk.String(), "until Enter is pressed: ") })
	p := r.get(t)
	if p.Review != "waits" || p.Digest != r.digest || len(p.Refusals) != 2 || !strings.Contains(p.Refusals[0].Cause, "is protected") {
		t.Errorf("%+v", p)
	}
	r.answer(t, "yes", 1, "nothing was done: the plan has 2 refused steps")
}
