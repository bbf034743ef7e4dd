// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/acceptance"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// origin stands at the head of every report.
const origin = "Not installed by ironrail: what is here was read over SSH; how the nodes were installed, and what they are used for, is not known."

// report says of each host whether it is accepted, as the report of a site says it of
// its nodes.
func (r *run) report(ctx context.Context, res apply.Result) (report.Input, error) {
	r.res = res
	in, err := acceptance.ReadReport(ctx, r.store, r.inv, nil, r.Text.Version, r.Now())
	if err != nil {
		return in, err
	}
	in.Site, in.Origin, in.Run, in.Findings = filepath.Base(r.Text.File), origin, "", nil
	in.Duration = report.Duration(max(0, res.Ended.Sub(res.Started)).Round(time.Millisecond))
	for i := range in.Nodes {
		r.judge(in, &in.Nodes[i], res.Findings)
	}
	for name, err := range r.failed {
		in.Nodes = append(in.Nodes, report.Node{Name: name, Status: report.NotAccepted, Findings: []report.Finding{{Part: name + " SSH", Cause: errkind.Line(err), Action: actionOf(err)}}})
	}
	in.Untested = append(in.Untested, r.untestedTexts()...)
	if r.Text.Evidence == "" {
		dropReferences(&in)
		return in, nil
	}
	return in, acceptance.AddChain(&in, r.evidence)
}

// actionOf is what to do about a host that could not be looked at.
func actionOf(err error) string {
	if a := errkind.Action(err); a != "" {
		return a
	}
	return "Look at the node: log in to it by hand, as the list of hosts says."
}

// judge makes the verdict about one host, with all that was found of it.
func (r *run) judge(in report.Input, n *report.Node, found []stage.Finding) {
	passed := n.Status == report.Accepted
	n.Findings, n.AcceptedAt, n.Reason = r.findings(*n, found), time.Time{}, ""
	switch why := r.why[n.Name]; {
	case len(n.Findings) > 0:
		n.Status = report.NotAccepted
	case !passed:
		n.Status, n.Reason = report.Unfinished, r.unfinished(n.Name)
	case !anyPassed(in.Tests, n.Name):
		n.Status, n.Reason = report.Unfinished, "none of its checks had anything to look at: a test that sees nothing accepts nobody"
	case r.busy[n.Name] != "":
		n.Status, n.Reason = report.Unfinished, "it was not loaded, as --load asks: "+r.busy[n.Name]+"; end what runs there, and test again"
	case why != "":
		n.Status, n.Reason = report.NoReference, why
	}
}

// unfinished is why the tests of a host did not end.
func (r *run) unfinished(name string) string {
	for _, n := range r.res.Nodes {
		if n.Name == name && n.Cause != nil {
			return "its tests did not end: " + n.Cause.Text
		}
	}
	return "its tests did not end"
}

// findings are all that was found of a host: in its parts, by the tests, and why a step
// of it failed.
func (r *run) findings(n report.Node, found []stage.Finding) (list []report.Finding) {
	counted := slices.ContainsFunc(found, func(f stage.Finding) bool { return concerns(f, n.Name) && strings.HasPrefix(f.Cause, "GPUs: ") })
	for _, f := range r.parts[n.Name] {
		if f.Part == "GPU" && counted { // the health checks have counted them too
			continue
		}
		list = append(list, report.Finding{Part: n.Name + " " + f.Part, Cause: f.Found, Action: testAgain(f.Action)})
	}
	tested := len(list)
	for _, f := range found {
		if concerns(f, n.Name) {
			cause := f.Cause
			if len(f.Suspects) == 1 { // it may begin with the part, which stands before it
				cause = strings.TrimPrefix(cause, f.Suspects[0].Part+": ")
			}
			list = append(list, report.Finding{Part: strings.Join(f.Parts(), ", "), Step: f.Step, Cause: cause, Evidence: f.Evidence, Action: testAgain(f.Action)})
		}
	}
	if len(list) == tested {
		for _, f := range n.Findings {
			f.Action = testAgain(f.Action)
			list = append(list, f)
		}
	}
	if f, missing := r.driverMissing(n.Name); missing {
		list = append(list, f)
	}
	return list
}

// driverMissing is the finding about a host with GPUs of which no program can tell.
func (r *run) driverMissing(name string) (report.Finding, bool) {
	for _, s := range r.surveys {
		if s.name != name {
			continue
		}
		count := countGPUs(s.hw)
		for _, p := range []struct {
			vendor, program string
			told            bool
		}{{"nvidia", "nvidia-smi", s.seen.NVIDIA != nil}, {"amd", "amd-smi", s.seen.AMD != nil}} {
			broken := slices.ContainsFunc(s.seen.Broken, func(b look.Broken) bool { return strings.HasPrefix(b.Program, p.program) })
			if count[p.vendor] > 0 && !p.told && !broken {
				return report.Finding{Part: name + " GPU driver", Cause: fmt.Sprintf("there is no %s on the node: nothing is known of its %d GPUs", p.program, count[p.vendor]), Action: "Install the GPU driver with its programs, then test again."}, true
			}
		}
	}
	return report.Finding{}, false
}

// anyPassed reports whether any check of a host had something to look at.
func anyPassed(tests []report.Test, name string) bool {
	return slices.ContainsFunc(tests, func(t report.Test) bool {
		return slices.ContainsFunc(t.Measurements, func(m report.Measurement) bool { return m.Verdict == report.Pass && slices.Contains(m.Nodes, name) })
	})
}

// concerns reports whether a finding is about a node.
func concerns(f stage.Finding, node string) bool {
	me := subject.OfNode(node)
	return slices.Contains(f.Affected, me) || slices.ContainsFunc(f.Suspects, func(s stage.Suspect) bool { return s.Subject == me })
}

// elsewhere are words of actions that speak of a site, each with those that fit nodes
// without one.
var elsewhere = []string{
	"run `ironrail apply` again", "test again",
	"then apply again", "then test again",
	"and apply again", "and test again",
	": `ironrail rebuild` installs what the site asks for.", ", and make it as the others.",
	"to kernel_args of the role's host block and apply,", "to the kernel's arguments and reboot,",
	"; a doca driver block before the cuda one has it loaded at every boot", "; at every boot by a file in /etc/modules-load.d",
	"and at time_servers of the site: the servers must be reachable", "and at its time servers: they must be reachable",
	", or give the node a hardware block of its own.", ", or test the node with others of its kind.",
	"Name the kernel of that page size in the image block (kernel) and rebuild the node,", "Install the kernel of that page size,",
}

// madeBlock is what actions say of a block that was made of what most hosts have, which is in
// no file.
var madeBlock = lazyregexp.New(`; or correct [^;]* at ` + mostFile + `:[0-9]+`)

func testAgain(action string) string {
	return strings.NewReplacer(elsewhere...).Replace(madeBlock.ReplaceAllString(action, ""))
}

// untestedTexts are what was not tested, and why.
func (r *run) untestedTexts() (list []string) {
	if !r.Load {
		list = append(list, "nothing was loaded: bandwidths of GPUs, memory, CPUs, disks and transfers between nodes were not measured (--load measures them)")
	}
	who := map[string][]string{}
	for _, s := range r.skipped {
		if who[s.what] == nil {
			list = append(list, s.what)
		}
		who[s.what] = append(who[s.what], s.host)
	}
	for i, text := range list {
		if hosts := who[text]; len(hosts) > 0 {
			list[i] = text + ": " + strings.Join(hosts, ", ")
		}
	}
	list = append(list, "all-reduces were not run: they need log-ins from node to node, which this test does not set up",
		"power supplies, fans and the event log: no BMC was asked")
	for _, h := range r.inv.Hardware {
		if words := uncompared(h); words != "" && r.Expected != nil {
			list = append(list, fmt.Sprintf("hardware.%s: nothing was held against %s", h.Name, words))
		}
	}
	for _, c := range r.cohorts {
		if len(c.members) < fewest {
			list = append(list, "versions and settings were compared with no other node's, since fewer than three are alike: "+strings.Join(c.names(), ", "))
		}
	}
	if len(r.failed) > 0 {
		list = append(list, fmt.Sprintf("%d of %d hosts were not looked at", len(r.failed), len(r.List)))
	}
	return list
}

// dropReferences takes out what refers to evidence that is not kept.
func dropReferences(in *report.Input) {
	refers := func(text string) bool { _, is := evidence.Path("/", text); return is }
	for i := range in.Nodes {
		for j := range in.Nodes[i].Findings {
			f := &in.Nodes[i].Findings[j]
			f.Evidence = slices.DeleteFunc(slices.Clone(f.Evidence), refers)
		}
	}
	for i := range in.Tests {
		for j := range in.Tests[i].Measurements {
			m := &in.Tests[i].Measurements[j]
			m.Evidence = slices.DeleteFunc(slices.Clone(m.Evidence), refers)
		}
	}
}
