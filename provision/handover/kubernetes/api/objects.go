// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"time"
)

// Meta is what all objects have (ObjectMeta, as far as it is read or written).
type Meta struct {
	Name            string            `json:"name,omitempty"`
	Namespace       string            `json:"namespace,omitempty"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	Owners          []Owner           `json:"ownerReferences,omitempty"`
	Deleted         *time.Time        `json:"deletionTimestamp,omitempty"` // nil: nobody deletes it
}

// Owner is an object that another one belongs to.
type Owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller bool   `json:"controller,omitempty"`
}

// Taint keeps pods off a node; its identity is key and effect.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Node is a node of the cluster.
type Node struct {
	Meta `json:"metadata"`
	Spec struct {
		Taints        []Taint `json:"taints,omitempty"`
		Unschedulable bool    `json:"unschedulable,omitempty"`
	} `json:"spec"`
	Status struct {
		Conditions []Condition `json:"conditions,omitempty"`
		Addresses  []Address   `json:"addresses,omitempty"`
	} `json:"status"`
}

// Condition is one of a node's.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"` // True, False or Unknown
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Address is one of a node's.
type Address struct {
	Type    string `json:"type"` // InternalIP, Hostname
	Address string `json:"address"`
}

// Ready says whether the kubelet of a node is ready, and its own words when not.
func (n *Node) Ready() (bool, string) {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True", c.Reason + ": " + c.Message
		}
	}
	return false, "its kubelet has not said anything yet"
}

// Pod is a pod.
type Pod struct {
	Meta `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName,omitempty"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase,omitempty"`
	} `json:"status"`
}

// mirror marks the pods that a kubelet has from a file; nobody can evict them.
const mirror = "kubernetes.io/config.mirror"

// Controller is the kind of what made the pod; "" for nothing.
func (p *Pod) Controller() string {
	i := slices.IndexFunc(p.Owners, func(o Owner) bool { return o.Controller })
	if i < 0 {
		return ""
	}
	return p.Owners[i].Kind
}

// IgnoredByDrain reports whether a pod has no end but the node's: one from a file of the
// kubelet, one of a DaemonSet, one that has ended.
func (p *Pod) IgnoredByDrain() bool {
	_, static := p.Annotations[mirror]
	return static || p.Controller() == "DaemonSet" || p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed"
}

// moving are the controllers that make another pod elsewhere for one that is
// evicted.
var moving = []string{"ReplicaSet", "ReplicationController", "StatefulSet"}

// Work reports whether an eviction of the pod loses work: it is part of a job, or
// nothing makes another one.
func (p *Pod) Work() bool { return !p.IgnoredByDrain() && !slices.Contains(moving, p.Controller()) }

// list is a page of objects.
type list[T any] struct {
	Meta struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []T `json:"items"`
}

// status is what the API server says of a request that failed.
type status struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}
