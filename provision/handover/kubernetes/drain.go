// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/kubernetes/api"
)

// evictPause is how long a refused eviction waits for the next, unless the API
// server says it (as kubectl drain does).
const evictPause = 5 * time.Second

// Drain implements handover.Kind: no new pods, then the eviction of those that are
// there, in the order and at the pace that disruption budgets allow, until the
// handover's timeout. A node that was retired leaves the cluster.
func (k *Kubernetes) Drain(ctx context.Context, run stage.Run, t handover.Target, node string) error {
	m, err := findMember(t, node)
	if err != nil {
		return err
	}
	c, err := k.connect(ctx, t.Handover)
	if err != nil {
		return allowUnreachable(run, t, node, err)
	}
	defer c.Close()
	was, err := c.Node(ctx, node)
	if api.NotFound(err) {
		return nil // it never joined
	} else if err != nil {
		return allowUnreachable(run, t, node, err)
	}
	if err := settleNode(ctx, run, c, t, node, wantedNodes(t)[node]); err != nil {
		return err
	}
	if err := evictAll(ctx, run, c, t, node); err != nil {
		return err
	}
	if !m.Node.Retired {
		return nil
	}
	return run.Effect(ctx, stage.Effect{Key: fmt.Sprintf("%s/handover.%s/delete-%s-%s", node, t.Name, was.UID, was.ResourceVersion), Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("remove %s from cluster %s", node, t.Name), Do: func(ctx context.Context) error { return c.DeleteNode(ctx, node) }})
}

// allowUnreachable lets a node go whose cluster does not answer: it is drained without
// an answer only after the operator said that no job runs (see Jobs).
func allowUnreachable(run stage.Run, t handover.Target, node string, err error) error {
	if errkind.Of(err) != errkind.Unreachable {
		return err
	}
	run.Emit(event.Event{Type: event.Note, Node: node, Text: fmt.Sprintf("cluster %s does not answer, so that %s is not drained there: %v", t.Name, node, err)})
	return nil
}

// evictAll evicts until no pod that can go is on the node.
func evictAll(ctx context.Context, run stage.Run, c *api.Client, t handover.Target, node string) error {
	end := run.Clock().Now().Add(timeoutOf(t.Handover))
	for {
		pods, err := c.Pods(ctx, node)
		if err != nil {
			return fmt.Errorf("pods of %s: %w", node, err)
		}
		left, pause, why := 0, evictPause, ""
		for i := range pods {
			p := &pods[i]
			if p.IgnoredByDrain() {
				continue
			}
			left++
			if p.Deleted != nil { // it is ending
				continue
			}
			switch err := evictPod(ctx, run, c, t, node, p); {
			case api.IsBudget(err):
				why = fmt.Sprintf("%s/%s: %v", p.Namespace, p.Name, err)
				if e, ok := errors.AsType[*api.Error](err); ok && e.After > 0 {
					pause = e.After
				}
			case err != nil:
				return fmt.Errorf("evict %s/%s from %s: %w", p.Namespace, p.Name, node, err)
			}
		}
		if left == 0 {
			return nil
		}
		if now := run.Clock().Now(); !now.Add(pause).Before(end) {
			return drainTimeout(node, left, timeoutOf(t.Handover), why)
		}
		run.Emit(event.Event{Type: event.StepProgress, Node: node, Text: fmt.Sprintf("%d pods are still on %s", left, node), Until: end})
		if err := run.Clock().Sleep(ctx, pause); err != nil {
			return context.Cause(ctx)
		}
	}
}

// evictPod asks for one pod's end, once: a pod whose end was accepted is ending. What a
// budget refuses was not done, and is asked for again.
func evictPod(ctx context.Context, run stage.Run, c *api.Client, t handover.Target, node string, p *api.Pod) error {
	var budget error
	err := run.Effect(ctx, stage.Effect{Key: fmt.Sprintf("%s/handover.%s/evict-%s", node, t.Name, p.UID), Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("evict pod %s/%s from %s", p.Namespace, p.Name, node), Do: func(ctx context.Context) error {
			err := c.Evict(ctx, p)
			switch {
			case api.IsBudget(err):
				budget = err
				return errkind.New(errkind.Refused, "%w", err)
			case api.IsConflict(err): // another pod has the name now
				return nil
			}
			return err
		}})
	if budget != nil {
		return budget
	}
	return err
}

// drainTimeout returns a drain that did not end in time.
func drainTimeout(node string, left int, limit time.Duration, why string) error {
	text := ""
	if why != "" {
		text = ": " + why
	}
	return errkind.New(errkind.Timeout, "%d pods are on %s after %s%s", left, node, limit, text).
		Do("Look at the pods' disruption budgets and grace periods, or give the handover a longer timeout; the node stays cordoned.")
}

// Jobs implements handover.Scheduler: the pods whose eviction loses work, since
// they are part of a job or nothing makes others of them.
func (k *Kubernetes) Jobs(ctx context.Context, t handover.Target, node string) ([]handover.Job, error) {
	c, err := k.connect(ctx, t.Handover)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	pods, err := c.Pods(ctx, node)
	return jobsOf(pods)[node].Jobs, err
}

// AllJobs implements handover.AllJobs, by one list.
func (k *Kubernetes) AllJobs(ctx context.Context, t handover.Target) (map[string]handover.NodeJobs, error) {
	c, err := k.connect(ctx, t.Handover)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	pods, err := c.RunningPods(ctx)
	if err != nil {
		return nil, err
	}
	return jobsOf(pods), nil
}

// jobsOf are the jobs among pods, by the node that they run on.
func jobsOf(pods []api.Pod) map[string]handover.NodeJobs {
	all := map[string]handover.NodeJobs{}
	for i := range pods {
		if p := &pods[i]; p.Work() {
			on := all[p.Spec.NodeName]
			on.Jobs = append(on.Jobs, handover.Job{ID: p.Namespace + "/" + p.Name, User: p.Namespace, Name: p.Name, State: strings.ToUpper(p.Status.Phase)})
			all[p.Spec.NodeName] = on
		}
	}
	return all
}

// Shut implements handover.Scheduler: the node is cordoned, and has the taint.
func (k *Kubernetes) Shut(ctx context.Context, run stage.Run, t handover.Target, node, _ string) (bool, error) {
	c, err := k.connect(ctx, t.Handover)
	if err != nil {
		return false, err
	}
	defer c.Close()
	n, err := c.Node(ctx, node)
	switch {
	case api.NotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	_, mine := n.Annotations[cordoned]
	if n.Spec.Unschedulable && !mine {
		return false, nil // somebody else's
	}
	w := wantedNodes(t)[node]
	return true, settleNode(ctx, run, c, t, node, w)
}

// Open implements handover.Scheduler.
func (k *Kubernetes) Open(ctx context.Context, run stage.Run, t handover.Target, names ...string) error {
	c, err := k.connect(ctx, t.Handover)
	if err != nil {
		return err
	}
	defer c.Close()
	t.Members = slices.Clone(t.Members)
	for i := range t.Members { // as if they were in service
		t.Members[i].InService = true
	}
	wants := wantedNodes(t)
	var errs []error
	for _, name := range names {
		errs = append(errs, settleNode(ctx, run, c, t, name, wants[name]))
	}
	return errors.Join(errs...)
}
