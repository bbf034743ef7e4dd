// SPDX-License-Identifier: Apache-2.0

package allreduce

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/nccl"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// onGPUs reports whether the all-reduce of a group runs on GPUs: its engine says
// so, or none is given and the nodes have some.
func onGPUs(g target.Group) bool {
	switch a := g.Validation.AllReduce; {
	case a == nil || a.Engine == "mpi":
		return false
	case a.Engine != "":
		return true
	}
	return slices.ContainsFunc(g.Nodes, func(n *inventory.Node) bool { return n.Hardware != nil && n.Hardware.GPUCount() > 0 })
}

// bandwidths are the measures of an all-reduce with such further operations.
func bandwidths(operations []string) []string {
	list := []string{result.AllReduceBandwidth}
	for _, operation := range operations {
		list = append(list, result.BandwidthOf(operation))
	}
	return list
}

// findProblems finds what of an all-reduce cannot be tested.
func findProblems(g target.Group, p *target.Problems) {
	c := g.Validation.AllReduce
	for _, operation := range inventory.Operations {
		l, limited := g.Validation.Limit(result.BandwidthOf(operation))
		if limited && (c == nil || !slices.Contains(c.Operations, operation)) {
			p.Add(hcl.DiagError, l.Decl, "Limit is not measured", "Validation %q has a limit of %q, which would never be held: its all_reduce block does not ask for it. Write operations = [%q] there.", g.Validation.Name, l.Name, operation)
		}
	}
	switch {
	case c == nil:
		return
	case onGPUs(g):
		gpuProblems(g, p)
		return
	}
	if slices.ContainsFunc(c.Scope, func(s string) bool { return s != "all" }) {
		p.Add(hcl.DiagError, c.Decl, "Scope is not supported", "The all_reduce test of validation %q asks for scopes %s; \"all\" is supported.", g.Validation.Name, diag.Quoted(c.Scope))
	}
	if len(c.Operations) > 0 {
		p.Add(hcl.DiagError, c.Decl, "Operations are not supported", "The all_reduce test of validation %q asks for %s, which run on GPUs, and its engine is \"mpi\".", g.Validation.Name, diag.Quoted(c.Operations))
	}
	p.Lacking(g, c.Decl, "all_reduce", kinds.MPI, kinds.MPI4Py)
	p.Unlike(g, c.Decl, "all_reduce")
	if c.Floor > 0 {
		p.Add(hcl.DiagError, c.Decl, "Floor is not supported", "The all_reduce test of validation %q asks for a floor of what the links carry, and engine \"mpi\" runs over TCP. Give limit %q instead.", g.Validation.Name, result.AllReduceBandwidth)
	}
	if list := grouprun.CarrierFabrics(g.Nodes); len(list) > 1 {
		var others []string
		for _, f := range list[1:] {
			others = append(others, f.Name)
		}
		p.Add(hcl.DiagWarning, c.Decl, "All-reduce over one of several fabrics", "The all_reduce test of validation %q goes over fabric %q alone, the first by name. No figure of it is of %s.", g.Validation.Name, list[0].Name, diag.Quoted(others))
	}
}

// gpuProblems finds what of an all-reduce of GPUs cannot be tested.
func gpuProblems(g target.Group, p *target.Problems) {
	a := g.Validation.AllReduce
	for _, n := range g.Nodes {
		switch {
		case n.Hardware == nil || n.Hardware.GPUCount() == 0:
			p.Add(hcl.DiagError, a.Decl, "Engine is not supported", "The all_reduce test of validation %q asks for engine %q, which runs on GPUs, and node %s has none: \"mpi\" (host memory) is supported there.", g.Validation.Name, a.Engine, n.Name)
			return
		case slices.Contains(a.Scope, "unit") && g.UnitOf(n) == "":
			p.Add(hcl.DiagError, a.Decl, "Scope is not supported", "The all_reduce test of validation %q asks for scope \"unit\", and node %s has neither a domain nor a scalable_unit, and its leaves are of no unit or of several.", g.Validation.Name, n.Name)
			return
		case slices.Contains(a.Scope, grouprun.Domain) && (n.Domain == "" || grouprun.EngineOf(a, n) != nccl.NCCL):
			p.Add(hcl.DiagError, a.Decl, "Scope is not supported", "The all_reduce test of validation %q asks for scope \"domain\", the NVLink between nodes, and node %s is in no NVLink domain, or its engine is not \"nccl\".", g.Validation.Name, n.Name)
			return
		}
	}
	tests := kinds.NCCLTests
	if len(g.Nodes) > 0 && grouprun.EngineOf(a, g.Nodes[0]) == nccl.RCCL {
		tests = kinds.RCCLTests
	}
	p.Lacking(g, a.Decl, "all_reduce", kinds.MPI, tests)
	p.Unlike(g, a.Decl, "all_reduce")
}

// gpuInput declares what decides an all-reduce of GPUs.
func gpuInput(g target.Group) string {
	a := g.Validation.AllReduce
	parts := []string{string(grouprun.EngineOf(a, g.Nodes[0])), strings.Join(a.Scope, "+")}
	for _, s := range a.Sizes {
		parts = append(parts, s.String())
	}
	if a.Floor > 0 {
		parts = append(parts, "floor "+a.Floor.String())
	}
	return strings.Join(append(parts, a.Operations...), " ")
}
