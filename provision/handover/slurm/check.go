// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Check holds a handover against what Slurm can have: names, and blocks of
// nodes for topology/block. It is pure.
func Check(inv *inventory.Inventory, b inventory.Block) diag.List {
	h := &inventory.Handover{Block: b}
	c := &blockCheck{block: b, settings: readSettings(h)}
	for _, n := range inv.Nodes {
		if n.Handover != nil && n.Handover.Name == b.Name {
			c.nodes = append(c.nodes, n)
		}
	}
	c.checkController()
	c.checkNames()
	c.checkPartitions(inv)
	c.checkDefault(inv)
	c.checkVersion()
	c.checkBlocks()
	return c.found
}

// blockCheck is the work on one handover.
type blockCheck struct {
	found    diag.List
	block    inventory.Block
	settings settings
	nodes    []*inventory.Node // by name
}

func (c *blockCheck) add(name, attribute, summary, format string, args ...any) *diag.Diagnostic {
	return c.found.Add(name, c.block.Place(attribute), summary, fmt.Sprintf(format, args...)).In(c.block.Decl)
}

// hostForm is a DNS name (RFC 1123).
var hostForm = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)

// checkController asks for an address or a name, as SlurmctldHost has it.
func (c *blockCheck) checkController() {
	s := c.settings.controller
	if _, err := netip.ParseAddr(s); err != nil && !hostForm.MatchString(s) {
		c.add("slurm.controller", "controller", "Not the address of a controller", "%q is neither an IP address nor a DNS name. Write that of the node where slurmctld runs, such as \"10.20.0.3\", without a scheme or a port.", s)
	}
}

// checkNames asks for a partition's name that is no list, comment or keyword in
// slurm.conf. Names of nodes and racks need no check: the language wants host
// names already.
func (c *blockCheck) checkNames() {
	if !plainName(c.settings.partition) {
		c.add("slurm.name", "partition", "Not a name for a partition", "Slurm takes %q for a list, a comment or a keyword: the name of a partition has letters, digits, and the signs - _ . only, and is neither ALL nor DEFAULT.", c.settings.partition)
	}
}

// checkPartitions reports two handovers that give one controller a partition of
// one name.
func (c *blockCheck) checkPartitions(inv *inventory.Inventory) {
	for _, other := range inv.Handovers {
		if other.Kind != Name || other.Name >= c.block.Name { // the later of the two reports
			continue
		}
		s := readSettings(other)
		if s.controller == c.settings.controller && s.partition == c.settings.partition {
			c.add("slurm.partition", "partition", "Partition given twice", "Handovers %q and %q both make partition %q of the controller %s, and slurmctld refuses two of one name. Give one of them another partition.", other.Name, c.block.Name, s.partition, s.controller).Also("given first here", other.Place("partition"))
		}
	}
}

// checkDefault asks that one partition of a controller is its default. Of the handovers
// that share the controller the last one reports.
func (c *blockCheck) checkDefault(inv *inventory.Inventory) {
	h := &inventory.Handover{Block: c.block}
	others := sharingHandovers(inv, h)
	if len(others) == 0 || slices.ContainsFunc(others, func(o *inventory.Handover) bool { return o.Name > h.Name }) {
		return
	}
	var named, chosen []*inventory.Handover
	for _, o := range append(others, h) {
		if saysDefault(o) {
			named = append(named, o)
		}
		if o.True("default") {
			chosen = append(chosen, o)
		}
	}
	switch {
	case len(chosen) > 1:
		first, last := chosen[0], chosen[len(chosen)-1]
		c.found.Add("slurm.default", last.Place("default"), "Two default partitions", fmt.Sprintf("Handovers %q and %q both give the controller %s its default partition, and slurmctld takes the one that it reads last. Remove default = true from one of them.", first.Name, last.Name, c.settings.controller)).
			In(last.Decl).Also("given first here", first.Place("default"))
	case len(named) == 0:
		c.add("slurm.default", "", "No default partition", "%d handovers give the controller %s a partition, and none of these is its default: slurmctld refuses a job that names no partition. Write default = true in one of them, or default = false where slurm.conf has another one.", len(others)+1, c.settings.controller).Warn()
	}
}

// checkVersion asks for a release of Slurm that has what the block asks for.
func (c *blockCheck) checkVersion() {
	if c.settings.version == "" {
		return
	}
	r, ok := parseRelease(c.settings.version)
	switch {
	case !ok:
		c.add("slurm.version", "version", "Not a version of Slurm", "%q is no version: Slurm's are written by year and month, such as \"22.05\", \"23.11\" or \"25.05\".", c.settings.version)
	case c.settings.topology == "block" && r.before(blockSince):
		c.add("slurm.version", "version", "Topology is not in this version", "Topology \"block\" is there since Slurm %s, and version is %q. Write topology = \"tree\", or the version of a newer slurmctld.", blockSince, c.settings.version)
	}
}

// nodeBlock is one block of topology/block: the nodes that are near each other.
type nodeBlock struct {
	name  string
	nodes []*inventory.Node
}

// groupBlocks groups nodes by NVLink domain, else scalable unit, else rack, in the
// order of their first nodes.
func groupBlocks(nodes []*inventory.Node) []*nodeBlock {
	var list []*nodeBlock
	seen := map[string]*nodeBlock{}
	for _, n := range nodes {
		var name string
		switch {
		case n.Domain != "":
			name = "NVLink domain " + strconv.Quote(n.Domain)
		case n.ScalableUnit > 0:
			name = "scalable unit " + strconv.Itoa(n.ScalableUnit)
		case n.Rack != nil:
			name = "rack " + strconv.Quote(n.Rack.Name)
		}
		b := seen[name]
		if b == nil {
			b = &nodeBlock{name: name}
			seen[name] = b
			list = append(list, b)
		}
		b.nodes = append(b.nodes, n)
	}
	return list
}

// checkBlocks holds the base block size against the blocks that there are.
// topology.conf(5): each block has at least the base size of nodes.
func (c *blockCheck) checkBlocks() {
	size := c.block.Number("block_size")
	if c.settings.topology != "block" {
		if size > 0 {
			c.add("slurm.block-size", "block_size", "Block size without blocks", "block_size is for topology \"block\", and the topology is %q. Write topology = \"block\", or remove block_size.", c.settings.topology)
		}
		c.checkDomains()
		return
	}
	if size == 0 {
		return
	}
	var small []*nodeBlock
	var large *nodeBlock
	for _, b := range groupBlocks(c.nodes) {
		switch {
		case len(b.nodes) < size:
			small = append(small, b)
		case len(b.nodes) >= 2*size && large == nil:
			large = b
		}
	}
	if len(small) > 0 {
		c.reportSmall(size, small)
	}
	if large != nil {
		c.add("slurm.block-size", "block_size", "Blocks much larger than their size", "%s has %d nodes, and the base block is %d: Slurm plans with %d of them in each block, and leaves the others to small jobs. Write block_size = %d, or fewer by the spare nodes.", capitalize(large.name), len(large.nodes), size, size, len(large.nodes)).Warn()
	}
}

func (c *blockCheck) reportSmall(size int, small []*nodeBlock) {
	least, d := small[0], ""
	for _, b := range small {
		if len(b.nodes) < len(least.nodes) {
			least = b
		}
	}
	if len(small) > 1 {
		d = fmt.Sprintf(" (%d blocks are too small.)", len(small))
	}
	c.add("slurm.block-size", "block_size", "Block smaller than its size", "%s has %d of this handover's nodes, and each block needs block_size, %d. Write block_size = %d, add nodes to it, or give its nodes a handover with topology \"tree\".%s", capitalize(least.name), len(least.nodes), size, len(least.nodes), d)
}

// checkDomains warns of a tree over NVLink domains, which it does not know.
func (c *blockCheck) checkDomains() {
	for _, b := range groupBlocks(c.nodes) {
		if b.nodes[0].Domain != "" && len(b.nodes) > 1 {
			c.add("slurm.topology", "topology", "Topology without NVLink domains", "%s joins %d nodes, and topology %q does not know it: a job of that size may be spread over several. Write topology = \"block\" and block_size = %d.", capitalize(b.name), len(b.nodes), c.settings.topology, len(b.nodes)).Warn()
			return
		}
	}
}

func capitalize(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
