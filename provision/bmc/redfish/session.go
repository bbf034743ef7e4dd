// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Waits for a free session. BMCs have 4 to 16 of them, and what another program
// forgot to close expires after its time-out, mostly minutes.
const (
	sessionLimit = 60 * time.Second // in all
	sessionWait  = 5 * time.Second  // the first one; each next is twice as long
)

// Next actions of log-ins.
const (
	actionCredential = "Correct the BMC's user name or password in the inventory's secrets; it is not tried again by itself, because BMCs lock accounts."
	actionLocked     = "Wait until the lock expires, or unlock the account on the BMC; find out first who logs in with a wrong password, for each failed log-in begins the lock anew."
	actionSessions   = "Close other sessions on the BMC, or wait until they expire; a monitoring program that does not log out is the usual cause."
)

// login opens a session (DSP0266, 13.3.4). A service that has none gets Basic
// authentication, proven by reading the systems; so does one that wants it even for
// a log-in (sushy-tools).
func (c *Client) login(ctx context.Context) error {
	body, err := encode(map[string]string{"UserName": c.cfg.Username, "Password": c.cfg.Password.Reveal()})
	if err != nil {
		return err
	}
	path := c.root.Links.Sessions.or(rootPath + "SessionService/Sessions")
	start := c.cfg.Clock.Now()
	for wait := sessionWait; ; wait *= 2 {
		a, err := c.do(ctx, request{method: http.MethodPost, path: path, body: body, open: true})
		if err == nil {
			return c.begin(ctx, a)
		}
		f, isFault := errors.AsType[*Fault](err)
		switch {
		case !isFault:
			return err
		case isFull(f):
			if c.cfg.Clock.Now().Sub(start)+wait > sessionLimit {
				return errkind.New(errkind.Refused, "%w: %w", errSessions, f).Do(actionSessions)
			}
			if err := c.cfg.Clock.Sleep(ctx, wait); err != nil {
				return classify(ctx, err)
			}
		case f.Status == http.StatusNotFound, f.Status == http.StatusMethodNotAllowed, f.Status == http.StatusNotImplemented:
			return c.useBasic(ctx) // iDRAC 8 answers 405
		case f.Status == http.StatusUnauthorized && wantsBasic(a, f):
			return c.useBasic(ctx)
		default:
			return c.refusal(ctx, f, err)
		}
	}
}

// wantsBasic reports whether a log-in was refused for want of authentication and not
// for its password: the answer offers Basic authentication (RFC 9110, 11.6.1), or it is
// no Redfish answer at all and so comes from something in front of the service. A
// service that judges the password says so in a message; its account is not tried
// a second time, since BMCs lock accounts.
func wantsBasic(a answer, f *Fault) bool {
	for _, offer := range a.header.Values("WWW-Authenticate") {
		if len(offer) >= len("basic") && strings.EqualFold(offer[:len("basic")], "basic") {
			return true
		}
	}
	return len(f.Messages) == 0
}

// isFull reports whether an answer says that all sessions are taken.
func isFull(f *Fault) bool {
	return f.Has(idsSessions...) || (f.Status == http.StatusServiceUnavailable || f.Status == http.StatusBadRequest) &&
		f.says("maximum number of user sessions", "session limit", "number of sessions", "too many sessions")
}

// begin takes the token of a log-in that was accepted.
func (c *Client) begin(ctx context.Context, a answer) error {
	c.token, c.session = a.header.Get("X-Auth-Token"), a.location()
	if c.token == "" {
		return c.useBasic(ctx)
	}
	if c.session == "" {
		var doc struct {
			ID text `json:"@odata.id"`
		}
		_ = a.decode(&doc)
		c.session, _ = cleanPath(string(doc.ID))
	}
	c.proven = true
	return nil
}

// useBasic turns to Basic authentication and tries it once.
func (c *Client) useBasic(ctx context.Context) error {
	c.basic, c.token = true, ""
	_, err := c.do(ctx, request{method: http.MethodGet, path: c.root.Systems.or(rootPath + "Systems")})
	if err == nil {
		return nil
	}
	c.basic = false
	if f, ok := errors.AsType[*Fault](err); ok {
		return c.refusal(ctx, f, err)
	}
	return err
}

// refusal tells a locked account from a wrong password. OpenBMC and others answer
// both with the same 401; what they say about locks in general then is in the
// action.
func (c *Client) refusal(ctx context.Context, f *Fault, err error) error {
	locked := f.Has(idsLocked...) || f.says("locked", "lockout", "lock out")
	if !locked && f.Status != http.StatusUnauthorized &&
		!(f.Status == http.StatusForbidden || f.Status == http.StatusBadRequest) || f.Has("PasswordChangeRequired") {
		return err
	}
	switch {
	case locked:
		return errkind.New(errkind.Auth, "%w: %w", ErrLocked, f).Do(c.lockout(ctx) + actionLocked)
	case f.Status == http.StatusUnauthorized, f.says("password", "credential", "unauthorized", "authenticat", "login"):
		return errkind.New(errkind.Auth, "%w: %w", ErrCredential, f).Do(actionCredential)
	}
	return err
}

// lockout says how long the BMC locks accounts, where it tells without a log-in.
func (c *Client) lockout(ctx context.Context) string {
	a, err := c.exchange(ctx, request{method: http.MethodGet, path: c.root.AccountService.or(rootPath + "AccountService"), open: true})
	if err != nil || !a.ok() {
		return ""
	}
	var doc struct{ AccountLockoutDuration number }
	if a.decode(&doc) != nil || doc.AccountLockoutDuration.value == nil || *doc.AccountLockoutDuration.value <= 0 {
		return ""
	}
	return "The lock lasts " + time.Duration(*doc.AccountLockoutDuration.value*float64(time.Second)).String() + ". "
}

// logout ends the session; what becomes of it is not known and no error.
func (c *Client) logout(ctx context.Context) {
	if c.session != "" {
		_, _ = c.exchange(ctx, request{method: http.MethodDelete, path: c.session})
	}
}
