// SPDX-License-Identifier: Apache-2.0

// Package hostfile is the handover kind "hostfile": the nodes in service as launchers of
// parallel programs read them, neighbours beside each other, so that ranks in a row are
// near each other. Sources: mpirun(1) of Open MPI 4.1 (hostfile, rankfile), mpiexec of
// MPICH (Hydra, "Host File").
package hostfile

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/internal/natural"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/export"
	"github.com/ironrail/ironrail/provision/handover/nodelist"
	"github.com/ironrail/ironrail/provision/handover/place"
)

const (
	// Name is the kind's name in the language.
	Name = "hostfile"
	// FileName is the file that launchers read.
	FileName = "hostfile"
	// RankFileName is the file that binds each rank to the cores beside its GPU.
	RankFileName = "rankfile"
)

// New returns the kind. links are the addresses that were allocated to links.
func New(dir string, links []*roce.Links) *export.Kind {
	return export.New(dir, func(t handover.Target) ([]handover.File, error) {
		list := nodelist.Of(t, links)
		hardware := map[string]handover.Member{}
		for _, m := range t.Members {
			hardware[m.Node.Name] = m
		}
		w := writer{block: t.Handover, members: hardware}
		// One domain of NVLink after the other, in each leaf of each pod.
		slices.SortStableFunc(list.Nodes, func(a, b nodelist.Node) int {
			return cmp.Or(natural.Compare(a.Pod, b.Pod), natural.Compare(a.Leaf, b.Leaf), natural.Compare(a.Domain, b.Domain), natural.Compare(a.Name, b.Name))
		})
		return w.files(list.Nodes), nil
	}, nodelist.Describe(links), "form", "hosts", "slots")
}

// writer writes the files of one handover.
type writer struct {
	block   *inventory.Handover
	members map[string]handover.Member
}

// files returns the hostfile, and for Open MPI the rankfile.
func (w writer) files(nodes []nodelist.Node) []handover.File {
	head := fmt.Sprintf("# Nodes in service of handover %q, written by ironrail. Changes by hand are lost.\n", w.block.Name)
	hosts, ranks, unbound := bytes.NewBufferString(head), bytes.NewBufferString(head), ""
	form := cmp.Or(w.block.Text("form"), "openmpi")
	rank := 0
	for _, n := range nodes {
		host, slots := w.hostOf(n), w.slotsOf(n)
		if host == "" {
			continue
		}
		switch form {
		case "openmpi":
			fmt.Fprintf(hosts, "%s slots=%d\n", host, slots)
		case "mpich":
			fmt.Fprintf(hosts, "%s:%d\n", host, slots)
		default:
			fmt.Fprintln(hosts, host)
		}
		bound := bindings(w.members[n.Name], n, slots)
		if bound == nil {
			unbound = cmp.Or(unbound, n.Name)
		}
		for _, cores := range bound {
			fmt.Fprintf(ranks, "rank %d=%s slot=%s\n", rank, host, cores)
			rank++
		}
	}
	files := []handover.File{{Name: FileName, Content: hosts.Bytes()}}
	if form != "openmpi" {
		return files
	}
	if unbound != "" { // mpirun wants every rank in it, or none
		ranks = bytes.NewBufferString(head + "# No ranks: which socket each GPU of " + unbound + " hangs on is not known, or its ranks are not its GPUs.\n")
	}
	return append(files, handover.File{Name: RankFileName, Content: ranks.Bytes()})
}

// hostOf is how a launcher reaches a node; "" where it has no address.
func (w writer) hostOf(n nodelist.Node) string {
	if w.block.Text("hosts") == "name" {
		return n.Name
	}
	return n.Address
}

// slotsOf is how many ranks a node takes: those that the block gives, one for each GPU,
// or one.
func (w writer) slotsOf(n nodelist.Node) int {
	if given := w.block.Number("slots"); given > 0 {
		return given
	}
	gpus := 0
	for _, g := range n.GPUs {
		gpus += g.Count
	}
	return max(gpus, 1)
}

// bindings are the cores of each of a node's ranks, "socket:first-last": those of the
// socket that the rank's GPU hangs on, shared out among the GPUs there. nil where ranks
// are not GPUs, the inspection has not found the socket of each, or a socket has fewer
// cores than GPUs.
func bindings(m handover.Member, n nodelist.Node, slots int) []string {
	cpu := m.Hardware.CPU
	if len(n.GPUs) == 0 || cpu.Sockets < 1 || cpu.Cores%cpu.Sockets != 0 {
		return nil
	}
	sockets := place.Sockets(n.GPUs[0].Vendor, slots, m.Hardware)
	on := map[int]int{} // GPUs by socket
	for _, s := range sockets {
		on[s]++
	}
	next, list := map[int]int{}, make([]string, 0, slots)
	for _, s := range sockets {
		share := cpu.Cores / cpu.Sockets / on[s]
		if share == 0 {
			return nil
		}
		first := next[s] * share
		next[s]++
		list = append(list, fmt.Sprintf("%d:%d-%d", s, first, first+share-1))
	}
	if len(list) == 0 {
		return nil
	}
	return list
}
