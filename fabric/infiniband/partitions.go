// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
)

// defaultPKey is the partition that every port is in, so that it can reach the
// subnet manager. Source: InfiniBand Architecture Specification volume 1, 10.9.
const defaultPKey = 0x7fff

// fullMember is the membership bit of a P_Key: two limited members cannot talk.
const fullMember = 0x8000

// Member is one port of a node on a fabric, with what the subnet manager knows it by.
type Member struct {
	Node   *inventory.Node
	NIC    *inventory.NIC
	Port   int       // index among the NIC's ports
	Device string    // RDMA device, such as mlx5_0
	GUID   addr.GUID // of the port
	HCA    addr.GUID // of the HCA: its node GUID
}

// Name is that of the port as cable blocks write it, such as r01-u01/rail/0.
func (m Member) Name() string { return fmt.Sprintf("%s/%s/%d", m.Node.Name, m.NIC.Name, m.Port) }

// Rail is the rail of the port.
func (m Member) Rail() int { return m.NIC.Ports[m.Port].Rail }

// Panel is the label of the port on the case; empty: not given.
func (m Member) Panel() string { return m.NIC.Ports[m.Port].Panel }

// title names a port for a person: node, rail and the label on the case.
func (m Member) title() string {
	if p := m.Panel(); p != "" {
		return fmt.Sprintf("%s (rail %d, %s)", m.Name(), m.Rail(), p)
	}
	return fmt.Sprintf("%s (rail %d)", m.Name(), m.Rail())
}

// PKeys are the P_Keys that a node's ports must have on a fabric, with their
// membership bits, sorted. A fabric without partitions has all nodes as full
// members of the default one.
func PKeys(f *inventory.Fabric, n *inventory.Node) []uint16 {
	keys := []uint16{defaultPKey}
	if len(f.Partitions) == 0 {
		return []uint16{defaultPKey | fullMember}
	}
	for _, p := range n.Partitions {
		if p.Fabric != f {
			continue
		}
		if p.PKey == defaultPKey {
			keys[0] = defaultPKey | fullMember
			continue
		}
		keys = append(keys, p.PKey|fullMember)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// renderPartitions writes partitions.conf: every port is a limited member of the
// default partition, and a full member of those of its node's role. There is one
// statement for each node, since opensm cuts lines at 4,096 bytes, and statements
// of one P_Key and name are merged. Grammar: doc/partition-config.txt of opensm.
func renderPartitions(f *inventory.Fabric, members []Member) []byte {
	var b bytes.Buffer
	writeHeading(&b, f, "partitions")
	if len(f.Partitions) == 0 {
		b.WriteString("Default=0x7fff, ipoib : ALL=full ;\n")
		return b.Bytes()
	}
	ipoib := ""
	if slices.ContainsFunc(f.Partitions, func(p inventory.FabricPartition) bool { return p.PKey == defaultPKey && p.IPoIB }) {
		ipoib = ", ipoib" + groupMTU(f)
	}
	fmt.Fprintf(&b, "Default=0x7fff%s : ALL=limited, SELF=full ;\n", ipoib)
	for _, p := range f.Partitions {
		b.WriteByte('\n')
		head := fmt.Sprintf("%s=%#04x", partitionName(p), p.PKey)
		if p.IPoIB && p.PKey != defaultPKey {
			head += ", ipoib" + groupMTU(f)
		}
		for _, guids := range byNode(members) {
			if !slices.ContainsFunc(guids[0].Node.Partitions, func(q inventory.Partition) bool { return q.Fabric == f && q.PKey == p.PKey }) {
				continue
			}
			fmt.Fprintf(&b, "%s, defmember=full : ", head)
			for i, m := range guids {
				if i > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, "%s=full", m.GUID)
			}
			fmt.Fprintf(&b, " ; # %s\n", guids[0].Node.Name)
		}
	}
	return b.Bytes()
}

// partitionName is what opensm logs a partition as. The default one has one name.
func partitionName(p inventory.FabricPartition) string {
	if p.PKey == defaultPKey {
		return "Default"
	}
	return p.Name
}

// largeMTU is the IP MTU from which the broadcast group needs InfiniBand's MTU of
// 4,096 bytes: IPoIB takes four bytes of it (RFC 4392, section 7).
const largeMTU = 2045

// groupMTU is the flag of an IPoIB broadcast group whose MTU is not opensm's 2,048.
func groupMTU(f *inventory.Fabric) string {
	if f.MTU >= largeMTU {
		return ", mtu=5"
	}
	return ""
}

// byNode groups members by node, in the order of their names; ports by rail.
func byNode(members []Member) [][]Member {
	list := slices.Clone(members)
	slices.SortStableFunc(list, func(a, b Member) int {
		return cmp.Or(strings.Compare(a.Node.Name, b.Node.Name), cmp.Compare(a.Rail(), b.Rail()), cmp.Compare(a.GUID, b.GUID))
	})
	var out [][]Member
	for i, m := range list {
		if i == 0 || list[i-1].Node != m.Node {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], m)
	}
	return out
}

// writeHeading is the first line of every file.
func writeHeading(b *bytes.Buffer, f *inventory.Fabric, what string) {
	fmt.Fprintf(b, "# Written by ironrail: %s of fabric %s. Changes here are lost.\n", what, f.Name)
}
