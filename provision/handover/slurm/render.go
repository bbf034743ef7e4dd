package slurm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/provision/agent/wire"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/handover"
)

// file is one rendered file.
type file struct {
	name    string
	content []byte
}

// reserveShare and reserveMiB are what is held back of a node's memory: slurmd
// drains a node that has less than its line says, and a kernel update changes
// what is usable.
const (
	reserveShare = 0.03
	reserveMiB   = 64
)

// render writes the files for the members that Slurm is to know: those in
// service, and those that it knew and that are out.
func render(t handover.Target) ([]file, error) {
	var known []handover.Member
	for _, m := range t.Members {
		if m.InService || m.Known {
			known = append(known, m)
		}
	}
	nodes, err := nodesConf(t, known)
	if err != nil {
		return nil, err
	}
	files := []file{{"nodes.conf", nodes}}
	if read(t.Handover).topology == "tree" {
		files = append(files, file{"topology.conf", topologyConf(t, known)})
	}
	return files, nil
}

// nodesConf holds a NodeName line for each node and the partition.
func nodesConf(t handover.Target, members []handover.Member) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Nodes of handover %q, written by ironrail: `include` it from slurm.conf.\n# Changes by hand are lost.\n", t.Name)
	var names []string
	for _, m := range members {
		line, err := nodeLine(m)
		if err != nil {
			return nil, err
		}
		b.WriteString(line)
		names = append(names, m.Node.Name)
	}
	fmt.Fprintf(&b, "PartitionName=%s", read(t.Handover).partition)
	if len(names) > 0 {
		fmt.Fprintf(&b, " Nodes=%s", strings.Join(names, ","))
	}
	b.WriteString(" State=UP\n")
	return b.Bytes(), nil
}

// nodeLine is slurm.conf(5)'s line of one node, from what was found in it.
func nodeLine(m handover.Member) (string, error) {
	hw := m.Hardware
	if hw.CPU.Threads <= 0 || hw.Memory.Usable <= 0 {
		return "", errkind.New(errkind.Mismatch, "the CPUs and the memory of node %s are not known", m.Node.Name).
			Do("Install the node again: its hardware is inspected then.")
	}
	words := []string{"NodeName=" + m.Node.Name, "NodeAddr=" + m.Node.Address.String(), fmt.Sprintf("CPUs=%d", hw.CPU.Threads)}
	words = append(words, sockets(hw.CPU)...)
	mib := hw.Memory.Usable >> 20
	mib -= max(reserveMiB, int64(float64(mib)*reserveShare))
	words = append(words, fmt.Sprintf("RealMemory=%d", max(mib, 1)))
	if m.InService {
		words = append(words, "State=UNKNOWN")
	} else {
		words = append(words, "State=DRAIN", fmt.Sprintf("Reason=%q", reason(m.Reason)))
	}
	return strings.Join(words, " ") + "\n", nil
}

// sockets are the words of the CPU's shape; without an even shape slurmd's own
// guess from CPUs is better.
func sockets(c wire.CPU) []string {
	if c.Sockets <= 0 || c.Cores <= 0 || c.Cores%c.Sockets != 0 || c.Threads%c.Cores != 0 {
		return nil
	}
	return []string{"Boards=1", fmt.Sprintf("SocketsPerBoard=%d", c.Sockets), fmt.Sprintf("CoresPerSocket=%d", c.Cores/c.Sockets), fmt.Sprintf("ThreadsPerCore=%d", c.Threads/c.Cores)}
}

// reason makes text from anywhere fit for a Slurm line: no quotes, comment signs
// or line breaks, and not too long.
func reason(text string) string {
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

// topologyConf is a tree: a switch for each rack and, over several racks, one
// for the site.
func topologyConf(t handover.Target, members []handover.Member) []byte {
	racks := map[string][]string{}
	var order []string
	for _, m := range members {
		name := "rack"
		if m.Node.Rack != nil {
			name = m.Node.Rack.Name
		}
		if racks[name] == nil {
			order = append(order, name)
		}
		racks[name] = append(racks[name], m.Node.Name)
	}
	slices.Sort(order)
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Topology of handover %q, written by ironrail. Changes by hand are lost.\n", t.Name)
	for _, r := range order {
		fmt.Fprintf(&b, "SwitchName=%s Nodes=%s\n", r, strings.Join(racks[r], ","))
	}
	if len(order) > 1 {
		root := "site"
		for slices.Contains(order, root) {
			root += "-root"
		}
		fmt.Fprintf(&b, "SwitchName=%s Switches=%s\n", root, strings.Join(order, ","))
	}
	return b.Bytes()
}
