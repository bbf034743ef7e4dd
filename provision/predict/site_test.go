// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
)

// limits are those of the product.
var limits = map[string]int{"inrush/": 8, "streams": 16, "bmc/": 1, "test/": 1, "repo/": 1}

// sitePlan is the plan of a site of n nodes in racks of perRack, with the steps,
// needs and uses that the stages give them.
func sitePlan(n, perRack int, name func(int) string) *plan.Plan {
	b := &builder{p: &plan.Plan{}}
	b.step("site/image.os", "install", subject.ID{Kind: subject.Site, Name: "image.os"})
	b.step("site/drivers.rdma.os", "drivers", subject.ID{Kind: subject.Site, Name: "drivers.rdma.os"}, "site/image.os")
	all := &plan.Group{Set: "all", Min: 1, OnLoss: plan.Shrink}
	var fabrics, accepts []plan.StepID
	for i := range n {
		me := name(i)
		all.Members = append(all.Members, subject.OfNode(me))
		b.node(me, fmt.Sprintf("r%03d", i/perRack))
		fabrics = append(fabrics, plan.StepID(me+"/fabric.rail"))
		accepts = append(accepts, plan.StepID(me+"/validate.accept"))
	}
	group := subject.ID{Kind: subject.Group, Name: "all"}
	b.step("all/validate.pair", "validate", group, fabrics...).Group = all
	b.step("all/validate.all_reduce", "validate", group, append(fabrics, "all/validate.pair")...).Group = all
	for i := range n {
		b.step(accepts[i], "validate", subject.OfNode(name(i)), "all/validate.all_reduce")
	}
	b.step("site/handover.s", "handover", subject.ID{Kind: subject.Site, Name: "handover.s"}, accepts...)
	return b.p
}

// labPlan is that of the lab: two nodes in one rack.
func labPlan() *plan.Plan {
	return sitePlan(2, 2, func(i int) string { return fmt.Sprintf("n%d", i+1) })
}

type builder struct{ p *plan.Plan }

func (b *builder) step(id plan.StepID, stage string, on subject.ID, needs ...plan.StepID) *plan.Step {
	s := plan.Step{ID: id, Stage: stage, Subject: on, Deadline: plan.Budget{Limit: 2 * time.Hour, Expected: time.Second}}
	for _, n := range needs {
		s.Needs = append(s.Needs, plan.Need{Step: n, On: plan.Success})
	}
	b.p.Steps = append(b.p.Steps, s)
	return &b.p.Steps[len(b.p.Steps)-1]
}

// node adds the steps of one node up to its fabric.
func (b *builder) node(me, rack string) {
	id := func(s string) plan.StepID { return plan.StepID(me + "/" + s) }
	add := func(kind, stage string, uses *plan.Use, needs ...plan.StepID) {
		s := b.step(id(kind), stage, subject.OfNode(me), needs...)
		s.DepthKey = me
		if uses != nil {
			s.Uses = []plan.Use{*uses}
		}
		if kind == "install.write" {
			s.Inputs = []plan.Input{{Name: "image.os", Value: "sha256:ab"}}
		}
	}
	add("bmc", "bmc", &plan.Use{Resource: "bmc/" + me, Units: 1, Hold: plan.ForStep})
	add("install.netboot", "install", &plan.Use{Resource: "inrush/" + rack, Units: 1, Hold: plan.UntilReleased}, id("bmc"), "site/image.os")
	add("install.inspect", "install", nil, id("install.netboot"))
	add("install.write", "install", &plan.Use{Resource: "streams", Units: 1, Hold: plan.ForStep}, id("install.inspect"))
	add("install.configure", "install", nil, id("install.write"))
	add("install.boot", "install", nil, id("install.configure"))
	add("drivers.rdma", "drivers", nil, id("install.boot"), "site/drivers.rdma.os")
	add("fabric.rail", "fabric", nil, id("drivers.rdma"))
}
