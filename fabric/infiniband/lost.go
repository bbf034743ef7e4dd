// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"context"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

// CheckManager implements fabric.Managed: a sweep by direct routes, which needs no subnet manager, is
// answered, and the master is the one that was loaded.
func (b *InfiniBand) CheckManager(ctx context.Context, run stage.Run, f *inventory.Fabric, seen fabric.Sweep) (lost, weaker []stage.Finding, before bool, err error) {
	loaded := readLoaded(run, f)
	if loaded == nil {
		return nil, nil, false, errkind.New(errkind.Unsupported, "the subnet manager of fabric %s was not loaded by ironrail", f.Name)
	}
	sub, members, err := b.subnet(run, f)
	if err != nil {
		return nil, nil, true, err
	}
	found, swept := seen.(*ibnetdiscover.Topology)
	if !swept {
		if found, err = sub.Sweep(ctx); err != nil {
			return nil, nil, true, err
		}
	}
	m, silent, err := sub.master(ctx)
	switch {
	case err != nil:
		return nil, nil, true, err
	case silent != "":
		return []stage.Finding{sub.lost(silent, evidenceOf(found))}, nil, true, nil
	case m.state != isMaster:
		return []stage.Finding{sub.lost(fmt.Sprintf("the subnet manager of the fabric is in state %s", m.state), evidenceOf(found))}, nil, true, nil
	}
	if gone, ok := sub.takenOver(ctx, m, sub.namer(members, found)); ok {
		return gone.lost, gone.weaker, true, nil
	}
	now, err := sub.Managers(ctx, members, found)
	if err != nil { // where they could never be listed, that the master answers is all that is known
		return nil, nil, loaded.Listed, err
	}
	if len(now.Wrong) > 0 {
		return []stage.Finding{sub.lost(joinWords(now.Wrong), append(evidenceOf(found), evidenceOfManagers(now)...))}, nil, true, nil
	}
	return nil, worseManaged(loaded, now), true, nil
}

// gone is what it means that the subnet manager of this controller has ended and another is the master.
type gone struct{ lost, weaker []stage.Finding }

// takenOver reports whether the subnet manager of this controller does not answer while a master does. A
// standby of the site, known by the priority that its file has, continues with the same files.
func (s *Subnet) takenOver(ctx context.Context, m SM, name func(SM) string) (gone, bool) {
	_, err := s.info(ctx, "-D", "0")
	if errkind.Of(err) != errkind.Unreachable || ctx.Err() != nil {
		return gone{}, false
	}
	runOn := Managers(s.Fabric)
	seen := []string{err.Error(), fmt.Sprintf("%s: LID %d, priority %d, %s", name(m), m.LID, m.Priority, m.state)}
	for i, controller := range runOn {
		if i != s.Standby && m.Priority == priorityOf(i) {
			f := s.lost(fmt.Sprintf("the subnet manager on %s does not answer, and that of %s has taken over", runOn[s.Standby], controller), seen)
			return gone{weaker: []stage.Finding{f}}, true
		}
	}
	return gone{lost: []stage.Finding{s.lost(fmt.Sprintf("the subnet manager on %s does not answer, and the master is %s", runOn[s.Standby], name(m)), seen)}}, true
}

// evidenceOf says that the fabric itself answers.
func evidenceOf(t *ibnetdiscover.Topology) []string {
	return []string{fmt.Sprintf("a sweep from the controller is answered by %d switches and %d HCAs", len(t.Switches), len(t.HCAs))}
}

// evidenceOfManagers lists what was seen of managers that the site does not have.
func evidenceOfManagers(m Managed) (list []string) {
	for _, f := range m.Findings {
		list = append(list, f.Evidence...)
	}
	return list
}

// lost says that what was loaded into the subnet manager counts no more.
func (s *Subnet) lost(why string, evidence []string) stage.Finding {
	on := strings.Join(Managers(s.Fabric), ", ")
	return stage.Finding{Suspects: []stage.Suspect{{Subject: subjectOf(s.Fabric), Part: "subnet manager"}}, Evidence: evidence,
		Cause: fmt.Sprintf("fabric %s is not managed as it was when it was tested: %s", s.Fabric.Name, why),
		Action: fmt.Sprintf("See that opensm runs on %s (`systemctl status opensm`; its log says why it ended) and that no other subnet manager does (`sminfo`, `saquery SMIR`; on a managed switch: `no ib sm`). "+
			"`ironrail plan --refresh` shows the step that loads it again; `ironrail apply` then tests the nodes that wait.", on)}
}

// readLoaded is what is known of how the manager of a fabric was loaded; nil: it was not.
func readLoaded(run stage.Run, f *inventory.Fabric) *Loaded {
	known, ok := run.Fact(LoadedFact.Of(subjectOf(f)))
	if !ok {
		return nil
	}
	l, err := LoadedFact.Get(known)
	if err != nil {
		return nil
	}
	return &l
}

// worseManaged are the findings about managers beside the master that there were not yet when the
// manager was loaded. What was missing then was reported then.
func worseManaged(before *Loaded, now Managed) []stage.Finding {
	if before == nil {
		before = &Loaded{}
	}
	switch {
	case now.Standbys < before.Standbys:
		return now.Findings[:1]
	case now.Strange > before.Strange:
		return now.Findings[len(now.Findings)-1:]
	}
	return nil
}

// master asks the master of the subnet. silent says that none answers, though the programs run, for as
// long as a handover takes: ask it after a sweep that was answered, which proves that the
// controller's own HCA has a link.
func (s *Subnet) master(ctx context.Context) (m SM, silent string, err error) {
	for end := s.clock().Now().Add(handoverLimit); ; {
		m, err = s.info(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
			return m, "", err
		case errkind.Of(err) != errkind.Unreachable:
			return m, "", err
		case s.clock().Now().After(end):
			return m, "no subnet manager answers: " + err.Error(), nil
		}
		if err := s.clock().Sleep(ctx, handoverEvery); err != nil {
			return m, "", err
		}
	}
}
