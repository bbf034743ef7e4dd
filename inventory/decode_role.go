// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
	"github.com/ironrail/ironrail/inventory/unit"
)

func (l *loader) role(b *language.Body) *Role {
	r := &Role{
		Name: b.Name, Hardware: readRef(b, "hardware", l.hardware), BMC: readRef(b, "bmc", l.bmcs), Image: readRef(b, "image", l.images), Disks: readRef(b, "disks", l.layouts), Host: readRef(b, "host", l.hosts),
		Drivers: readRefs(b, "drivers", l.drivers), Partitions: l.partitions(b), Validation: readRef(b, "validation", l.validations), Handover: readRef(b, "handover", l.handovers),
		Protect: language.Get[bool](b, "protect"), Rollout: Rollout{Canary: 1, Batch: 25, StopAfter: 1}, Decl: b.Decl, Ranges: rangesOf(b),
	}
	for _, m := range b.Blocks("mount") {
		l.mountPath(m, m.Name, m.Named, "a mount")
		l.filled(m, "type", "source")
		r.Mounts = append(r.Mounts, Mount{Path: m.Name, Type: language.Get[string](m, "type"), Source: language.Get[string](m, "source"), Options: language.GetList[string](m, "options"), Decl: m.Decl})
	}
	if o := b.Block("rollout"); o != nil {
		l.positive(o, "batch", float64(language.Get[unit.Percent](o, "batch")))
		r.Rollout = Rollout{Canary: language.Get[int](o, "canary"), Batch: language.Get[unit.Percent](o, "batch"), StopAfter: language.Get[int](o, "stop_after"), Decl: o.Decl}
	}
	return r
}

// roleOrder fills After, which needs all roles.
func (l *loader) roleOrder() {
	for _, r := range l.inv.Roles {
		r.After = readRefs(l.bodies[r], "after", l.roles)
	}
}

// partitions reads memberships such as "compute/tenant-a".
func (l *loader) partitions(b *language.Body) []Partition {
	var out []Partition
	for i, text := range language.GetList[string](b, "partitions") {
		at := b.ElementRange("partitions", i)
		fabric, name, ok := strings.Cut(text, "/")
		f := l.fabrics[fabric]
		if !ok || f == nil {
			l.diags.Add("reference.unknown", at, "Unknown fabric of a partition",
				fmt.Sprintf(`%q names no partition; it is written "fabric/partition".%s`, text, diag.DidYouMean(fabric, sortedKeys(l.fabrics)))).In(b.Decl)
			continue
		}
		j := slices.IndexFunc(f.Partitions, func(p FabricPartition) bool { return p.Name == name })
		if j < 0 {
			var known []string
			for _, p := range f.Partitions {
				known = append(known, p.Name)
			}
			l.diags.Add("reference.unknown", at, "Unknown partition", fmt.Sprintf("Fabric %q has no partition %q.%s", fabric, name, diag.DidYouMean(name, known))).In(b.Decl).Also("the fabric", f.Decl)
			continue
		}
		out = append(out, Partition{Fabric: f, Name: name, PKey: f.Partitions[j].PKey})
	}
	return out
}

// sortedKeys returns the keys of m, sorted.
func sortedKeys[T any](m map[string]T) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// decodeOverrides reads the overrides; nodes apply them when they are decoded.
func (l *loader) decodeOverrides() {
	for _, b := range l.result.Bodies["override"] {
		if first := l.overrides[b.Name]; first != nil {
			l.diags.Add("name.duplicate", b.Labels[0], "Second override of this node", fmt.Sprintf("There are two overrides of %q. Merge them.", b.Name)).Also("the first one", first.Labels[0]).In(b.Decl)
			continue
		}
		l.overrides[b.Name] = b
		o := &Override{
			Node: b.Name, Reason: language.Get[string](b, "reason"), Expires: language.Get[time.Time](b, "expires"), Allow: language.GetList[string](b, "allow"), Decl: b.Decl,
		}
		for _, name := range b.AttrNames() {
			if !slices.Contains([]string{"reason", "expires", "allow"}, name) {
				o.Sets = append(o.Sets, name)
			}
		}
		slices.Sort(o.Sets)
		l.checkReason(b, o.Reason)
		l.bodies[o] = b
		l.inv.Overrides = append(l.inv.Overrides, o)
	}
	slices.SortFunc(l.inv.Overrides, func(a, b *Override) int { return strings.Compare(a.Node, b.Node) })
}
