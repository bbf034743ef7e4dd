package validate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/isolate"
)

// mostErrors is how fast the error counters of a port may rise under load, a
// second. Source: the limits of NVSentinel's NIC health monitor; where one is
// zero, any error is too many.
var mostErrors = []struct {
	counter string
	rate    float64
}{
	{"link_downed", 0},
	{"excessive_buffer_overrun_errors", 0},
	{"local_link_integrity_errors", 0},
	{"symbol_error", 10},
	{"port_rcv_errors", 10},
	{"link_error_recovery", 5. / 60},
}

// worn lists the counters of a port that rose faster than a good link's.
func worn(before, after portCounters, took time.Duration) (list []string) {
	for _, m := range mostErrors {
		was, ok := before[m.counter]
		if grew := after[m.counter] - was; ok && grew > 0 && float64(grew) > m.rate*took.Seconds() {
			list = append(list, fmt.Sprintf("%s +%d", m.counter, grew))
		}
	}
	return list
}

// ends are the ports that the GPUs of all members speak over.
func (c *collective) ends() (list []end) {
	word := railFabrics(c.list)
	for _, n := range c.list {
		for _, f := range gpuFabrics(n) {
			of, _ := read(c.rec, fabric.Ports(f.Name), subject.OfNode(n.Name))
			for _, p := range of {
				list = append(list, end{node: n, port: p, fabric: word(f)})
			}
		}
	}
	return list
}

// loaded does the runs, and looks what the ports counted meanwhile: correction and
// retransmission hide a bad cable from a bandwidth until there are many of them.
func (c *collective) loaded(ctx context.Context, runs func(context.Context)) {
	ends := c.ends()
	before, began := countersOf(ctx, c.nodes, ends), c.rec.Clock().Now()
	runs(ctx)
	after, took := countersOf(ctx, c.nodes, ends), c.rec.Clock().Now().Sub(began)
	c.suspectPorts(wornOf(ends, before, after, took))
}

// wornPort is a port that counted more errors under load than a good link does.
type wornPort struct {
	end
	rose []string
	took time.Duration
}

// wornOf returns those of the ports that did, in their order.
func wornOf(ends []end, before, after map[string]portCounters, took time.Duration) (list []wornPort) {
	for _, e := range ends {
		if rose := worn(before[e.key()], after[e.key()], took); len(rose) > 0 {
			list = append(list, wornPort{e, rose, took})
		}
	}
	return list
}

// said is what the port counted, in words.
func (p wornPort) said() string {
	return fmt.Sprintf("%s of %s (%s) counted %s in %s of load", p.rail(), p.node.Name, p.port.Device, strings.Join(p.rose, ", "), p.took.Round(time.Second))
}

// wornFindings blame ports and their cables for what they counted: one finding for
// each node, in the order of the ports.
func wornFindings(ports []wornPort) (list []stage.Finding) {
	at := map[string]int{}
	for _, p := range ports {
		i, ok := at[p.node.Name]
		if !ok {
			i = len(list)
			at[p.node.Name] = i
			list = append(list, stage.Finding{Action: "Clean and reseat the cable of each rail that is named, and look at its transceivers and its switch port; then apply again."})
		}
		f := &list[i]
		if f.Cause != "" {
			f.Cause += "; "
		}
		f.Cause += fmt.Sprintf("the link of %s of %s makes errors: %s", p.rail(), p.node.Name, strings.Join(p.rose, ", "))
		f.Suspects = append(f.Suspects, stage.Suspect{Subject: subject.OfNode(p.node.Name), Part: p.rail()})
		f.Evidence = append(f.Evidence, p.said())
	}
	return list
}

// suspectPorts blames ports whose links are bad. A node that is suspected already
// has one cause, and what its ports counted is evidence of it.
func (c *collective) suspectPorts(ports []wornPort) {
	var fresh []wornPort
	for _, p := range ports {
		if !slices.Contains(c.suspects, p.node.Name) {
			fresh = append(fresh, p)
			continue
		}
		for i := range c.findings {
			if slices.ContainsFunc(c.findings[i].Suspects, func(s stage.Suspect) bool { return s.Subject == subject.OfNode(p.node.Name) }) {
				c.findings[i].Evidence = append(c.findings[i].Evidence, p.said())
			}
		}
	}
	for _, f := range wornFindings(fresh) {
		c.suspects = append(c.suspects, f.Suspects[0].Subject.Name)
		c.findings = append(c.findings, f)
	}
}

// worn are the ports that counted errors during a pair test, by node and rail.
func (v verdict) worn() []wornPort {
	ends := slices.Concat(slices.Collect(maps.Values(v.ends))...)
	slices.SortFunc(ends, func(a, b end) int {
		return cmp.Or(strings.Compare(a.node.Name, b.node.Name), strings.Compare(a.fabric, b.fabric), cmp.Compare(a.port.Rail, b.port.Rail), strings.Compare(a.port.Device, b.port.Device))
	})
	return wornOf(ends, v.before, v.after, v.took)
}

// among reports whether a port belongs to parts that are blamed: to a node of
// theirs, or to what its rail shares.
func (p wornPort) among(parts []isolate.Part) bool {
	return slices.ContainsFunc(parts, func(part isolate.Part) bool {
		return part.Node == p.node.Name || part.Scope == isolate.Shared && part.Fabric == p.fabric && part.Rail == p.port.Rail
	})
}

// blameWorn blames ports that made errors and that no slow transfer has led to:
// retransmission hides a bad cable from a bandwidth until there are many of them.
// A bad transfer between two nodes that are good with others is evidence where one
// of its ends is such a port; the transfers that are left are returned.
func (v verdict) blameWorn(ctx context.Context, rep *Report, blamed []isolate.Part, between []isolate.Measurement) ([]isolate.Measurement, error) {
	ports := slices.DeleteFunc(v.worn(), func(p wornPort) bool {
		return slices.Contains(rep.Suspects, p.node.Name) || p.among(blamed)
	})
	for _, f := range wornFindings(ports) {
		for _, p := range ports {
			if subject.OfNode(p.node.Name) != f.Suspects[0].Subject {
				continue
			}
			between = slices.DeleteFunc(between, func(m isolate.Measurement) bool {
				ours := m.Fabric == p.fabric && m.Rail == p.port.Rail && (m.From == p.node.Name || m.To == p.node.Name)
				if t := v.transferOf(m); ours {
					f.Evidence = append(f.Evidence, t.name()+": "+describe(t))
				}
				return ours
			})
		}
		rep.Suspects = append(rep.Suspects, f.Suspects[0].Subject.Name)
		if err := v.p.rec.Blame(ctx, f); err != nil {
			return nil, err
		}
	}
	return between, nil
}
