// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// session is one log-in by token.
type session struct {
	id, token string
	account   chassis.Account
	from      string
	made      time.Time
	used      time.Time
}

// authorise finds who asks, by token or by password; when nobody may, it has
// answered.
func (c *call) authorise() bool {
	if token := c.r.Header.Get("X-Auth-Token"); token != "" {
		if !c.byToken(token) {
			c.unauthorised("NoValidSession")
			return false
		}
	} else {
		user, password, ok := c.r.BasicAuth()
		if !ok {
			c.unauthorised("NoValidSession")
			return false
		}
		a, err := c.s.c.Login(user, password)
		if err != nil {
			c.unauthorised("ResourceAtUriUnauthorized", c.path, "Invalid username or password")
			return false
		}
		c.who = a
	}
	if c.s.chance(c.s.q.Flaky401) {
		c.unauthorised("NoValidSession")
		return false
	}
	return true
}

func (c *call) unauthorised(id string, args ...string) {
	c.w.Header().Set("WWW-Authenticate", `Basic realm="`+c.s.p.Name+`"`)
	c.fail(id, args...)
}

// byToken finds the session and extends it.
func (c *call) byToken(token string) bool {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	i := slices.IndexFunc(s.sessions, func(x session) bool { return x.token == token })
	if i < 0 {
		return false
	}
	x := &s.sessions[i]
	x.used = s.clock.Now()
	c.who, c.session = x.account, x.id
	return true
}

// expire drops sessions that nobody has used. s.mu is held.
func (s *server) expire() {
	oldest := s.clock.Now().Add(-s.q.SessionTimeout)
	s.sessions = slices.DeleteFunc(s.sessions, func(x session) bool { return x.used.Before(oldest) })
}

func sessionService(c *call) obj {
	if c.s.q.NoSessionService {
		return nil
	}
	c.s.mu.Lock()
	timeout := c.s.q.SessionTimeout
	c.s.mu.Unlock()
	return obj{"@odata.type": "#SessionService.v1_1_8.SessionService", "Id": "SessionService", "Name": "Session Service",
		"ServiceEnabled": true, "SessionTimeout": int(timeout.Seconds()), "Status": statusOK(), "Sessions": linkTo("SessionService", "Sessions")}
}

// statusOK returns the status of what is well.
func statusOK() obj { return obj{"State": "Enabled", "Health": "OK", "HealthRollup": "OK"} }

func patchSessionService(c *call) {
	o, ok := c.body()
	if !ok || !c.only(o, "SessionTimeout") {
		return
	}
	v, isNumber := o["SessionTimeout"].(float64)
	if !isNumber || v < 30 || v > 86400 {
		raw, _ := json.Marshal(o["SessionTimeout"])
		c.fail("PropertyValueFormatError", string(raw), "SessionTimeout")
		return
	}
	c.s.mu.Lock()
	c.s.q.SessionTimeout = time.Duration(v) * time.Second
	c.s.mu.Unlock()
	c.done(c.s.p.PatchStatus)
}

func getSessions(c *call) obj {
	if c.s.q.NoSessionService {
		return nil
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.expire()
	ids := make([]string, len(c.s.sessions))
	for i, x := range c.s.sessions {
		ids[i] = x.id
	}
	return c.collection("Session", "Session Collection", ids)
}

func getSession(c *call) obj {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for _, x := range c.s.sessions {
		if x.id == c.args[0] {
			return x.show()
		}
	}
	return nil
}

func (x session) show() obj {
	return obj{"@odata.type": "#Session.v1_3_0.Session", "@odata.id": joinURI("SessionService", "Sessions", x.id), "Id": x.id, "Name": "User Session",
		"UserName": x.account.Username, "ClientOriginIPAddress": x.from, "CreatedTime": formatTime(x.made)}
}

// formatTime returns a time as Redfish writes it.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05+00:00") }

func postSession(c *call) {
	if c.s.q.NoSessionService {
		c.missing()
		return
	}
	o, ok := c.body()
	if !ok {
		return
	}
	user, hasUser, ok1 := c.text(o, "UserName")
	if !ok1 {
		return
	}
	password, hasPassword, ok2 := c.text(o, "Password")
	if !ok2 {
		return
	}
	switch {
	case !hasUser:
		c.fail("PropertyMissing", "UserName")
		return
	case !hasPassword:
		c.fail("PropertyMissing", "Password")
		return
	}
	a, err := c.s.c.Login(user, password)
	if err != nil {
		why := "Invalid username or password"
		if errors.Is(err, chassis.ErrLocked) {
			why = "Account locked"
		}
		c.fail("ResourceAtUriUnauthorized", c.path, why)
		return
	}
	x, ok := c.s.open(a, c.r.RemoteAddr)
	if !ok {
		c.fail("SessionLimitExceeded")
		return
	}
	c.w.Header().Set("X-Auth-Token", x.token)
	c.w.Header().Set("Location", joinURI("SessionService", "Sessions", x.id))
	c.send(http.StatusCreated, x.show())
}

// open makes a session; false: there are as many as there may be.
func (s *server) open(a chassis.Account, from string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if len(s.sessions) >= s.q.SessionLimit {
		return session{}, false
	}
	s.lastSID++
	now := s.clock.Now()
	x := session{id: strconv.Itoa(s.lastSID), token: rand.Text(), account: a, from: hostOf(from), made: now, used: now}
	s.sessions = append(s.sessions, x)
	return x, true
}

func deleteSession(c *call) {
	s := c.s
	s.mu.Lock()
	i := slices.IndexFunc(s.sessions, func(x session) bool { return x.id == c.args[0] })
	allowed := i >= 0 && (c.who.Role == "Administrator" || s.sessions[i].account.ID == c.who.ID)
	if allowed {
		s.sessions = slices.Delete(s.sessions, i, i+1)
	}
	s.mu.Unlock()
	switch {
	case i < 0:
		c.missing()
	case !allowed:
		c.fail("InsufficientPrivilege")
	default:
		c.done(s.p.PatchStatus)
	}
}
