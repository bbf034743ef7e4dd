// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/place"
)

// topologyFile is the file of the topology in the form that the version reads;
// without a name for topology "flat".
func topologyFile(t handover.Target, members []handover.Member, d daemon) (handover.File, error) {
	s := readSettings(t.Handover)
	nodes := make([]*inventory.Node, len(members))
	for i, m := range members {
		nodes[i] = m.Node
	}
	head := fmt.Appendf(nil, "# Topology of handover %q, written by ironrail. Changes by hand are lost.\n", t.Name)
	yaml := !d.release.before(yamlSince)
	var body []byte
	switch {
	case s.topology == "flat" || len(nodes) == 0:
		return handover.File{}, nil
	case s.topology == "tree" && yaml:
		body = treeYAML(t.Name, place.Of(t.Inventory, nodes))
	case s.topology == "tree":
		body = treeTopology(place.Of(t.Inventory, nodes))
	case !d.release.known():
		return handover.File{}, errkind.New(errkind.Unsupported, "which version of Slurm runs at %s is not known, and only some have topology \"block\"", s.controller).
			Do(fmt.Sprintf("Make `scontrol` answer on this controller, or write version = \"%s\" into handover %q.", blockSince, t.Name))
	case d.release.before(blockSince):
		return handover.File{}, errkind.New(errkind.Unsupported, "slurmctld at %s is version %s, and topology \"block\" is there since %s", s.controller, d.release, blockSince).
			Do(fmt.Sprintf("Use topology = \"tree\" in handover %q, or a newer slurmctld.", t.Name))
	default:
		size, list, err := sizeBlocks(s.blockSize, groupBlocks(nodes))
		if err != nil {
			return handover.File{}, err
		}
		if body = blockConf(size, list); yaml {
			body = blockYAML(t.Name, size, list)
		}
	}
	name := "topology.conf"
	if yaml {
		name = "topology.yaml"
	}
	return handover.File{Name: name, Content: append(head, body...)}, nil
}

// treeTopology is topology.conf(5) for topology/tree.
func treeTopology(p *place.Tree) []byte {
	var b bytes.Buffer
	p.Walk(func(s *place.Switch) {
		fmt.Fprintf(&b, "SwitchName=%s", s.Name)
		if len(s.Nodes) > 0 {
			fmt.Fprintf(&b, " Nodes=%s", writeHostlist(nodeNames(s.Nodes)))
		}
		if len(s.Below) > 0 {
			fmt.Fprintf(&b, " Switches=%s", writeHostlist(switchNames(s.Below)))
		}
		b.WriteByte('\n')
	})
	return b.Bytes()
}

// treeYAML is topology.yaml(5) with one topology, which is the cluster's default.
func treeYAML(name string, p *place.Tree) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "---\n- topology: %s\n  cluster_default: true\n  tree:\n    switches:\n", strconv.Quote(name))
	p.Walk(func(s *place.Switch) {
		fmt.Fprintf(&b, "      - switch: %s\n", strconv.Quote(s.Name))
		if len(s.Nodes) > 0 {
			fmt.Fprintf(&b, "        nodes: %s\n", strconv.Quote(writeHostlist(nodeNames(s.Nodes))))
		}
		if len(s.Below) > 0 {
			fmt.Fprintf(&b, "        children: %s\n", strconv.Quote(writeHostlist(switchNames(s.Below))))
		}
	})
	return b.Bytes()
}

// sizeBlocks returns the base size of blocks: the one that was asked for, else the smallest
// block's. topology.conf(5): each block has at least as many nodes.
func sizeBlocks(want int, list []*nodeBlock) (int, []*nodeBlock, error) {
	least := list[0]
	for _, b := range list {
		if len(b.nodes) < len(least.nodes) {
			least = b
		}
	}
	if len(least.nodes) < want {
		return 0, nil, errkind.New(errkind.Conflict, "%s has %d nodes that Slurm can be told of, and block_size is %d: slurmctld refuses a smaller block", least.name, len(least.nodes), want).
			Do("Slurm's files stay as they are. Install one node of each kind of hardware, so that its shape is known, or write a smaller block_size.")
	}
	return cmp.Or(want, len(least.nodes)), list, nil
}

// blockConf is topology.conf(5) for topology/block.
func blockConf(size int, list []*nodeBlock) []byte {
	var b bytes.Buffer
	for i, name := range blockNames(list) {
		fmt.Fprintf(&b, "BlockName=%s Nodes=%s\n", name, writeHostlist(nodeNames(list[i].nodes)))
	}
	fmt.Fprintf(&b, "BlockSizes=%d\n", size)
	return b.Bytes()
}

// blockYAML is topology.yaml(5) with blocks.
func blockYAML(topology string, size int, list []*nodeBlock) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "---\n- topology: %s\n  cluster_default: true\n  block:\n    block_sizes:\n      - %d\n    blocks:\n", strconv.Quote(topology), size)
	for i, name := range blockNames(list) {
		fmt.Fprintf(&b, "      - block: %s\n        nodes: %s\n", strconv.Quote(name), strconv.Quote(writeHostlist(nodeNames(list[i].nodes))))
	}
	return b.Bytes()
}

// blockNames are names that mean themselves in topology.conf, each once.
func blockNames(list []*nodeBlock) []string {
	taken := map[string]bool{}
	var names []string
	for _, b := range list {
		n, name := b.nodes[0], "site"
		switch {
		case n.Domain != "":
			name = n.Domain
		case n.ScalableUnit > 0:
			name = "su" + strconv.Itoa(n.ScalableUnit)
		case n.Rack != nil:
			name = n.Rack.Name
		}
		for name = place.PlainName(name); taken[name]; {
			name += "-x"
		}
		taken[name] = true
		names = append(names, name)
	}
	return names
}

func nodeNames(list []*inventory.Node) []string {
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = n.Name
	}
	return names
}

func switchNames(list []*place.Switch) []string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.Name
	}
	return names
}

// pluginOf is the TopologyPlugin that reads a file; "" for any.
func pluginOf(f handover.File) string {
	switch text := string(f.Content); {
	case f.Name != "topology.conf":
		return ""
	case strings.Contains(text, "\nBlockName="):
		return "topology/block"
	default:
		return "topology/tree"
	}
}
