// SPDX-License-Identifier: Apache-2.0

package grouprun

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/mpi"
	"github.com/ironrail/ironrail/validate/target"
)

// How a job over nodes is run.
const (
	jobLimit   = 5 * time.Minute
	rankLimit  = 200 * time.Millisecond // for each rank beside: they are started one after another
	iterations = 10
	Warmups    = 2 // iterations before those that count
)

// defaultSizes are used when the site gives none.
var defaultSizes = []unit.Bytes{4 << 10, 1 << 20}

// JobOver describes the run over some nodes, all of one boot network.
func JobOver(rec stage.Run, test *inventory.CollectiveTest, nodes []*inventory.Node) (mpi.Job, error) {
	j := mpi.Job{Iterations: iterations, Warmups: Warmups, Limit: LimitOf(len(nodes))}
	for _, n := range nodes {
		m := mpi.Member{Node: n.Name, Address: n.Address}
		key, ok := target.ReadFact(rec, hostKey, subject.OfNode(n.Name))
		if !ok {
			return j, errkind.New(errkind.NotFound, "the SSH host key of node %s is not known", n.Name).Do("Install the node again, or adopt it.")
		}
		m.HostKey = strings.TrimSpace(key)
		for _, f := range fabric.Of(n) {
			ports, _ := target.ReadFact(rec, fabric.Ports(f.Name), subject.OfNode(n.Name))
			for _, p := range ports {
				if p.Address.IsValid() { // InfiniBand has none
					m.Rails = append(m.Rails, p.Address.Addr())
				}
			}
		}
		j.Members = append(j.Members, m)
		if n.BootNetwork == nil || j.Control.IsValid() && j.Control != n.BootNetwork.CIDR {
			return j, errkind.New(errkind.Unsupported, "the members are not all on one boot network").Do("Give nodes of different boot networks validation blocks of their own.")
		}
		j.Control = n.BootNetwork.CIDR
	}
	j.Data = dataNetwork(nodes, j.Control)
	j.Start, j.Libraries = placeOfMPI(nodes[0])
	if other := elsewhere(nodes, j.Start); other != nil {
		return j, errkind.New(errkind.Conflict, "mpirun of node %s starts its daemons where it is itself, and the Open MPI of node %s is at another place", nodes[0].Name, other.Name).
			Do("Give nodes of Debian or Ubuntu, and those of RHEL and its rebuilds, validation blocks of their own.")
	}
	sizes := test.Sizes
	if len(sizes) == 0 {
		sizes = defaultSizes
	}
	for _, s := range sizes {
		j.Sizes = append(j.Sizes, max(4, int64(s)&^3))
	}
	slices.Sort(j.Sizes)
	return j, nil
}

// placeOfMPI is the program that starts jobs and the folder of its libraries, as the packages of a node
// have them; "" where no package is known to bring it.
func placeOfMPI(n *inventory.Node) (start, libraries string) {
	if !kinds.Brought(n, kinds.MPI) {
		return "", ""
	}
	family, _ := distribution.FamilyOf(n.Image)
	return family.MPIRun()
}

// elsewhere returns the first node whose packages have Open MPI at another place than start; nil: none,
// or none of which it is known.
func elsewhere(nodes []*inventory.Node, start string) *inventory.Node {
	for _, n := range nodes {
		if other, _ := placeOfMPI(n); start != "" && other != "" && other != start {
			return n
		}
	}
	return nil
}

// LimitOf is how long a job over n nodes may take.
func LimitOf(n int) time.Duration { return jobLimit + time.Duration(n)*rankLimit }

// CarrierFabrics returns the fabrics with addresses that all nodes are on, by name: the all-reduce
// over TCP goes over the first, which a plan says where there are several.
func CarrierFabrics(nodes []*inventory.Node) (list []*inventory.Fabric) {
	for _, f := range fabric.Of(nodes[0]) {
		if f.CIDR.IsValid() && !slices.ContainsFunc(nodes, func(n *inventory.Node) bool { return !slices.Contains(fabric.Of(n), f) }) {
			list = append(list, f)
		}
	}
	return list
}

// dataNetwork returns the network that carries the all-reduce: that of a fabric that all nodes are
// on, else the boot network.
func dataNetwork(nodes []*inventory.Node, boot netip.Prefix) netip.Prefix {
	if list := CarrierFabrics(nodes); len(list) > 0 {
		return list[0].CIDR
	}
	return boot
}

// hostKey is learned by the install stage: the SSH host key in the form of
// authorized_keys.
const hostKey = fact.Name[string]("ssh.host_key")
