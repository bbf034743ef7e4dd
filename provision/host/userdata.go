// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/userdata"
	"github.com/ironrail/ironrail/inventory"
)

// userDataPause is how long a node whose user data runs is left alone between two questions.
const userDataPause = 5 * time.Second

// userData is how far user data is on a node.
type userData struct {
	state   userdata.State
	why     string // of a failure
	content []byte // of the file that says so
	logs    string // what to read on the node
}

// readUserData asks a node how its user data ended. One that was installed without any has
// none, whatever the site's files say since.
func (w work) readUserData(ctx context.Context) (d userData, err error) {
	script, err := w.exists(ctx, userdata.ScriptFile)
	if err != nil {
		return d, err
	}
	if script {
		d.logs = "journalctl -u " + userdata.Unit
		text, there, err := w.read(ctx, "/"+userdata.RecordFile)
		if err != nil {
			return d, err
		}
		boot, _, err := w.read(ctx, "/proc/sys/kernel/random/boot_id")
		if err != nil {
			return d, err
		}
		if there {
			d.content = []byte(text)
		}
		d.state, d.why = userdata.JudgeScript(d.content, strings.TrimSpace(boot))
		return d, nil
	}
	seed, err := w.exists(ctx, userdata.SeedUserData)
	if err != nil || !seed {
		return d, err
	}
	d.logs = "/var/log/cloud-init.log and /var/log/cloud-init-output.log"
	text, there, err := w.read(ctx, "/"+userdata.ResultFile)
	if err != nil {
		return d, err
	}
	if there {
		d.content = []byte(text)
	}
	d.state, d.why = userdata.JudgeCloud(d.content)
	return d, nil
}

// exists looks for a file of the node.
func (w work) exists(ctx context.Context, name string) (bool, error) {
	out, err := w.nodes.Run(ctx, w.node, onnode.Command{Argv: []string{"test", "-e", "/" + name}})
	if err != nil {
		return false, fmt.Errorf("node %s: look for /%s: %w", w.node, name, err)
	}
	return out.Exit == 0, nil
}

// awaitUserData waits until the user data of a node has ended, and blames it where it failed.
func (w work) awaitUserData(ctx context.Context, run stage.Run, n *inventory.Node) error {
	end := run.Clock().Now().Add(userdata.Limit + time.Minute)
	for said := false; ; said = true {
		d, err := w.readUserData(ctx)
		switch {
		case err != nil:
			return errkind.Begun(err)
		case d.state == userdata.Absent || d.state == userdata.Well:
			return nil
		case d.state == userdata.Running && run.Clock().Now().After(end):
			d.why = fmt.Sprintf("user data has not ended within %s", userdata.Limit)
			return w.blameUserData(ctx, run, n, d)
		case d.state == userdata.Failed:
			return w.blameUserData(ctx, run, n, d)
		case !said:
			run.Emit(event.Event{Type: event.StepProgress, Node: n.Name, Text: "user data runs"})
		}
		if err := run.Clock().Sleep(ctx, userDataPause); err != nil {
			return err
		}
	}
}

// blameUserData is the finding about user data that failed.
func (w work) blameUserData(ctx context.Context, run stage.Run, n *inventory.Node, d userData) error {
	action := fmt.Sprintf("Read %s on the node. User data runs once: correct user_data in the site's files, then `ironrail rebuild %s` installs the node with it.", d.logs, n.Name)
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "user data"}}, Cause: d.why, Action: action}
	if len(d.content) > 0 {
		ref, err := run.Attach("user-data.json", d.content)
		if err != nil {
			return err
		}
		f.Evidence = []string{ref}
	}
	return errors.Join(run.Blame(ctx, f), errkind.Begun(errkind.New(errkind.Mismatch, "%s", d.why).Do(action)))
}
