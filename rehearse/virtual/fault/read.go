// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/tool/mlxconfig"
)

// maxFile bounds a fault file, in bytes.
const maxFile = 1 << 20

// file is a fault file.
type file struct {
	Faults []block `hcl:"fault,block"`
}

// block is one fault block.
type block struct {
	Kind  string `hcl:"kind,label"`
	Leaf  string `hcl:"switch,optional"`
	Node  string `hcl:"node,optional"`
	With  string `hcl:"with,optional"`
	PDU   string `hcl:"pdu,optional"`
	Shelf string `hcl:"shelf,optional"`
	Port  string `hcl:"port,optional"`
	GPU   string `hcl:"gpu,optional"`
	End   string `hcl:"end,optional"`
	At    string `hcl:"at,optional"`

	After       string   `hcl:"after,optional"`
	For         string   `hcl:"for,optional"`
	Every       string   `hcl:"every,optional"`
	Probability *float64 `hcl:"probability,optional"`

	Header  hcl.Range `hcl:",def_range"`
	AtRange hcl.Range `hcl:"at,attr_value_range"`
}

// Read reads a fault file: blocks `fault "KIND" { node = "n1" }`. All that is
// wrong with it is reported at once, sorted by place; the bytes are for excerpts.
func Read(path string) ([]Fault, []byte, hcl.Diagnostics) {
	info, err := os.Stat(path)
	if err == nil && (info.Size() > maxFile || !info.Mode().IsRegular()) {
		err = fmt.Errorf("not a file of at most %d bytes", maxFile)
	}
	var src []byte
	if err == nil {
		src, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, nil, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Fault file cannot be read", Detail: fmt.Sprintf("%s: %v.", path, err)}}
	}
	faults, diags := parseFile(path, src)
	return faults, src, diags
}

// parseFile reads the text of a fault file.
func parseFile(name string, src []byte) ([]Fault, hcl.Diagnostics) {
	f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	var all file
	diags = append(diags, gohcl.DecodeBody(f.Body, nil, &all)...)
	var faults []Fault
	for _, b := range all.Faults {
		one := Fault{Kind: Kind(b.Kind), Node: b.Node, With: b.With, PDU: b.PDU, Shelf: b.Shelf, Port: b.Port, GPU: b.GPU, End: b.End, At: b.At, Decl: b.Header}
		one.Leaf, one.AtDecl = b.Leaf, b.AtRange
		err := b.readTiming(&one)
		if err == nil {
			err = one.complete()
		}
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Fault cannot be planted", Detail: toSentence(err), Subject: b.Header.Ptr()})
			continue
		}
		faults = append(faults, one)
	}
	sort.SliceStable(diags, func(i, j int) bool { return compareRanges(diags[i].Subject, diags[j].Subject) })
	return faults, diags
}

// readTiming reads when a fault comes.
func (b block) readTiming(f *Fault) error {
	for name, text := range map[string]string{attrAfter: b.After, attrFor: b.For, attrEvery: b.Every} {
		if text != "" {
			if err := f.setTime(name, text); err != nil {
				return err
			}
		}
	}
	if b.Probability != nil {
		return f.setProbability(*b.Probability)
	}
	return nil
}

// setTime sets an attribute that is a duration.
func (f *Fault) setTime(name, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d == 0 && name != attrAfter {
		return fmt.Errorf("fault %s: %s is a duration above zero, such as \"90s\" or \"2h\", not %q", f.Kind, name, text)
	}
	*map[string]*time.Duration{attrAfter: &f.After, attrFor: &f.For, attrEvery: &f.Every}[name] = d
	return nil
}

// setProbability sets the probability: 0 in a file is no fault at all.
func (f *Fault) setProbability(p float64) error {
	if !(p > 0 && p <= 1) {
		return fmt.Errorf("fault %s: probability is above 0 and at most 1, not %g", f.Kind, p)
	}
	f.Probability = p
	return nil
}

// compareRanges orders places; what has none comes first.
func compareRanges(a, b *hcl.Range) bool {
	if a == nil || b == nil {
		return a == nil && b != nil
	}
	return a.Start.Byte < b.Start.Byte
}

// toSentence makes an error's text one.
func toSentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// Parse reads a fault of the command line: kind=KIND,node=NODE[,at=STEP].
func Parse(text string) (Fault, error) {
	var f Fault
	for word := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(word, "=")
		if !ok || value == "" {
			return f, fmt.Errorf("%q is not NAME=VALUE; a fault is written kind=KIND,node=NODE[,at=STEP]", word)
		}
		if err := f.set(name, value); err != nil {
			return f, err
		}
	}
	return f, f.complete()
}

// set sets an attribute of the command line.
func (f *Fault) set(name, value string) error {
	texts := map[string]*string{"kind": (*string)(&f.Kind), attrLeaf: &f.Leaf, attrNode: &f.Node, attrWith: &f.With, attrPDU: &f.PDU, attrShelf: &f.Shelf, attrPort: &f.Port, attrGPU: &f.GPU, attrEnd: &f.End, attrAt: &f.At}
	if text, ok := texts[name]; ok {
		*text = value
		return nil
	}
	switch name {
	case attrAfter, attrFor, attrEvery:
		return f.setTime(name, value)
	case attrProbability:
		p, err := strconv.ParseFloat(value, 64)
		if err != nil {
			p = 0
		}
		return f.setProbability(p)
	}
	return fmt.Errorf("%q is no attribute of a fault; it has kind, node, with, pdu, shelf, switch, port, gpu, end, at, after, for, every and probability", name)
}

// powerFits compares the PDU or the power shelf of a fault with the site.
func powerFits(inv *inventory.Inventory, f Fault) error {
	var pdus, shelves []string
	for _, r := range inv.Racks {
		for _, p := range r.PDUs {
			pdus = append(pdus, p.Name)
		}
		for _, s := range r.Shelves {
			if s.Control != nil {
				shelves = append(shelves, s.Name)
			}
		}
	}
	if f.PDU != "" && !slices.Contains(pdus, f.PDU) {
		return fmt.Errorf("fault %s: %q is not a PDU of this site, which are written RACK/PDU.%s", f.Kind, f.PDU, diag.DidYouMean(f.PDU, pdus))
	}
	if f.Shelf != "" && !slices.Contains(shelves, f.Shelf) {
		return fmt.Errorf("fault %s: %q is not a power shelf with a control block of this site, which are written RACK/SHELF.%s", f.Kind, f.Shelf, diag.DidYouMean(f.Shelf, shelves))
	}
	return nil
}

// CheckFits compares faults with the site that they are planted in.
func CheckFits(inv *inventory.Inventory, faults []Fault) error {
	var nodes []string
	for _, n := range inv.Nodes {
		nodes = append(nodes, n.Name)
	}
	for _, f := range faults {
		for _, name := range []string{f.Node, f.With} {
			if _, ok := inv.Node(name); name != "" && !ok {
				return fmt.Errorf("fault %s: %q is not a node of this site.%s", f.Kind, name, diag.DidYouMean(name, nodes))
			}
		}
		if err := powerFits(inv, f); err != nil {
			return err
		}
		if f.Kind == SMDead && !slices.ContainsFunc(inv.Fabrics, isInfiniBand) {
			return fmt.Errorf("fault %s: the site has no InfiniBand fabric, and nothing else has a subnet manager", f.Kind)
		}
		if err := leafFits(inv, f); err != nil {
			return err
		}
		if err := portFits(inv, f); err != nil {
			return err
		}
		if err := gpuFits(inv, f); err != nil {
			return err
		}
		if err := bootFits(inv, f); err != nil {
			return err
		}
	}
	return nil
}

// tagged reports whether the boot network of a node is tagged at its port.
func tagged(n *inventory.Node) bool {
	_, is := n.BootVLAN()
	return is
}

// bootFits checks the node of a fault of its firmware, or of the port that it boots from.
func bootFits(inv *inventory.Inventory, f Fault) error {
	n, ok := inv.Node(f.Node)
	switch {
	case !ok:
	case f.Kind == UntaggedPort && !tagged(n):
		return fmt.Errorf("fault %s: the boot network of %s has no vlan, so that its port is an untagged member anyway", f.Kind, f.Node)
	case f.Kind == SecureBootOff && (n.Hardware == nil || !n.Hardware.SecureBoot):
		return fmt.Errorf("fault %s: the hardware block of %s does not say secure_boot = true", f.Kind, f.Node)
	case f.Kind == ModuleKeyMissing && !kinds.NeedSigned(n):
		return fmt.Errorf("fault %s: %s needs no certificate for kernel modules: it has secure_boot and a driver of kind cuda or rocm then", f.Kind, f.Node)
	}
	return nil
}

// leafFits checks the switch of a fault that is about one: something crosses it, from
// a rail of nodes to the same rail of nodes on another leaf.
func leafFits(inv *inventory.Inventory, f Fault) error {
	if f.Leaf == "" {
		return nil
	}
	switch f.Kind {
	case BadSpine:
		return spineFits(inv, f)
	case OtherSM:
		return managedFits(inv, f)
	}
	cabled := false
	var crossed []string
	for _, leaves := range leavesByRail(inv) {
		cabled = cabled || leaves[f.Leaf]
		if len(leaves) > 1 {
			crossed = slices.AppendSeq(crossed, maps.Keys(leaves))
		}
	}
	slices.Sort(crossed)
	crossed = slices.Compact(crossed)
	switch {
	case slices.Contains(crossed, f.Leaf):
		return nil
	case cabled:
		return fmt.Errorf("fault %s: each rail of %q has this leaf alone, so that nothing crosses it; it can be planted where a rail has several leaves", f.Kind, f.Leaf)
	}
	return fmt.Errorf("fault %s: %q is no leaf of this site, written RACK/SWITCH, that nodes are cabled to.%s", f.Kind, f.Leaf, diag.DidYouMean(f.Leaf, crossed))
}

func isInfiniBand(f *inventory.Fabric) bool { return f.Kind == "infiniband" }

// managedFits checks the switch of a fault of its subnet manager: it is one of InfiniBand.
func managedFits(inv *inventory.Inventory, f Fault) error {
	var have []string
	for _, s := range inv.Switches {
		if s.Fabric != nil && isInfiniBand(s.Fabric) {
			have = append(have, s.Name)
		}
	}
	if slices.Contains(have, f.Leaf) {
		return nil
	}
	return fmt.Errorf("fault %s: %q is no InfiniBand switch of this site, written RACK/SWITCH.%s", f.Kind, f.Leaf, diag.DidYouMean(f.Leaf, have))
}

// spineFits checks the switch of a fault of a spine: cables of other switches go up to it.
func spineFits(inv *inventory.Inventory, f Fault) error {
	var spines []string
	for _, c := range inv.Cables {
		for _, e := range []inventory.CableEnd{c.From, c.To} {
			if c.From.Switch != nil && c.To.Switch != nil && e.Switch.Tier == inventory.Spine && !slices.Contains(spines, e.Switch.Name) {
				spines = append(spines, e.Switch.Name)
			}
		}
	}
	if slices.Contains(spines, f.Leaf) {
		return nil
	}
	return fmt.Errorf("fault %s: %q is no spine of this site, written RACK/SWITCH, that leaves are cabled to.%s", f.Kind, f.Leaf, diag.DidYouMean(f.Leaf, spines))
}

// rail is one rail of a fabric.
type rail struct {
	fabric *inventory.Fabric
	number int
}

// leavesByRail are the leaves that the nodes of each rail are cabled to.
func leavesByRail(inv *inventory.Inventory) map[rail]map[string]bool {
	all := map[rail]map[string]bool{}
	for _, c := range inv.Cables {
		at, far := c.NodeEnd()
		if at.Node == nil || at.NIC == nil || at.NIC.Fabric == nil || far.Switch == nil || at.Port >= len(at.NIC.Ports) {
			continue
		}
		r := rail{at.NIC.Fabric, at.NIC.Ports[at.Port].Rail}
		if all[r] == nil {
			all[r] = map[string]bool{}
		}
		all[r][far.Switch.Name] = true
	}
	return all
}

// FindTrunk finds the cable between two switches by its lower end, as in
// "compute/leaf-u1-r0/33"; nil: there is none.
func FindTrunk(inv *inventory.Inventory, end string) *inventory.Cable {
	for _, c := range inv.Cables {
		if c.From.Switch != nil && c.To.Switch != nil && c.From.String() == end {
			return c
		}
	}
	return nil
}

// isSpare reports whether another cable connects the same two switches.
func isSpare(inv *inventory.Inventory, c *inventory.Cable) bool {
	return slices.ContainsFunc(inv.Cables, func(o *inventory.Cable) bool {
		return o != c && o.From.Switch == c.From.Switch && o.To.Switch == c.To.Switch
	})
}

// portFits checks the port of a fault that is about one.
func portFits(inv *inventory.Inventory, f Fault) error {
	if slices.Contains([]Kind{BadUplink, SlowTrunk, TrunkErrors, DeadTrunk}, f.Kind) {
		c := FindTrunk(inv, f.Port)
		if c == nil {
			return fmt.Errorf("fault %s: %q is the lower end of no cable between two switches, such as \"compute/leaf-u1-r0/33\"", f.Kind, f.Port)
		}
		if f.Kind == DeadTrunk && !isSpare(inv, c) {
			return fmt.Errorf("fault %s: the cable in %s is the only one between %s and %s: what a fabric does without it is not simulated", f.Kind, f.Port, c.From.Switch.Name, c.To.Switch.Name)
		}
	}
	if row, _ := FindRow(f.Kind); !slices.Contains(row.Takes, attrPort) {
		return nil
	}
	for _, name := range []string{f.Node, f.With} {
		n, ok := inv.Node(name)
		if !ok {
			continue
		}
		nic, i, err := PortOf(n, f.Port)
		if err != nil {
			return fmt.Errorf("fault %s: %w", f.Kind, err)
		}
		if err := f.fitsPort(n, nic, i); err != nil {
			return err
		}
	}
	return nil
}

// fitsPort reports whether a port has what the fault is about.
func (f Fault) fitsPort(n *inventory.Node, nic *inventory.NIC, i int) error {
	if f.Kind == WrongMTU && nic.Fabric != nil && nic.Fabric.Kind == "infiniband" {
		return fmt.Errorf("fault %s: port %s/%s/%d is on an InfiniBand fabric, where what an interface sends follows from the subnet", f.Kind, n.Name, nic.Name, i)
	}
	if m, _ := mlxconfig.FindModel(nic.Model); f.Kind == NICSettingLost && (nic.LinkType == "" || !m.VPI) {
		return fmt.Errorf("fault %s: nothing sets the link type of port %s/%s/%d: its block gives no link_type, or no model of NVIDIA's that can be either", f.Kind, n.Name, nic.Name, i)
	}
	if f.Kind == RailConfig && (nic.Fabric == nil || nic.Fabric.Kind != "roce") {
		return fmt.Errorf("fault %s: port %s/%s/%d is on no RoCE fabric, and nothing else pauses by priority", f.Kind, n.Name, nic.Name, i)
	}
	return nil
}

// gpuFits checks the GPU of a fault that names one.
func gpuFits(inv *inventory.Inventory, f Fault) error {
	n, ok := inv.Node(f.Node)
	if f.GPU == "" || !ok {
		return nil
	}
	have := 0
	if n.Hardware != nil {
		have = n.Hardware.GPUCount()
	}
	if i, err := strconv.Atoi(f.GPU); err != nil || i < 0 || i >= have {
		return fmt.Errorf("fault %s: %s has no GPU %q; it has %d, from 0 on", f.Kind, f.Node, f.GPU, have)
	}
	return nil
}

// PortOf finds a port of a node by "NIC/INDEX"; the first port of its first
// fabric when text is empty.
func PortOf(n *inventory.Node, text string) (*inventory.NIC, int, error) {
	if n.Hardware == nil {
		return nil, 0, fmt.Errorf("%s has no hardware block", n.Name)
	}
	var have []string
	for i := range n.Hardware.NICs {
		nic := &n.Hardware.NICs[i]
		for p := range nic.Ports {
			name := fmt.Sprintf("%s/%d", nic.Name, p)
			if nic.Fabric != nil && text == "" || name == text {
				return nic, p, nil
			}
			have = append(have, name)
		}
	}
	if text == "" {
		return nil, 0, fmt.Errorf("%s has no port on a fabric", n.Name)
	}
	return nil, 0, fmt.Errorf("%s has no port %q; it has %s", n.Name, text, strings.Join(have, ", "))
}
