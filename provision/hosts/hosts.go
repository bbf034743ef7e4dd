// SPDX-License-Identifier: Apache-2.0

// Package hosts accepts or rejects nodes that another tool installed, over SSH, with no
// state and no site: what they are made of is compared with what most of them have, or
// with a file, and the tests of package validate judge them as they judge the nodes of
// a site. Nothing remains on a node: ironrail's agent lies in a folder that the node
// itself removes when the connection ends, however it ends.
package hosts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Options say which hosts are tested, and how.
type Options struct {
	List     []Host
	Login    Login
	Agent    string    // path of the static ironrail-agent program
	Expected *Expected // nil: what most of the hosts have
	Load     bool      // measure what loads the hosts, where nobody uses them
	Text     Text
	// Watch shows the tests while they run; it returns when the events end. nil: nobody
	// looks.
	Watch func(*plan.Plan, *event.Subscription)
	Say   func(string) // what is done, a sentence at a time
	Now   func() time.Time
}

// Text is what the report has beside what was seen.
type Text struct {
	File     string // the list of hosts
	Version  string // of ironrail
	Evidence string // folder that what programs printed is kept in; empty: it is not kept
}

// session is one use of a list of hosts.
type session struct {
	Options
	fleet   *fleet
	failed  map[string]error // hosts that could not be reached or looked at
	surveys []survey
	cohorts []cohort
	probes  map[string]probe // what hosts can be loaded with
	release func()           // of the keys
}

// open reaches the hosts and looks at what they are made of. The caller closes the
// session, also after an error.
func open(ctx context.Context, o Options) (*session, error) {
	s := &session{Options: o, fleet: &fleet{}, release: func() {}}
	known, err := readKnownHosts(o.Login.KnownHosts)
	if err != nil {
		return s, err
	}
	signers, release, err := o.Login.signers(ctx)
	s.release = release
	if err != nil {
		return s, err
	}
	c := connector{login: o.Login, known: known, signers: signers, agent: o.Agent, say: o.Say}
	if s.fleet, s.failed, err = c.connect(ctx, o.List); err != nil {
		return s, err
	}
	o.Say(fmt.Sprintf("%d of %d hosts are reached; looking at what they are made of.", len(s.fleet.nodes), len(o.List)))
	surveys, failed := takeSurveys(ctx, s.fleet)
	if err := context.Cause(ctx); err != nil {
		return s, errkind.New(errkind.Interrupted, "interrupted: %w", err)
	}
	maps.Copy(s.failed, failed)
	s.surveys = s.withoutTwins(surveys)
	s.cohorts = splitCohorts(s.surveys)
	return s, nil
}

// withoutTwins takes out hosts that are one node under two names: it would be counted
// twice for what most have.
func (s *session) withoutTwins(surveys []survey) (list []survey) {
	first := map[string]string{}
	for _, x := range surveys {
		macs := x.macs()
		if was := first[macs]; was != "" && macs != "" {
			s.failed[x.name] = errkind.New(errkind.Conflict, "it is the same node as %s: it has the same MAC addresses (%s)", was, macs).Do("Remove one of the two lines from the list of hosts.")
			continue
		}
		first[macs] = x.name
		list = append(list, x)
	}
	return list
}

// close leaves the hosts. It says where something may be left.
func (s *session) close() {
	left := s.fleet.close()
	for _, name := range slices.Sorted(maps.Keys(left)) {
		s.Say(fmt.Sprintf("warning: %s: %v", name, left[name]))
	}
	s.release()
}

// Test tests the hosts. The error is about the test as a whole: what is wrong with a
// host is in the report.
func Test(ctx context.Context, o Options) (report.Input, error) {
	s, err := open(ctx, o)
	defer s.close()
	if err != nil {
		return report.Input{}, err
	}
	want := o.Expected
	if want == nil {
		if want, err = expectMost(s.cohorts); err != nil {
			return report.Input{}, err
		}
	} else {
		s.cohorts = []cohort{{name: "nodes", members: s.surveys, rows: compareParts(s.surveys)}}
	}
	if o.Load {
		s.probes = takeProbes(ctx, s.fleet)
	}
	evidence, done, err := evidenceFolder(o.Text.Evidence)
	if err != nil {
		return report.Input{}, err
	}
	defer done()
	r, err := newRun(ctx, s, want, evidence)
	if err != nil {
		return report.Input{}, err
	}
	res, err := s.watch(ctx, r)
	if err != nil {
		return report.Input{}, err
	}
	if err := context.Cause(ctx); err != nil {
		return report.Input{}, errkind.New(errkind.Interrupted, "interrupted: %w", err)
	}
	return r.report(ctx, res)
}

// watch runs the tests and shows them.
func (s *session) watch(ctx context.Context, r *run) (apply.Result, error) {
	if len(r.plan.Steps) == 0 {
		return apply.Result{}, nil
	}
	bus := event.NewBus(4096)
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		if s.Watch != nil {
			s.Watch(r.plan, bus.Subscribe(0))
		}
	}()
	res, err := r.apply(ctx, bus)
	bus.Close()
	<-shown
	return res, err
}

// evidenceFolder is where what programs printed goes; done removes it where it is not
// kept.
func evidenceFolder(keep string) (dir string, done func(), err error) {
	if keep != "" {
		return keep, func() {}, nil
	}
	dir, err = os.MkdirTemp("", "ironrail-test-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// WriteExpect returns the hardware block of what most of the hosts have, for --expect.
func WriteExpect(ctx context.Context, o Options) ([]byte, error) {
	s, err := open(ctx, o)
	defer s.close()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.failed)) {
		o.Say(fmt.Sprintf("warning: %s counts for nothing: %v", name, s.failed[name]))
	}
	switch {
	case len(s.cohorts) == 0:
		return nil, errkind.New(errkind.Unreachable, "no host could be looked at").Do("Run it without --write-expect: the report says what is wrong with each.")
	case s.cohorts[0].why != "":
		return nil, errkind.New(errkind.Refused, "no reference: %s", s.cohorts[0].why).Do("Give more hosts of the same kind, or write the hardware block by hand.")
	case len(s.cohorts) > 1:
		var kinds []string
		for _, c := range s.cohorts {
			kinds = append(kinds, fmt.Sprintf("%s (%s)", describeChassis(c.members[0]), strings.Join(c.names(), ", ")))
		}
		return nil, errkind.New(errkind.Refused, "the hosts are of %d kinds: %s", len(kinds), strings.Join(kinds, "; ")).Do("Write a list of hosts for each kind: a file of expectations has one hardware block.")
	}
	if _, err := expectMost(s.cohorts); err != nil {
		return nil, err
	}
	head := fmt.Sprintf("# What most of %d hosts of %s have, as `ironrail test --write-expect` read it on %s.\n# Read it before you use it: what most have may be wrong on all of them.\n",
		len(s.cohorts[0].members), cmp.Or(filepath.Base(o.Text.File), "a list"), o.Now().UTC().Format(time.DateOnly))
	for _, r := range s.cohorts[0].rows {
		if r.Value == "" {
			head += fmt.Sprintf("# Left out, since no majority has the same %s: %s\n", r.Name(), strings.Map(oneLine, describeGroups(r.Groups)))
		}
	}
	return append([]byte(head+"\n"), writeBlocks(s.cohorts)...), nil
}

// oneLine keeps text from outside within a comment.
func oneLine(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '?'
	}
	return r
}

// names are the hosts of a cohort.
func (c cohort) names() (list []string) {
	for _, s := range c.members {
		list = append(list, s.name)
	}
	return list
}
