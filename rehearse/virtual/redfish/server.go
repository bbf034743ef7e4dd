// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"crypto/tls"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// root is where the service lives (DSP0266, 6.2).
const root = "/redfish/v1"

// obj is one JSON object.
type obj = map[string]any

// server is one BMC's service. Resources are made when they are asked for; what
// it keeps is only what the chassis does not know.
type server struct {
	ctx    context.Context
	cancel context.CancelFunc
	c      *chassis.Chassis
	p      Personality
	o      Options
	q      Quirks
	clock  clock.Clock
	routes []route
	work   sync.WaitGroup // what later started

	certMu sync.Mutex // guards cert and certOf
	cert   *tls.Certificate
	certOf string // UUID of the board that cert was made for

	mu       sync.Mutex // guards everything below; never held across a wait
	random   *rand.Rand
	boots    int // starts of the BMC seen so far
	notReady int // requests that are still answered 503
	sessions []session
	lastSID  int
	tasks    []*task
	lastTask int
	dumps    [][]byte          // diagnostic data that was collected, oldest first
	staged   map[string]string // BIOS settings that have no job yet
	led      string            // IndicatorLED of system and chassis; "": Off
}

func newServer(ctx context.Context, c *chassis.Chassis, p Personality, o Options) *server {
	q := p.Quirks
	if o.Quirks != nil {
		q = *o.Quirks
	}
	if o.Update <= 0 {
		o.Update = 90 * time.Second
	}
	if o.Hardware == nil {
		o.Hardware = &Hardware{}
	}
	id := c.Identity()
	h := fnv.New64a()
	_, _ = h.Write([]byte(id.Node + "\x00redfish"))
	s := &server{c: c, p: p, o: o, q: q.withDefaults(), clock: id.Clock, routes: routes,
		random: rand.New(rand.NewPCG(id.Seed, h.Sum64()))}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// call is one request under way.
type call struct {
	s       *server
	w       http.ResponseWriter
	r       *http.Request
	path    string   // canonical, without a slash at its end
	args    []string // what the route's placeholders stand for
	who     chassis.Account
	session string // id of the session that authorised it; empty: basic
	failed  bool   // an error has been answered
}

// ServeHTTP answers one request. A BMC that is not live breaks the connection.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.c.Live() {
		panic(http.ErrAbortHandler)
	}
	c := &call{s: s, w: w, r: r, path: strings.TrimRight(r.URL.Path, "/")}
	for k, v := range s.p.Headers {
		w.Header().Set(k, v)
	}
	w.Header().Set("OData-Version", "4.0")
	w.Header().Set("Cache-Control", "no-store")
	if !s.ready(c.path) {
		c.notReady()
		return
	}
	rt, args := s.match(c.path)
	c.args = args
	if (rt == nil || !rt.anonymous(r.Method)) && !c.authorise() {
		return
	}
	if rt == nil || s.q.TrailingSlash && c.path != root && !strings.HasSuffix(r.URL.Path, "/") {
		c.missing()
		return
	}
	c.dispatch(rt)
}

// ready counts starts of the BMC and says whether the service is up already.
// The service root answers always: discovery is what comes first.
func (s *server) ready(path string) bool {
	since, boots := s.c.BMCStarted()
	s.mu.Lock()
	defer s.mu.Unlock()
	if boots != s.boots {
		s.boots, s.notReady = boots, s.q.NotReadyRequests
		s.sessions, s.tasks, s.staged = nil, nil, nil
	}
	if path == root || path == "/redfish" {
		return true
	}
	if s.notReady > 0 {
		s.notReady--
		return false
	}
	return s.q.NotReady <= 0 || !s.clock.Now().Before(since.Add(s.q.NotReady))
}

func (c *call) notReady() {
	c.w.Header().Set("Retry-After", "10")
	if p := c.s.p; p.NotReadyCode != "" {
		c.failOwn(http.StatusServiceUnavailable, p.NotReadyCode, p.NotReadyText)
		return
	}
	c.fail("ServiceTemporarilyUnavailable", "10")
}

// dispatch calls what the route has for the method.
func (c *call) dispatch(rt *route) {
	m := c.r.Method
	if m != http.MethodGet && m != http.MethodHead && !c.allowed(rt) {
		c.fail("InsufficientPrivilege")
		return
	}
	var act func(*call)
	switch m {
	case http.MethodGet, http.MethodHead:
		c.get(rt)
		return
	case http.MethodPatch:
		act = rt.patch
		if act != nil && !c.precondition(rt) {
			return
		}
	case http.MethodPost:
		act = rt.post
	case http.MethodDelete:
		act = rt.delete
	}
	if act == nil {
		c.w.Header().Set("Allow", rt.allow())
		c.fail("OperationNotAllowed")
		return
	}
	act(c)
}

// allowed checks the role: ReadOnly changes nothing but its own session,
// Operator nothing that is for administrators.
func (c *call) allowed(rt *route) bool {
	switch {
	case rt.anonymous(c.r.Method) || c.who.Role == "Administrator" || rt.own:
		return true
	case c.who.Role == "Operator":
		return !rt.admin
	}
	return false
}

// missing answers that there is no such resource.
func (c *call) missing() {
	kind, name := "Resource", c.path
	if i := strings.LastIndexByte(c.path, '/'); i >= 0 {
		name = c.path[i+1:]
	}
	c.fail("ResourceNotFound", kind, name)
}

// later runs f when d has passed, unless the service has ended or the BMC has
// started anew by then.
func (s *server) later(d time.Duration, f func()) {
	_, boots := s.c.BMCStarted()
	t, stop := s.clock.WithTimeout(s.ctx, d)
	s.work.Add(1)
	context.AfterFunc(t, func() {
		defer s.work.Done()
		stop()
		if _, now := s.c.BMCStarted(); s.ctx.Err() == nil && now == boots {
			f()
		}
	})
}

// chance is true about every n-th time, by the seed; never for 0.
func (s *server) chance(n int) bool {
	if n <= 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n) == 0
}

func (s *server) manufacturer() string {
	if m := s.c.Identity().Manufacturer; m != "" {
		return m
	}
	return s.p.Manufacturer
}

func (s *server) model() string {
	if m := s.c.Identity().Product; m != "" {
		return m
	}
	return s.p.Model
}

// linkTo returns a reference to another resource.
func linkTo(parts ...string) obj { return obj{"@odata.id": joinURI(parts...)} }

// joinURI joins the parts below the service root.
func joinURI(parts ...string) string { return root + "/" + strings.Join(parts, "/") }

// memberID returns the i-th member's id counted from first.
func memberID(i, first int) string { return strconv.Itoa(i + first) }
