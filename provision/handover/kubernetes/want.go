// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/kubernetes/api"
	"github.com/ironrail/ironrail/provision/handover/place"
)

// What ironrail writes at a node. Of labels and taints that it did not write, or
// that somebody else's names are, none is ever removed.
const (
	unaccepted = "ironrail.dev/unaccepted"    // taint of a node that is not in service
	cordoned   = "ironrail.dev/cordoned"      // annotation: ironrail has cordoned the node
	ownLabels  = "ironrail.dev/labels"        // annotation: keys of the labels that it has set
	ownTaints  = "ironrail.dev/taints"        // annotation: key:effect of the taints that it has set
	rackLabel  = "ironrail.dev/rack"          // label: the rack
	leafLabel  = "ironrail.dev/leaf"          // label: the leaves of the fabric; nodes of one value share them all
	podLabel   = "ironrail.dev/fabric-pod"    // label: the part of a fabric of three levels
	unitLabel  = "ironrail.dev/scalable-unit" // label
	nvlLabel   = "ironrail.dev/nvlink-domain" // label
)

// want is what a node of the cluster should be.
type want struct {
	labels  map[string]string
	taints  []api.Taint
	service bool // pods may be put on it
}

// wantedNodes returns what all members should be, by name.
func wantedNodes(t handover.Target) map[string]want {
	nodes := make([]*inventory.Node, len(t.Members))
	for i, m := range t.Members {
		nodes[i] = m.Node
	}
	places := place.Of(t.Inventory, nodes)
	all := make(map[string]want, len(t.Members))
	for _, m := range t.Members {
		w := want{labels: labelsOf(t.Handover, m.Node, places), service: m.InService}
		for _, text := range t.Texts("taints") {
			if taint := parseTaint(text); taint.Key != unaccepted { // whether that one is there is ours to say
				w.taints = append(w.taints, taint)
			}
		}
		if !m.InService {
			w.taints = append(w.taints, api.Taint{Key: unaccepted, Effect: "NoSchedule"})
		}
		all[m.Node.Name] = w
	}
	return all
}

// labelsOf returns the site's and where the node is.
func labelsOf(h *inventory.Handover, n *inventory.Node, p *place.Tree) map[string]string {
	all := map[string]string{}
	put := func(key, value string) {
		if value = strings.Trim(place.PlainName(value), "-_."); value != "" && wrongValue(value) == "" {
			all[key] = value
		}
	}
	if n.Rack != nil {
		put(rackLabel, n.Rack.Name)
	}
	if p.Fabric != nil {
		put(leafLabel, p.Leaf(n))
		put(podLabel, p.Above(n))
	}
	if n.ScalableUnit > 0 {
		put(unitLabel, fmt.Sprint(n.ScalableUnit))
	}
	put(nvlLabel, n.Domain)
	for key, value := range h.Entries("labels") {
		all[key] = value
	}
	return all
}

// parseTaint reads key[=value]:effect, which the check of the files has looked at.
func parseTaint(text string) api.Taint {
	rest, effect, _ := cutLast(text, ":")
	key, value, _ := strings.Cut(rest, "=")
	return api.Taint{Key: key, Value: value, Effect: effect}
}

// reconcileNode compares a node with what it should be: what changes, in words, and
// the merge patch that does it. The patch fails where the node was changed since.
func reconcileNode(n *api.Node, w want) (changes []string, patch map[string]any) {
	annotations, spec := map[string]any{}, map[string]any{}
	labels, changes := mergeLabels(n, w)
	taints, changed := mergeTaints(n, w)
	if len(changed) > 0 {
		spec["taints"] = taints
		changes = append(changes, changed...)
	}
	_, mine := n.Annotations[cordoned]
	switch {
	case !w.service && !n.Spec.Unschedulable:
		spec["unschedulable"], annotations[cordoned] = true, "true"
		changes = append(changes, "cordon")
	case w.service && n.Spec.Unschedulable && mine:
		spec["unschedulable"], annotations[cordoned] = false, nil
		changes = append(changes, "uncordon")
	}
	if keys := joinKeys(w.labels); n.Annotations[ownLabels] != keys {
		annotations[ownLabels] = keys
	}
	if keys := taintKeys(w.taints); n.Annotations[ownTaints] != keys {
		annotations[ownTaints] = keys
	}
	if len(changes) == 0 && len(annotations) > 0 {
		changes = append(changes, "remember what is ironrail's")
	}
	meta := map[string]any{"resourceVersion": n.ResourceVersion, "labels": labels, "annotations": annotations}
	return changes, map[string]any{"metadata": meta, "spec": spec}
}

// mergeLabels sets what differs, removes what ironrail has set and the site does not
// want any more, and says what changes.
func mergeLabels(n *api.Node, w want) (patch map[string]any, changed []string) {
	patch = map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(w.labels)) {
		if have, ok := n.Labels[key]; !ok || have != w.labels[key] {
			patch[key] = w.labels[key]
			changed = append(changed, fmt.Sprintf("label %s=%s", key, w.labels[key]))
		}
	}
	for _, key := range splitCommas(n.Annotations[ownLabels]) {
		if _, wanted := w.labels[key]; !wanted && n.Labels[key] != "" {
			patch[key] = nil
			changed = append(changed, "no label "+key)
		}
	}
	return patch, changed
}

// mergeTaints keeps the taints of others, and says what changes.
func mergeTaints(n *api.Node, w want) (all []api.Taint, changed []string) {
	mine := splitCommas(n.Annotations[ownTaints])
	all = []api.Taint{}
	for _, have := range n.Spec.Taints {
		i := slices.IndexFunc(w.taints, func(t api.Taint) bool { return t.Key == have.Key && t.Effect == have.Effect })
		switch {
		case i >= 0 && w.taints[i].Value == have.Value:
			all = append(all, have)
		case i >= 0: // set anew below
		case have.Key == unaccepted, slices.Contains(mine, have.Key+":"+have.Effect):
			changed = append(changed, "no taint "+have.Key)
		default:
			all = append(all, have)
		}
	}
	for _, t := range w.taints {
		if !slices.Contains(all, t) {
			all = append(all, t)
			changed = append(changed, "taint "+t.Key+":"+t.Effect)
		}
	}
	return all, changed
}

func splitCommas(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func joinKeys(m map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ",")
}

func taintKeys(list []api.Taint) string {
	var keys []string
	for _, t := range list {
		keys = append(keys, t.Key+":"+t.Effect)
	}
	slices.Sort(keys)
	return strings.Join(keys, ",")
}

// joinLabels writes labels in their order.
func joinLabels(entries iter.Seq2[string, string]) string {
	var list []string
	for key, value := range entries {
		list = append(list, key+"="+value)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// digestOf returns a short text that changes with the content.
func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
