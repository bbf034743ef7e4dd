// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits of the API server.
const (
	headerTimeout = 30 * time.Second
	maxBody       = 3 << 20
)

// Serve answers on ln, TLS inside, until ctx ends; then it closes ln and every
// connection, waits for them and returns nil.
func (c *Cluster) Serve(ctx context.Context, ln net.Listener) error {
	var open sync.WaitGroup
	var http1 http.Protocols
	http1.SetHTTP1(true)
	srv := &http.Server{Handler: c, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: headerTimeout, IdleTimeout: time.Minute, Protocols: &http1,
		ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed:
				open.Done()
			}
		}}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{c.keys.server}, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true}))
	_ = srv.Close()
	open.Wait()
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// fail is an answer that is none: a Status object.
type fail struct {
	code            int
	reason, message string
}

func notFound(kind, name string) *fail {
	return &fail{http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", kind, name)}
}

func badRequest(format string, args ...any) *fail {
	return &fail{http.StatusBadRequest, "BadRequest", fmt.Sprintf(format, args...)}
}

// ServeHTTP answers one request.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	out, f := c.answer(r, body)
	w.Header().Set("Content-Type", "application/json")
	if f != nil {
		w.WriteHeader(f.code)
		out = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": f.message, "reason": f.reason, "code": f.code}
	}
	_ = json.NewEncoder(w).Encode(out) // whoever went away does not read it
}

func (c *Cluster) answer(r *http.Request, body []byte) (any, *fail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	route := r.Method + " " + strings.Trim(r.URL.Path, "/")
	switch {
	case c.silent:
		return nil, &fail{http.StatusServiceUnavailable, "ServiceUnavailable", "apiserver not ready"}
	case route == "GET api/v1/namespaces/kube-public/configmaps/cluster-info":
		return c.info(), nil
	case r.Header.Get("Authorization") != "Bearer "+c.cfg.Token:
		return nil, &fail{http.StatusUnauthorized, "Unauthorized", "Unauthorized"}
	case len(body) > 0 && r.URL.Query().Get("fieldValidation") != "Strict" && r.Method != http.MethodDelete:
		return nil, badRequest("a write without fieldValidation=Strict")
	}
	return c.dispatch(route, r, body)
}

// dispatch answers an admitted request; route is METHOD PATH, and c.mu is held.
func (c *Cluster) dispatch(route string, r *http.Request, body []byte) (any, *fail) {
	is := func(pattern string) bool {
		ok, _ := path.Match(pattern, route) // the patterns are well formed
		return ok
	}
	parts := strings.Split(route, "/")
	switch {
	case is("GET api/v1/nodes"):
		return c.list(r), nil
	case is("GET api/v1/nodes/*"), is("PATCH api/v1/nodes/*"), is("DELETE api/v1/nodes/*"):
		return c.node(r, parts[3], body)
	case is("GET api/v1/pods"):
		return c.listPods(r.URL.Query().Get("fieldSelector"))
	case is("POST */*/*/*/pods/*/eviction"):
		return c.evict(parts[3], parts[5], body)
	case is("POST api/v1/namespaces/kube-system/secrets"):
		return c.token(body)
	case is("DELETE api/v1/namespaces/kube-system/secrets/bootstrap-token-*"):
		return c.deleteToken(parts[5])
	}
	return nil, notFound("the server could not find the requested resource", r.URL.Path)
}

// info is kube-public/cluster-info, as kubeadm makes it.
func (c *Cluster) info() any {
	config := fmt.Sprintf("apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: %s\n    server: https://%s\n  name: \"\"\nkind: Config\n", base64.StdEncoding.EncodeToString(c.keys.ca), c.cfg.Endpoint)
	return map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "cluster-info", "namespace": "kube-public"}, "data": map[string]string{"kubeconfig": config}}
}

// list is a page of nodes; the token of the next page is where it begins.
func (c *Cluster) list(r *http.Request) any {
	var names []string
	for name := range c.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	from = min(max(from, 0), len(names))
	meta := map[string]any{"resourceVersion": strconv.Itoa(c.version)}
	to := len(names)
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && limit > 0 && from+limit < to {
		to = from + limit
		meta["continue"] = strconv.Itoa(to)
	}
	items := []any{}
	for _, name := range names[from:to] {
		items = append(items, c.object(name, c.nodes[name]))
	}
	return map[string]any{"kind": "NodeList", "apiVersion": "v1", "metadata": meta, "items": items}
}

// listPods lists the pods that a field selector selects: of one node, or of all; all of them run.
func (c *Cluster) listPods(selector string) (any, *fail) {
	of := func(*Pod) bool { return true }
	for _, term := range strings.Split(selector, ",") {
		name, isOne := strings.CutPrefix(term, "spec.nodeName=")
		switch {
		case isOne:
			of = func(p *Pod) bool { return p.Node == name }
		case term == "spec.nodeName!=":
			of = func(p *Pod) bool { return p.Node != "" }
		case term != "" && term != "status.phase!=Succeeded" && term != "status.phase!=Failed":
			return nil, badRequest("the field selector %q is not known here", term)
		}
	}
	return c.podList(of), nil
}

func (c *Cluster) podList(of func(*Pod) bool) any {
	items := []any{}
	for _, p := range c.pods {
		if of(p) {
			items = append(items, p.object())
		}
	}
	return map[string]any{"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{}, "items": items}
}
