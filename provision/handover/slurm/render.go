// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
)

// reserveShare and reserveMiB are what is held back of a node's memory: slurmd
// drains a node that has less than its line says, and a kernel update changes
// what is usable.
const (
	reserveShare = 0.03
	reserveMiB   = 64
)

// renderFiles writes the files for the members that Slurm is to know, in the form that
// d reads: those in service, and those that are out, or not accepted yet, drained.
// Of a node that was never inspected the shape is that of one with the same
// hardware; with none it is left out. What it returns was linted.
func renderFiles(t handover.Target, d daemon) ([]handover.File, error) {
	known := listMembers(t)
	nodes, err := nodesConf(t, known)
	if err != nil {
		return nil, err
	}
	files := []handover.File{{Name: "nodes.conf", Content: nodes}}
	if gres := gresConf(t, known); gres != nil {
		files = append(files, handover.File{Name: "gres.conf", Content: gres})
	}
	topology, err := topologyFile(t, known, d)
	if err != nil {
		return nil, err
	}
	if topology.Name != "" {
		files = append(files, topology)
	}
	return files, lintFiles(files, d)
}

// listMembers returns those that Slurm is to know, with a shape each.
func listMembers(t handover.Target) []handover.Member {
	shapes := map[*inventory.Hardware]wire.Hardware{}
	for _, m := range t.Members {
		if h := m.Node.Hardware; h != nil && hasShape(m.Hardware) && !hasShape(shapes[h]) {
			shapes[h] = m.Hardware
		}
	}
	var known []handover.Member
	for _, m := range t.Members {
		if !hasShape(m.Hardware) && !m.InService && !m.Known {
			m.Hardware = shapes[m.Node.Hardware]
		}
		if m.InService || m.Known || hasShape(m.Hardware) {
			known = append(known, m)
		}
	}
	return known
}

// hasShape reports whether the CPUs and the memory of a node are known.
func hasShape(hw wire.Hardware) bool { return hw.CPU.Threads > 0 && hw.Memory.Usable > 0 }

// nodesConf holds a NodeName line for each node and the partition.
func nodesConf(t handover.Target, members []handover.Member) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Nodes of handover %q, written by ironrail: `include` it from slurm.conf.\n# Changes by hand are lost.\n", t.Name)
	var names []string
	for _, m := range members {
		line, err := nodeLine(t, m)
		if err != nil {
			return nil, err
		}
		b.WriteString(line)
		names = append(names, m.Node.Name)
	}
	fmt.Fprintf(&b, "PartitionName=%s", readSettings(t.Handover).partition)
	if len(names) > 0 {
		fmt.Fprintf(&b, " Nodes=%s", writeHostlist(names))
	}
	if isDefault(t.Inventory, t.Handover) {
		b.WriteString(" Default=YES")
	}
	b.WriteString(" State=UP\n")
	return b.Bytes(), nil
}

// nodeLine is slurm.conf(5)'s line of one node, from what was found in it.
func nodeLine(t handover.Target, m handover.Member) (string, error) {
	hw := m.Hardware
	if !hasShape(hw) {
		return "", errkind.New(errkind.NotFound, "the CPUs and the memory of node %s are not known", m.Node.Name).
			Do("Install the node again: its hardware is inspected then.")
	}
	words := []string{"NodeName=" + m.Node.Name, "NodeAddr=" + m.Node.Address.String(), fmt.Sprintf("CPUs=%d", hw.CPU.Threads)}
	words = append(words, socketWords(hw.CPU)...)
	mib := hw.Memory.Usable >> 20
	mib -= max(reserveMiB, int64(float64(mib)*reserveShare))
	words = append(words, fmt.Sprintf("RealMemory=%d", max(mib, 1)))
	if g := gpusOf(m.Node); g.count > 0 && readSettings(t.Handover).gres != "none" {
		words = append(words, fmt.Sprintf("Gres=gpu:%s:%d", g.model, g.count))
	}
	if m.InService {
		words = append(words, "State=UNKNOWN")
	} else {
		words = append(words, "State=DRAIN", fmt.Sprintf("Reason=%q", cleanReason(m.Reason)))
	}
	return strings.Join(words, " ") + "\n", nil
}

// socketWords returns the words of the CPU's shape; without an even shape slurmd's own
// guess from CPUs is better.
func socketWords(c wire.CPU) []string {
	if c.Sockets <= 0 || c.Cores <= 0 || c.Cores%c.Sockets != 0 || c.Threads%c.Cores != 0 {
		return nil
	}
	return []string{"Boards=1", fmt.Sprintf("SocketsPerBoard=%d", c.Sockets), fmt.Sprintf("CoresPerSocket=%d", c.Cores/c.Sockets), fmt.Sprintf("ThreadsPerCore=%d", c.Threads/c.Cores)}
}

// cleanReason makes text from anywhere fit for a Slurm line: no quotes, comment signs
// or line breaks, and not too long.
func cleanReason(text string) string {
	if text == "" {
		text = "not accepted"
	}
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune("\"'#\\", r) {
			return '.'
		}
		return r
	}, text)
	if len(clean) > 200 {
		clean = clean[:200]
	}
	return "ironrail: " + clean
}
