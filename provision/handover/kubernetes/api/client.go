// SPDX-License-Identifier: Apache-2.0

// Package api is a client of the Kubernetes API, as small as a hand-over needs:
// nodes, pods and their evictions, bootstrap tokens. It speaks HTTPS to one API
// server whose CA is pinned, and asks it to refuse fields that it does not know
// (fieldValidation=Strict, since Kubernetes 1.25). Source: Kubernetes API
// reference, v1 and policy/v1.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
)

const (
	callWait = 30 * time.Second // of one request
	mostBody = 64 << 20         // bytes of one answer
	pageSize = 500              // objects of one page
)

// Config is how a cluster is reached.
type Config struct {
	Endpoint string          // host and port
	CA       string          // certificates in PEM, or a pin "sha256:HEX" of the CA's public key
	Token    secret.Value    // a bearer token
	Network  network.Network // nil: the operating system's
}

// Client is a client of one API server. It is safe for concurrent use. Close it.
type Client struct {
	base      string
	token     secret.Value
	http      *http.Client
	authority []byte // PEM
}

// New returns a client. With a pin it asks the server for its CA first, which the
// pin then proves.
func New(ctx context.Context, c Config) (*Client, error) {
	authority, err := readAuthority(ctx, c)
	if err != nil {
		return nil, err
	}
	h, err := newTrustingClient(c, authority)
	if err != nil {
		return nil, err
	}
	return &Client{base: "https://" + c.Endpoint, token: c.Token, http: h, authority: authority}, nil
}

// Close ends the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Authority is the CA of the API server in PEM.
func (c *Client) Authority() []byte { return c.authority }

// Endpoint is the URL of the API server.
func (c *Client) Endpoint() string { return c.base }

// Error is a request that the API server answered and did not do.
type Error struct {
	Code    int    // of HTTP
	Reason  string // such as NotFound
	Message string // text from outside: whoever displays it escapes it
	After   time.Duration
}

// Error says the server's own words.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the API server says %d %s", e.Code, http.StatusText(e.Code))
	}
	return "the API server says: " + e.Message
}

// statusCode returns the HTTP status in an error; 0 for none.
func statusCode(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return 0
}

// NotFound reports whether an error says that there is no such object.
func NotFound(err error) bool { return statusCode(err) == http.StatusNotFound }

// IsConflict reports whether an object was changed by another in the meantime.
func IsConflict(err error) bool { return statusCode(err) == http.StatusConflict }

// IsBudget reports whether an eviction has to wait: a disruption budget allows no
// more pods to be away (policy/v1: 429 TooManyRequests).
func IsBudget(err error) bool { return statusCode(err) == http.StatusTooManyRequests }

// do sends a request and decodes the answer into out, which may be nil.
func (c *Client) do(ctx context.Context, method, path, kind string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "ironrail")
	if in != nil {
		req.Header.Set("Content-Type", kind)
	}
	if !c.token.IsZero() {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	res, err := c.http.Do(req)
	if err != nil {
		return unreachedError(ctx, c.base, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, mostBody+1))
	if err != nil {
		return unreachedError(ctx, c.base, err)
	}
	if len(b) > mostBody {
		return errkind.New(errkind.Invalid, "the API server answers %s with more than %d MiB", path, mostBody>>20)
	}
	if res.StatusCode/100 != 2 {
		return refusedError(res, b)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return errkind.New(errkind.Invalid, "the API server answers %s with something else than JSON: %w", path, err)
	}
	return nil
}

// unreachedError classifies an error of the way to the server.
func unreachedError(ctx context.Context, base string, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the URL once more
	}
	kind := errkind.Unreachable
	if ctx.Err() != nil {
		kind = errkind.Of(ctx.Err())
	}
	text := "Look whether the API server runs, and whether this controller reaches it."
	if isUntrusted(err) {
		kind, text = errkind.Auth, "The certificate is not signed by the CA of the handover: correct `ca`, or find out who answers there."
	}
	return errkind.New(kind, "API server %s: %w", base, err).Do(text)
}

// refusedError makes an error of an answer.
func refusedError(res *http.Response, body []byte) error {
	var s status
	_ = json.Unmarshal(body, &s) // a proxy's page has no message
	e := &Error{Code: res.StatusCode, Reason: s.Reason, Message: s.Message}
	if d, err := time.ParseDuration(res.Header.Get("Retry-After") + "s"); err == nil {
		e.After = d
	}
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return errkind.New(errkind.Auth, "%w", e).Do("Give the handover a `token` whose account may do what docs/handover.md lists.")
	case http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests:
		return errkind.New(errkind.Refused, "%w", e)
	}
	if res.StatusCode >= 500 {
		return errkind.New(errkind.Unreachable, "%w", e).Do("Look at the API server's log.")
	}
	return errkind.New(errkind.Refused, "%w", e)
}

const (
	plainJSON  = "application/json"
	mergePatch = "application/merge-patch+json" // RFC 7396
	strict     = "?fieldValidation=Strict"
)

// readPages reads all pages of a list.
func readPages[T any](ctx context.Context, c *Client, path string, query url.Values) (all []T, err error) {
	query.Set("limit", fmt.Sprint(pageSize))
	for {
		var page list[T]
		if err := c.do(ctx, http.MethodGet, path+"?"+query.Encode(), "", nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Meta.Continue == "" {
			return all, nil
		}
		query.Set("continue", page.Meta.Continue)
	}
}

// Nodes lists all nodes.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	return readPages[Node](ctx, c, "/api/v1/nodes", url.Values{})
}

// Node returns a node; see NotFound.
func (c *Client) Node(ctx context.Context, name string) (Node, error) {
	var n Node
	return n, c.do(ctx, http.MethodGet, "/api/v1/nodes/"+url.PathEscape(name), "", nil, &n)
}

// PatchNode changes a node by a merge patch. One with a resource version fails
// where somebody else was faster; see Conflict.
func (c *Client) PatchNode(ctx context.Context, name string, patch any) error {
	return c.do(ctx, http.MethodPatch, "/api/v1/nodes/"+url.PathEscape(name)+strict, mergePatch, patch, nil)
}

// DeleteNode removes a node; one that is not there is removed.
func (c *Client) DeleteNode(ctx context.Context, name string) error {
	err := c.do(ctx, http.MethodDelete, "/api/v1/nodes/"+url.PathEscape(name), "", nil, nil)
	if NotFound(err) {
		return nil
	}
	return err
}

// Pods lists the pods of a node.
func (c *Client) Pods(ctx context.Context, node string) ([]Pod, error) {
	return readPages[Pod](ctx, c, "/api/v1/pods", url.Values{"fieldSelector": {"spec.nodeName=" + node}})
}

// RunningPods lists the pods of all nodes that have not ended.
func (c *Client) RunningPods(ctx context.Context) ([]Pod, error) {
	return readPages[Pod](ctx, c, "/api/v1/pods", url.Values{"fieldSelector": {"spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}})
}

// Evict asks for the end of a pod, which disruption budgets may delay; see Budget.
// One that is not there is evicted.
func (c *Client) Evict(ctx context.Context, p *Pod) error {
	body := map[string]any{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]string{"name": p.Name, "namespace": p.Namespace},
		"deleteOptions": map[string]any{"preconditions": map[string]string{"uid": p.UID}}}
	err := c.do(ctx, http.MethodPost, "/api/v1/namespaces/"+url.PathEscape(p.Namespace)+"/pods/"+url.PathEscape(p.Name)+"/eviction"+strict, plainJSON, body, nil)
	if NotFound(err) {
		return nil
	}
	return err
}

// ClusterDNS is the address of the cluster's name server; "" where there is none
// of the usual name.
func (c *Client) ClusterDNS(ctx context.Context) (string, error) {
	var s struct {
		Spec struct {
			ClusterIP string `json:"clusterIP"`
		} `json:"spec"`
	}
	err := c.do(ctx, http.MethodGet, "/api/v1/namespaces/kube-system/services/kube-dns", "", nil, &s)
	if NotFound(err) {
		return "", nil
	}
	return strings.TrimSpace(s.Spec.ClusterIP), err
}
