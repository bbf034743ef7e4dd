// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/rehearse/virtual/slurm"
)

// inService rehearses a site whose faults begin after acceptance, and does something then.
func inService(t *testing.T, inv *inventory.Inventory, then func(context.Context, *rehearsaltest.Later) error, faults ...string) rehearsal.Summary {
	t.Helper()
	for i := range faults {
		faults[i] += ",at=" + fault.Accepted
	}
	sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 3, Dir: t.TempDir(), Faults: planted(t, faults...),
		Then: func(ctx context.Context, r *rehearsal.Rehearsal) error { return then(ctx, rehearsaltest.Of(r)) }})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// suspects reports whether a finding suspects a part of a subject.
func suspects(list []stage.Finding, of subject.ID, part string) bool {
	return slices.ContainsFunc(list, func(f stage.Finding) bool {
		return slices.ContainsFunc(f.Suspects, func(s stage.Suspect) bool { return s.Subject == of && strings.HasPrefix(s.Part, part) })
	})
}

// TestRetest: faults that begin in service and show under load alone are not seen by drift, which says so,
// and are found by the same tests, with the part, once their nodes are drained. A node
// with a job is not touched, others get no step, and who is well comes back.
func TestRetest(t *testing.T) {
	t.Parallel()
	parts := map[string]string{"kind=slow-gpu,node=r01-u17,gpu=0": "GPU 0", "kind=weak-hbm,node=r01-u17,gpu=3": "GPU 3", "kind=hot-gpu,node=r01-u17,gpu=2": "GPU 2", "kind=dead-cores,node=r01-u17,gpu=1": "GPU 1"}
	var faults []string
	for f := range parts {
		faults = append(faults, f)
	}
	slices.Sort(faults)
	sum := inService(t, load(t, "../../examples/hgx-h100", nil), func(ctx context.Context, l *rehearsaltest.Later) error {
		ctl := l.World.Scheduler()
		ctl.Submit(slurm.Job{ID: "4711", User: "kim", Name: "train", Nodes: []string{"r01-u09"}})
		before := len(ctl.Changes())
		p, res, err := l.Retest(ctx, "r01-u01", "r01-u09", "r01-u17")
		if err != nil {
			return err
		}
		for _, st := range p.Steps {
			if st.Subject.Name == "r01-u25" || strings.Contains(st.Title, "r01-u25") {
				t.Errorf("%s works on a node that is not named: %s", st.ID, st.Title)
			}
		}
		if r := resultOf(res, "r01-u09"); r.Outcome != apply.NodeSkipped || r.Cause == nil || !strings.Contains(r.Cause.Text, "4711 of kim") {
			t.Errorf("a node with a job: %+v %+v", r, r.Cause)
		}
		for f, part := range parts {
			if !suspects(res.Findings, subject.OfNode("r01-u17"), part) {
				t.Errorf("%s after %s is not named: %+v", part, f, res.Findings)
			}
		}
		for _, f := range res.Findings {
			if slices.ContainsFunc(f.Suspects, func(s stage.Suspect) bool { return s.Subject != subject.OfNode("r01-u17") }) {
				t.Errorf("blamed %+v", f)
			}
		}
		if n, out := accepted(ctx, l); n != 3 || len(out) != 1 || !strings.HasPrefix(out[0], "r01-u17") {
			t.Errorf("%d accepted, %s", n, out)
		}
		if said := ctl.Changes()[before:]; slices.ContainsFunc(said, func(c string) bool { return strings.HasPrefix(c, "r01-u09") || strings.HasPrefix(c, "r01-u25") }) ||
			!slices.Contains(said, "r01-u01 DRAIN") || !slices.Contains(said, "r01-u01 UNDRAIN") || slices.Contains(said, "r01-u17 UNDRAIN") {
			t.Errorf("slurmctld was told %q", said)
		}
		if _, _, err := l.Retest(ctx, "r01-u99"); err == nil {
			t.Error("a node that is not there is tested")
		}
		return nil
	}, faults...)
	if len(sum.Accepted) != 4 || len(sum.Drift) != 0 {
		t.Errorf("%d accepted, drift %+v", len(sum.Accepted), sum.Drift)
	}
}

// TestRetestFabric: a leaf that passes less from some time in service on is named once its nodes are tested
// again, and none of them is taken out.
func TestRetestFabric(t *testing.T) {
	t.Parallel()
	slow(t)
	inv := readable(t)
	leaf := subject.ID{Kind: subject.Switch, Name: "r0001/leaf-1"}
	inService(t, inv, func(ctx context.Context, l *rehearsaltest.Later) error {
		var all []string
		for _, n := range l.Site.Inv.Nodes {
			all = append(all, n.Name)
		}
		_, res, err := l.Retest(ctx, all...)
		if err != nil {
			return err
		}
		if n, out := accepted(ctx, l); n != len(all) || len(res.Findings) != 1 || !suspects(res.Findings, leaf, "") {
			t.Errorf("%d accepted, %s, findings %+v", n, out, res.Findings)
		}
		return nil
	}, "kind=bad-leaf,switch="+leaf.Name)
}

// TestRetestAlone: of a node that is tested without any other its rails are not measured. The plan says so before, and the
// report afterwards, with the rails and the command that measures them, and that command does.
func TestRetestAlone(t *testing.T) {
	t.Parallel()
	const rails, command = "rails 0 to 7 of fabric compute", "`ironrail test r01-u17 r01-u09` drains both"
	notProven := func(ctx context.Context, l *rehearsaltest.Later) string {
		in, err := l.Site.Report(ctx, l.Store, "test", l.Clock.Now())
		var b strings.Builder
		if err == nil {
			err = report.Text(&b, in)
		}
		if err != nil {
			t.Error(err)
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	inService(t, load(t, "../../examples/hgx-h100", nil), func(ctx context.Context, l *rehearsaltest.Later) error {
		p, _, err := l.Retest(ctx, "r01-u17")
		if err != nil {
			return err
		}
		if text := strings.Join(p.Warnings, " "); strings.Count(text, rails) != 1 || !strings.Contains(text, command) {
			t.Errorf("the plan warns %q", text)
		}
		if n, out := accepted(ctx, l); n != 4 {
			t.Errorf("%d accepted, %s", n, out)
		}
		if text := notProven(ctx, l); !strings.Contains(text, rails) || !strings.Contains(text, command) {
			t.Errorf("the report says %s", text)
		}
		p, _, err = l.Retest(ctx, "r01-u17", "r01-u09")
		if err != nil {
			return err
		}
		if text := strings.Join(p.Warnings, " "); strings.Contains(text, rails) {
			t.Errorf("the plan of two warns %q", text)
		}
		if text := notProven(ctx, l); strings.Contains(text, rails) {
			t.Errorf("the report of two says %s", text)
		}
		return nil
	})
}
