// SPDX-License-Identifier: Apache-2.0

// Package guard decides which requests reach the web page: those for a name that the server
// has, from its own pages, and from who may ask. On loopback everybody who can reach it
// may read; elsewhere, and for changes, a session or the token is needed.
package guard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// The limits of logins.
const (
	linkTime     = 15 * time.Minute // that a link is good
	sessionTime  = 12 * time.Hour
	maxSessions  = 1000
	maxFailures  = 10     // of one address in failureTime
	allFailures  = 10_000 // of all addresses
	failureTime  = time.Minute
	maxForm      = 16 << 10
	maxName      = 64                // bytes of a name
	cookieSecure = "__Host-ironrail" // RFC 6265bis, 4.1.3.2: of this host and over TLS alone
	cookiePlain  = "ironrail"
)

// Options are what a guard allows.
type Options struct {
	Hosts  []string // names and addresses with ports, as browsers write them in Host
	Proxy  []string // those of Hosts that a proxy may serve over TLS; without effect where Secure is set
	Open   bool     // reading needs no login
	Secure bool     // requests come over TLS
	Token  string   // empty: nobody can log in, and nothing can be changed
	Now    func() time.Time
}

// Guard stands before a page. It is safe for concurrent use.
type Guard struct {
	Options
	started time.Time

	mu       sync.Mutex           // guards what follows
	sessions map[string]session   // by the digest of their cookie
	used     map[string]time.Time // links that were used, with their end
	failures []failure            // of logins, lately
}

// New makes a guard without sessions.
func New(o Options) *Guard {
	return &Guard{Options: o, started: o.Now(), sessions: map[string]session{}, used: map[string]time.Time{}}
}

// session is a browser that has logged in.
type session struct {
	end time.Time
	who string // the name that was given at the login
}

// Login is what the login page shows.
type Login struct {
	Link  string // of a link that is good once; it is used by a second click, not by whatever previews it
	To    string // where to go then
	Name  string // that was given before
	Error string
}

// Handler guards a page; login writes the login page.
func (g *Guard) Handler(page http.Handler, login func(http.ResponseWriter, *http.Request, int, Login)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code, text := g.refuse(r); code != 0 {
			refuse(w, r, code, text)
			return
		}
		switch {
		case r.URL.Path == "/login":
			g.serveLogin(w, r, login)
		case r.URL.Path == "/logout":
			g.logout(w, r)
		case strings.HasPrefix(r.URL.Path, "/assets/") && r.Method != http.MethodPost, g.mayPass(w, r):
			page.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/api/"), r.URL.Path == "/metrics", r.Method == http.MethodPost:
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r, http.StatusUnauthorized, "a session or the token of the site is needed")
		default:
			http.Redirect(w, r, "/login?to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		}
	})
}

// refuse answers without the page.
func refuse(w http.ResponseWriter, r *http.Request, code int, text string) {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	if strings.HasPrefix(r.URL.Path, "/api/") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"error":` + strconv.Quote(text) + `,"kind":"auth"}` + "\n"))
		return
	}
	http.Error(w, text, code)
}

// refuse says why a request is none of a browser that looks at this page, or of a program:
// 0 where it is one. A page of another site that has its name point here (DNS rebinding)
// has another Host.
func (g *Guard) refuse(r *http.Request) (code int, text string) {
	switch {
	case !slices.Contains(g.Hosts, strings.ToLower(r.Host)):
		return http.StatusMisdirectedRequest, "this server is not " + strconv.Quote(r.Host) + ": name it with --host"
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		return http.StatusMethodNotAllowed, "only GET, HEAD and POST are answered"
	}
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case origin != "" && !g.isOwnOrigin(r, origin):
		return http.StatusForbidden, "the request comes from a page of " + strconv.Quote(origin)
	case r.Method == http.MethodPost && origin == "" && !g.hasToken(r):
		return http.StatusForbidden, "the request does not say which page it comes from"
	case site != "" && site != "same-origin" && site != "none" && (r.Method == http.MethodPost || r.Header.Get("Sec-Fetch-Mode") != "navigate"):
		return http.StatusForbidden, "the request comes from a page of another site"
	}
	return 0, ""
}

// isOwnOrigin reports whether an origin is this server, or the proxy before it.
func (g *Guard) isOwnOrigin(r *http.Request, origin string) bool {
	host := strings.ToLower(r.Host)
	switch scheme, of, _ := strings.Cut(origin, "://"); {
	case of != host:
		return false
	case scheme == "https":
		return g.Secure || slices.Contains(g.Proxy, host)
	default:
		return scheme == "http" && !g.Secure
	}
}

// mayPass reports whether a request may reach the page.
func (g *Guard) mayPass(w http.ResponseWriter, r *http.Request) bool {
	if g.hasToken(r) {
		return true
	}
	in, csrf := g.Session(r)
	if r.Method != http.MethodPost {
		return in || g.Open
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	return in && subtle.ConstantTimeCompare([]byte(r.PostFormValue("csrf")), []byte(csrf)) == 1
}

// hasToken reports whether a program sent the token (RFC 6750).
func (g *Guard) hasToken(r *http.Request) bool {
	sent, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && g.isToken(sent)
}

// isToken compares in a time that does not depend on what is alike.
func (g *Guard) isToken(sent string) bool {
	a, b := sha256.Sum256([]byte(strings.TrimSpace(sent))), sha256.Sum256([]byte(g.Token))
	return g.Token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

func (g *Guard) cookie() string {
	if g.Secure {
		return cookieSecure
	}
	return cookiePlain
}

// Session reports whether a request is of a session, and what its forms carry.
func (g *Guard) Session(r *http.Request) (in bool, csrf string) {
	c, err := r.Cookie(g.cookie())
	if err != nil {
		return false, ""
	}
	if _, ok := g.sessionOf(c.Value); !ok {
		return false, ""
	}
	return true, g.mac("form " + c.Value)
}

// sessionOf is the session with this cookie, where there is one that has not ended.
func (g *Guard) sessionOf(cookie string) (session, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.sessions[digestOf(cookie)]
	return s, ok && !g.Now().After(s.end)
}

// Who names who asks for a change: by the name of the session, or, for a program that has the
// token, by the field "by" of its form. It proves nothing: whoever can log in may give any name.
func (g *Guard) Who(r *http.Request) string {
	if g.hasToken(r) {
		if by, err := checkName(r.PostFormValue("by")); err == nil {
			return by + " (API)"
		}
		return "API token"
	}
	if c, err := r.Cookie(g.cookie()); err == nil {
		if s, ok := g.sessionOf(c.Value); ok {
			return s.who + " (web page)"
		}
	}
	return "web page"
}

// checkName returns the name of a person without space around it. One that is empty, longer than
// 64 bytes, or has other than printable characters is an error.
func checkName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(name) {
		return "", errors.New("no name")
	}
	return name, nil
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// mac is a code that only who has the token can make.
func (g *Guard) mac(text string) string { return macOf(g.Token, text) }

func macOf(token, text string) string {
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// randomText is 160 random bits.
func randomText() string {
	b := make([]byte, 20)
	_, _ = rand.Read(b) // never fails: crypto/rand
	return base64.RawURLEncoding.EncodeToString(b)
}

// MakeLink makes the query of a link that is good once, for a quarter of an hour, on the
// server that runs when it is made.
func MakeLink(token string, now time.Time) string {
	text := randomText() + "." + strconv.FormatInt(now.UnixMilli(), 10)
	return "link=" + url.QueryEscape(text+"."+macOf(token, "link "+text))
}

// useLink reports whether a link is good, which it then is not any more.
func (g *Guard) useLink(link string) bool {
	at := strings.LastIndexByte(link, '.')
	if at < 0 || g.Token == "" || subtle.ConstantTimeCompare([]byte(link[at+1:]), []byte(g.mac("link "+link[:at]))) != 1 {
		return false
	}
	_, stamp, _ := strings.Cut(link[:at], ".")
	ms, err := strconv.ParseInt(stamp, 10, 64)
	made, now := time.UnixMilli(ms), g.Now()
	if err != nil || made.Before(g.started.Truncate(time.Millisecond)) || now.Sub(made) > linkTime {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for l, end := range g.used {
		if now.After(end) {
			delete(g.used, l)
		}
	}
	if _, used := g.used[link]; used {
		return false
	}
	g.used[link] = made.Add(linkTime)
	return true
}

// serveLogin begins a session for who has the token or a link.
func (g *Guard) serveLogin(w http.ResponseWriter, r *http.Request, login func(http.ResponseWriter, *http.Request, int, Login)) {
	if r.Method != http.MethodPost {
		login(w, r, http.StatusOK, Login{Link: r.URL.Query().Get("link"), To: localPath(r.URL.Query().Get("to")), Name: r.URL.Query().Get("for")})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	to := localPath(r.PostFormValue("to"))
	from := sourceOf(r)
	if g.tooMany(from) {
		w.Header().Set("Retry-After", "60")
		login(w, r, http.StatusTooManyRequests, Login{To: to, Error: "Too many logins have failed. Wait a minute."})
		return
	}
	link := r.PostFormValue("link")
	who, err := checkName(r.PostFormValue("name"))
	if err != nil { // the link stays good
		login(w, r, http.StatusBadRequest, Login{Link: link, To: to, Error: "Give your name, of at most 64 letters: holds are recorded with it."})
		return
	}
	if ok := link != "" && g.useLink(link) || link == "" && g.isToken(r.PostFormValue("token")); !ok {
		g.fail(from)
		text := "This is not the token."
		if link != "" {
			text = "This link was used, or is too old: `ironrail serve link` prints another."
		}
		login(w, r, http.StatusForbidden, Login{To: to, Name: who, Error: text})
		return
	}
	value := randomText()
	g.begin(value, who)
	http.SetCookie(w, &http.Cookie{Name: g.cookie(), Value: value, Path: "/", MaxAge: int(sessionTime / time.Second), HttpOnly: true, Secure: g.Secure || strings.HasPrefix(r.Header.Get("Origin"), "https://"), SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// localPath is a path of this page; / for anything else.
func localPath(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") {
		return "/"
	}
	return to
}

// begin begins a session, and ends the oldest where there are too many.
func (g *Guard) begin(value, who string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, oldest := g.Now(), ""
	for id, s := range g.sessions {
		if now.After(s.end) {
			delete(g.sessions, id)
		} else if oldest == "" || s.end.Before(g.sessions[oldest].end) {
			oldest = id
		}
	}
	if len(g.sessions) >= maxSessions {
		delete(g.sessions, oldest)
	}
	g.sessions[digestOf(value)] = session{now.Add(sessionTime), who}
}

// logout ends a session.
func (g *Guard) logout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !g.mayPass(w, r) {
		refuse(w, r, http.StatusForbidden, "log out by the button of the page")
		return
	}
	if c, err := r.Cookie(g.cookie()); err == nil {
		g.mu.Lock()
		delete(g.sessions, digestOf(c.Value))
		g.mu.Unlock()
	}
	http.SetCookie(w, &http.Cookie{Name: g.cookie(), Path: "/", MaxAge: -1, HttpOnly: true, Secure: g.Secure, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// failure is a login that failed.
type failure struct {
	from string
	at   time.Time
}

// sourceOf is the address that a request comes from: of IPv6 its network of 64 bits, which one client may have whole.
func sourceOf(r *http.Request) string {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	addr := a.Addr().Unmap()
	if addr.Is4() {
		return addr.String()
	}
	p, _ := addr.WithZone("").Prefix(64) // the length is one that IPv6 has
	return p.String()
}

// tooMany reports whether too many logins of a source have failed lately. One that fails does not keep others out.
func (g *Guard) tooMany(from string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, n := g.Now(), 0
	g.failures = slices.DeleteFunc(g.failures, func(f failure) bool { return now.Sub(f.at) > failureTime })
	for _, f := range g.failures {
		if f.from == from {
			n++
		}
	}
	return n >= maxFailures || len(g.failures) >= allFailures
}

func (g *Guard) fail(from string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures = append(g.failures, failure{from, g.Now()})
}
