// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/handover"
)

// Programs runs one of Slurm's programs where the controller of a handover can be
// asked, and returns its standard output. The error is of kind Unsupported when
// there is no such place. It is safe for concurrent use.
type Programs func(ctx context.Context, controller string, argv ...string) ([]byte, error)

// askWait bounds one program. slurmctld answers within seconds, or waits for its
// backup.
const askWait = 45 * time.Second

// ours begins every reason that ironrail gives Slurm: what has another one was
// drained by somebody else, and stays so.
const ours = "ironrail: "

var _ handover.Scheduler = (*Slurm)(nil)

// runProgram runs a program.
func (s *Slurm) runProgram(ctx context.Context, t handover.Target, argv ...string) ([]byte, error) {
	if s.programs == nil {
		return nil, errkind.New(errkind.Unsupported, "there is no way to ask slurmctld from here")
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	return s.programs(ctx, readSettings(t.Handover).controller, argv...)
}

// node is what `scontrol -o show node` says of one node.
type node struct {
	known  bool
	addr   string
	states []string // IDLE, DRAIN, ...
	reason string
}

// is reports whether a state is among the node's.
func (n node) is(state string) bool { return slices.Contains(n.states, state) }

// drained reports whether the node takes no new jobs: it is drained, or will be when
// its jobs end.
func (n node) drained() bool { return n.is("DRAIN") || n.is("DRAINED") || n.is("DRAINING") }

// open reports whether the node takes jobs, as soon as its slurmd answers.
func (n node) open() bool { return !n.drained() && !n.is("DOWN") }

// parseNode reads a line of `scontrol -o show node`: words of KEY=VALUE, and at
// the end a reason that holds anything.
func parseNode(line string) node {
	n := node{known: true}
	line, n.reason, _ = strings.Cut(line, " Reason=")
	for _, w := range strings.Fields(line) {
		switch key, value, _ := strings.Cut(w, "="); key {
		case "NodeAddr":
			n.addr = value
		case "State":
			n.states = strings.FieldsFunc(strings.Trim(value, "*~#!%$@^-"), func(r rune) bool { return r == '+' })
			for i, s := range n.states {
				n.states[i] = strings.Trim(s, "*~#!%$@^-")
			}
		}
	}
	n.reason = strings.TrimSpace(n.reason)
	return n
}

// readNode asks slurmctld about a node. One of this name at another address is of
// another cluster: nothing is known then.
func (s *Slurm) readNode(ctx context.Context, t handover.Target, name string) (node, error) {
	out, err := s.runProgram(ctx, t, "scontrol", "-o", "show", "node", name)
	if text := string(out) + errText(err); strings.Contains(text, "Node "+name+" not found") {
		return node{}, nil
	}
	if err != nil {
		return node{}, err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	n := parseNode(line)
	for _, m := range t.Members {
		if m.Node.Name == name {
			return n, n.check(name, m.Node.Address)
		}
	}
	return n, n.check(name, netip.Addr{})
}

// check refuses what is no node, and one that is at another address than this site has it.
func (n node) check(name string, want netip.Addr) error {
	if len(n.states) == 0 {
		return errkind.New(errkind.Invalid, "scontrol does not report the state of %s", name)
	}
	if a, err := netip.ParseAddr(n.addr); want.IsValid() && err == nil && a != want {
		return errkind.New(errkind.Conflict, "slurmctld has a node %s at %s, and this site has it at %s: it is another cluster's", name, n.addr, want).
			Do("Give the handover the controller of this cluster.")
	}
	return nil
}

// drained are the nodes at this site's addresses that slurmctld keeps drained with
// a reason of ironrail's, as nodes.conf gave it for those that were not accepted
// yet; nil when it cannot be asked.
func (s *Slurm) drained(ctx context.Context, t handover.Target) map[string]bool {
	out, err := s.runProgram(ctx, t, "scontrol", "-o", "show", "node")
	if err != nil {
		return nil
	}
	address := make(map[string]string, len(t.Members))
	for _, m := range t.Members {
		address[m.Node.Name] = m.Node.Address.String()
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "NodeName="), " ")
		if n := parseNode(rest); n.addr == address[name] && strings.HasPrefix(n.reason, ours) && n.drained() {
			found[name] = true
		}
	}
	return found
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Jobs implements handover.Scheduler.
func (s *Slurm) Jobs(ctx context.Context, t handover.Target, name string) ([]handover.Job, error) {
	n, err := s.readNode(ctx, t, name)
	if err != nil || !n.known {
		return nil, err // a node that slurmctld does not know has no jobs
	}
	// -a: also those of hidden partitions
	out, err := s.runProgram(ctx, t, "squeue", "-h", "-w", name, "-o", queueForm, "-a")
	if err != nil {
		return nil, err
	}
	queued, err := parseJobs(string(out))
	jobs := make([]handover.Job, len(queued))
	for i, q := range queued {
		jobs[i] = q.Job
	}
	return jobs, err
}

// AllJobs implements handover.AllJobs.
func (s *Slurm) AllJobs(ctx context.Context, t handover.Target) (map[string]handover.NodeJobs, error) {
	out, err := s.runProgram(ctx, t, "scontrol", "-o", "show", "node")
	if err != nil {
		return nil, err
	}
	nodes := map[string]node{}
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "NodeName="), " ")
		if nodes[name] = parseNode(rest); !strings.HasPrefix(line, "NodeName=") {
			return nil, errkind.New(errkind.Invalid, "scontrol says %q, which is no node", line)
		}
	}
	if len(nodes) == 0 {
		return nil, errkind.New(errkind.Invalid, "scontrol lists no node")
	}
	if out, err = s.runProgram(ctx, t, "squeue", "-h", "-o", queueForm, "-a"); err != nil {
		return nil, err
	}
	queued, err := parseJobs(string(out))
	if err != nil {
		return nil, err
	}
	all := map[string]handover.NodeJobs{}
	for _, q := range queued {
		for _, name := range expandHostlist(q.nodes) {
			if _, known := nodes[name]; !known && strings.Contains(q.nodes, "[") { // read wrongly, a node would look idle
				return nil, errkind.New(errkind.Invalid, "squeue says that job %s runs on %q, of which scontrol knows no %s", q.ID, q.nodes, name)
			}
			all[name] = handover.NodeJobs{Jobs: append(all[name].Jobs, q.Job)}
		}
	}
	for _, m := range t.Members {
		n, known := nodes[m.Node.Name]
		if !known {
			delete(all, m.Node.Name)
		} else if err := n.check(m.Node.Name, m.Node.Address); err != nil {
			all[m.Node.Name] = handover.NodeJobs{Err: err}
		}
	}
	return all, nil
}

// queueForm is what squeue prints of a job: its name, which holds anything, at the end.
const queueForm = "%i|%u|%T|%L|%N|%j"

// queuedJob is a job with the host list of its nodes.
type queuedJob struct {
	handover.Job
	nodes string
}

// parseJobs reads what squeue prints. Jobs that only wait are on no node yet.
func parseJobs(text string) (jobs []queuedJob, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		f := strings.SplitN(line, "|", 6)
		if len(f) != 6 || f[0] == "" {
			return nil, errkind.New(errkind.Invalid, "squeue says %q, which is no job", line)
		}
		if f[2] != "PENDING" {
			jobs = append(jobs, queuedJob{handover.Job{ID: f[0], User: f[1], State: f[2], Left: f[3], Name: f[5]}, f[4]})
		}
	}
	return jobs, nil
}

// Shut implements handover.Scheduler.
func (s *Slurm) Shut(ctx context.Context, run stage.Run, t handover.Target, name, why string) (bool, error) {
	n, err := s.readNode(ctx, t, name)
	switch {
	case err != nil || !n.known:
		return false, err
	case n.drained():
		return strings.HasPrefix(n.reason, ours), nil // of an earlier run that died, or of somebody else
	}
	if err := learnDrained(ctx, run, true, name); err != nil { // before: a drain that nobody remembers is never resumed
		return false, err
	}
	return true, s.update(ctx, run, t, "drain", node.drained, name, "State=DRAIN", "Reason="+cleanReason(why))
}

// Open implements handover.Scheduler: nodes that ironrail drained take jobs again.
func (s *Slurm) Open(ctx context.Context, run stage.Run, t handover.Target, names ...string) error {
	var errs []error
	for _, name := range names {
		n, err := s.readNode(ctx, t, name)
		if err == nil && n.known && strings.HasPrefix(n.reason, ours) {
			switch {
			case n.is("DOWN"): // it was away for longer than slurmctld waits
				err = s.update(ctx, run, t, "resume", node.open, name, "State=RESUME")
			case n.drained():
				// Not RESUME: that is refused before slurmd has come back.
				err = s.update(ctx, run, t, "undrain", node.open, name, "State=UNDRAIN")
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// update changes a node at slurmctld.
func (s *Slurm) update(ctx context.Context, run stage.Run, t handover.Target, verb string, is func(node) bool, name string, words ...string) error {
	does := fmt.Sprintf("%s %s at slurmctld", verb, name)
	err := handover.DoEffect(ctx, run, subject.OfNode(name), stage.Effect{
		Key: fmt.Sprintf("%s/handover.%s/%s", name, t.Name, verb), Kind: plan.Config, Repeatable: true, Does: does,
		Probe: func(ctx context.Context) (stage.Probe, string, error) {
			n, err := s.readNode(ctx, t, name)
			if err != nil {
				return stage.Doubt, "", err
			}
			seen := "slurmctld says " + strings.Join(n.states, "+")
			if n.known && is(n) {
				return stage.Done, seen, nil
			}
			return stage.NotDone, seen, nil
		},
		Do: func(ctx context.Context) error {
			_, err := s.runProgram(ctx, t, append([]string{"scontrol", "update", "NodeName=" + name}, words...)...)
			return err
		}})
	if err != nil {
		return errkind.New(errkind.Of(err), "%s: %w", does, err).Do(fmt.Sprintf("Do it by hand: `scontrol update NodeName=%s %s`.", name, strings.Join(words[:1], " ")))
	}
	return nil
}
