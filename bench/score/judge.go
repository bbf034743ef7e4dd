// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// summary is what a rehearsal ends with, as far as it is judged.
type summary struct {
	Type        string   `json:"type"`
	Accepted    []string `json:"accepted"`
	Quarantined []struct {
		Node  string `json:"node"`
		Part  string `json:"part"`
		Cause string `json:"cause"`
		Also  []struct {
			Part  string `json:"part"`
			Cause string `json:"cause"`
		} `json:"also"`
	} `json:"quarantined"`
	Waiting []struct {
		Node  string `json:"node"`
		Cause string `json:"cause"`
	} `json:"waiting"`
	Findings []struct {
		Part  string `json:"part"`
		Cause string `json:"cause"`
	} `json:"findings"`
	Unexpected []struct {
		Subject string `json:"subject"`
	} `json:"unexpected"`
	Faults []struct {
		Found bool `json:"found"`
	} `json:"faults"`
	Runs      int     `json:"runs"`
	Simulated float64 `json:"simulated_time"` // seconds
	Memory    uint64  `json:"peak_memory"`    // bytes
}

// kind is what is known of a kind of fault: where it can be, and what names it.
type kind struct {
	place place
	alone bool // keeps what others would be found by from happening
	// tested: a test of an installed node finds it, whatever else is bad with that node.
	tested bool
	// names are what a finding may say: of each a node, or "" for a finding of no node, and
	// what its part has to match.
	names func(*inventory.Inventory, planted) []name
}

// name is a way to name a part.
type name struct {
	node string
	part *regexp.Regexp
}

// ofNode is a part of the fault's node.
func ofNode(pattern string) func(*inventory.Inventory, planted) []name {
	form := regexp.MustCompile(pattern)
	return func(_ *inventory.Inventory, f planted) []name { return []name{{f.Node, form}} }
}

// outside is a part of no node.
func outside(text func(planted) string) func(*inventory.Inventory, planted) []name {
	return func(_ *inventory.Inventory, f planted) []name { return []name{{"", word(text(f))}} }
}

// word matches a text that no letter, digit or dash goes on from.
func word(text string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^\w/.-])` + regexp.QuoteMeta(text) + `($|[^\w/-])`)
}

// ofTrunk is a cable between switches; where nobody can ask its leaf what it counts, what
// goes up from there.
func ofTrunk(inv *inventory.Inventory, f planted) []name {
	list := []name{{"", word(f.Port)}}
	for _, c := range inv.Cables {
		if c.From.Switch != nil && c.From.String() == f.Port && !isCounted(c.From.Switch) {
			list = append(list, name{"", word(c.From.Switch.Name + " uplinks")})
		}
	}
	return list
}

// ofSpine is a spine; where nobody can ask it what it counts, the spines of its fabric.
func ofSpine(inv *inventory.Inventory, f planted) []name {
	list := []name{{"", word(f.Switch)}}
	for _, s := range inv.Switches {
		if s.Name == f.Switch && s.Fabric != nil && !isCounted(s) {
			list = append(list, name{"", word(s.Fabric.Name + " spines")})
		}
	}
	return list
}

// isCounted reports whether a switch can be asked what it counts: on InfiniBand by the
// controller of the subnet manager, elsewhere by its login.
func isCounted(s *inventory.Switch) bool {
	return s.Login != nil || s.Fabric != nil && s.Fabric.Kind == "infiniband"
}

// ofGPU is a GPU by its number.
func ofGPU(_ *inventory.Inventory, f planted) []name {
	return []name{{f.Node, word("GPU " + f.GPU)}}
}

// ofMissingGPU is a GPU by its number; where no slot tells it, that one is missing.
func ofMissingGPU(_ *inventory.Inventory, f planted) []name {
	return []name{{f.Node, regexp.MustCompile(`\bGPUs? ` + f.GPU + `\b|\bGPUs?($|,| at )`)}}
}

// ofUnseated is a GPU, or the NVLink of a node whose domain spans nodes.
func ofUnseated(inv *inventory.Inventory, f planted) []name {
	return append(ofGPU(inv, f), name{f.Node, word("NVLink")})
}

// ofNIC is a NIC by its port or its address.
func ofNIC(inv *inventory.Inventory, f planted) []name {
	list := []name{{f.Node, word(f.Port)}}
	for _, p := range ports(inv) {
		if p.node.Name == f.Node && p.name == f.Port && p.pci != "" {
			list = append(list, name{f.Node, word(p.pci)})
		}
	}
	return list
}

// ofNICOrPort is a NIC by its own name, its address or its rail.
func ofNICOrPort(inv *inventory.Inventory, f planted) []name {
	return append(ofNIC(inv, f), ofPort(inv, f)...)
}

// ofPort is a port of a node by its name or its rail, as a part of the node or as a link.
func ofPort(inv *inventory.Inventory, f planted) (list []name) {
	for _, node := range []string{f.Node, f.With} {
		if node == "" {
			continue
		}
		list = append(list, name{node, word(f.Port)}, name{"", word(node + "/" + f.Port)})
		for _, p := range ports(inv) {
			if p.node.Name == node && p.name == f.Port && p.rail >= 0 {
				list = append(list, name{node, word(fmt.Sprintf("rail %d", p.rail))})
			}
		}
	}
	return list
}

// ofEitherEnd is a port of a node, or the switch port at its far end.
func ofEitherEnd(inv *inventory.Inventory, f planted) []name {
	if f.End == "" {
		return ofPort(inv, f)
	}
	return []name{{"", regexp.MustCompile(regexp.QuoteMeta("(" + f.Node + "/" + f.Port + ")"))}}
}

var bmc, bootNIC = ofNode(`\bBMC\b`), ofNode(`\bboot NIC\b`)

// kindsOfFaults are all of them, from the table of the documents.
var kindsOfFaults = map[string]kind{
	"bmc-dead":           {place: anyNode, names: bmc},
	"bmc-locked":         {place: anyNode, names: bmc},
	"bmc-wrong-password": {place: anyNode, names: bmc},
	"bmc-write-lost":     {place: anyNode, names: bmc},
	"bmc-swapped": {place: twoNodes, names: func(inv *inventory.Inventory, f planted) []name {
		return append(bmc(inv, f), bmc(inv, planted{Node: f.With})...)
	}},
	"dhcp-loss":          {place: anyNode, names: bootNIC},
	"untagged-port":      {place: taggedNode, names: bootNIC},
	"http-stall":         {place: anyNode, names: bootNIC},
	"wrong-serial":       {place: anyNode, names: ofNode(`\bidentity\b`)},
	"missing-dimm":       {place: anyNode, names: ofNode(`\bmemory\b|\bDIMM\b`)},
	"missing-nic":        {place: anyPort(isPort), names: ofNIC},
	"disk-write-error":   {place: anyNode, names: ofNode(`\bdisk\b`)},
	"kernel-hang":        {place: anyNode, names: ofNode(`\bramdisk\b`)},
	"repo-gone":          {place: nowhere, alone: true, names: outside(func(planted) string { return "repository" })},
	"driver-mismatch":    {place: anyGPUNode, names: ofNode(`\bdriver\b`)},
	"missing-gpu":        {place: anyGPU(false), names: ofMissingGPU},
	"pcie-width":         {place: anyGPU(false), tested: true, names: ofGPU},
	"gpu-row-remap":      {place: anyGPU(false), tested: true, names: ofGPU},
	"gpu-xid":            {place: anyGPU(false), tested: true, names: ofGPU},
	"weak-hbm":           {place: anyGPU(false), tested: true, names: ofGPU},
	"slow-gpu":           {place: anyGPU(false), tested: true, names: ofGPU},
	"pcie-errors":        {place: anyGPU(false), tested: true, names: ofGPU},
	"nvlink-errors":      {place: anyGPU(true), tested: true, names: ofGPU},
	"dimm-errors":        {place: anyNode, tested: true, names: ofNode(`\bmemory\b|\bDIMM\b`)},
	"dead-cores":         {place: anyGPU(false), tested: true, names: ofGPU},
	"wrong-results":      {place: anyGPU(false), tested: true, names: ofGPU},
	"hot-gpu":            {place: anyGPU(false), tested: true, names: ofGPU},
	"odd-firmware":       {place: anyPort(isPort), tested: true, names: ofNIC},
	"psu-lost":           {place: anyNode, tested: true, names: ofNode(`\bpower supply\b`)},
	"dead-fan":           {place: anyNode, tested: true, names: ofNode(`\b[Ff]an\b`)},
	"warm-air":           {place: anyNode, tested: true, names: ofNode(`\binlet air\b|\bTemperature\b`)},
	"wrong-gpu":          {place: anyGPU(false), names: ofGPU},
	"less-hbm":           {place: anyGPU(false), tested: true, names: ofGPU},
	"pcie-speed":         {place: anyGPU(false), tested: true, names: ofGPU},
	"wrong-cpu":          {place: anyNode, names: ofNode(`\bCPUs?\b`)},
	"smt-off":            {place: anyNode, names: ofNode(`\bCPUs?\b`)},
	"secure-boot-off":    {place: secureNode, names: ofNode(`\bSecure Boot\b`)},
	"module-key-missing": {place: keyNode, names: ofNode(`\bSecure Boot\b`)},
	"tpm-off":            {place: anyNode, names: ofNode(`\bTPM\b`)},
	"numa-split":         {place: anyNode, names: ofNode(`\bCPUs?\b`)},
	"small-dimm":         {place: anyNode, names: ofNode(`\bmemory\b|\bDIMM\b`)},
	"slow-dimm":          {place: anyNode, names: ofNode(`\bmemory\b|\bDIMM\b`)},
	"slow-memory":        {place: anyNode, names: ofNode(`\bmemory\b`)},
	"slow-cpu":           {place: anyNode, names: ofNode(`\bCPUs?\b`)},
	"slow-disk":          {place: anyNode, names: ofNode(`\bdisk\b`)},
	"slow-network":       {place: anyNode, names: ofNode(`\bnic\b`)},
	"path-mtu":           {place: anyNode, names: ofNode(`\bnic\b`)},
	"worn-disk":          {place: anyGPUNode, names: ofNode(`\bdisk\b`)},
	"nic-setting-lost":   {place: anyPort(isSet), names: ofNIC},
	"wrong-nic":          {place: anyPort(isPort), names: ofNIC},
	"wrong-disk":         {place: anyNode, names: ofNode(`\bdisk\b`)},
	"wrong-mtu":          {place: anyPort(isEthernet), names: ofNICOrPort},
	"wrong-optic":        {place: anyPort(isEthernet), names: ofNICOrPort},
	"nvlink-down":        {place: anyGPU(true), names: ofGPU},
	"nvlink-unseated":    {place: anyGPU(true), names: ofUnseated},
	"no-time":            {place: anyGPUNode, names: ofNode(`\bclock\b`)},
	"imex-config":        {place: domainNode, names: ofNode(`\bIMEX\b`)},
	"imex-channel":       {place: domainNode, names: ofNode(`\bNVLink between nodes\b`)},
	"cable-swap":         {place: twoPlugs, names: ofPort},
	"degraded-link":      {place: anyPort(isPort), names: ofPort},
	"link-down":          {place: anyPort(isPort), names: ofPort},
	"rail-config":        {place: eitherEnd, names: ofEitherEnd},
	"high-ber":           {place: anyPort(isPort), tested: true, names: ofPort},
	"slow-nic":           {place: anyPort(isPort), tested: true, names: ofPort},
	"bad-uplink":         {place: trunk, names: outside(func(f planted) string { return f.Port })},
	"bad-leaf":           {place: leaf, names: outside(func(f planted) string { return f.Switch })},
	"slow-trunk":         {place: anyTrunk, names: ofTrunk},
	"trunk-errors":       {place: anyTrunk, names: ofTrunk},
	"dead-trunk":         {place: spareTrunk, names: outside(func(f planted) string { return f.Port })},
	"bad-spine":          {place: spine, names: ofSpine},
	"sm-dead":            {place: onInfiniBand(false), alone: true, names: outside(func(planted) string { return "subnet manager" })},
	"other-sm":           {place: onInfiniBand(true), alone: true, names: outside(func(planted) string { return "subnet manager" })},
	"shelf-supply":       {place: shelf, names: outside(func(f planted) string { return f.Shelf })},
	"pdu-trip":           {place: pdu, names: outside(func(f planted) string { return f.PDU })},
	"other-dhcp":         {place: nowhere, alone: true, names: outside(func(planted) string { return "DHCP server" })},
	"controller-kill":    {place: nowhere},
}

// verdict is what is wrong with a run.
type verdict struct {
	unnamed []string // faults that no finding names
	lost    []string // nodes that no fault is in and that were not accepted
	beside  []string // what was blamed and is no fault's part
	differs bool     // from the rehearsal's own
}

func (v verdict) whole() bool {
	return len(v.unnamed)+len(v.lost)+len(v.beside) == 0 && !v.differs
}

func (v verdict) String() string {
	var b strings.Builder
	for _, p := range []struct {
		what string
		list []string
	}{{"not named", v.unnamed}, {"lost", v.lost}, {"blamed beside", v.beside}} {
		for _, one := range p.list {
			fmt.Fprintf(&b, "    %s: %s\n", p.what, one)
		}
	}
	if v.differs {
		b.WriteString("    the rehearsal's own verdict differs\n")
	}
	return b.String()
}

// judge holds what a rehearsal found against what was planted.
func judge(inv *inventory.Inventory, faults []planted, s summary) (v verdict) {
	named := make([]bool, len(faults))
	say := func(node, part, cause string) {
		one := false
		for i, f := range faults {
			very := kindsOfFaults[f.Kind].matches(inv, f, node, part)
			named[i] = named[i] || very
			one = one || very || isEither(inv, f, node, part)
		}
		if !one {
			v.beside = append(v.beside, strings.TrimSpace(node+" "+part+": "+cause))
		}
	}
	for _, q := range s.Quarantined {
		say(q.Node, q.Part, q.Cause)
		for _, f := range q.Also {
			say(q.Node, f.Part, f.Cause)
		}
	}
	for _, f := range s.Findings {
		say("", f.Part, f.Cause)
	}
	own := len(s.Unexpected) == 0
	for i, f := range faults {
		if f.Kind == "controller-kill" {
			named[i] = s.Runs > 1
		}
		if !named[i] {
			v.unnamed = append(v.unnamed, f.argument())
		}
		own = own && i < len(s.Faults) && s.Faults[i].Found
	}
	v.lost = listLost(inv, faults, s)
	v.differs = own != (len(v.unnamed)+len(v.beside) == 0)
	return v
}

// matches reports whether a finding names the part of a fault.
func (k kind) matches(inv *inventory.Inventory, f planted, node, part string) bool {
	if k.names == nil {
		return false
	}
	return slices.ContainsFunc(k.names(inv, f), func(n name) bool { return n.node == node && n.part.MatchString(part) })
}

// isEither reports whether a finding names what nobody can tell from the part of a fault:
// the other leaf of two, and the other end of two nodes.
func isEither(inv *inventory.Inventory, f planted, node, part string) bool {
	switch f.Kind {
	case "bad-leaf":
		for _, of := range leavesOfRails(inv) {
			for other := range of {
				if of[f.Switch] && len(of) == 2 && node == "" && word(other).MatchString(part) {
					return true
				}
			}
		}
	case "degraded-link":
		for _, n := range inv.Nodes {
			if len(inv.Nodes) == 2 && kindsOfFaults[f.Kind].matches(inv, planted{Kind: f.Kind, Node: n.Name, Port: f.Port}, node, part) {
				return true
			}
		}
	}
	return false
}

// listLost lists the nodes that were not accepted and that no fault is in.
func listLost(inv *inventory.Inventory, faults []planted, s summary) (lost []string) {
	accepted := map[string]bool{}
	for _, n := range s.Accepted {
		accepted[n] = true
	}
	for _, n := range inv.Nodes {
		if n.Retired || accepted[n.Name] || slices.ContainsFunc(faults, func(f planted) bool { return f.keepsOut(n) }) {
			continue
		}
		why := "not mentioned"
		for _, q := range s.Quarantined {
			if q.Node == n.Name {
				why = q.Cause
			}
		}
		for _, w := range s.Waiting {
			if w.Node == n.Name {
				why = w.Cause
			}
		}
		lost = append(lost, n.Name+": "+why)
	}
	return lost
}

// keepsOut reports whether a fault may keep a node from being accepted.
func (f planted) keepsOut(n *inventory.Node) bool {
	switch {
	case slices.Contains([]string{"repo-gone", "other-dhcp", "sm-dead", "other-sm"}, f.Kind):
		return true
	case f.PDU != "": // a node with another feed goes on
		return !slices.ContainsFunc(n.Feeds, func(feed inventory.Feed) bool { return feed.PDU != nil && feed.PDU.Name != f.PDU })
	}
	return f.Node == n.Name || f.With == n.Name
}
