// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/ironrail/ironrail/internal/errkind"
)

// maxBody bounds an answer. The largest seen are event logs and attribute
// registries of some 2 MB.
const maxBody = 8 << 20

// attachmentTimes is how much longer than another answer an attachment may take.
const attachmentTimes = 4

// request is one request to the service.
type request struct {
	method, path string
	body         []byte
	kind         string // content type of the body; "": JSON
	match        string // If-Match; "": none
	open         bool   // without credentials
	write        bool   // changes something on the BMC
	most         int64  // bytes of the answer, of an attachment; 0: maxBody
	flip         bool   // with a slash at the end where the client writes none, or the other way round
}

// exchange sends a request and reads the answer, whatever its status, within one
// time-out. It sends it once, but that the HTTP client repeats a read on a new
// connection when the kept one turns out to be closed.
func (c *Client) exchange(ctx context.Context, r request) (answer, error) {
	if pause := c.cfg.Gap - c.cfg.Clock.Now().Sub(c.last); pause > 0 && !c.last.IsZero() {
		if err := c.cfg.Clock.Sleep(ctx, pause); err != nil {
			return answer{}, classify(ctx, err)
		}
	}
	limit, timeout := int64(maxBody), c.cfg.Timeout
	if r.most > 0 { // BMCs send some 1 MB a second
		limit, timeout = r.most, attachmentTimes*timeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := c.build(limited, r)
	if err != nil {
		return answer{}, err
	}
	if r.write {
		c.sent++
	}
	defer func() { c.last = c.cfg.Clock.Now() }()
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, c.classifyError(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return answer{}, c.classifyError(ctx, err)
	}
	if int64(len(body)) > limit {
		return answer{}, errkind.New(errkind.Internal, "the answer to %s is longer than %d MiB", r.path, maxBody>>20)
	}
	return answer{path: r.path, status: resp.StatusCode, header: resp.Header, body: body}, nil
}

// classifyError classifies the error of an exchange. A service that closes connections
// without an answer, though it has answered before, gets one for each request from
// then on: some do not stand kept ones (sushy sends "Connection: close" to all).
func (c *Client) classifyError(ctx context.Context, err error) error {
	err = classify(ctx, err)
	c.alone = c.alone || c.proven && errors.Is(err, errClosed)
	return err
}

// errClosed is in the error about a connection that ended too early.
var errClosed = errors.New("the bmc closed the connection before it answered")

// build makes the HTTP request. A body always has its length: iDRAC does not
// accept chunks.
func (c *Client) build(ctx context.Context, r request) (*http.Request, error) {
	if c.slash != r.flip && slashable(r.path) {
		r.path += "/"
	}
	var body io.Reader = http.NoBody
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, "https://"+c.cfg.Addr.String()+r.path, body)
	if err != nil {
		return nil, errkind.New(errkind.Internal, "path %q of the bmc cannot be asked for", OneLine(r.path))
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("OData-Version", "4.0")
	req.Header.Set("User-Agent", "ironrail")
	if !c.plain {
		req.Header.Set("Accept-Encoding", "identity")
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	if r.match != "" {
		req.Header.Set("If-Match", r.match)
	}
	req.Close = c.alone
	switch {
	case r.open:
	case c.token != "":
		req.Header.Set("X-Auth-Token", c.token)
	case c.basic:
		req.SetBasicAuth(c.cfg.Username, c.cfg.Password.Reveal())
	}
	return req, nil
}

// classify is Classify for the service that this package is about.
func classify(ctx context.Context, err error) error { return Classify(ctx, err, "Redfish (HTTPS)") }

// Classify turns an error of the HTTP client into one of ours; service is what
// should have answered. Its text never holds the request, so that no secret can be
// in it.
func Classify(ctx context.Context, err error, service string) error {
	if e, ok := errors.AsType[*errkind.Error](err); ok {
		return e
	}
	netErr, isNet := errors.AsType[net.Error](err)
	op, isOp := errors.AsType[*net.OpError](err)
	_, isPlain := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled), ctx.Err() == nil && errors.Is(err, context.Canceled):
		return errkind.New(errkind.Interrupted, "interrupted: %w", context.Canceled)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH),
		errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN):
		no, _ := errors.AsType[syscall.Errno](err)
		return errkind.New(errkind.Unreachable, "%w", no).Do(errkind.ReachOf(no).Action("the BMC", service))
	case isOp && op.Op == "dial" && (isNet && netErr.Timeout()):
		return errkind.New(errkind.Unreachable, "nothing answers").Do(errkind.Silent.Action("the BMC", service))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isNet && netErr.Timeout():
		return errkind.New(errkind.Timeout, "no answer in time")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return errkind.New(errkind.Timeout, "%w", errClosed)
	case isPlain, errors.Is(err, http.ErrSchemeMismatch):
		return errkind.New(errkind.Mismatch, "what answers at this port does not speak TLS").Do("Correct the BMC's port in the inventory; Redfish is usually at 443.")
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return errkind.New(errkind.Unsupported, "no TLS connection: %w", alert).Do("Update the BMC's firmware: TLS 1.2 is the least that is spoken.")
	}
	return errkind.New(errkind.Internal, "unexpected answer: %s", OneLine(errors.Unwrap(asURL(err)).Error()))
}
