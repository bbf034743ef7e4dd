// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// Job is work that a scheduler has on a node. Its texts come from outside.
type Job struct {
	ID, User, Name string
	State          string // as the scheduler calls it: RUNNING, COMPLETING
	Left           string // of its time limit, as the scheduler writes it
}

// String names the job in a list.
func (j Job) String() string {
	s := fmt.Sprintf("%s of %s (%s", j.ID, j.User, strings.ToLower(j.State))
	if j.Left != "" {
		s += ", " + j.Left + " left"
	}
	return s + ")"
}

// Scheduler is a Kind that can ask its scheduler which jobs run, and keep new ones
// away. A Kind that is none waits for the end of all work in Drain by itself. Its
// methods are safe for concurrent use for different nodes.
type Scheduler interface {
	// Jobs lists what runs on a node now. After an error it is not known; the error
	// is of kind Unsupported when there is no way to ask.
	Jobs(ctx context.Context, t Target, node string) ([]Job, error)
	// Shut keeps new jobs off a node. False: the scheduler does not know the node, or
	// somebody else has shut it already, so that it is not ours to open.
	Shut(ctx context.Context, run stage.Run, t Target, node, why string) (bool, error)
	// Open takes Shut back. A node that is not shut by it is left as it is.
	Open(ctx context.Context, run stage.Run, t Target, nodes ...string) error
}

// NodeJobs are the jobs on one node, or why they are not known.
type NodeJobs struct {
	Jobs []Job
	Err  error
}

// AllJobs is a Scheduler that says of all nodes at once which jobs run on them.
type AllJobs interface {
	// AllJobs lists what runs on the members of a target now: a node that is missing has no
	// jobs. After an error it is known of none.
	AllJobs(ctx context.Context, t Target) (map[string]NodeJobs, error)
}

// DrainOptions are what an operator says about jobs.
type DrainOptions struct {
	Wait    time.Duration `json:"wait,omitempty"`    // for running jobs to end; zero: not at all
	Unknown bool          `json:"unknown,omitempty"` // it is known that none runs where the scheduler cannot be asked
}

// drainParam is the parameter of a drain with its DrainOptions.
const drainParam = "jobs"

// SetDrainOptions writes an operator's options into the drains of a plan, and says so in
// their titles.
func SetDrainOptions(p *plan.Plan, o DrainOptions) {
	if o == (DrainOptions{}) {
		return
	}
	for i := range p.Steps {
		st := &p.Steps[i]
		if st.Stage != StageName || st.Subject.Kind != subject.Node {
			continue
		}
		st.Params = map[string]plan.Value{drainParam: plan.Literal(o)}
		if o.Wait > 0 {
			st.Title += fmt.Sprintf("; wait %s for its jobs", o.Wait)
			st.Deadline.Limit += o.Wait
		}
		if o.Unknown {
			st.Title += "; ITS JOBS ARE NOT ASKED FOR where the scheduler does not answer"
		}
	}
}

// optionsOf reads the options of a drain; the zero value where there are none.
func optionsOf(st plan.Step) (o DrainOptions, err error) {
	if v, ok := st.Params[drainParam]; ok {
		err = json.Unmarshal(v.Literal, &o)
	}
	return o, err
}

// Jobs lists what runs on a node by its scheduler. A node that was never handed over has none.
// After an error it is not known; the error is of kind Unsupported when there is no way to ask.
func (s *Stage) Jobs(ctx context.Context, node string) ([]Job, error) {
	n, ok := s.inv.Node(node)
	if !ok || n.Handover == nil {
		return nil, nil
	}
	if st, err := s.statuses.NodeStatus(ctx, node); err != nil || !st.Served {
		return nil, err
	}
	k, asks := s.kinds[n.Handover.Kind].(Scheduler)
	if !asks {
		return nil, errkind.New(errkind.Unsupported, "%s %s cannot be asked which jobs run", n.Handover.Kind, n.Handover.Name)
	}
	// With the node as a member its address is compared: one of its name may be another cluster's.
	return k.Jobs(ctx, Target{Handover: n.Handover, Site: s.inv.Site.Name, Inventory: s.inv, Members: []Member{{Node: n}}}, node)
}

// JobsOf is Jobs for many nodes: schedulers that can are asked once for all of theirs. What it
// returns answers for the nodes, as of that moment, or asks for a node by itself.
func (s *Stage) JobsOf(ctx context.Context, nodes []string) func(ctx context.Context, node string) ([]Job, error) {
	targets := map[string]*Target{}
	for _, name := range nodes {
		n, ok := s.inv.Node(name)
		if !ok || n.Handover == nil {
			continue
		}
		t := targets[n.Handover.Name]
		if t == nil {
			t = &Target{Handover: n.Handover, Site: s.inv.Site.Name, Inventory: s.inv}
			targets[n.Handover.Name] = t
		}
		t.Members = append(t.Members, Member{Node: n})
	}
	all := map[string]NodeJobs{}
	for _, t := range targets {
		k, can := s.kinds[t.Kind].(AllJobs)
		if !can {
			continue
		}
		on, err := k.AllJobs(ctx, *t)
		for _, m := range t.Members {
			x := on[m.Node.Name]
			if err != nil {
				x = NodeJobs{Err: err}
			}
			all[m.Node.Name] = x
		}
	}
	return func(ctx context.Context, node string) ([]Job, error) {
		x, asked := all[node]
		if !asked {
			return s.Jobs(ctx, node)
		}
		if st, err := s.statuses.NodeStatus(ctx, node); err != nil || !st.Served {
			return nil, err
		}
		return x.Jobs, x.Err
	}
}

// poll is how often a scheduler is asked while jobs end.
const poll = 15 * time.Second

// empty takes a node out of a scheduler that can be asked, once no job is on it.
// Where jobs run for longer than the operator wants to wait, or nobody knows
// whether any do, nothing has happened: the node is as it was.
func (s *Stage) empty(ctx context.Context, run stage.Run, k Scheduler, t Target, node string, o DrainOptions) error {
	end := run.Clock().Now().Add(o.Wait)
	jobs, err := s.jobsBy(ctx, run, k, t, node, end, o)
	switch {
	case err != nil && o.Unknown:
		run.Emit(event.Event{Type: event.Note, Node: node, Text: fmt.Sprintf("which jobs run on %s is not known (%v); the operator says that none does", node, err)})
		return nil
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		return &stage.BusyError{Err: errkind.New(errkind.Refused, "whether jobs run on %s is not known: %w", node, err).
			Do(fmt.Sprintf("Make %s %s answer; or look for yourself, and give --jobs-unknown when no job runs there. Nothing was done to %s.", t.Kind, t.Name, node))}
	case len(jobs) > 0 && o.Wait <= 0:
		return refuseBusy(node, jobs, "")
	}
	shut, err := k.Shut(ctx, run, t, node, "is being changed")
	if err != nil {
		return &stage.BusyError{Err: err}
	}
	if err = s.waitJobs(ctx, run, k, t, node, end, o); err == nil {
		return nil
	}
	if shut && !readDrained(run, node).Out { // else an earlier run may have changed it
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, k.Open(undo, run, t, node))
	}
	return err
}

// jobsBy asks which jobs run on a node. A scheduler that does not answer is asked
// again until the operator's wait is over: it may be starting.
func (s *Stage) jobsBy(ctx context.Context, run stage.Run, k Scheduler, t Target, node string, end time.Time, o DrainOptions) ([]Job, error) {
	for {
		jobs, err := s.askJobs(ctx, run, k, t, node)
		if silent := errkind.Of(err) == errkind.Unreachable || errkind.Of(err) == errkind.Timeout; err == nil || !silent || o.Unknown {
			return jobs, err
		}
		left := end.Sub(run.Clock().Now())
		if left <= 0 {
			return nil, err
		}
		run.Emit(event.Event{Type: event.StepProgress, Node: node, Text: "asks the scheduler again, which does not answer: " + err.Error(), Until: end})
		if run.Clock().Sleep(ctx, min(poll, left)) != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// waitJobs waits until no job is on a node any more. Between the first look and
// the shutting a job may have come, so that it looks once more in any case.
func (s *Stage) waitJobs(ctx context.Context, run stage.Run, k Scheduler, t Target, node string, end time.Time, o DrainOptions) error {
	for {
		jobs, err := s.jobsBy(ctx, run, k, t, node, end, o)
		switch {
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil:
			return &stage.BusyError{Err: err}
		case len(jobs) == 0:
			return nil
		case !run.Clock().Now().Before(end):
			return refuseBusy(node, jobs, fmt.Sprintf(" after %s", o.Wait))
		}
		run.Emit(event.Event{Type: event.StepProgress, Node: node, Text: "waits for jobs " + ListJobs(jobs), Until: end})
		if err := run.Clock().Sleep(ctx, min(poll, max(time.Second, end.Sub(run.Clock().Now())))); err != nil {
			return context.Cause(ctx)
		}
	}
}

// refuseBusy refuses to touch a node under its jobs.
func refuseBusy(node string, jobs []Job, after string) error {
	return &stage.BusyError{Err: errkind.New(errkind.Refused, "%d jobs run on %s%s: %s", len(jobs), node, after, ListJobs(jobs)).
		Do(fmt.Sprintf("Wait until they end, or give --drain-wait a time that is long enough. %s is in service as before.", node))}
}

// ListJobs shows the first of some jobs in a sentence.
func ListJobs(jobs []Job) string {
	const shown = 5
	var words []string
	for i, j := range jobs {
		if i == shown {
			words = append(words, fmt.Sprintf("%d more", len(jobs)-shown))
			break
		}
		words = append(words, j.String())
	}
	return strings.Join(words, ", ")
}
