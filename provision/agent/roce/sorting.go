// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// QoS is the part of NICs and of the kernel that sorts, pauses and marks RDMA
// packets. SetSorting is idempotent. Every call has a deadline of its own.
type QoS interface {
	Sorting(netdev, device string) (wire.RoCESorting, error)
	SetSorting(netdev, device string, want wire.RoCELossless) error
}

// sorts reports whether a rail has a NIC that sorts: soft RDMA has none.
func sorts(p wire.RoCEParams, q port) bool { return p.Lossless != nil && q.SoftwareRDMA == "" }

// checkLossless checks the parameters.
func checkLossless(l *wire.RoCELossless) error {
	if l == nil {
		return nil
	}
	for _, v := range []struct{ n, most int }{{l.Priority, 7}, {l.CNPPriority, 7}, {l.DSCP, 63}, {l.CNP, 63}, {l.TrafficClass, 255}} {
		if v.n < 0 || v.n > v.most {
			return errkind.New(errkind.Internal, "parameters of the rails: %d is past %d in %+v", v.n, v.most, *l)
		}
	}
	return nil
}

// applySorting makes one rail lossless, now; the unit does it again at every
// boot, since NICs forget it.
func (n Node) applySorting(ctx context.Context, p wire.RoCEParams, q port, done *changes) error {
	if !sorts(p, q) || n.QoS == nil {
		return nil
	}
	netdev := n.netdev(q)
	device := n.waitDevice(ctx, netdev)
	if device == "" {
		return nil // observe says so
	}
	have, err := n.QoS.Sorting(netdev, device)
	if err != nil {
		return err
	}
	if len(sortingProblems(*p.Lossless, have)) == 0 {
		return nil
	}
	done.add(q, "DSCP %d has priority %d, PFC %t", p.Lossless.DSCP, p.Lossless.Priority, p.Lossless.PFC)
	return n.QoS.SetSorting(netdev, device, *p.Lossless)
}

// waitDevice waits for the RDMA device of a rail: its driver comes after that of
// the network interface. "" when it does not come.
func (n Node) waitDevice(ctx context.Context, netdev string) string {
	until := time.Now().Add(n.settleLimit())
	for {
		device := n.RDMA.Device(netdev)
		if device != "" || time.Now().After(until) || (clock.Wall{}).Sleep(ctx, lookEvery) != nil {
			return device
		}
	}
}

// observeSorting looks at how one rail sorts.
func (n Node) observeSorting(p wire.RoCEParams, q port, s *wire.RoCEPortState) {
	if !sorts(p, q) || s.RDMADevice == "" {
		return
	}
	if n.QoS == nil {
		s.Problems = append(s.Problems, "this agent cannot sort RDMA packets")
		return
	}
	have, err := n.QoS.Sorting(s.Netdev, s.RDMADevice)
	if err != nil {
		s.Problems = append(s.Problems, err.Error())
		return
	}
	s.Sorting = &have
	s.Problems = append(s.Problems, sortingProblems(*p.Lossless, have)...)
}

// sortingProblems lists in words what is not as it should be. It is the agent's
// opinion; ironrail compares the values again.
func sortingProblems(want wire.RoCELossless, have wire.RoCESorting) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if have.Trust != "dscp" {
		add("the NIC trusts %q, not the DSCP", have.Trust)
	}
	for _, d := range []struct{ dscp, priority int }{{want.DSCP, want.Priority}, {want.CNP, want.CNPPriority}} {
		if p, known := have.Priorities[d.dscp]; known && p != d.priority || !known && d.dscp>>3 != d.priority {
			add("DSCP %d has priority %d, not %d", d.dscp, p, d.priority)
		}
	}
	if paused := want.Paused(); !slices.Equal(have.Paused, paused) {
		add("PFC is on for priorities %v, not %v", have.Paused, paused)
	}
	if have.TrafficClass != want.TrafficClass {
		add("RDMA packets have traffic class %d, not %d", have.TrafficClass, want.TrafficClass)
	}
	return problems
}
