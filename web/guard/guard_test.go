// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const token = "a-token-of-thirty-two-signs-here"

// guarded is a guard before a page that answers "page".
func guarded(o Options) (*Guard, http.Handler) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Hosts, o.Proxy = []string{"127.0.0.1:8470", "localhost:8470", "head.example"}, []string{"head.example"}
	g := New(o)
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("page")) })
	return g, g.Handler(page, func(w http.ResponseWriter, _ *http.Request, code int, l Login) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte("login " + l.Error))
	})
}

// ask sends a request; headers are "Name: value".
func ask(h http.Handler, method, path string, form url.Values, headers ...string) *http.Response {
	r := httptest.NewRequest(method, "http://127.0.0.1:8470"+path, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, x := range headers {
		name, value, _ := strings.Cut(x, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestRequests(t *testing.T) {
	t.Parallel()
	const own = "Origin: http://127.0.0.1:8470"
	bearer := "Authorization: Bearer " + token
	for _, c := range []struct {
		name    string
		open    bool
		method  string
		path    string
		headers []string
		want    int
	}{
		{"reading on loopback", true, "GET", "/", nil, 200},
		{"the other name", true, "GET", "/", []string{"Host: LOCALHOST:8470"}, 200},
		{"a name that is pointed here", true, "GET", "/", []string{"Host: evil.example"}, 421},
		{"the name with another port", true, "GET", "/", []string{"Host: 127.0.0.1"}, 421},
		{"a page of another site asks for JSON", true, "GET", "/api/v1/overview", []string{"Origin: https://evil.example"}, 403},
		{"the same without Origin", true, "GET", "/api/v1/overview", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403},
		{"a link on another site", true, "GET", "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 200},
		{"a null origin", true, "GET", "/", []string{"Origin: null"}, 403},
		{"a change without a login", true, "POST", "/node/n1/hold", []string{own}, 401},
		{"a change without an origin", true, "POST", "/node/n1/hold", nil, 403},
		{"a change from another page", true, "POST", "/node/n1/hold", []string{"Origin: http://evil.example"}, 403},
		{"a change from another port", true, "POST", "/node/n1/hold", []string{"Origin: http://127.0.0.1:9999"}, 403},
		{"a change from the origin over TLS", true, "POST", "/node/n1/hold", []string{"Origin: https://127.0.0.1:8470"}, 403},
		{"a change by a proxy that speaks TLS", true, "POST", "/node/n1/hold", []string{"Host: head.example", "Origin: https://head.example"}, 401},
		{"a change by that proxy from another page", true, "POST", "/node/n1/hold", []string{"Host: head.example", "Origin: https://127.0.0.1:8470"}, 403},
		{"a file by POST", false, "POST", "/assets/x/style.css", []string{own}, 401},
		{"a program with the token", true, "POST", "/api/v1/nodes/n1/hold", []string{bearer}, 200},
		{"a program with another token", true, "POST", "/api/v1/nodes/n1/hold", []string{own, "Authorization: Bearer x" + token}, 401},
		{"another method", true, "PUT", "/", nil, 405},
		{"reading elsewhere", false, "GET", "/nodes?state=held", nil, 303},
		{"JSON elsewhere", false, "GET", "/api/v1/overview", nil, 401},
		{"metrics elsewhere", false, "GET", "/metrics", nil, 401},
		{"metrics with the token", false, "GET", "/metrics", []string{bearer}, 200},
		{"assets elsewhere", false, "GET", "/assets/x/style.css", nil, 200},
		{"the login elsewhere", false, "GET", "/login", nil, 200},
		{"evidence elsewhere", false, "GET", "/evidence/sha256:00", nil, 303},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, h := guarded(Options{Open: c.open, Token: token})
			if got := ask(h, c.method, c.path, nil, c.headers...); got.StatusCode != c.want {
				t.Errorf("%d, want %d", got.StatusCode, c.want)
			}
		})
	}
}

// TestNoToken: where nobody can log in, an empty token lets nobody in.
func TestNoToken(t *testing.T) {
	t.Parallel()
	_, h := guarded(Options{Open: true})
	const own = "Origin: http://127.0.0.1:8470"
	for _, headers := range [][]string{{own, "Authorization: Bearer "}, {own}} {
		if got := ask(h, "POST", "/node/n1/hold", nil, headers...); got.StatusCode != 401 {
			t.Errorf("%v: %d", headers, got.StatusCode)
		}
	}
	for _, form := range []url.Values{{"token": {""}, "name": {"ann"}}, {"name": {"ann"}, "link": {"a.1." + macOf("", "link a.1")}}} {
		if got := ask(h, "POST", "/login", form, own); got.StatusCode != 403 {
			t.Errorf("%v: %d", form, got.StatusCode)
		}
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	g, h := guarded(Options{Token: token, Now: func() time.Time { return now }})
	const own = "Origin: http://127.0.0.1:8470"
	in := ask(h, "POST", "/login", url.Values{"token": {" " + token + "\n"}, "to": {"/node/n1"}, "name": {" Ann B.\t"}}, own)
	if in.StatusCode != 303 || in.Header.Get("Location") != "/node/n1" || len(in.Cookies()) != 1 {
		t.Fatalf("%d to %q", in.StatusCode, in.Header.Get("Location"))
	}
	c := in.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" {
		t.Errorf("cookie %v", c)
	}
	cookie := "Cookie: " + c.Name + "=" + c.Value
	if got := ask(h, "GET", "/", nil, cookie); got.StatusCode != 200 {
		t.Errorf("reading: %d", got.StatusCode)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.AddCookie(c)
	_, csrf := g.Session(r)
	if who := g.Who(r); who != "Ann B. (web page)" {
		t.Errorf("the session is of %q", who)
	}
	for form, want := range map[string]int{csrf: 200, "": 401, csrf + "x": 401} {
		if got := ask(h, "POST", "/node/n1/hold", url.Values{"csrf": {form}}, own, cookie); got.StatusCode != want {
			t.Errorf("change with %q: %d, want %d", form, got.StatusCode, want)
		}
	}
	if got := ask(h, "POST", "/node/n1/hold?csrf="+url.QueryEscape(csrf), url.Values{}, own, cookie); got.StatusCode != 401 {
		t.Errorf("what forms carry was taken from the address: %d", got.StatusCode)
	}
	now = now.Add(sessionTime + time.Second)
	if got := ask(h, "GET", "/", nil, cookie); got.StatusCode != 303 {
		t.Errorf("a session that is past: %d", got.StatusCode)
	}
	in = ask(h, "POST", "/login", url.Values{"token": {token}, "name": {"ann"}}, own)
	c = in.Cookies()[0]
	cookie = "Cookie: " + c.Name + "=" + c.Value
	r = httptest.NewRequest("GET", "/", nil)
	r.AddCookie(c)
	_, csrf = g.Session(r)
	if got := ask(h, "POST", "/logout", url.Values{"csrf": {csrf}}, own, cookie); got.StatusCode != 303 {
		t.Errorf("logging out: %d", got.StatusCode)
	}
	if got := ask(h, "GET", "/", nil, cookie); got.StatusCode != 303 {
		t.Errorf("after logging out: %d", got.StatusCode)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	early := MakeLink(token, now.Add(-time.Second))
	_, h := guarded(Options{Token: token, Now: func() time.Time { return now }})
	use := func(link string) int {
		q, err := url.ParseQuery(link)
		if err != nil {
			t.Fatal(err)
		}
		q.Set("name", "ann")
		return ask(h, "POST", "/login", q, "Origin: http://127.0.0.1:8470").StatusCode
	}
	link := MakeLink(token, now)
	if got := ask(h, "GET", "/login?"+link, nil); got.StatusCode != 200 || len(got.Cookies()) > 0 {
		t.Errorf("looking at a link: %d with %d cookies", got.StatusCode, len(got.Cookies()))
	}
	for _, c := range []struct {
		name, link string
		want       int
	}{
		{"good", link, 303}, {"again", link, 403}, {"of another token", MakeLink("other"+token, now), 403},
		{"of before the server began, which may have been used", early, 403}, {"changed", MakeLink(token, now) + "x", 403}, {"torn", "link=abc", 403},
	} {
		if got := use(c.link); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	late := MakeLink(token, now)
	now = now.Add(linkTime + time.Second)
	if got := use(late); got != 403 {
		t.Errorf("too old: %d", got)
	}
}

func TestTooManyFailures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	_, h := guarded(Options{Token: token, Now: func() time.Time { return now }})
	try := func(word string) int {
		return ask(h, "POST", "/login", url.Values{"token": {word}, "name": {"ann"}}, "Origin: http://127.0.0.1:8470").StatusCode
	}
	for range maxFailures {
		if got := try("wrong"); got != 403 {
			t.Fatal(got)
		}
	}
	if got := try(token); got != 429 {
		t.Errorf("after %d failures: %d", maxFailures, got)
	}
	r := httptest.NewRequest("POST", "http://127.0.0.1:8470/login", strings.NewReader("name=ann&token="+token))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://127.0.0.1:8470")
	r.RemoteAddr = "192.0.2.2:1000" // httptest's own is 192.0.2.1
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != 303 {
		t.Errorf("another address after these failures: %d", w.Code)
	}
	now = now.Add(failureTime + time.Second)
	if got := try(token); got != 303 {
		t.Errorf("a minute later: %d", got)
	}
}

// TestSources: addresses of one IPv6 network are one source.
func TestSources(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{"192.0.2.1:99": "192.0.2.1", "[::ffff:192.0.2.1]:99": "192.0.2.1", "[2001:db8::1:2:3:4%eth0]:99": "2001:db8::/64"} {
		if got := sourceOf(&http.Request{RemoteAddr: from}); got != want {
			t.Errorf("%s: %s, want %s", from, got, want)
		}
	}
}

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{"/node/n1?x=1": "/node/n1?x=1", "": "/", "//evil.example/": "/", "https://evil.example": "/", `/\evil.example`: "/", "/a\r\nSet-Cookie: x": "/"} {
		if got := localPath(to); got != want {
			t.Errorf("%q: %q, want %q", to, got, want)
		}
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), ".ironrail")
	if _, err := ReadToken(dir, false); err == nil {
		t.Error("a token where none is")
	}
	a, err := ReadToken(dir, true)
	if err != nil || len(a) < 20 {
		t.Fatalf("%q, %v", a, err)
	}
	b, err := ReadToken(dir, true)
	if err != nil || a != b {
		t.Errorf("%q and %q, %v", a, b, err)
	}
	info, err := os.Stat(filepath.Join(dir, tokenFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, tokenFile), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadToken(dir, true); err == nil {
		t.Error("an empty token was taken")
	}
}

func TestCertificate(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	c, print, err := LoadCertificate("", "", dir, []string{"192.0.2.1:8470", "head.example"}, now)
	if err != nil || len(print) != 32*3-1 {
		t.Fatalf("%q, %v", print, err)
	}
	for _, name := range []string{"192.0.2.1", "head.example"} {
		if err := c.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "head.example", MinVersion: tls.VersionTLS12}}}
	resp, err := client.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	_, again, err := LoadCertificate("", "", dir, []string{"192.0.2.1:8470"}, now)
	if err != nil || again != print {
		t.Errorf("the certificate has changed: %v", err)
	}
	_, other, err := LoadCertificate("", "", dir, []string{"other.example"}, now)
	if err != nil || other == print {
		t.Errorf("a certificate for other names: %v", err)
	}
	_, late, err := LoadCertificate("", "", dir, []string{"other.example"}, now.Add(certificateTime+time.Hour))
	if err != nil || late == other {
		t.Errorf("a certificate that is past: %v", err)
	}
}

// TestNames: nobody logs in without a name, which uses up no link; a program says who asks.
func TestNames(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	g, h := guarded(Options{Token: token, Now: func() time.Time { return now }})
	q, err := url.ParseQuery(MakeLink(token, now))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", " ", "a\x1bb", "a\nb", "a\u202eb", "\xff", strings.Repeat("a", 65)} {
		q.Set("name", name)
		if got := ask(h, "POST", "/login", q, "Origin: http://127.0.0.1:8470"); got.StatusCode != 400 || len(got.Cookies()) > 0 {
			t.Errorf("%q: %d", name, got.StatusCode)
		}
	}
	q.Set("name", "Zoë")
	if got := ask(h, "POST", "/login", q, "Origin: http://127.0.0.1:8470"); got.StatusCode != 303 {
		t.Errorf("the link afterwards: %d", got.StatusCode)
	}
	for by, want := range map[string]string{"": "API token", "ann": "ann (API)", "a\x1b": "API token"} {
		r := httptest.NewRequest("POST", "/api/v1/nodes/n1/hold", strings.NewReader(url.Values{"by": {by}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "Bearer "+token)
		if got := g.Who(r); got != want {
			t.Errorf("by %q: %q", by, got)
		}
	}
	if got := g.Who(httptest.NewRequest("GET", "/", nil)); got != "web page" {
		t.Errorf("nobody: %q", got)
	}
}
