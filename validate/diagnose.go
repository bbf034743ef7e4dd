package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/allreduce"
	"github.com/ironrail/ironrail/validate/bandwidth"
	"github.com/ironrail/ironrail/validate/bout"
	"github.com/ironrail/ironrail/validate/burn"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// measured are the names of limits and what they can be given in.
var measured = map[string][]unit.Dimension{
	result.WriteBandwidth:     {unit.Throughput, unit.LineRate},
	result.AllReduceBandwidth: {unit.Throughput, unit.LineRate},
	floor.HBMCopy:             {unit.Throughput, unit.LineRate},
	floor.HostToDevice:        {unit.Throughput, unit.LineRate},
	floor.DeviceToHost:        {unit.Throughput, unit.LineRate},
	floor.PeerRead:            {unit.Throughput, unit.LineRate},
}

// check finds what of a validation block cannot be tested.
func check(g target.Group) hcl.Diagnostics {
	var diags hcl.Diagnostics
	add := func(sev hcl.DiagnosticSeverity, at hcl.Range, summary, format string, args ...any) {
		diags = append(diags, &hcl.Diagnostic{Severity: sev, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at.Ptr()})
	}
	notYet := func(at hcl.Range, summary, format string, args ...any) {
		add(hcl.DiagError, at, summary, format, args...)
		diags[len(diags)-1].Extra = stage.NotYet{}
	}
	v := g.Validation
	if v.BurnIn > 0 {
		burn.CheckBurn(g, add, notYet)
	}
	if p := v.Pair; p != nil && p.Engine != "" && p.Engine != "perftest" {
		notYet(p.Decl, "Engine is not supported", "The pair test of validation %q asks for engine %q; \"perftest\" is supported.", v.Name, p.Engine)
	}
	if c := v.AllReduce; c != nil && allreduce.OnGPUs(g) {
		allreduce.CheckGPUs(g, notYet)
	} else if c != nil {
		checkTCP(g, add, notYet)
	}
	if (v.Pair != nil || v.AllReduce != nil) && len(g.Nodes) < 2 {
		add(hcl.DiagWarning, v.Decl, "One node alone is not tested", "Validation %q tests nodes against each other, and %q is the only one that it applies to. It is accepted without a measurement.", v.Name, g.Nodes[0].Name)
	}
	for _, l := range v.Limits {
		checkLimit(l, add, notYet)
		if slices.Contains(bandwidth.GpuMeasures, l.Name) {
			bandwidth.CheckGPULimit(g, l, add, notYet)
		}
	}
	checkAllowed(v, add)
	return diags
}

// checkTCP looks at an all-reduce that is not on GPUs.
func checkTCP(g target.Group, add func(hcl.DiagnosticSeverity, hcl.Range, string, string, ...any), notYet func(hcl.Range, string, string, ...any)) {
	v, c := g.Validation, g.Validation.AllReduce
	if slices.ContainsFunc(c.Scope, func(s string) bool { return s != "all" }) {
		notYet(c.Decl, "Scope is not supported", "The all_reduce test of validation %q asks for scopes %s; \"all\" is supported.", v.Name, diag.Quoted(c.Scope))
	}
	if c.Floor > 0 {
		notYet(c.Decl, "Floor is not supported", "The all_reduce test of validation %q asks for a floor of what the links carry, and engine \"mpi\" runs over TCP. Give limit %q instead.", v.Name, result.AllReduceBandwidth)
	}
	if list := bout.Carriers(g.Nodes); len(list) > 1 {
		var others []string
		for _, f := range list[1:] {
			others = append(others, f.Name)
		}
		add(hcl.DiagWarning, c.Decl, "All-reduce over one of several fabrics", "The all_reduce test of validation %q goes over fabric %q alone, the first by name. No figure of it is of %s.", v.Name, list[0].Name, diag.Quoted(others))
	}
}

func checkLimit(l inventory.MeasureLimit, add func(hcl.DiagnosticSeverity, hcl.Range, string, string, ...any), notYet func(hcl.Range, string, string, ...any)) {
	dims, ok := measured[l.Name]
	if !ok {
		known := slices.Sorted(maps.Keys(measured))
		notYet(l.Decl, "Limit is not measured", "Nothing measures %q, so that its limit would never be held.%s", l.Name, diag.DidYouMean(l.Name, known))
		return
	}
	for _, q := range []*unit.Quantity{l.AtLeast, l.AtMost} {
		if q != nil && !slices.Contains(dims, q.Dimension) {
			add(hcl.DiagError, l.Decl, "Limit has the wrong unit", "Limit %q is %s, which is %s; %q is measured in bytes per second, such as \"45GB/s\".", l.Name, q, q.Dimension, l.Name)
		}
	}
	if l.AtMost != nil {
		add(hcl.DiagError, l.Decl, "Limit has no floor", "Limit %q is a bandwidth: give at_least.", l.Name)
	}
}

// checkAllowed finds gates that cannot be allowed to fail, or that there are none of.
func checkAllowed(v *inventory.Validation, add func(hcl.DiagnosticSeverity, hcl.Range, string, string, ...any)) {
	known := gate.Allowable()
	for _, a := range v.Allowed {
		if !slices.Contains(known, a.Gate) {
			add(hcl.DiagError, a.Decl, "Gate cannot be allowed", "Validation %q allows %q to fail, and that is no gate that can be allowed.%s Those are %s.", v.Name, a.Gate, diag.DidYouMean(a.Gate, known), strings.Join(known, ", "))
		}
	}
}
