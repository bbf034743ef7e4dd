// SPDX-License-Identifier: Apache-2.0

package switchos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
)

// Bounds of a switch's step. SONiC orders the operations of a patch so that each
// single one leaves a valid configuration, which takes minutes for hundreds.
const (
	stepLimit  = 40 * time.Minute
	applyLimit = 15 * time.Minute
	readLimit  = 2 * time.Minute
	backLimit  = 10 * time.Minute // of a rollback, also when the step has ended
)

// change is the work on one switch: to read, to patch, to read back, to keep or to
// take back.
type change struct {
	peer
	run stage.Run
	st  plan.Step
	sw  *sonic.Switch

	evidence []string // evidence
	stuck    bool     // it could not be taken back
}

// make brings the switch to what the site says. Of a few ports that do not take
// it the others are configured nevertheless.
func (c *change) make(ctx context.Context) error {
	have, err := c.now(ctx)
	if err != nil {
		return err
	}
	left, err := c.attempt(ctx, c.sw, have)
	if err == nil {
		return c.settle(ctx)
	}
	bad := c.refusedPorts(left)
	if len(bad) > 0 && !c.stuck {
		if have, again := c.now(ctx); again == nil {
			if _, again = c.attempt(ctx, c.sw.Without(bad), have); again == nil {
				c.note("the other %d ports are configured and saved", len(c.sw.Ports)-len(bad))
				return errors.Join(c.settle(ctx), c.reportPorts(ctx, bad, left, nil))
			}
		}
	}
	if k := errkind.Of(err).Base(); k != errkind.Mismatch && k != errkind.Refused {
		return errors.Join(err, c.settle(ctx)) // it cannot be reached, or we were stopped
	}
	return errors.Join(c.settle(ctx), c.reportPorts(ctx, nil, left, err))
}

// now reads the switch.
func (c *change) now(ctx context.Context) (sonic.Config, error) {
	ctx, cancel := c.run.Clock().WithTimeout(ctx, readLimit)
	defer cancel()
	return c.read(ctx, c.run, c.sw)
}

// settle remembers how the switch is now.
func (c *change) settle(ctx context.Context) error {
	ctx, cancel := c.run.Clock().WithTimeout(context.WithoutCancel(ctx), readLimit)
	defer cancel()
	have, err := c.running(ctx)
	if err != nil {
		return nil //nolint:nilerr // what was read before stands; the step has its own end
	}
	return recordObserved(ctx, c.run, c.sw, have)
}

// attempt patches what differs and saves it once it reads back as wanted; else the
// switch is as it was before, and what still differed is returned.
func (c *change) attempt(ctx context.Context, want *sonic.Switch, have sonic.Config) (left []sonic.Difference, err error) {
	todo, patch := want.Compare(have), want.Patch(have)
	now := c.run.Clock().Now().UnixNano()
	does := fmt.Sprintf("save the configuration of switch %s", c.name)
	if len(todo) > 0 {
		does = fmt.Sprintf("patch the configuration of switch %s: %s", c.name, describeFew(todo, shownDifferences))
		ref, err := c.run.Attach("patch.json", patch)
		if err != nil {
			return nil, err
		}
		c.run.Emit(event.Event{Type: event.StepProgress, Text: fmt.Sprintf("%d differences from the site; the patch is %s", len(todo), ref)})
	}
	err = c.run.Effect(ctx, stage.Effect{Key: fmt.Sprintf("%s/patch-%d", c.st.ID, now), Kind: plan.Config, Repeatable: true, Does: does,
		Do: func(ctx context.Context) (err error) {
			left, err = c.patch(ctx, want, todo, patch, fmt.Sprintf("ironrail-%d", now))
			return err
		}})
	return left, err
}

// patch is attempt without its record. name is that of the checkpoint.
func (c *change) patch(ctx context.Context, want *sonic.Switch, todo []sonic.Difference, patch []byte, name string) (left []sonic.Difference, err error) {
	if len(todo) == 0 {
		_, err := c.do(ctx, nil, "sudo", "-n", "config", "save", "-y")
		return nil, err
	}
	if _, err := c.do(ctx, nil, "sudo", "-n", "config", "checkpoint", name); err != nil {
		return todo, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, errkind.Begun(c.back(ctx, name)))
		}
		c.forget(ctx, name)
	}()
	file := "/tmp/" + name + ".json"
	switch echo, err := c.do(ctx, patch, "tee", file); {
	case err != nil:
		return todo, err
	case !bytes.Equal(echo, patch):
		return todo, errkind.New(errkind.Corrupt, "switch %s: the patch did not arrive as it was sent", c.name)
	}
	if left, err = c.load(ctx, want, todo, file); err != nil {
		return left, err
	}
	_, err = c.do(ctx, nil, "sudo", "-n", "config", "save", "-y")
	return nil, err
}

// load tries the patch, applies it, and reads back what came of it.
func (c *change) load(ctx context.Context, want *sonic.Switch, todo []sonic.Difference, file string) ([]sonic.Difference, error) {
	bound, cancel := c.run.Clock().WithTimeout(ctx, applyLimit)
	defer cancel()
	argv := []string{"sudo", "-n", "config", "apply-patch", "-n"} // tables without a YANG model are not ours
	dry, err := c.at.Run(bound, c.name, onnode.Command{Argv: append(slices.Clone(argv), "-d", file)})
	if err != nil {
		return todo, err
	}
	if dry.Exit != 0 && !strings.Contains(string(dry.Stderr), "no such option") && !strings.Contains(string(dry.Stderr), "No such option") {
		return todo, errkind.New(errkind.Refused, "switch %s refuses the patch: %s", c.name, lastLines(dry)).
			Do("Correct what it objects to: its own configuration, or the site. Nothing was changed.")
	}
	out, err := c.at.Run(bound, c.name, onnode.Command{Argv: append(argv, file)})
	if err != nil {
		return todo, err
	}
	have, err := c.running(bound)
	if err != nil {
		return todo, err
	}
	left := want.Compare(have)
	switch {
	case out.Exit != 0:
		c.note("`config apply-patch` ended with status %d: %s", out.Exit, lastLines(out))
		return left, errkind.New(errkind.Mismatch, "switch %s did not take the patch: %s", c.name, lastLines(out))
	case len(left) > 0:
		return left, errkind.New(errkind.Mismatch, "switch %s took the patch, and reads back otherwise: %s", c.name, describeFew(left, shownDifferences))
	}
	return nil, nil
}

// back takes the switch to the checkpoint, also when the step has ended.
func (c *change) back(ctx context.Context, name string) error {
	ctx, cancel := c.run.Clock().WithTimeout(context.WithoutCancel(ctx), backLimit)
	defer cancel()
	if _, err := c.do(ctx, nil, "sudo", "-n", "config", "rollback", name); err != nil {
		c.stuck = true
		c.note("it could not be taken back to checkpoint %s: %v", name, err)
		return fmt.Errorf("take it back to checkpoint %s: %w", name, err)
	}
	c.note("it was taken back to what it had before; nothing was saved")
	return nil
}

// forget removes what is left on the switch. A failed clean-up is no failed step.
func (c *change) forget(ctx context.Context, name string) {
	ctx, cancel := c.run.Clock().WithTimeout(context.WithoutCancel(ctx), readLimit)
	defer cancel()
	_, _ = c.do(ctx, nil, "rm", "-f", "/tmp/"+name+".json")
	_, _ = c.do(ctx, nil, "sudo", "-n", "config", "delete-checkpoint", name)
}

func (c *change) note(format string, args ...any) {
	c.evidence = append(c.evidence, fmt.Sprintf(format, args...))
}

// refusedPorts are the ports that what still differs is about, when these are fewer
// than half of all and nothing else differs.
func (c *change) refusedPorts(left []sonic.Difference) (ports []string) {
	for _, d := range left {
		p := c.sw.PortOf(d)
		if p == "" {
			return nil
		}
		if !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	if 2*len(ports) >= len(c.sw.Ports) {
		return nil
	}
	return ports
}

// reportPorts names the ports, or the switch as a whole, with what was seen.
func (c *change) reportPorts(ctx context.Context, ports []string, left []sonic.Difference, why error) error {
	f := stage.Finding{Action: fmt.Sprintf("See who else writes the configuration of %s (another controller, a script), and what its log says (`sudo show logging`); then apply again.", c.name)}
	var names []string
	for _, p := range c.sw.Ports {
		if slices.Contains(ports, p.Name) {
			f.Suspects = append(f.Suspects, stage.Suspect{Subject: Of(c.sw.Switch), Part: PartOf(&p)})
			names = append(names, PartOf(&p))
		}
	}
	switch {
	case len(ports) > 0:
		f.Cause = fmt.Sprintf("switch %s: port %s does not keep its configuration: %s", c.name, strings.Join(names, ", "), firstDifference(left))
	case why != nil:
		f.Suspects = []stage.Suspect{{Subject: Of(c.sw.Switch), Part: "CONFIG_DB"}}
		f.Cause = why.Error()
		if a := errkind.Action(why); a != "" {
			f.Action = a
		}
	}
	for _, d := range left[:min(len(left), shownDifferences)] {
		f.Evidence = append(f.Evidence, "read back: "+d.String())
	}
	f.Evidence = append(f.Evidence, c.evidence...)
	if err := c.run.Blame(ctx, f); err != nil {
		return err
	}
	return errkind.New(errkind.Mismatch, "%s", f.Cause).Do(f.Action)
}

// firstDifference says the first thing that is not as it should be.
func firstDifference(left []sonic.Difference) string {
	text := strings.TrimPrefix(left[0].String(), left[0].Switch+" ")
	if len(left) > 1 {
		text += fmt.Sprintf(", and %d more", len(left)-1)
	}
	return text
}

// PartOf names a port of a switch in findings, with what its cable leads to.
func PartOf(p *sonic.Port) string { return fmt.Sprintf("%s (%s)", p.Name, p.Far) }

// nodeOf is the node at the far end of a port.
func nodeOf(p *sonic.Port) (id subject.ID, ok bool) {
	if p.Far.Node == nil {
		return subject.ID{}, false
	}
	return subject.OfNode(p.Far.Node.Name), true
}
