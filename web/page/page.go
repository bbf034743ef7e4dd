// SPDX-License-Identifier: Apache-2.0

// Package page is the web page of a site: its pages, rendered on the server, the same as
// JSON with an OpenAPI document, and the few files beside them. It needs no other site and
// works without its script.
package page

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/web/guard"
	"github.com/ironrail/ironrail/web/view"
)

//go:embed assets templates
var files embed.FS

// The limits of the server.
const (
	answerTime    = 30 * time.Second // for one page
	maxRequests   = 64               // at once
	maxPerAddress = 24
	maxEvidence   = 4 << 20 // bytes of a raw output that are shown
	maxForm       = 16 << 10
	foldedPause   = 10_000 // milliseconds between two readings of a large site
)

// Options are what a page is served with.
type Options struct {
	Keeper  *view.Keeper
	Session func(*http.Request) (in bool, csrf string) // csrf goes with each form of a session; nil: nobody logs in
	Who     func(*http.Request) string                 // names who asks for a change; nil: nobody does
	Live    http.Handler                               // the stream of changes; nil: there is none
	Metrics http.Handler                               // nil: there are none
	Change  Changer                                    // nil: nothing can be changed
}

// Changer puts nodes on hold and releases them.
type Changer interface {
	Hold(ctx context.Context, node, by, reason string) error
	Release(ctx context.Context, node, by string) error
}

// Server serves the pages.
type Server struct {
	Options
	mux    http.Handler
	pages  map[string]*template.Template
	assets string // a name that changes with the content of the assets
}

// ServeHTTP answers a request that was let through.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// New prepares the page of a site.
func New(o Options) (*Server, error) {
	s := &Server{Options: o, pages: map[string]*template.Template{}}
	if err := s.parse(); err != nil {
		return nil, err
	}
	m := http.NewServeMux()
	for _, rt := range routes {
		if rt.page != "" {
			m.HandleFunc("GET "+rt.page, s.servePage(rt))
		}
		m.HandleFunc("GET "+prefix+rt.api, s.serveJSON(rt))
	}
	document, err := openAPI(o.Keeper.Version)
	if err != nil {
		return nil, err
	}
	m.HandleFunc("GET "+prefix+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document)
	})
	m.HandleFunc("GET /report", s.serveReport)
	m.HandleFunc("GET /report/text", s.serveForm(report.Text, "text/plain; charset=utf-8"))
	m.HandleFunc("GET /report/junit", s.serveForm(report.JUnit, "application/xml"))
	m.HandleFunc("GET /fabric/{name}/map.svg", s.serveMap)
	m.HandleFunc("GET /evidence/{ref...}", s.serveEvidence)
	m.HandleFunc("GET /assets/{version}/{name}", s.serveAsset)
	m.HandleFunc("/assets/", noAsset)
	m.HandleFunc("POST /node/{name}/hold", s.serveChange(true))
	m.HandleFunc("POST /node/{name}/release", s.serveChange(false))
	m.HandleFunc("POST "+prefix+"/nodes/{name}/hold", s.serveChange(true))
	m.HandleFunc("POST "+prefix+"/nodes/{name}/release", s.serveChange(false))
	if o.Live != nil {
		m.Handle("GET "+prefix+"/live", o.Live)
	}
	if o.Metrics != nil {
		m.Handle("GET /metrics", o.Metrics)
	}
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, errkind.New(errkind.NotFound, "there is no page %s", r.URL.Path))
	})
	s.mux = &limiter{Handler: m, of: map[string]int{}}
	return s, nil
}

// parse reads the templates, each page with the layout and the parts.
func (s *Server) parse() error {
	list, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return err
	}
	for _, name := range list {
		of := strings.TrimSuffix(filepath.Base(name), ".html")
		if of == "layout" || of == "parts" {
			continue
		}
		t, err := template.New("layout.html").Funcs(funcs).ParseFS(files, "templates/layout.html", "templates/parts.html", name)
		if err != nil {
			return err
		}
		if s.pages[of], err = t.New("fragment").Parse(`{{template "body" .}}`); err != nil {
			return err
		}
	}
	sum := sha256.New()
	for _, name := range []string{"style.css", "app.js", "icon.svg"} {
		b, err := files.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		sum.Write(b)
	}
	s.assets = hex.EncodeToString(sum.Sum(nil))[:12]
	return nil
}

// limiter bounds how many requests are answered at once, of all and of one address.
type limiter struct {
	http.Handler
	mu  sync.Mutex // guards what follows
	all int
	of  map[string]int // by address
}

// ServeHTTP answers a request where there is room. Streams are bounded by themselves.
func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == prefix+"/live" {
		l.Handler.ServeHTTP(w, r)
		return
	}
	addr, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		addr = r.RemoteAddr
	}
	if !l.take(addr) {
		w.Header().Set("Retry-After", "2")
		http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		return
	}
	defer l.give(addr)
	l.Handler.ServeHTTP(w, r)
}

func (l *limiter) take(addr string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= maxRequests || l.of[addr] >= maxPerAddress {
		return false
	}
	l.all++
	l.of[addr]++
	return true
}

func (l *limiter) give(addr string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.of[addr]--; l.of[addr] == 0 {
		delete(l.of, addr)
	}
}

// policies of what a page may load: nothing but its own files, and no script in a page.
const (
	policy       = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	reportPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-same-origin allow-popups allow-top-navigation-by-user-activation"
	rawPolicy    = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"
)

// setHeaders are those of every answer.
func setHeaders(w http.ResponseWriter, policy string) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// data is what a template is given.
type data struct {
	Title, Site, Version, Assets string
	Here, API, Query, Live       string
	Nav                          []navEntry
	LoggedIn, MayChange          bool
	CSRF                         string
	Now                          time.Time
	Generation                   uint64 // of the reading that this page is made of, or of one before; 0: none
	Pause                        int    // least milliseconds between two readings of this page by the script; 0: as it likes
	Model                        any
	url                          *url.URL
}

type navEntry struct{ Path, Title string }

// Session reports whether somebody is logged in.
func (d data) Session() bool { return d.LoggedIn }

// Param is a parameter of the page.
func (d data) Param(name string) string { return d.url.Query().Get(name) }

// With is this page with another value of a parameter, from its first page on.
func (d data) With(name string, value any) string {
	q := d.url.Query()
	q.Del("page")
	if text, _ := value.(string); text == "" && value == "" {
		q.Del(name)
	} else {
		q.Set(name, toText(value))
	}
	return (&url.URL{Path: d.url.Path, RawQuery: q.Encode()}).String()
}

// WithPage is another page of this list.
func (d data) WithPage(n int) string {
	q := d.url.Query()
	q.Set("page", strconv.Itoa(n))
	return (&url.URL{Path: d.url.Path, RawQuery: q.Encode()}).String()
}

// linkedPage is a place in a list, with links.
type linkedPage struct {
	view.Page
	Before, After string
}

// Pages links a place in this list.
func (d data) Pages(p view.Page) linkedPage {
	return linkedPage{p, d.WithPage(p.Number - 1), d.WithPage(p.Number + 1)}
}

// dataOf is what every page of a request is given.
func (s *Server) dataOf(r *http.Request, title string) data {
	d := data{Title: title, Site: "ironrail", Version: s.Keeper.Version, Assets: s.assets, Here: "/" + strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 2)[0], Query: r.FormValue("q"), API: prefix + "/overview", Now: time.Now(), url: r.URL}
	for _, rt := range routes {
		if rt.nav {
			d.Nav = append(d.Nav, navEntry{strings.TrimSuffix(rt.page, "{$}"), rt.title})
		}
		if rt.title == "Report" {
			d.Nav = append(d.Nav, navEntry{"/report", rt.title})
		}
	}
	if s.Options.Session != nil {
		d.LoggedIn, d.CSRF = s.Options.Session(r)
	}
	if snap, err := s.Keeper.Current(r.Context()); err == nil && snap != nil {
		d.Site, d.MayChange, d.Now = snap.Inv.Site.Name, s.Change != nil && !snap.Rehearsal, snap.At
	}
	return d
}

// servePage renders a page, or its inner part where the script asks for that.
func (s *Server) servePage(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		before, _ := s.Keeper.Current(ctx) // what is wrong is wrong below, too
		model, err := rt.read(ctx, s.Keeper, r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		d := s.dataOf(r, rt.title)
		if before != nil {
			d.Generation = before.Generation
		}
		if name := r.PathValue("name"); name != "" {
			d.Title += " " + name
		}
		d.Model, d.API = model, apiOf(rt, r)
		if s.Live != nil {
			d.Live = rt.live
		}
		if o, ok := model.(view.Overview); ok && o.Folded {
			d.Pause = foldedPause
		}
		s.render(w, r, http.StatusOK, rt.template, d)
	}
}

// apiOf is where the JSON of a page is.
func apiOf(rt route, r *http.Request) string {
	path := rt.api
	if name := r.PathValue("name"); name != "" {
		path = strings.NewReplacer("{name...}", (&url.URL{Path: name}).EscapedPath(), "{name}", url.PathEscape(name)).Replace(path)
	}
	if q := r.URL.RawQuery; q != "" {
		path += "?" + q
	}
	return prefix + path
}

// render writes a page. One that is as it was is not sent again.
func (s *Server) render(w http.ResponseWriter, r *http.Request, code int, name string, d data) {
	of, status := s.pages[name], code
	block := "layout.html"
	if r.Header.Get("X-Fragment") != "" {
		block = "fragment"
	}
	var b bytes.Buffer
	if err := of.ExecuteTemplate(&b, block, d); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	setHeaders(w, policy)
	w.Header().Set("Vary", "X-Fragment, Cookie")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if code == http.StatusOK && block == "fragment" {
		sum := sha256.Sum256(b.Bytes())
		tag := `"` + hex.EncodeToString(sum[:12]) + `"`
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	send(w, r, status, b.Bytes())
}

// leastPacked is from how many bytes on an answer is packed.
const leastPacked = 4 << 10

// send writes an answer, packed where the client takes that. What is secret in a page, the
// word of a session's forms, is not to be had by its length: pages of other sites cannot
// ask for it.
func send(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	if len(body) < leastPacked || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(code)
		_, _ = w.Write(body)
		return
	}
	w.Header().Add("Vary", "Accept-Encoding")
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(code)
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is one that there is
	_, _ = z.Write(body)
	_ = z.Close()
}

// serveJSON writes the model of a page.
func (s *Server) serveJSON(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		model, err := rt.read(ctx, s.Keeper, r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		writeJSON(w, r, http.StatusOK, model)
	}
}

func writeJSON(w http.ResponseWriter, r *http.Request, code int, v any) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	setHeaders(w, policy)
	w.Header().Set("Content-Type", "application/json")
	send(w, r, code, b.Bytes())
}

// Failure is an error as JSON.
type Failure struct {
	Error  string `json:"error"`
	Kind   string `json:"kind"`
	Action string `json:"action,omitempty"`
}

// failure is an error page.
type failure struct {
	Failure
	Title string
}

// statusOf are the codes of kinds of errors.
var statusOf = map[errkind.Kind]int{
	errkind.NotFound: http.StatusNotFound, errkind.Mismatch: http.StatusNotFound, errkind.Invalid: http.StatusBadRequest, errkind.Unsupported: http.StatusBadRequest,
	errkind.Refused: http.StatusConflict, errkind.Conflict: http.StatusConflict, errkind.Auth: http.StatusForbidden, errkind.Timeout: http.StatusGatewayTimeout,
	errkind.Unreachable: http.StatusServiceUnavailable, errkind.Interrupted: http.StatusServiceUnavailable,
}

// fail says what is wrong, as a page or as JSON.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := statusOf[errkind.Of(err)]
	if code == 0 {
		code = http.StatusInternalServerError
	}
	f := Failure{err.Error(), errkind.Of(err).String(), errkind.Action(err)}
	if strings.HasPrefix(r.URL.Path, prefix) {
		writeJSON(w, r, code, f)
		return
	}
	d := s.dataOf(r, http.StatusText(code))
	d.Model = failure{f, http.StatusText(code)}
	s.render(w, r, code, "error", d)
}

// ServeLogin writes the login page.
func (s *Server) ServeLogin(w http.ResponseWriter, r *http.Request, code int, l guard.Login) {
	d := s.dataOf(r, "Log in")
	d.Nav, d.Site = nil, "ironrail" // who has not logged in learns nothing
	d.Model = l
	s.render(w, r, code, "login", d)
}

// reportLinks lead back from the report, and to its other forms; they are not printed.
const reportLinks = `<style>@media print { .links { display: none; } }</style><p class="links small"><a href="/">overview</a> · <a href="/findings">findings</a> · the report as <a href="/report/text">text</a>, <a href="/report/junit">JUnit</a>, <a href="/api/v1/report">JSON</a></p>`

// serveForm is the report in another form.
func (s *Server) serveForm(write func(io.Writer, report.Input) error, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		in, err := s.Keeper.Report(ctx)
		var b bytes.Buffer
		if err == nil {
			err = write(&b, in)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		setHeaders(w, rawPolicy)
		w.Header().Set("Content-Type", kind)
		send(w, r, http.StatusOK, b.Bytes())
	}
}

// serveReport is the report as one page of its own, as `ironrail report` writes it.
func (s *Server) serveReport(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	in, err := s.Keeper.Report(ctx)
	var b bytes.Buffer
	if err == nil {
		err = report.HTML(&b, in)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	setHeaders(w, reportPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(w, r, http.StatusOK, bytes.Replace(b.Bytes(), []byte("<body>"), []byte("<body>"+reportLinks), 1))
}

// serveMap is the map of a fabric.
func (s *Server) serveMap(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	b, err := s.Keeper.Map(ctx, r.PathValue("name"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	setHeaders(w, rawPolicy)
	w.Header().Set("Content-Type", "image/svg+xml")
	send(w, r, http.StatusOK, b)
}

// serveEvidence is a raw output, as text that nothing interprets.
func (s *Server) serveEvidence(w http.ResponseWriter, r *http.Request) {
	path, ok := evidence.Path(filepath.Join(s.Keeper.State, "evidence"), r.PathValue("ref"))
	if !ok {
		s.fail(w, r, errkind.New(errkind.NotFound, "this is no reference to evidence"))
		return
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = errkind.New(errkind.NotFound, "this evidence is not kept any more")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer f.Close()
	setHeaders(w, rawPolicy)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if _, err := io.CopyN(w, f, maxEvidence); err != nil {
		return // the end, or who asked is gone
	}
	if n, _ := f.Read(make([]byte, 1)); n > 0 {
		_, _ = fmt.Fprintf(w, "\n\n[ironrail: the first %d MiB; all of it is in %s]\n", maxEvidence>>20, path)
	}
}

// noAsset says that a file is not there. It is no page of the site: assets are served without a login.
func noAsset(w http.ResponseWriter, r *http.Request) {
	setHeaders(w, rawPolicy)
	http.NotFound(w, r)
}

// serveAsset serves a file that never changes under its name.
func (s *Server) serveAsset(w http.ResponseWriter, r *http.Request) {
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	name := r.PathValue("name")
	b, err := files.ReadFile("assets/" + name)
	if err != nil || r.PathValue("version") != s.assets {
		noAsset(w, r)
		return
	}
	setHeaders(w, policy)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", types[filepath.Ext(name)])
	_, _ = w.Write(b)
}
