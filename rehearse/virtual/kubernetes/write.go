// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decodeBody reads a body strictly.
func decodeBody(body []byte, into any) *fail {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badRequest("strict decoding error: %v", err)
	}
	return nil
}

// nodePatch is a merge patch (RFC 7396) of the fields of a node that a hand-over
// changes: null removes.
type nodePatch struct {
	Metadata struct {
		ResourceVersion string             `json:"resourceVersion"`
		Labels          map[string]*string `json:"labels"`
		Annotations     map[string]*string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Taints        *[]Taint `json:"taints"`
		Unschedulable *bool    `json:"unschedulable"`
	} `json:"spec"`
}

// node reads, changes or removes one.
func (c *Cluster) node(r *http.Request, name string, body []byte) (any, *fail) {
	n := c.nodes[name]
	if n == nil {
		return nil, notFound("nodes", name)
	}
	switch r.Method {
	case http.MethodDelete:
		delete(c.nodes, name)
		c.changes = append(c.changes, name+" delete")
		return map[string]any{"kind": "Status", "status": "Success"}, nil
	case http.MethodPatch:
		if kind := r.Header.Get("Content-Type"); kind != "application/merge-patch+json" {
			return nil, &fail{http.StatusUnsupportedMediaType, "UnsupportedMediaType", "the patch is of type " + kind}
		}
		var p nodePatch
		if f := decodeBody(body, &p); f != nil {
			return nil, f
		}
		if f := c.patch(name, n, &p); f != nil {
			return nil, f
		}
	}
	return c.object(name, n), nil
}

func (c *Cluster) patch(name string, n *node, p *nodePatch) *fail {
	if v := p.Metadata.ResourceVersion; v != "" && v != strconv.Itoa(n.version) {
		return &fail{http.StatusConflict, "Conflict", fmt.Sprintf("Operation cannot be fulfilled on nodes %q: the object has been modified", name)}
	}
	if p.Spec.Taints != nil {
		for i, t := range *p.Spec.Taints {
			if t.Key == "" || !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, t.Effect) {
				return &fail{http.StatusUnprocessableEntity, "Invalid", fmt.Sprintf("Node %q is invalid: spec.taints[%d]", name, i)}
			}
		}
		n.taints = *p.Spec.Taints
	}
	mergePatch(n.labels, p.Metadata.Labels)
	mergePatch(n.annotations, p.Metadata.Annotations)
	why := name + " change"
	if u := p.Spec.Unschedulable; u != nil && *u != n.unschedulable {
		n.unschedulable = *u
		why = name + map[bool]string{true: " cordon", false: " uncordon"}[*u]
	}
	c.change(n, why)
	return nil
}

func mergePatch(have map[string]string, patch map[string]*string) {
	for key, value := range patch {
		if value == nil {
			delete(have, key)
		} else {
			have[key] = *value
		}
	}
}

// evict ends a pod, unless its disruption budget is against it.
func (c *Cluster) evict(namespace, name string, body []byte) (any, *fail) {
	var e struct {
		APIVersion    string            `json:"apiVersion"`
		Kind          string            `json:"kind"`
		Metadata      map[string]string `json:"metadata"`
		DeleteOptions struct {
			Preconditions struct {
				UID string `json:"uid"`
			} `json:"preconditions"`
		} `json:"deleteOptions"`
	}
	if f := decodeBody(body, &e); f != nil {
		return nil, f
	}
	i := slices.IndexFunc(c.pods, func(p *Pod) bool { return p.Namespace == namespace && p.Name == name })
	switch {
	case i < 0:
		return nil, notFound("pods", name)
	case e.APIVersion != "policy/v1" || e.Kind != "Eviction":
		return nil, badRequest("no Eviction of policy/v1")
	case e.DeleteOptions.Preconditions.UID != "pod-"+name:
		return nil, &fail{http.StatusConflict, "Conflict", "the UID in the precondition does not match"}
	}
	p := c.pods[i]
	if p.Refusals > 0 {
		p.Refusals--
		return nil, &fail{http.StatusTooManyRequests, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget."}
	}
	c.remove(namespace, name)
	c.changes = append(c.changes, p.Node+" evict "+name)
	return map[string]any{"kind": "Status", "status": "Success"}, nil
}

// token keeps a bootstrap token.
func (c *Cluster) token(body []byte) (any, *fail) {
	var s struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Type       string            `json:"type"`
		Metadata   map[string]string `json:"metadata"`
		StringData map[string]string `json:"stringData"`
	}
	if f := decodeBody(body, &s); f != nil {
		return nil, f
	}
	id := s.StringData["token-id"]
	until, err := time.Parse(time.RFC3339, s.StringData["expiration"])
	if s.Type != "bootstrap.kubernetes.io/token" || s.Metadata["name"] != "bootstrap-token-"+id || len(id) != 6 || len(s.StringData["token-secret"]) != 16 || s.StringData["usage-bootstrap-authentication"] != "true" || err != nil {
		return nil, badRequest("no bootstrap token")
	}
	c.tokens[id] = bootstrap{s.StringData["token-secret"], until}
	return map[string]any{"kind": "Secret", "apiVersion": "v1"}, nil
}

// deleteToken removes a bootstrap token by the name of its secret.
func (c *Cluster) deleteToken(secret string) (any, *fail) {
	id := strings.TrimPrefix(secret, "bootstrap-token-")
	if _, ok := c.tokens[id]; !ok {
		return nil, notFound("secrets", secret)
	}
	delete(c.tokens, id)
	return map[string]any{"kind": "Status", "status": "Success"}, nil
}
