// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/bmc/quirk"
)

// Time bounds of a request. All are for one request.
const (
	authTries  = 5                // answers 401 to credentials that were accepted before
	authLogins = 2                // log-ins among them: a password may have been changed meanwhile
	authWait   = time.Second      // between two of them
	readyLimit = 90 * time.Second // "not ready" in all; an iDRAC collects its inventory that long
	readyWait  = 5 * time.Second  // between two, when the BMC names no time
	readyMost  = 30 * time.Second // longest wait that the BMC may name
	hops       = 3                // redirects
)

// retryBudget is what one request has used up.
type retryBudget struct {
	auth   int           // answers 401
	logins int           // new sessions because of them
	ready  time.Duration // waited for "not ready"
	hops   int
	broken bool // a read was answered with a server's error once
}

// do sends a request until the answer is final: 2xx, or an error with its Fault.
// Everything that is sent again here was refused by the BMC before it was carried
// out; a read that failed inside the BMC is asked once more.
func (c *Client) do(ctx context.Context, r request) (answer, error) {
	if err := follow(r.path); err != nil {
		return answer{}, err
	}
	var p retryBudget
	for {
		a, err := c.exchange(ctx, r)
		if err != nil {
			return answer{}, err
		}
		if a.ok() {
			if !r.open {
				c.proven = true
			}
			c.slash = c.slash != r.flip
			return a, nil
		}
		again, err := c.retry(ctx, &r, &p, a)
		if err != nil {
			return a, err
		}
		if !again {
			return a, a.fault()
		}
	}
}

// retry decides whether an answer is worth another try; it waits before, and
// changes the request where that helps.
func (c *Client) retry(ctx context.Context, r *request, p *retryBudget, a answer) (bool, error) {
	f := &Fault{Status: a.status, Messages: messages(a.body)}
	switch {
	case a.status == http.StatusUnauthorized && !r.open:
		return c.retryAuth(ctx, p)
	case a.status == http.StatusNotAcceptable && !c.plain:
		c.plain = true
		return true, nil
	case a.redirects() && p.hops < hops:
		return c.redirect(r, p, a), nil
	case a.status == http.StatusNotFound && r.flippable():
		r.flip = true
		return true, nil
	case f.Has(idsSessions...):
		return false, nil // the log-in has its own wait
	case a.status == http.StatusServiceUnavailable, a.status == http.StatusTooManyRequests, f.Has(idsNotReady...):
		return c.retryReady(ctx, p, a)
	case r.method == http.MethodGet && a.status >= 500 && a.status != http.StatusNotImplemented && !p.broken:
		p.broken = true
		return true, classifyNil(ctx, c.cfg.Clock.Sleep(ctx, authWait))
	}
	return false, nil
}

// flippable reports whether a request may be sent again with the other form of its
// path.
func (r *request) flippable() bool { return !r.flip && !r.open && slashable(r.path) }

// slashable reports whether a path could end with a slash and does not. Some
// services know their resources only with it, some only without, and some links
// are written wrongly.
func slashable(path string) bool {
	return !strings.HasSuffix(path, "/") && !strings.Contains(path, "?")
}

// retryAuth handles 401. Right credentials are refused now and then by HPE,
// GB200, GB300 and Vera Rubin (nv-redfish, infra-controller#5349), and each
// session ends at some time. Credentials that were never accepted are not tried
// again: BMCs lock accounts.
func (c *Client) retryAuth(ctx context.Context, p *retryBudget) (bool, error) {
	p.auth++
	if !c.proven || p.auth >= authTries {
		return false, nil
	}
	if p.auth == 2 {
		c.token, c.session = "", "" // the session is over
	}
	if c.token == "" && !c.basic && p.logins < authLogins {
		p.logins++
		if err := c.login(ctx); err == nil || !errors.Is(err, ErrCredential) {
			return true, err
		}
	}
	return true, classifyNil(ctx, c.cfg.Clock.Sleep(ctx, authWait))
}

// retryReady waits as the BMC asks, within limits.
func (c *Client) retryReady(ctx context.Context, p *retryBudget, a answer) (bool, error) {
	wait := min(retryAfter(a.header, readyWait), readyMost)
	if p.ready+wait > readyLimit {
		return false, nil
	}
	p.ready += wait
	return true, classifyNil(ctx, c.cfg.Clock.Sleep(ctx, wait))
}

// retryAfter reads the header Retry-After; services use its form in seconds.
func retryAfter(h http.Header, usual time.Duration) time.Duration {
	if s, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After"))); err == nil && s > 0 && s < 3600 {
		return time.Duration(s) * time.Second
	}
	return usual
}

// redirect follows a redirect on the same BMC by hand, since the library turns
// other methods than GET into GET.
func (c *Client) redirect(r *request, p *retryBudget, a answer) bool {
	to := a.location()
	if to == "" || to == r.path {
		return false
	}
	p.hops++
	r.path = to
	return true
}

// classifyNil is classify for an error that may be none.
func classifyNil(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return classify(ctx, err)
}

// asURL returns the HTTP client's wrapper around err, or one: its text would hold
// the whole address, so that only what it wraps is shown.
func asURL(err error) *url.Error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u
	}
	return &url.Error{Err: err}
}

// get reads a resource into v.
func (c *Client) get(ctx context.Context, path string, v any) (answer, error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return a, err
	}
	return a, a.decode(v)
}

// post sends an action or makes a resource. It is sent once.
func (c *Client) post(ctx context.Context, path string, body any) (answer, error) {
	b, err := encode(body)
	if err != nil {
		return answer{}, err
	}
	return c.do(ctx, request{method: http.MethodPost, path: path, body: b, write: true})
}

// patchTries is how often a change is offered to a service that does not like its
// ETag; each time the resource is read anew.
const patchTries = 4

// patch changes properties of a resource. It carries If-Match from a fresh read;
// when that is refused (412, 428) it goes through the forms that services want:
// the strong form of a weak tag, any ("*"), none.
func (c *Client) patch(ctx context.Context, path string, body any) (answer, error) {
	b, err := encode(body)
	if err != nil {
		return answer{}, err
	}
	var a answer
	for try := range patchTries {
		tag, terr := c.tag(ctx, path, try)
		if terr != nil {
			return answer{}, terr
		}
		a, err = c.do(ctx, request{method: http.MethodPatch, path: path, body: b, match: tag, write: true})
		f, isFault := errors.AsType[*Fault](err)
		if !isFault || f.Status != http.StatusPreconditionFailed && f.Status != http.StatusPreconditionRequired && !f.Has(idsPrecondition...) {
			return a, err
		}
	}
	return a, err
}

// tag returns the If-Match of one try.
func (c *Client) tag(ctx context.Context, path string, try int) (string, error) {
	if c.quirks.Has(quirk.AnyMatch) {
		return "*", nil
	}
	a, err := c.do(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return "", err
	}
	tag := a.etag()
	if tag == "" {
		return []string{"", "*", "*", ""}[try], nil
	}
	strong := strings.TrimPrefix(tag, "W/")
	return []string{tag, strong, "*", ""}[try], nil
}

// encode writes a body.
func encode(body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, errkind.New(errkind.Internal, "request cannot be written: %w", err)
	}
	return b, nil
}

// members reads a collection's references, over all its pages, at most so many.
// A service without the collection has no members.
func (c *Client) members(ctx context.Context, path string, most int) (links, error) {
	var out links
	for page := 0; path != "" && page < maxPages && len(out) < most; page++ {
		var doc struct {
			Members links
			Next    link `json:"Members@odata.nextLink"`
		}
		if _, err := c.get(ctx, path, &doc); err != nil {
			return nil, err
		}
		out = append(out, doc.Members...)
		path = string(doc.Next)
	}
	return out[:min(len(out), most)], nil
}

// maxPages bounds a collection that is told in parts.
const maxPages = 64
