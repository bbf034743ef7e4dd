// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// The exit codes of the product that tests ask for.
const (
	ExitDone       = 0
	ExitFailed     = 1
	ExitChanges    = 2
	ExitSomeFailed = 3
	ExitOwned      = 11
)

// decode reads what a command printed with --json.
func decode[T any](l *Lab, args ...string) (v T) {
	l.t.Helper()
	res := l.Ironrail(append(args, "--json")...)
	if res.Code != ExitDone {
		l.t.Fatalf("ironrail %q: %s", args, res)
	}
	if err := json.Unmarshal([]byte(res.Stdout), &v); err != nil {
		l.t.Fatalf("ironrail %q: %v: %s", args, err, res)
	}
	return v
}

// Status says where every node stands.
func (l *Lab) Status() control.Status { l.t.Helper(); return decode[control.Status](l, "status") }

// Why tells the story of a node.
func (l *Lab) Why(node string) control.Why { l.t.Helper(); return decode[control.Why](l, "why", node) }

// Power asks every BMC.
func (l *Lab) Power() []control.BMCAnswer {
	l.t.Helper()
	return decode[[]control.BMCAnswer](l, "power", "status")
}

// Plan says what there is to do.
func (l *Lab) Plan(args ...string) plan.Plan {
	l.t.Helper()
	return decode[plan.Plan](l, append([]string{"plan"}, args...)...)
}

// Report is the acceptance report.
func (l *Lab) Report() report.Input { l.t.Helper(); return decode[report.Input](l, "report") }

// Want fails the test unless the command ended with this code.
func (l *Lab) Want(code int, res Result) {
	l.t.Helper()
	if res.Code != code {
		l.t.Fatalf("want exit %d, got %s", code, res)
	}
}

// Accepted fails the test unless these nodes are accepted, in state and report.
func (l *Lab) Accepted(nodes ...string) {
	l.t.Helper()
	status, rep := l.Status(), l.Report()
	for _, name := range nodes {
		for _, n := range status.Nodes {
			if n.Name == name && (!n.Accepted || n.Quarantine != nil) {
				l.t.Errorf("status: %s is not accepted: %+v", name, n)
			}
		}
		if n := reported(rep, name); n.Status != report.Accepted {
			l.t.Errorf("report: %s is %s (%s)", name, n.Status, n.Reason)
		}
	}
}

func reported(r report.Input, name string) report.Node {
	i := slices.IndexFunc(r.Nodes, func(n report.Node) bool { return n.Name == name })
	if i < 0 {
		return report.Node{Status: "missing"}
	}
	return r.Nodes[i]
}

// Quarantined fails the test unless the node is quarantined with a cause and a
// next action that hold these words, and with evidence. The verdict is logged.
func (l *Lab) Quarantined(node, cause, action string) {
	l.t.Helper()
	w := l.Why(node)
	q := w.Node.Quarantine
	if q == nil || w.Node.Accepted {
		l.t.Errorf("%s is not quarantined: %+v", node, w.Node)
		return
	}
	f := q.Finding
	l.t.Logf("%s: cause: %s\n  evidence: %q\n  action: %s\n  step: %s, suspects: %v", node, f.Cause, f.Evidence, f.Action, f.Step, f.Suspects)
	if !strings.Contains(f.Cause, cause) {
		l.t.Errorf("%s: cause %q lacks %q", node, f.Cause, cause)
	}
	if f.Action == "" || !strings.Contains(f.Action, action) {
		l.t.Errorf("%s: action %q lacks %q", node, f.Action, action)
	}
	if len(f.Evidence) == 0 {
		l.t.Errorf("%s: no evidence for %q", node, f.Cause)
	}
	if n := reported(l.Report(), node); n.Status != report.Quarantined || len(n.Findings) == 0 {
		l.t.Errorf("report: %s is %s, findings %v", node, n.Status, n.Findings)
	}
}

// Refused fails the test unless the node is quarantined and its finding names these
// disks by their serial numbers. The verdict is logged.
func (l *Lab) Refused(node string, serials ...string) {
	l.t.Helper()
	q := l.Why(node).Node.Quarantine
	if q == nil {
		l.t.Errorf("%s is not quarantined", node)
		return
	}
	f := q.Finding
	l.t.Logf("%s: cause: %s\n  evidence: %q\n  action: %s", node, f.Cause, f.Evidence, f.Action)
	text := f.Cause + "\n" + strings.Join(f.Evidence, "\n")
	for _, serial := range serials {
		if !strings.Contains(text, serial) {
			l.t.Errorf("%s: the refusal does not name disk %s", node, serial)
		}
	}
	if f.Action == "" {
		l.t.Errorf("%s: the refusal says nothing to do", node)
	}
}

// PowerOff switches a machine off by its BMC, with a client that is not ours.
func (l *Lab) PowerOff(machine string) {
	l.t.Helper()
	bmc := "10.77.1.1" + strings.TrimPrefix(machine, "n") // as the CSV has it
	if out := l.Inside("ipmitool", "-I", "lanplus", "-C", "3", "-H", bmc, "-U", "admin", "-E", "power", "off"); out.Code != 0 {
		l.t.Fatalf("%s: power off: %s", machine, out)
	}
	l.waitOff(machine, commandLimit)
}

// Halt has the system of a node switch it off, and waits until it is. A TPM counts a loss of power as
// a try to guess its secrets, and takes none for a while after some.
func (l *Lab) Halt(node string) {
	l.t.Helper()
	l.OnNode(node, "systemd-run --quiet --on-active=1 systemctl poweroff")
	l.waitOff(node, applyLimit)
}

// waitOff waits until a machine is switched off.
func (l *Lab) waitOff(machine string, limit time.Duration) {
	l.t.Helper()
	for until := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		out := l.lab("status", "--dir", l.machines, "--json")
		var st struct {
			Machines []struct {
				Name    string
				Running bool
			}
		}
		if err := json.Unmarshal([]byte(out.Stdout), &st); err != nil {
			l.t.Fatalf("status: %v: %s", err, out)
		}
		if !slices.ContainsFunc(st.Machines, func(m struct {
			Name    string
			Running bool
		}) bool {
			return m.Name == machine && m.Running
		}) {
			return
		}
		if time.Now().After(until) {
			l.t.Fatalf("%s is still running", machine)
		}
	}
}

// Stats are what the lab counted of one machine; see `ironrail-lab stats`.
type Stats struct {
	Commands map[string]int `json:"commands"`
	Cycles   int            `json:"cycles"`
	Starts   int            `json:"starts"`
	Resets   map[string]int `json:"resets"`
	Boots    struct {
		Net  int `json:"net"`
		Disk int `json:"disk"`
	} `json:"boots"`
	Disk struct {
		WrittenBytes int64 `json:"written_bytes"`
		Writes       int64 `json:"writes"`
	} `json:"disk"`
}

// Stats returns the counts of a machine, zero when nothing happened to it.
func (l *Lab) Stats(machine string) Stats {
	l.t.Helper()
	res := l.lab("stats", "--dir", l.machines)
	all := map[string]Stats{}
	if err := json.Unmarshal([]byte(res.Stdout), &all); err != nil {
		l.t.Fatalf("stats: %v: %s", err, res)
	}
	return all[machine]
}

// Untouched fails the test if anything was written to the machine's disk.
func (l *Lab) Untouched(machines ...string) {
	l.t.Helper()
	for _, m := range machines {
		if s := l.Stats(m); s.Disk.WrittenBytes != 0 || s.Disk.Writes != 0 {
			l.t.Errorf("%s: %d bytes were written to its disk", m, s.Disk.WrittenBytes)
		}
	}
}

// Fact returns one fact of a node, decoded; the test fails without it.
func Fact[T any](l *Lab, name fact.Name[T], node string) (v T) {
	l.t.Helper()
	s := l.store()
	defer s.Close()
	f, version, err := state.Get[fact.Fact](l.t.Context(), s, state.FactKey(name.Of(subject.OfNode(node))))
	if err != nil || version == state.Absent {
		l.t.Fatalf("fact %s of %s is not known: %v", name, node, err)
	}
	if err := json.Unmarshal(f.Value, &v); err != nil {
		l.t.Fatal(err)
	}
	return v
}

// Verdicts are the judgements of the report without their figures, which vary:
// "rdma.write_bw n1,n2 rail 0: pass".
func (l *Lab) Verdicts() (out []string) {
	l.t.Helper()
	for _, t := range l.Report().Tests {
		for _, m := range t.Measurements {
			out = append(out, strings.TrimSpace(m.Check+" "+strings.Join(m.Nodes, ",")+" "+m.Part)+": "+m.Verdict)
		}
	}
	slices.Sort(out)
	return out
}
