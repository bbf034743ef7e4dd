// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/web/view"
	"github.com/ironrail/ironrail/web/webtest"
)

const root = "../.."

func TestMain(m *testing.M) {
	code := m.Run()
	webtest.Remove()
	os.Exit(code)
}

// serve is the page of a folder, without a guard.
func serve(t *testing.T, dir string, change Changer) *Server {
	t.Helper()
	k := &view.Keeper{Dir: dir, State: filepath.Join(dir, provision.StateFolder), Open: webtest.OpenSite, Now: time.Now, Version: "test", Load: func() (*inventory.Inventory, error) { return webtest.Load(dir) }}
	s, err := New(Options{Keeper: k, Change: change})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(s http.Handler, path string, headers ...string) (*http.Response, string) {
	r := httptest.NewRequest("GET", "http://127.0.0.1"+path, nil)
	for _, x := range headers {
		name, value, _ := strings.Cut(x, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	return w.Result(), string(body)
}

// paths are pages with something to see, and the JSON of each.
var paths = map[string]string{
	"/": "/overview", "/nodes": "/nodes", "/nodes?state=accepted&page=2": "/nodes?state=accepted&page=2", "/node/r01-u09": "/nodes/r01-u09", "/node/r01-u01": "/nodes/r01-u01",
	"/rack/r01": "/racks/r01", "/row/A": "/rows/A", "/findings": "/findings", "/fabrics": "/fabrics", "/fabric/compute?state=conforms": "/fabrics/compute?state=conforms",
	"/plan": "/plan", "/plan?node=r01-u01": "/plan?node=r01-u01", "/events": "/events", "/events?type=finding": "/events?type=finding", "/search?q=r01": "/search?q=r01", "": "/report",
}

// TestPages asks each page and its JSON of a site that was rehearsed, and of one in which
// nothing was done yet.
func TestPages(t *testing.T) {
	t.Parallel()
	fresh := t.TempDir()
	if err := webtest.Copy(fresh, root+"/examples/"+webtest.Site); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"rehearsed": webtest.Kept(t, root), "fresh": fresh} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, dir, nil)
			for page, api := range paths {
				if resp, body := get(s, page); page != "" && (resp.StatusCode != 200 || !strings.Contains(body, "</html>") || strings.Contains(body, "ZgotmplZ")) {
					t.Errorf("%s: %d\n%s", page, resp.StatusCode, body)
				}
				if resp, body := get(s, prefix+api); resp.StatusCode != 200 || !json.Valid([]byte(body)) {
					t.Errorf("%s: %d\n%s", api, resp.StatusCode, body)
				}
			}
			for path, want := range map[string]int{"/node/nope": 404, "/rack/nope": 404, "/finding/f-000000": 404, "/switch/nope": 404, "/fabric/nope": 404, "/nope": 404, "/evidence/sha256:00": 404,
				"/evidence/..%2f..%2fstate.db": 404, "/assets/x/style.css": 404, prefix + "/nodes/nope": 404, prefix + "/nope": 404, "/report": 200, "/report/text": 200, "/report/junit": 200, "/fabric/compute/map.svg": 200} {
				if resp, body := get(s, path); resp.StatusCode != want {
					t.Errorf("%s: %d, want %d\n%.500s", path, resp.StatusCode, want, body)
				}
			}
		})
	}
}

// TestHeaders: no page may load anything but its own files, or run a script that stands in
// it; and none has one.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := serve(t, webtest.Kept(t, root), nil)
	inline := regexp.MustCompile(`(?i)<script(?:>|[^>]*[^r]>[^<])|\son[a-z]+=|\sstyle=|javascript:|<style`)
	for page := range paths {
		if page == "" {
			continue
		}
		resp, body := get(s, page)
		if p := resp.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") || !strings.Contains(p, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", page, p)
		}
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", page, resp.Header)
		}
		if at := inline.FindString(body); at != "" {
			t.Errorf("%s has %q in it", page, at)
		}
	}
	if resp, _ := get(s, "/report"); !strings.Contains(resp.Header.Get("Content-Security-Policy"), "default-src 'none'; style-src 'unsafe-inline'") {
		t.Errorf("report: %v", resp.Header)
	}
}

// TestHostileText: what nodes and BMCs say is text, in pages and in JSON.
func TestHostileText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/"+webtest.Site); err != nil {
		t.Fatal(err)
	}
	const evil = "</p><script>alert(1)</script>\x1b[31m\u202e`<img src=x onerror=alert(2)>`"
	if err := os.MkdirAll(filepath.Join(dir, provision.StateFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(provision.StatePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	fence, err := store.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(webtest.BadGPU), Part: evil}}, Cause: evil, Action: evil, Evidence: []string{evil}}
	n := state.Node{Name: webtest.BadGPU, Quarantine: &state.Quarantine{Finding: f, At: time.Now()}}
	id := plan.StepID(n.Name + "/install.netboot")
	step := state.Step{ID: id, State: state.StepIsFailed, Started: time.Now().Add(-time.Minute), Ended: time.Now(), Error: evil, Finding: &f}
	console, err := install.ConsoleFact.New(subject.OfNode(n.Name), install.Tail{Step: id, At: time.Now(), Lines: []string{"login: " + evil}}, "")
	if err != nil {
		t.Fatal(err)
	}
	batch := state.Batch{Records: []state.Record{
		state.Record{Time: time.Now(), Kind: state.FindingMade, Subject: subject.OfNode(n.Name)}.With(f),
		state.Record{Time: time.Now(), Kind: state.StepFailed, Step: string(id), Subject: subject.OfNode(n.Name)}.With(step)}}
	for k, v := range map[state.Key]any{state.NodeKey(n.Name): n, state.StepKey(id): step, state.FactKey(console.Key): console} {
		put, err := state.PutOf(k, v)
		if err != nil {
			t.Fatal(err)
		}
		batch.Puts = append(batch.Puts, put)
	}
	if _, err := store.Append(ctx, fence, batch); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, dir, nil)
	s.Keeper.SetReview(view.Review{Plan: &plan.Plan{ID: evil, Sum: evil, Warnings: []string{evil}, Steps: []plan.Step{{ID: id, Title: evil, Erases: evil, Why: []string{evil}, Subject: subject.OfNode(evil)}}}, Expected: []string{evil}})
	seen := 0
	for _, page := range []string{"/", "/plan", "/nodes", "/node/" + webtest.BadGPU, "/rack/r01", "/findings", "/search?q=" + "%3Cscript%3E", "/nodes?text=%3Cscript%3E", "/nodes?state=%22%3E%3Cscript%3E", "/node/%3Cscript%3E", "/switch/%3Cscript%3E"} {
		resp, body := get(s, page)
		if resp.StatusCode >= 500 {
			t.Errorf("%s: %d", page, resp.StatusCode)
		}
		if strings.Contains(body, "<script>") || strings.Contains(body, "<img") || strings.ContainsAny(body, "\x1b\u202e") {
			t.Errorf("%s shows it as it is:\n%s", page, body)
		}
		if strings.Contains(body, "alert(1)") {
			seen++
		}
	}
	if _, body := get(s, "/node/"+webtest.BadGPU); !strings.Contains(body, "<h2>Console</h2>") || !strings.Contains(body, "login: &lt;/p&gt;") {
		t.Error("its console is not shown")
	}
	if seen < 4 {
		t.Errorf("it is shown on %d pages alone", seen)
	}
}

// TestPacked: what is sent packed is what is sent as it is.
func TestPacked(t *testing.T) {
	t.Parallel()
	s := serve(t, webtest.Kept(t, root), nil)
	_, plain := get(s, prefix+"/plan")
	resp, packed := get(s, prefix+"/plan", "Accept-Encoding: br, gzip")
	z, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" || len(packed) >= len(plain) {
		t.Fatalf("%d of %d bytes, %v", len(packed), len(plain), err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != plain {
		t.Errorf("%d bytes, not %d: %v", len(got), len(plain), err)
	}
}

// TestFilesThatAreNotThere: assets are served without a login, and those that are not there say nothing of the site.
func TestFilesThatAreNotThere(t *testing.T) {
	t.Parallel()
	s := serve(t, webtest.Kept(t, root), nil)
	for _, path := range []string{"/assets/x/style.css", "/assets/x", "/assets/x/y/z"} {
		if resp, body := get(s, path); resp.StatusCode != 404 || body != "404 page not found\n" {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}

// TestCutEvidence: what is cut says so, and what is not does not.
func TestCutEvidence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/"+webtest.Site); err != nil {
		t.Fatal(err)
	}
	s := serve(t, dir, nil)
	digest := strings.Repeat("ab", 32)
	path := filepath.Join(dir, provision.StateFolder, "evidence", "ab", digest)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for size, cut := range map[int]bool{maxEvidence: false, maxEvidence + 1: true} {
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, body := get(s, "/evidence/sha256:"+digest); strings.Contains(body, "the first 4 MiB") != cut || len(body) < maxEvidence {
			t.Errorf("of %d bytes: %d bytes, the end is %q", size, len(body), body[max(0, len(body)-100):])
		}
	}
}

// TestGeneration: a page names the reading that it is made of, for the script to compare with the stream's.
func TestGeneration(t *testing.T) {
	t.Parallel()
	s := serve(t, webtest.Kept(t, root), nil)
	snap, err := s.Keeper.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, body := get(s, "/nodes"); !strings.Contains(body, fmt.Sprintf(`data-generation="%d"`, snap.Generation)) {
		t.Errorf("no generation %d in\n%.2000s", snap.Generation, body)
	}
}

// TestFragments: the script is given the inner part of a page, once for each content.
func TestFragments(t *testing.T) {
	t.Parallel()
	s := serve(t, webtest.Kept(t, root), nil)
	resp, body := get(s, "/nodes", "X-Fragment: 1")
	tag := resp.Header.Get("ETag")
	if resp.StatusCode != 200 || tag == "" || strings.Contains(body, "<html") || !strings.Contains(body, "<h1>Nodes</h1>") {
		t.Fatalf("%d %q\n%s", resp.StatusCode, tag, body)
	}
	if resp, body := get(s, "/nodes", "X-Fragment: 1", "If-None-Match: "+tag); resp.StatusCode != 304 || body != "" {
		t.Errorf("the same again: %d", resp.StatusCode)
	}
	if resp, _ := get(s, "/nodes?state=held", "X-Fragment: 1", "If-None-Match: "+tag); resp.StatusCode != 200 {
		t.Errorf("another content: %d", resp.StatusCode)
	}
}

// TestChanges: hold and release are all that the page changes; what a rehearsal left, it does
// not.
func TestChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/"+webtest.Site); err != nil {
		t.Fatal(err)
	}
	post := func(s *Server, path, form string) int {
		r := httptest.NewRequest("POST", path, strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	stateOf := func(s *Server) (n view.Node) {
		t.Helper()
		s.Keeper.Forget()
		_, body := get(s, prefix+"/nodes/"+webtest.Healthy)
		if err := json.Unmarshal([]byte(body), &n); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return n
	}
	s := serve(t, dir, onrecord.Marker{Place: onrecord.Place{Folder: filepath.Join(dir, provision.StateFolder)}, Command: "serve", Now: time.Now})
	s.Who = func(*http.Request) string { return "ann (web page)" }
	if got := post(s, "/node/"+webtest.Healthy+"/hold", "reason=riser"); got != 303 {
		t.Errorf("hold: %d", got)
	}
	if n := stateOf(s); !n.Held || !strings.Contains(n.Answer.State, "riser") || !strings.Contains(n.Answer.State, "ann (web page)") {
		t.Errorf("%+v", n.Answer)
	}
	if got := post(s, prefix+"/nodes/"+webtest.Healthy+"/release", ""); got != 200 {
		t.Errorf("release: %d", got)
	}
	if n := stateOf(s); n.Held {
		t.Errorf("%+v", n.Answer)
	}
	if got := post(s, "/node/nope/hold", ""); got != 404 {
		t.Errorf("a node that is not there: %d", got)
	}
	kept := webtest.Kept(t, root)
	for name, s := range map[string]*Server{"rehearsal": serve(t, kept, onrecord.Marker{Place: onrecord.Place{Folder: filepath.Join(kept, provision.StateFolder)}, Command: "serve", Now: time.Now}), "read-only": serve(t, dir, nil)} {
		if got := post(s, "/node/"+webtest.Healthy+"/hold", ""); got != 409 {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// TestOpenAPI: what is written is what the document says, with no field that it does not
// name.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	s := serve(t, webtest.Kept(t, root), nil)
	_, text := get(s, prefix+"/openapi.json")
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]struct{ Schema map[string]any }
			}
		}
		Components struct{ Schemas map[string]map[string]any }
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	c := checker{doc.Components.Schemas}
	seen := map[string]bool{}
	for _, api := range append(slices.Collect(values(paths)), "/nodes/nope", "/findings/"+firstFinding(t, s), "/switches/"+firstSwitch(t, s)) {
		path, _, _ := strings.Cut(api, "?")
		pattern := path
		if i := strings.IndexByte(path[1:], '/'); i > 0 {
			pattern = path[:i+1] + "/{name}"
		}
		get200, ok := doc.Paths[prefix+pattern]["get"]
		if !ok {
			t.Errorf("%s is in no path of the document", api)
			continue
		}
		seen[prefix+pattern] = true
		resp, body := get(s, prefix+api)
		answer := get200.Responses["200"]
		if resp.StatusCode != 200 {
			answer = get200.Responses["default"]
		}
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range c.check(api, answer.Content["application/json"].Schema, v) {
			t.Error(wrong)
		}
	}
	for path := range doc.Paths {
		if !seen[path] && !strings.HasSuffix(path, "/live") && !strings.HasSuffix(path, "/hold") && !strings.HasSuffix(path, "/release") {
			t.Errorf("%s of the document was not asked", path)
		}
	}
}

func values(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func firstFinding(t *testing.T, s *Server) string {
	f, err := s.Keeper.Findings(t.Context())
	if err != nil || len(f.Work) == 0 {
		t.Fatalf("%v, %v", f, err)
	}
	return f.Work[0].ID
}

func firstSwitch(t *testing.T, s *Server) string {
	f, err := s.Keeper.Fabric(t.Context(), "compute", view.CableFilter{})
	if err != nil || len(f.Names) == 0 {
		t.Fatalf("%v, %v", f, err)
	}
	return f.Names[0]
}

// checker compares values with schemas, as far as the document uses them.
type checker struct{ types map[string]map[string]any }

func (c checker) check(at string, schema map[string]any, v any) (wrong []string) {
	if ref, ok := schema["$ref"].(string); ok {
		return c.check(at, c.types[strings.TrimPrefix(ref, "#/components/schemas/")], v)
	}
	types := []string{}
	switch x := schema["type"].(type) {
	case string:
		types = append(types, x)
	case []any:
		for _, one := range x {
			types = append(types, one.(string))
		}
	default:
		return nil // any
	}
	got := map[bool]string{true: "null"}[v == nil]
	switch x := v.(type) {
	case string:
		got = "string"
	case bool:
		got = "boolean"
	case float64:
		if got = "number"; x == float64(int64(x)) && slices.Contains(types, "integer") {
			got = "integer"
		}
	case []any:
		got = "array"
		items, _ := schema["items"].(map[string]any)
		for i, one := range x {
			wrong = append(wrong, c.check(fmt.Sprintf("%s[%d]", at, i), items, one)...)
		}
	case map[string]any:
		got = "object"
		properties, named := schema["properties"].(map[string]any)
		rest, _ := schema["additionalProperties"].(map[string]any)
		for name, one := range x {
			of, known := properties[name].(map[string]any)
			if !known {
				of, known = rest, rest != nil
			}
			if named && !known {
				wrong = append(wrong, at+"."+name+" is not in the document")
			}
			wrong = append(wrong, c.check(at+"."+name, of, one)...)
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, has := x[name.(string)]; !has {
				wrong = append(wrong, at+"."+name.(string)+" is required and missing")
			}
		}
	}
	if !slices.Contains(types, got) {
		wrong = append(wrong, fmt.Sprintf("%s is of type %s, not %v", at, got, types))
	}
	return wrong
}
