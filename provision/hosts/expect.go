// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"strings"
	"testing/fstest"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/validate/result"
)

// siteFile is the part of a site that is the same for all lists of hosts.
const (
	siteFile = "ironrail-test-hosts.hcl"
	mostFile = "ironrail-test-expect.hcl" // what most hosts have
	siteText = "site \"hosts\" {}\n"
)

// MaxExpect is the size of a file of expectations, bytes.
const MaxExpect = 1 << 20

// Expected is what hosts are held against.
type Expected struct {
	inv  *inventory.Inventory
	file string // it came from; empty: from the hosts themselves
}

// ParseExpect reads a file of expectations: a hardware block of the language, with the
// fabrics that its rails are on, and a validation block with limits and what is allowed.
func ParseExpect(file string, content []byte, load bool, now time.Time) (*Expected, inventory.Diagnostics, inventory.Files) {
	if !strings.HasSuffix(file, ".hcl") {
		return nil, diag.List{{Check: "hosts.expect", Summary: "File of another kind", Detail: fmt.Sprintf("%s is not named as a file of the language: NAME.hcl.", file)}}, nil
	}
	inv, diags, files := inventory.LoadFS(fstest.MapFS{
		file:     {Data: content, Mode: 0o600},
		siteFile: {Data: []byte(siteText), Mode: 0o600},
	}, inventory.Options{Now: now})
	diags = withoutWarnings(diags)
	if diags.HasErrors() {
		return nil, diags, files
	}
	e := &Expected{inv, file}
	return e, e.check(load), files
}

// withoutWarnings leaves warnings out: most are about what a site has and a list of
// hosts has not.
func withoutWarnings(diags inventory.Diagnostics) (list inventory.Diagnostics) {
	for _, d := range diags {
		if d.Severity == diag.Error {
			list = append(list, d)
		}
	}
	return list
}

// check refuses what would have no effect.
func (e *Expected) check(load bool) (list diag.List) {
	switch n := len(e.inv.Hardware); {
	case n == 0:
		list = append(list, diag.Diagnostic{Check: "hosts.expect", Summary: "No hardware block", Detail: fmt.Sprintf("The file %q says no hardware that hosts could be held against. `ironrail test --hosts FILE --write-expect` prints such a block.", e.file)})
	case n > 1:
		list.Add("hosts.expect", e.inv.Hardware[1].Decl, "Second hardware block", "All hosts of a list are held against one hardware block. Write a list of hosts and a file of expectations for each kind of hardware.").Also("the first one", e.inv.Hardware[0].Decl)
	}
	for _, v := range e.inv.Validations {
		if v != e.inv.Validations[0] {
			list.Add("hosts.expect", v.Decl, "Second validation block", "All hosts of a list are held against one validation block. Remove one of them.").Also("the first one", e.inv.Validations[0].Decl)
		}
		if v.Pair != nil && !load {
			list.Add("hosts.expect", v.Pair.Decl, "Pair test is not run without --load", "Nothing is loaded on nodes that ironrail did not install, unless --load says so. Give --load, or remove the block.").In(v.Decl)
		}
		for _, l := range v.Limits {
			switch {
			case l.Name == result.AllReduceBandwidth:
				list.Add("hosts.expect", l.Decl, "All-reduce is not run on these nodes", "It needs log-ins from node to node, and nothing is set up on nodes that ironrail did not install. Remove the limit.").In(v.Decl)
			case !load:
				list.Add("hosts.expect", l.Decl, "Nothing is measured without --load", "Nothing is loaded on nodes that ironrail did not install, unless --load says so, and no limit would be held. Give --load, or remove the block.").In(v.Decl)
			}
		}
		if v.AllReduce != nil {
			list.Add("hosts.expect", v.AllReduce.Decl, "All-reduce is not run on these nodes", "It needs log-ins from node to node, and nothing is set up on nodes that ironrail did not install. Remove the block.").In(v.Decl)
		}
		if v.BurnIn > 0 {
			list.Add("hosts.expect", v.Decl, "Burn-in is not run on these nodes", "A load of hours is not for nodes that may be in use. Remove burn_in.")
		}
	}
	for _, b := range e.ineffective() {
		list.Add("hosts.expect", b.at, "Block without effect", fmt.Sprintf("A file of expectations has hardware, fabric and validation blocks. Remove the %s block.", b.block))
	}
	return list.Sort()
}

// expectMost makes the hardware blocks of cohorts, by the name of the cohort.
func expectMost(cohorts []cohort) (*Expected, error) {
	text := writeBlocks(cohorts)
	inv, diags, _ := inventory.LoadFS(fstest.MapFS{
		mostFile: {Data: text, Mode: 0o600},
		siteFile: {Data: []byte(siteText), Mode: 0o600},
	}, inventory.Options{})
	for _, d := range withoutWarnings(diags) {
		return nil, fmt.Errorf("what was read of the hosts is no hardware block: %s: %s\n%s", d.Summary, d.Detail, strings.TrimSpace(string(text)))
	}
	return &Expected{inv: inv}, nil
}

// hardware is the block that a cohort is held against.
func (e *Expected) hardware(c cohort) *inventory.Hardware {
	if e.file != "" {
		return e.inv.Hardware[0]
	}
	for _, h := range e.inv.Hardware {
		if h.Name == c.name {
			return h
		}
	}
	return nil
}

// validation is the validation block of the file; nil without one.
func (e *Expected) validation() *inventory.Validation {
	if len(e.inv.Validations) == 0 {
		return nil
	}
	return e.inv.Validations[0]
}

// declared is a block with its place.
type declared struct {
	block string
	at    hcl.Range
}

// ineffective are the blocks that mean nothing for hosts without a site.
func (e *Expected) ineffective() (list []declared) {
	list = append(list, declaredIn("network", e.inv.Networks, func(x *inventory.Network) hcl.Range { return x.Decl })...)
	list = append(list, declaredIn("controller", e.inv.Controllers, func(x *inventory.Controller) hcl.Range { return x.Decl })...)
	list = append(list, declaredIn("bmc", e.inv.BMCs, func(x *inventory.BMCProfile) hcl.Range { return x.Decl })...)
	list = append(list, declaredIn("image", e.inv.Images, func(x *inventory.Image) hcl.Range { return x.Decl })...)
	list = append(list, declaredIn("disk_layout", e.inv.DiskLayouts, func(x *inventory.DiskLayout) hcl.Range { return x.Decl })...)
	list = append(list, declaredIn("host", e.inv.Hosts, func(x *inventory.HostSettings) hcl.Range { return x.Decl })...)
	list = append(list, declaredIn("driver", e.inv.Drivers, func(x *inventory.Driver) hcl.Range { return x.Decl })...)
	list = append(list, declaredIn("handover", e.inv.Handovers, func(x *inventory.Handover) hcl.Range { return x.Decl })...)
	list = append(list, declaredIn("role", e.inv.Roles, func(x *inventory.Role) hcl.Range { return x.Decl })...)
	list = append(list, declaredIn("feed", e.inv.Feeds, func(x *inventory.BuildingFeed) hcl.Range { return x.Decl })...)
	return append(list, declaredIn("rack", e.inv.Racks, func(x *inventory.Rack) hcl.Range { return x.Decl })...)
}

func declaredIn[T any](block string, things []T, at func(T) hcl.Range) (list []declared) {
	for _, x := range things {
		list = append(list, declared{block, at(x)})
	}
	return list
}
