// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/tool/mlnxqos"
)

// HostPort is how a node's port treats RDMA, as it was read there.
type HostPort struct {
	Name         string // node/nic/port, as cables name it
	QoS          *mlnxqos.QoS
	MTU          int // bytes of IP; 0: not read
	TrafficClass int // byte of RDMA packets (default_roce_tos); -1: not read
}

// Mismatch is something in which the two ends of a cable do not fit, or in which
// one end is not as the fabric says.
type Mismatch struct {
	Host, Switch string // both ports
	What         string
}

// String names both ends.
func (m Mismatch) String() string { return m.Host + " and " + m.Switch + ": " + m.What }

// CompareEnds holds what nodes do against what this switch does, for each of its
// ports whose far end is in hosts: both must sort the DSCPs of RDMA and congestion
// notifications alike, pause exactly the one priority, and have room for each
// other's packets.
func (s *Switch) CompareEnds(have Config, hosts []HostPort) (list []Mismatch) {
	for i := range s.Ports {
		p := &s.Ports[i]
		j := slices.IndexFunc(hosts, func(h HostPort) bool { return h.Name == p.Far.String() })
		if p.Far.Node == nil || j < 0 {
			continue
		}
		add := func(format string, args ...any) {
			list = append(list, Mismatch{hosts[j].Name, s.Switch.Name + " " + p.Name, fmt.Sprintf(format, args...)})
		}
		compareEnds(s.Lossless, hosts[j], have.QoSOf(p.Name), add)
	}
	return list
}

// CompareEnd is CompareEnds for one port, of which only its QoS was kept.
func (s *Switch) CompareEnd(p *Port, q QoS, h HostPort) (list []Mismatch) {
	compareEnds(s.Lossless, h, q, func(format string, args ...any) {
		list = append(list, Mismatch{h.Name, s.Switch.Name + " " + p.Name, fmt.Sprintf(format, args...)})
	})
	return list
}

// CompareTrunk holds the two ends of a cable between switches against each other:
// both pause the same priorities, sort the same DSCPs alike, mark the same queues, and take
// each other's packets.
func CompareTrunk(a, b QoS) (list []string) {
	if !slices.Equal(a.Paused, b.Paused) {
		list = append(list, fmt.Sprintf("the first pauses %s, and the second %s", describePriorities(a.Paused), describePriorities(b.Paused)))
	}
	if a.MTU != b.MTU {
		list = append(list, fmt.Sprintf("the first takes packets of %d bytes, and the second of %d", a.MTU, b.MTU))
	}
	if len(a.Priority) == 0 || len(b.Priority) == 0 { // what was kept of one has no more
		return list
	}
	if !maps.Equal(a.Priority, b.Priority) {
		list = append(list, fmt.Sprintf("the first has the DSCPs %s, and the second %s", describeSorting(a.Priority), describeSorting(b.Priority)))
	}
	if !slices.Equal(a.Marked, b.Marked) || !maps.Equal(a.Queue, b.Queue) {
		list = append(list, fmt.Sprintf("the first marks queues %v, and the second %v, of the queues %v and %v", a.Marked, b.Marked, a.Queue, b.Queue))
	}
	if a.Watched != b.Watched {
		list = append(list, "the PFC watchdog looks at one end alone")
	}
	return list
}

// describeSorting says in which priorities DSCPs are.
func describeSorting(of map[int]int) string {
	var list []string
	for _, d := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%d in %s", d, describePriority(of[d], true)))
	}
	if len(list) == 0 {
		return "in no priority"
	}
	return strings.Join(list, ", ")
}

// Kept is what of a port's QoS both ends of its cable must agree in: few numbers,
// so that those of every port can be remembered.
func (q QoS) Kept(l roce.Lossless) QoS {
	k := QoS{Paused: q.Paused, Watched: q.Watched, Marked: q.Marked, MTU: q.MTU}
	for _, d := range []int{l.DSCP, l.CNP} {
		if p, mapped := q.Priority[d]; mapped {
			if k.Priority == nil {
				k.Priority = map[int]int{}
			}
			k.Priority[d] = p
		}
	}
	if queue, mapped := q.Queue[l.Priority]; mapped {
		k.Queue = map[int]int{l.Priority: queue}
	}
	return k
}

func compareEnds(l roce.Lossless, h HostPort, sw QoS, add func(string, ...any)) {
	if h.QoS != nil {
		compareSorting(l, h.QoS, sw, add)
		comparePausing(l, h.QoS.Paused(), sw.Paused, add)
	}
	if h.MTU > 0 && sw.MTU > 0 && h.MTU > sw.MTU {
		add("the node sends packets of %d bytes, and the switch takes %d", h.MTU, sw.MTU)
	}
	if h.TrafficClass >= 0 && h.TrafficClass>>2 != l.DSCP {
		p, known := sw.Priority[h.TrafficClass>>2]
		add("the node sends RDMA with DSCP %d, not %d, which the switch has in %s", h.TrafficClass>>2, l.DSCP, describePriority(p, known))
	}
	if l.ECN && !slices.Contains(sw.Marked, sw.Queue[l.Priority]) {
		add("the switch does not mark queue %d, whose senders wait for marks to slow down", sw.Queue[l.Priority])
	}
	if len(sw.Paused) > 0 && !sw.Watched {
		add("the switch pauses %s without a watchdog: one NIC that never stops to pause it stops the fabric", describePriorities(sw.Paused))
	}
}

// compareSorting compares where both ends put the two DSCPs that matter.
func compareSorting(l roce.Lossless, node *mlnxqos.QoS, sw QoS, add func(string, ...any)) {
	if node.Trust != "" && node.Trust != "dscp" {
		add("the node trusts %s, and the switch sorts by DSCP", node.Trust)
		return
	}
	for _, d := range []struct {
		what        string
		value, want int
	}{{"RDMA", l.DSCP, l.Priority}, {"congestion notifications", l.CNP, l.PriorityOf(l.CNP)}} {
		here, known := node.Priority(d.value)
		there, mapped := sw.Priority[d.value]
		fitsNode := !known || here == d.want
		fitsSwitch := mapped && there == d.want || known && sw.Priority == nil
		switch {
		case fitsNode && fitsSwitch:
		case known && (!mapped || here != there):
			add("DSCP %d (%s) has %s on the node and %s on the switch", d.value, d.what, describePriority(here, true), describePriority(there, mapped))
		default:
			add("DSCP %d (%s) has %s on the switch, and is to have %s", d.value, d.what, describePriority(there, mapped), describePriority(d.want, true))
		}
	}
}

// comparePausing compares which priorities the two ends pause with one another and
// with the fabric.
func comparePausing(l roce.Lossless, node, sw []int, add func(string, ...any)) {
	if !slices.Equal(node, sw) {
		add("the node pauses %s, and the switch %s", describePriorities(node), describePriorities(sw))
		return
	}
	var wanted []int
	if l.PFC {
		wanted = []int{l.Priority}
	}
	if !slices.Equal(node, wanted) {
		add("both ends pause %s, and the fabric is to pause %s", describePriorities(node), describePriorities(wanted))
	}
}

func describePriority(p int, known bool) string {
	if !known {
		return "no priority"
	}
	return "priority " + strconv.Itoa(p)
}

func describePriorities(list []int) string {
	if len(list) == 0 {
		return "no priority"
	}
	return fmt.Sprintf("priorities %v", list)
}

// Shortage is a port whose priority group has too little headroom for its cable.
type Shortage struct {
	Switch, Port, Profile string
	Have, Need            int // bytes
}

// String says what would be dropped.
func (s Shortage) String() string {
	return fmt.Sprintf("%s %s: buffer profile %s keeps %d bytes for what is under way when the priority is paused, and %d are needed", s.Switch, s.Port, s.Profile, s.Have, s.Need)
}

// Headrooms looks at ports whose buffer profile is written out (xoff), which is
// so on switches that do not compute it: too little drops packets under pause.
func (s *Switch) Headrooms(have Config) (list []Shortage) {
	if !s.Paused || !s.Lossless.PFC {
		return nil
	}
	for _, p := range s.Ports {
		profile := have["BUFFER_PG"][p.Name+"|"+strconv.Itoa(s.Lossless.Priority)]["profile"]
		xoff, err := strconv.Atoi(have["BUFFER_PROFILE"][profile]["xoff"])
		if profile == "" || err != nil || p.Speed <= 0 || p.Length <= 0 {
			continue
		}
		if need := PauseHeadroom(p.Speed, p.Length, s.mtu()); xoff < need {
			list = append(list, Shortage{s.Switch.Name, p.Name, profile, xoff, need})
		}
	}
	return list
}
