// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/internal/errkind"
)

// maxAnswer bounds an answer: the status of ten thousand nodes is a few MiB.
const maxAnswer = 64 << 20

// Client talks to the owner of a state folder. Every call but Events and Power ends
// within a minute. Errors are of kind unreachable when there is no owner, and else of
// the kind that the owner gave them. It is safe for concurrent use.
type Client struct{ http *http.Client }

// NewClient returns a client of the owner of dir. It connects when it is used.
func NewClient(dir string) *Client {
	return &Client{&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return DialSocket(ctx, dir)
		},
		DisableKeepAlives: true, // a command asks once
	}}}
}

// Version asks what the owner is.
func (c *Client) Version(ctx context.Context) (v Version, err error) {
	return v, c.call(ctx, http.MethodGet, "/version", nil, &v)
}

// Status asks what the owner does.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.call(ctx, http.MethodGet, "/status", nil, &s)
}

// Why asks for a node's story.
func (c *Client) Why(ctx context.Context, node string) (w Why, err error) {
	return w, c.call(ctx, http.MethodGet, "/why/"+url.PathEscape(node), nil, &w)
}

// Look asks for what a node's BMC says of it now.
func (c *Client) Look(ctx context.Context, node string) (l Look, err error) {
	return l, c.call(ctx, http.MethodGet, "/look/"+url.PathEscape(node), nil, &l)
}

// Hold stops everything on a node; it returns when the hold is durable.
func (c *Client) Hold(ctx context.Context, node string, h HoldRequest) error {
	return c.call(ctx, http.MethodPost, "/hold/"+url.PathEscape(node), h, nil)
}

// Release lets a node go.
func (c *Client) Release(ctx context.Context, node string, h HoldRequest) error {
	return c.call(ctx, http.MethodPost, "/release/"+url.PathEscape(node), h, nil)
}

// Drain asks the run to start nothing new.
func (c *Client) Drain(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/drain", nil, nil)
}

// Events gives every event from number from on (0: the oldest kept) to f, and
// with follow those to come, until f fails, ctx is done or the owner ends.
func (c *Client) Events(ctx context.Context, from uint64, follow bool, f func(event.Event) error) error {
	path := "/events?from=" + strconv.FormatUint(from, 10)
	if follow {
		path += "&follow=1"
	}
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return readLines(ctx, resp.Body, math.MaxInt64, f)
}

// call asks and reads the answer into out.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime+5*time.Second)
	defer cancel()
	resp, err := c.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && out != nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// send asks, and turns a refusal into its error.
func (c *Client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return nil, fmt.Errorf("control socket: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://ironrail"+path, &body)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return c.answer(req)
}

// answer sends a request, and turns a refusal into its error.
func (c *Client) answer(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without a method and an address that mean nothing here
	}
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var f failure
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		return nil, fmt.Errorf("control socket: %s %s: %s", req.Method, req.URL.RequestURI(), resp.Status)
	}
	return nil, &errkind.Error{Kind: f.Kind, Err: errors.New(f.Error), Action: f.Action}
}
