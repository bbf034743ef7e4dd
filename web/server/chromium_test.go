// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/web/webtest"
)

const root = "../.."

// shots is a folder that gets screenshots of the pages, for docs.
var (
	shots = flag.String("shots", "", "folder that gets screenshots")
	site  = flag.String("site", "", "folder of a rehearsal that was kept, to look at; empty: a small one")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	webtest.Remove()
	os.Exit(code)
}

// start serves a folder until the test ends.
func start(t *testing.T, dir string, o Options) *Server {
	t.Helper()
	o.Dir, o.State, o.Version, o.Now, o.Open = dir, filepath.Join(dir, provision.StateFolder), "test", time.Now, webtest.OpenSite
	if o.Listen.Address == "" {
		o.Listen.Address = "127.0.0.1:0"
	}
	o.Load = func() (*inventory.Inventory, error) { return webtest.Load(dir) }
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return s
}

// pages are what is looked at in each size.
var pages = map[string]string{
	"overview": "", "nodes": "nodes", "node": "node/" + webtest.BadGPU, "accepted": "node/" + webtest.Healthy, "rack": "rack/r01", "row": "row/A", "findings": "findings",
	"fabrics": "fabrics", "fabric": "fabric/compute", "plan": "plan", "events": "events", "search": "search?q=r01", "missing": "node/nope", "login": "login",
}

// TestPeerChromium looks at every page in three sizes, light and dark: nothing is wider than
// the window, no script fails, nothing is loaded that its policy forbids.
func TestPeerChromium(t *testing.T) {
	b := webtest.OpenBrowser(t)
	dir := *site
	if dir == "" {
		dir = webtest.Kept(t, root)
	}
	s := start(t, dir, Options{})
	for _, width := range []int{390, 1280, 1920} {
		b.Resize(width, 900)
		for name, path := range pages {
			b.Dark(width == 1920)
			b.Open(s.URL() + path)
			var wide int
			if b.Eval("document.documentElement.scrollWidth", &wide); wide > width {
				t.Errorf("%s is %d wide in a window of %d", name, wide, width)
			}
			shoot(t, b, name, width)
			for _, e := range b.Errors() {
				if name != "missing" || !strings.Contains(e, "404") {
					t.Errorf("%s at %d: %s", name, width, e)
				}
			}
		}
	}
}

// shoot takes a screenshot, and keeps it where a folder is named for them.
func shoot(t *testing.T, b *webtest.Browser, name string, width int) {
	t.Helper()
	raw := b.Screenshot(false)
	if img, err := png.Decode(bytes.NewReader(raw)); err != nil || img.Bounds().Dx() != width {
		t.Errorf("%s: %v", name, err)
	}
	if *shots == "" {
		return
	}
	small, err := webtest.Shrink(raw)
	if err == nil {
		err = os.WriteFile(filepath.Join(*shots, fmt.Sprintf("%s-%d.png", name, width)), small, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// planOf is the plan of the last run of a site, as it was before it was approved.
func planOf(t *testing.T, dir string) *plan.Plan {
	t.Helper()
	r, err := state.OpenReadOnly(provision.StatePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	run, _, err := state.Get[state.Run](t.Context(), r, state.LastRun)
	if err != nil {
		t.Fatal(err)
	}
	p, err := state.ReadPlan(t.Context(), r, run.Plan)
	if err != nil {
		t.Fatal(err)
	}
	if p.Sum, err = p.Digest(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPeerReview looks at a plan that waits for its approval in three sizes: its digest, what is
// erased and whose power is switched are there, and axe-core, where it is there, finds nothing.
func TestPeerReview(t *testing.T) {
	b := webtest.OpenBrowser(t)
	dir := webtest.Kept(t, root)
	inv, err := webtest.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	of, err := webtest.OpenSite(inv)
	if err != nil {
		t.Fatal(err)
	}
	p := planOf(t, dir)
	past, err := of.Past(t.Context(), state.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	guess, err := of.Predict(p, past, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, dir, Options{})
	s.Review(p, guess.Text())
	for _, width := range []int{390, 1280, 1920} {
		b.Resize(width, 900)
		b.Dark(width == 1920)
		b.Open(s.URL() + "plan")
		var seen struct {
			Digest, Power, Text string
			Wide                int
		}
		b.Eval(`({Digest: document.getElementById("digest").textContent, Power: document.getElementById("power").textContent, Text: document.querySelector("main").innerText, Wide: document.documentElement.scrollWidth})`, &seen)
		if seen.Digest != p.Sum || !strings.HasPrefix(seen.Power, "4: r01-u[01") || !strings.Contains(seen.Text, "waits for its approval") || !strings.Contains(seen.Text, "EVERYTHING on the disks of") || seen.Wide > width {
			t.Errorf("at %d: %+v", width, seen)
		}
		shoot(t, b, "review", width)
		if axe := readAxe(t); axe != "" {
			runAxe(t, b, axe, fmt.Sprintf("review at %d", width))
		}
	}
	if errs := b.Errors(); len(errs) > 0 {
		t.Error(errs)
	}
}

// TestPeerClicks walks through the page as a person does: by mouse and by keyboard.
func TestPeerClicks(t *testing.T) {
	b := webtest.OpenBrowser(t)
	dir := webtest.Kept(t, root)
	s := start(t, dir, Options{})
	inv, err := webtest.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := inv.Node(webtest.BadGPU)
	at := func(path string) {
		t.Helper()
		b.Wait(fmt.Sprintf(`location.pathname + location.search === %q && document.readyState === "complete"`, "/"+path))
	}
	b.Resize(1280, 900)
	b.Open(s.URL())
	b.Click(`.item[data-node="` + webtest.BadGPU + `"]`)
	at("node/" + webtest.BadGPU)
	b.Click(`a[href^="/finding/f-"]`)
	b.Wait(`location.pathname.startsWith("/finding/f-")`)
	b.Click(`main a[href="/node/` + webtest.BadGPU + `"]`)
	at("node/" + webtest.BadGPU)
	b.Click(`a[href="/rack/r01"]`)
	at("rack/r01")

	b.Key("/")
	b.Wait(`document.activeElement.id === "q"`)
	b.Type(strings.ToUpper(strings.ReplaceAll(n.BootMAC.String(), ":", "-")))
	b.Key("Enter")
	b.Wait(`location.pathname === "/search" && document.readyState === "complete"`)
	b.Key("j")
	b.Wait(`document.activeElement.textContent === "` + webtest.BadGPU + `"`)
	b.Key("Enter")
	at("node/" + webtest.BadGPU)

	b.Key("g")
	b.Key("n")
	at("nodes")
	for range 2 {
		b.Key("j")
	}
	b.Wait(`document.activeElement.textContent === "r01-u09"`)
	b.Key("k")
	b.Wait(`document.activeElement.textContent === "r01-u01"`)
	b.Key("?")
	b.Wait(`document.getElementById("help").open`)
	b.Key("?")
	b.Wait(`!document.getElementById("help").open`)
	b.Click(`main a[href="/nodes?state=quarantined"]`)
	b.Wait(`document.querySelectorAll("main tbody tr").length === 1`)
	if errs := b.Errors(); len(errs) > 0 {
		t.Error(errs)
	}
}

// TestPeerLive: what another command does is seen without loading the page again; a node is
// held and released by who has logged in, and by nobody else.
func TestPeerLive(t *testing.T) {
	b := webtest.OpenBrowser(t)
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/"+webtest.Site); err != nil {
		t.Fatal(err)
	}
	m := onrecord.Marker{Place: onrecord.Place{Folder: filepath.Join(dir, provision.StateFolder)}, Command: "serve", Now: time.Now}
	s := start(t, dir, Options{Change: m})
	b.Resize(1280, 900)
	b.Open(s.URL())
	b.Wait(`document.getElementById("live").classList.contains("on")`)
	b.Eval(`window.same = true`, nil)
	if err := m.Hold(t.Context(), webtest.Healthy, "ann", "riser"); err != nil {
		t.Fatal(err)
	}
	item := `document.querySelector('.item[data-node="` + webtest.Healthy + `"]')`
	b.Wait(item + `.classList.contains("warn") && ` + item + `.getAttribute("aria-label").includes("held") && window.same`)
	b.Wait(`[...document.querySelectorAll("[data-counts] a")].some((a) => a.textContent.includes("1 held")) && window.same`)

	b.Open(s.URL() + "node/" + webtest.Healthy)
	b.Wait(`document.getElementById("live").classList.contains("on")`)
	b.Eval(`window.same = true`, nil)
	var text string
	if b.Eval(`document.querySelector("main").innerText`, &text); !strings.Contains(text, "riser") || strings.Contains(text, "Release this node") {
		t.Errorf("without a login:\n%s", text)
	}
	if err := m.Release(t.Context(), webtest.Healthy, "ann"); err != nil {
		t.Fatal(err)
	}
	b.Wait(`!document.querySelector("main").innerText.includes("riser)") && window.same`)

	b.Open(s.Link(time.Now()) + "&for=" + "bob")
	b.Wait(`document.querySelector('input[name="name"]').value === "bob"`)
	b.Click("main button")
	b.Wait(`location.pathname === "/"`)
	b.Open(s.URL() + "node/" + webtest.Healthy)
	b.Click(`input[name="reason"]`)
	b.Type("fans are loud")
	b.Click(`form[action$="/hold"] button`)
	b.Wait(`document.querySelector("main").innerText.includes("fans are loud") && document.querySelector("main").innerText.includes("bob (web page)")`)
	b.Click(`form[action$="/release"] button`)
	b.Wait(`!!document.querySelector('form[action$="/hold"]')`)
	if errs := b.Errors(); len(errs) > 0 {
		t.Error(errs)
	}
	b.Open(s.URL())
	b.Click("footer button")
	b.Wait(`!document.querySelector("footer").innerText.includes("Log out")`)
}

// TestPeerTLS: elsewhere than on loopback nothing is shown without a login, and the
// connection is one of TLS.
func TestPeerTLS(t *testing.T) {
	b := webtest.OpenBrowser(t, "--ignore-certificate-errors", "--host-resolver-rules=MAP head.example 127.0.0.1")
	dir := webtest.Kept(t, root)
	s := start(t, dir, Options{Listen: Listen{Address: "0.0.0.0:0", Hosts: []string{"head.example"}}})
	if !strings.HasPrefix(s.URL(), "https://head.example:") || s.Fingerprint() == "" {
		t.Fatal(s.URL())
	}
	b.Open(s.URL() + "nodes")
	var text string
	if b.Eval("document.body.innerText", &text); !strings.Contains(text, "Log in") || strings.Contains(text, "hgx") || strings.Contains(text, "r01") {
		t.Errorf("without a login:\n%s", text)
	}
	link := s.Link(time.Now())
	b.Open(link)
	b.Click(`input[name="name"]`)
	b.Type("ann")
	b.Click("main button")
	b.Wait(`location.pathname === "/" && document.querySelector("h1").innerText.includes("nodes are up")`)
	b.Open(s.URL() + "nodes")
	b.Wait(`document.querySelectorAll("main tbody tr").length === 4 && document.getElementById("live").classList.contains("on")`)
	var cookie string
	if b.Eval("document.cookie", &cookie); cookie != "" {
		t.Errorf("a script can read the session: %q", cookie)
	}
	b.Open(link + "&for=ann")
	b.Click("main button")
	b.Wait(`document.body.innerText.includes("was used")`)
}

// TestPeerAxe: axe-core finds nothing serious, in both colour schemes. IRONRAIL_AXE names its
// axe.min.js, of npm's package axe-core.
func TestPeerAxe(t *testing.T) {
	axe := readAxe(t)
	if axe == "" {
		t.Skip("IRONRAIL_AXE does not name axe.min.js of npm's package axe-core")
	}
	b := webtest.OpenBrowser(t)
	s := start(t, webtest.Kept(t, root), Options{})
	for _, width := range []int{390, 1280} {
		for _, dark := range []bool{false, true} {
			b.Resize(width, 900)
			b.Dark(dark)
			for name, path := range pages {
				b.Open(s.URL() + path)
				runAxe(t, b, axe, fmt.Sprintf("%s at %d, dark %v", name, width, dark))
			}
		}
	}
}

// readAxe reads axe-core; "" where IRONRAIL_AXE does not name it.
func readAxe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("IRONRAIL_AXE")
	if path == "" {
		return ""
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(axe)
}

// runAxe has axe-core look at the page that is open.
func runAxe(t *testing.T, b *webtest.Browser, axe, what string) {
	t.Helper()
	b.Eval(axe+"; true", nil)
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct {
			Html           string `json:"html"`
			FailureSummary string
		}
	}
	b.Eval(`axe.run({resultTypes: ["violations"]}).then((r) => r.violations.map((v) => ({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.slice(0, 3).map((n) => ({html: n.html.slice(0, 300), FailureSummary: n.failureSummary}))})))`, &found)
	for _, v := range found {
		t.Errorf("%s: %s %s: %s %+v", what, v.Impact, v.ID, v.Help, v.Nodes)
	}
}
