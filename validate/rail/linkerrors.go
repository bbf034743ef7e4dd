// SPDX-License-Identifier: Apache-2.0

package rail

import (
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
)

// mostErrors is by how much the error counters of a port may rise under load at once, and how
// fast, a second. Source: the limits of NVSentinel's NIC health monitor; where both are
// zero, any error is too many. Frames with a wrong checksum are those that port_rcv_errors counts
// as well; a carrier that is lost and found changes twice.
var mostErrors = []struct {
	counter string
	once    int64
	rate    float64
}{
	{"link_downed", 0, 0},
	{"excessive_buffer_overrun_errors", 0, 0},
	{"local_link_integrity_errors", 0, 0},
	{"symbol_error", 0, 10},
	{"port_rcv_errors", 0, 10},
	{"rx_crc_errors", 0, 10},
	{"link_error_recovery", 0, 5. / 60},
	{"carrier_changes", 2, 0},
}

// speed is the counter that is none: of the port's interface, Mb/s.
const speed = "speed"

// WornCounters lists the counters of a port that rose faster than a good link's, and a speed that is
// another one than before: the link was trained again.
func WornCounters(before, after PortCounters, took time.Duration) (list []string) {
	for _, m := range mostErrors {
		was, ok := before[m.counter]
		if grew := after[m.counter] - was; ok && grew > m.once && float64(grew) > m.rate*took.Seconds() {
			list = append(list, fmt.Sprintf("%s +%d", m.counter, grew))
		}
	}
	if was, is := before[speed], after[speed]; was > 0 && is > 0 && was != is {
		list = append(list, fmt.Sprintf("%s %d Mb/s instead of %d", speed, is, was))
	}
	return list
}

// DegradedPort is a port that counted more errors under load than a good link does.
type DegradedPort struct {
	End
	rose []string
	took time.Duration
}

// DegradedPorts returns those of the ports that did, in their order.
func DegradedPorts(ends []End, before, after map[string]PortCounters, took time.Duration) (list []DegradedPort) {
	for _, e := range ends {
		if rose := WornCounters(before[e.Key()], after[e.Key()], took); len(rose) > 0 {
			list = append(list, DegradedPort{e, rose, took})
		}
	}
	return list
}

// Describe is what the port counted, in words.
func (p DegradedPort) Describe() string {
	return fmt.Sprintf("%s of %s (%s) counted %s in %s of load", p.Rail(), p.Node.Name, p.Port.Device, strings.Join(p.rose, ", "), p.took.Round(time.Second))
}

// DegradedFindings blame ports and their cables for what they counted: one finding for
// each node, in the order of the ports.
func DegradedFindings(ports []DegradedPort) (list []stage.Finding) {
	at := map[string]int{}
	for _, p := range ports {
		i, ok := at[p.Node.Name]
		if !ok {
			i = len(list)
			at[p.Node.Name] = i
			list = append(list, stage.Finding{Action: "Clean and reseat the cable of each rail that is named, and look at its transceivers and its switch port; then apply again."})
		}
		f := &list[i]
		if f.Cause != "" {
			f.Cause += "; "
		}
		f.Cause += fmt.Sprintf("the link of %s of %s makes errors: %s", p.Rail(), p.Node.Name, strings.Join(p.rose, ", "))
		f.Suspects = append(f.Suspects, stage.Suspect{Subject: subject.OfNode(p.Node.Name), Part: p.Rail()})
		f.Evidence = append(f.Evidence, p.Describe())
	}
	return list
}
