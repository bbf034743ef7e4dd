// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/gate/since"
	"github.com/ironrail/ironrail/validate/gate/traits"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/uniform"
)

// bmcSays is what the bmc stage has learned of a node's BMC.
const bmcSays = fact.Name[struct {
	Firmware string `json:"firmware"`
}]("bmc.report")

// readVersions reads what a node has in common with its role, and adds to the gates'
// report where a version is not what the hardware block asks for. A node that does
// not report is noted: it was well enough to pass its gates.
func readVersions(ctx context.Context, j *target.Job, seen look.Seen, parts []chassis.Part, r *Report) (uniform.Record, error) {
	n, run := j.Node, j.Run
	b, err := askVersions(ctx, j.Nodes, n.Name)
	if ctx.Err() != nil {
		return uniform.Record{}, ctx.Err()
	}
	if err != nil {
		r.Notes = append(r.Notes, "its versions were not read: "+err.Error())
	}
	rec := uniform.Record{Cohort: uniform.CohortOf(run, n), Traits: traits.Common(n.Name, seen, b.Items)}
	rec.Traits = append(rec.Traits, traits.Chassis(n.Hardware, parts)...)
	r.Counts = since.CountsOf(b, r.At)
	if b, ok := target.ReadFact(run, bmcSays, subject.OfNode(n.Name)); ok && b.Firmware != "" {
		rec.Traits = append(rec.Traits, uniform.Trait{Key: uniform.BMC, Value: b.Firmware, Count: 1})
	}
	var faults []judge.Fault
	if err == nil {
		faults = checkRequired(n, rec.Traits)
		r.Faults = append(r.Faults, faults...)
	}
	if o, asked := ofVersions(n.Hardware, err == nil, faults); asked {
		r.Gates = append(r.Gates, o)
	}
	return rec, nil
}

// checkRequired holds versions against the `firmware` block of the hardware.
func checkRequired(n *inventory.Node, all []uniform.Trait) (faults []judge.Fault) {
	v := n.Hardware.Versions
	for _, t := range all {
		limit, part := unit.VersionLimit{}, ""
		switch t.Key {
		case uniform.BMC:
			limit, part = v.BMC, "BMC"
		case uniform.BIOS:
			limit, part = v.BIOS, "BIOS"
		case uniform.NICFirmware:
			limit, part = v.HCA, "NICs"
		case uniform.GPUVBIOS:
			limit, part = v.GPU, "GPUs"
		}
		if limit.IsZero() || limit.Allows(t.Value) {
			continue
		}
		if len(t.Parts) > 0 {
			part = uniform.Parts(t.Parts)
		}
		faults = append(faults, judge.Fault{Part: part,
			Cause:    fmt.Sprintf("%s: %s is %s, and hardware.%s wants %s", part, t.Key, t.Value, n.Hardware.Name, limit),
			Evidence: []string{fmt.Sprintf("%s %s: %s", t.Key, t.Of, t.Value)},
			Action:   fmt.Sprintf("Update it to what hardware.%s says, then run `ironrail apply` again; or correct `firmware` of the hardware block.", n.Hardware.Name)})
	}
	return faults
}

// traitsWait is how long the agent may take to read versions.
const traitsWait = 30 * time.Second

// askVersions asks a node's agent for what else its role has in common, versions of
// firmware, drivers and the kernel, and for what its ports counted. It changes nothing. The
// deadline is its own.
func askVersions(ctx context.Context, nodes onnode.Nodes, node string) (b wire.Baseline, err error) {
	ctx, cancel := context.WithTimeout(ctx, traitsWait)
	defer cancel()
	err = onnode.Agent(ctx, nodes, node, wire.BaselineParams{Bare: true}, &b, "baseline")
	return b, err
}

// requiredVersions is the gate of versions that the hardware block asks for.
const requiredVersions = "required-versions"

// ofVersions is the outcome of holding versions against those that the hardware
// block asks for; false where it asks for none.
func ofVersions(h *inventory.Hardware, read bool, faults []judge.Fault) (judge.Outcome, bool) {
	v := h.Versions
	if v.BMC.IsZero() && v.BIOS.IsZero() && v.HCA.IsZero() && v.GPU.IsZero() {
		return judge.Outcome{}, false
	}
	j := &judge.Node{Gate: requiredVersions}
	what := judge.Covered("versions, against the firmware block of hardware.%s", h.Name)
	if !read {
		what = judge.Coverage{Missing: "the versions were not read"}
	}
	var failed []string
	for _, f := range faults {
		failed = append(failed, f.Cause)
	}
	return j.Outcome(what, failed, nil), true
}
