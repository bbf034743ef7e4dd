// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

// Managed is who manages a subnet, as it was found.
type Managed struct {
	Wrong    []string        // why the files that were loaded are not what counts
	Findings []stage.Finding // what matters when the master goes away: first who does not stand by
	Standbys int             // of the site, that are ready to take over
	Strange  int             // managers that the site does not have
	Listed   bool            // they could be listed
}

// Managers looks who manages the subnet: one master with the highest priority, and as
// many standbys as run_on names, and nobody else. Each controller is known by the
// priority that its file has. It waits for a handover to end.
func (s *Subnet) Managers(ctx context.Context, members []Member, t *ibnetdiscover.Topology) (Managed, error) {
	for end := s.clock().Now().Add(handoverLimit); ; {
		own, err := s.info(ctx, "-D", "0")
		if err != nil {
			return Managed{}, err
		}
		list, err := s.managers(ctx)
		if err != nil {
			return Managed{}, err
		}
		if s.settled(list) || s.clock().Now().After(end) {
			return s.compareManagers(own, list, s.namer(members, t)), nil
		}
		if err := s.clock().Sleep(ctx, handoverEvery); err != nil {
			return Managed{}, err
		}
	}
}

// settled reports whether no manager is about to change its state.
func (s *Subnet) settled(list []SM) bool {
	masters, discovering := 0, false
	for _, m := range list {
		if m.state == isMaster {
			masters++
		}
		discovering = discovering || m.state == isDiscovering
	}
	return masters == 1 && !discovering && highestManager(list).state == isMaster
}

// highestManager returns the manager that has to be the master: by its priority, and of equal ones
// by the lower GUID (IBTA, 14.4.1). One that does not answer is none.
func highestManager(list []SM) (top SM) {
	for _, m := range list {
		if m.state != isSilent && (top.GUID == 0 || m.Priority > top.Priority || m.Priority == top.Priority && m.GUID < top.GUID) {
			top = m
		}
	}
	return top
}

// compareManagers compares the managers that there are with those of the site.
func (s *Subnet) compareManagers(own SM, list []SM, name func(SM) string) (r Managed) {
	var masters []string
	for _, m := range list {
		if m.state == isMaster {
			masters = append(masters, name(m))
		}
	}
	runOn, top := Managers(s.Fabric), highestManager(list)
	switch {
	case len(masters) == 0:
		r.Wrong = append(r.Wrong, "no subnet manager of the fabric is its master")
	case len(masters) > 1:
		r.Wrong = append(r.Wrong, fmt.Sprintf("%d subnet managers say that they are the master: %s; the fabric was two until lately, or they have different SM keys: stop all but that of %s", len(masters), strings.Join(masters, ", "), runOn[s.Standby]))
	case top.state != isMaster:
		r.Wrong = append(r.Wrong, fmt.Sprintf("%s has the highest priority (%d) and is %s: the master is %s", name(top), top.Priority, top.state, masters[0]))
	case top.GUID != own.GUID && s.Standby == 0:
		r.Wrong = append(r.Wrong, fmt.Sprintf("the master is %s (priority %d), not %s: its partitions and routes count. Switch that subnet manager off; on a managed switch: `no ib sm`", masters[0], top.Priority, runOn[0]))
	}
	left := slices.DeleteFunc(slices.Clone(list), func(m SM) bool { return m.GUID == own.GUID })
	for i, controller := range runOn {
		if i == s.Standby {
			continue
		}
		at := slices.IndexFunc(left, func(m SM) bool { return m.Priority == priorityOf(i) })
		if at < 0 {
			r.Findings = append(r.Findings, s.absent(controller, i, "no subnet manager with its priority is on the fabric"))
			continue
		}
		m := left[at]
		left = slices.Delete(left, at, at+1)
		if m.state == isStandby || m.state == isMaster {
			r.Standbys++
		} else {
			r.Findings = append(r.Findings, s.absent(controller, i, fmt.Sprintf("%s is %s", name(m), m.state)))
		}
	}
	r.Strange = len(left)
	if len(left) > 0 {
		r.Findings = append(r.Findings, s.strange(left, name))
	}
	return r
}

// absent says that a controller of run_on does not stand by.
func (s *Subnet) absent(controller string, i int, seen string) stage.Finding {
	return stage.Finding{Suspects: []stage.Suspect{{Subject: subjectOf(s.Fabric), Part: "subnet manager on " + controller}},
		Cause:    fmt.Sprintf("the subnet manager on %s does not stand by for fabric %s: nobody takes over when the master goes away", controller, s.Fabric.Name),
		Evidence: []string{seen + fmt.Sprintf(" (sm_priority %d)", priorityOf(i))},
		Action:   fmt.Sprintf("Copy its files of `ironrail fabric render --out DIR` to %s on %s, start opensm there, and see its log.", DefaultFolder, controller)}
}

// strange says which managers are on the fabric and not in the site.
func (s *Subnet) strange(list []SM, name func(SM) string) stage.Finding {
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subjectOf(s.Fabric), Part: "subnet manager"}},
		Action: "Switch it off: `no ib sm` on a managed switch, `systemctl disable --now opensm` on a node. If it belongs there, name its controller in run_on."}
	var names []string
	for _, m := range list {
		names = append(names, name(m))
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: LID %d, priority %d, %s", name(m), m.LID, m.Priority, m.state))
	}
	f.Cause = fmt.Sprintf("fabric %s has a subnet manager that the site does not have: %s. When the master goes away it takes over, without the site's partitions", s.Fabric.Name, strings.Join(names, ", "))
	return f
}

// namer names the port that a manager runs on by what is known of it: the site's node
// or switch, else what the device calls itself.
func (s *Subnet) namer(members []Member, t *ibnetdiscover.Topology) func(SM) string {
	words := map[addr.GUID]string{}
	for _, h := range t.HCAs {
		for _, p := range h.Ports {
			words[p.GUID] = fmt.Sprintf("%q", h.Name)
		}
	}
	for _, d := range t.Switches {
		words[d.GUID] = fmt.Sprintf("switch %q", d.Name)
	}
	for guid, sw := range cabling.CompareSweep(s.Inv, s.Fabric, Plugs(members), t).Switches {
		words[guid] = "switch " + sw.Name
	}
	for _, m := range members {
		words[m.GUID] = "node " + m.Node.Name
	}
	return func(m SM) string {
		if word := words[m.GUID]; word != "" {
			return fmt.Sprintf("%s (port GUID %s)", word, m.GUID)
		}
		return fmt.Sprintf("port GUID %s", m.GUID)
	}
}
