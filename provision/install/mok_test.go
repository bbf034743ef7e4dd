// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// needsKey is a chassis whose node needs the site's certificate, which its firmware does not have.
func needsKey(t *testing.T) *chassis {
	t.Helper()
	c := whole()
	c.signer, c.secure = moduleKey(t), &wire.SecureBoot{State: wire.SecureBootOn, Keys: []string{"another"}}
	c.edit = func(n *inventory.Node) {
		n.Hardware.SecureBoot, n.Hardware.Console = true, inventory.Console{Port: "ttyS0", Baud: 115200}
		n.Image.Kernel = "linux-image-6.1.0-56-amd64"
		n.Drivers = []*inventory.Driver{{Block: inventory.Block{Kind: "cuda", Name: "gpu", Value: cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal("proprietary")})}, Version: "535.261.03"}}
	}
	return c
}

// TestEnrolMOKFails: a certificate that is not enrolled at the console is a finding about the node
// with what was seen, and nothing is erased: where the console is not there, the firmware takes no
// variable, or MokManager does not come. The password stands nowhere.
func TestEnrolMOKFails(t *testing.T) {
	t.Parallel()
	prints := func(ctx context.Context, _ string, to io.Writer, _ <-chan string, up func()) error {
		up()
		_, _ = io.WriteString(to, "Booting \x1b]0;x\x07 disk\r\n") // to memory
		<-ctx.Done()
		return nil
	}
	for name, c := range map[string]struct {
		terminal typeAt
		enrols   error
		effects  string
		cause    string
		evidence string
	}{
		"no way": {nil, nil, "on", "its console cannot be typed at: this run types at no console", "neither in db nor in the MOK list"},
		"no console": {func(context.Context, string, io.Writer, <-chan string, func()) error {
			return errkind.New(errkind.Refused, "somebody else has the console open")
		}, nil, "on", "its console cannot be typed at: somebody else has the console open", "neither in db"},
		"ends":        {func(context.Context, string, io.Writer, <-chan string, func()) error { return nil }, nil, "on", "its console cannot be typed at: the console ended", "neither in db"},
		"no room":     {prints, errkind.New(errkind.Refused, "the firmware does not keep variable MokNew").Do("Reset them."), "on enrol", "the certificate cannot be handed to shim: have shim ask at the console of n1 whether certificate \"ironrail modules of s\" is enrolled: enrol: the firmware does not keep variable MokNew", "neither in db"},
		"not started": {prints, nil, "on enrol cycle", "MokManager did not enrol the certificate: MokManager was not seen on the console", "console: Booting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := needsKey(t)
			node.terminal, node.enrols = c.terminal, c.enrols
			res, _ := bringUp(t, node, fixedImages{}, plan.Options{MaxErase: 1}, nil)
			if res.Outcome == state.RunDone || node.writes != 0 || strings.Join(node.effects, " ") != c.effects {
				t.Errorf("outcome %s, %d writes, %q", res.Outcome, node.writes, node.effects)
			}
			n, _, err := state.Get[state.Node](t.Context(), node.store, state.NodeKey("n1"))
			if err != nil || n.Quarantine == nil {
				t.Fatalf("the node is not in quarantine: %v", err)
			}
			f := n.Quarantine.Finding
			if f.Cause != c.cause || !slices.ContainsFunc(f.Evidence, func(e string) bool { return strings.Contains(e, c.evidence) }) || !strings.Contains(f.Action, "state keys --certificate der") || strings.Contains(strings.Join(f.Evidence, ""), "\x1b") {
				t.Errorf("%+v", f)
			}
		})
	}
}

// releases is a run that notes what a step gives back.
type releases struct {
	stage.Run
	c *chassis
}

func (r releases) Release(resource string) {
	r.c.mu.Lock()
	r.c.note("release")
	r.c.mu.Unlock()
	r.Run.Release(resource)
}

// TestEnrolMOKHoldsInrush: the step gives its inrush back behind its own power cycle, and not when
// the agent of the boot before it answers.
func TestEnrolMOKHoldsInrush(t *testing.T) {
	t.Parallel()
	c := needsKey(t)
	c.terminal = func(ctx context.Context, _ string, _ io.Writer, _ <-chan string, up func()) error {
		up()
		<-ctx.Done()
		return nil
	}
	c.before = func(_ context.Context, run stage.Run, st plan.Step) stage.Run {
		if st.ID == StepOf("n1", MOK) {
			return releases{run, c}
		}
		return run
	}
	bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil)
	if got := strings.Join(c.effects, " "); got != "on enrol cycle release" {
		t.Errorf("got %q", got)
	}
}

// TestEnrolMOKNotNeeded: a node that has the certificate is restarted for nothing, and its console
// is not opened. One that was installed before is not inspected again for it.
func TestEnrolMOKNotNeeded(t *testing.T) {
	t.Parallel()
	c := needsKey(t)
	c.secure.Keys = append(c.secure.Keys, c.signer.Fingerprint())
	c.terminal = func(context.Context, string, io.Writer, <-chan string, func()) error {
		t.Error("the console is opened")
		return errors.New("no")
	}
	res, next := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil)
	if res.Outcome != state.RunDone || strings.Join(c.effects, " ") != "on" || c.writes != 1 {
		t.Errorf("outcome %s, %d writes, %q: %+v", res.Outcome, c.writes, c.effects, res.Steps)
	}
	if !next.Empty() {
		t.Errorf("a second plan has %d steps: %v", len(next.Steps), next.Steps)
	}
}

// TestEnrolsMOK: the step is planned where a node has a console over IPMI and needs the certificate,
// between network boot and inspection.
func TestEnrolsMOK(t *testing.T) {
	t.Parallel()
	edit := needsKey(t).edit
	for name, c := range map[string]struct {
		edit func(*inventory.Node)
		want bool
	}{
		"all":            {func(*inventory.Node) {}, true},
		"Redfish":        {func(n *inventory.Node) { n.BMC.Protocol = "redfish" }, false},
		"no console":     {func(n *inventory.Node) { n.Hardware.Console.Port = "" }, false},
		"no Secure Boot": {func(n *inventory.Node) { n.Hardware.SecureBoot = false }, false},
		"no driver":      {func(n *inventory.Node) { n.Drivers = nil }, false},
	} {
		inv := site()
		edit(inv.Nodes[0])
		c.edit(inv.Nodes[0])
		steps, diags := New(inv, map[string]string{"os": digest}, Dependencies{}).Plan(memo{})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		has := slices.ContainsFunc(steps, func(s plan.Step) bool { return s.ID == "n1/install.mok" && s.Only == plan.WhenNeeded })
		needed := slices.ContainsFunc(steps, func(s plan.Step) bool {
			return s.ID == "n1/install.inspect" && slices.ContainsFunc(s.Needs, func(x plan.Need) bool { return x.Step == "n1/install.mok" && !x.Triggers })
		})
		if has != c.want || needed != c.want || EnrolsMOK(inv.Nodes[0]) != c.want {
			t.Errorf("%s: the step is planned: %t, needed: %t", name, has, needed)
		}
	}
}

// notes is a run that keeps what is said.
type notes struct {
	stage.Run
	said []string
}

func (r *notes) Emit(e event.Event) { r.said = append(r.said, e.Text) }

// TestNoteLost: of a node that does not come back from MokManager the console is shown, without the
// password and what would move the cursor of whoever reads it.
func TestNoteLost(t *testing.T) {
	t.Parallel()
	term, run := &terminal{password: "one-time-word"}, &notes{}
	if _, err := term.screen.Write([]byte("Password: one-time-word\r\n\x1b[31mPress any key\r\n")); err != nil {
		t.Fatal(err)
	}
	term.note(run, errkind.New(errkind.Timeout, "MokManager does not go on"))
	all := strings.Join(run.said, "\n")
	if !strings.Contains(all, "MokManager, before the node was lost: MokManager does not go on") || !strings.Contains(all, "console: Press any key") {
		t.Errorf("it is said:\n%s", all)
	}
	if strings.Contains(all, "one-time-word") || strings.Contains(all, "\x1b") {
		t.Errorf("it says too much:\n%s", all)
	}
}
