// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/hub"
)

// configure writes the host's settings to the new root file system. The SSH host
// key is made there, and only its public half comes back.
func (s *Stage) configure(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	g, id, err := s.ensureAgent(ctx, run, n, st)
	if err != nil {
		return err
	}
	params, err := s.configureParams(ctx, run, n, g, id)
	if err != nil {
		return err
	}
	key := n.Name + "/" + g.Attempt + "/configure"
	if err := s.recordSettings(ctx, run, n, key); err != nil {
		return err
	}
	var res wire.ConfigureResult
	var got bool
	err = run.Effect(ctx, stage.Effect{Key: key, Kind: plan.Config, Repeatable: true, Does: "write host settings of " + n.Name,
		Probe: func(context.Context) (stage.Probe, string, error) {
			return stage.NotDone, "the agent answers the same key with the same result", nil
		},
		Do: func(ctx context.Context) error {
			out, err := s.do(ctx, run, n, wire.Configure, key, params)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(out, &res); err != nil {
				return errkind.New(errkind.Internal, "configure: the agent's answer: %w", err)
			}
			got = true
			noteBootOrder(run, res.BootOrder)
			noteKexec(run, res.Kexec)
			if err := s.learnKexec(ctx, run, n, g.Attempt, res.Kexec); err != nil {
				return err
			}
			return errors.Join(s.learnHostKey(ctx, run, n, res.HostKey), learnFact(ctx, run, cabling.NeighboursFact, n, append([]wire.Neighbour{}, res.Neighbours...)))
		}})
	if err != nil {
		return err
	}
	if err := s.phase(ctx, run, n, Verified, "configured"); err != nil || got {
		return err
	}
	if _, known, err := readFact(run, HostKeyFact, n.Name); err != nil || !known {
		return errkind.New(errkind.Internal, "host settings are written and the host key is not known: %w", err).
			Do(fmt.Sprintf("`ironrail rebuild %s` writes them again.", n.Name))
	}
	return nil
}

// configureParams are what the agent is to write, and where. What is in memory is gone with the boot
// that brought it there: it is brought again.
func (s *Stage) configureParams(ctx context.Context, run stage.Run, n *inventory.Node, g hub.Grant, id wire.Identity) (p wire.ConfigureParams, err error) {
	if n.Diskless() {
		if err := s.load(ctx, run, n, g, id); err != nil {
			return p, err
		}
		written, _, err := readFact(run, WriteFact, n.Name)
		p = s.hostSettings(n, wire.Disk{})
		p.BootOrder, p.Memory = "", &wire.InMemory{Marker: written.Key, Digest: written.Image}
		return p, err
	}
	on, err := chosen(run, n)
	if err != nil {
		return p, err
	}
	written, _, err := readFact(run, WriteFact, n.Name)
	if err != nil {
		return p, err
	}
	p = s.hostSettings(n, on[0].Disk)
	if p.Initrd, err = s.leavesInitrd(n); err != nil {
		return p, err
	}
	p.Layout, p.Kexec = onTheseDisks(written.Result.Layout, on), n.Hardware.Kexec
	return p, nil
}

// leavesInitrd reports whether the image of a node leaves it to the node to make its
// initrd.
func (s *Stage) leavesInitrd(n *inventory.Node) (bool, error) {
	img, err := s.w.Images.Image(n.Image.Name)
	if err != nil || img.Initrd == nil {
		return false, err
	}
	who, err := img.Initrd()
	return who == manifest.InitrdOnNode, err
}

// noteBootOrder says where the firmware did not take its boot order. It decides
// nothing: the boot from disk does.
func noteBootOrder(run stage.Run, o *wire.BootOrder) {
	if o != nil && o.Problem != "" {
		run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("boot order is not %s first: %q; the boot from disk decides", o.First, o.Problem)})
	}
}

// noteKexec says what the ramdisk will start, or why the firmware has to.
func noteKexec(run stage.Run, k *wire.Kexec) {
	switch {
	case k == nil:
	case k.Problem != "":
		run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("the ramdisk cannot start the installed system by kexec: %q; the firmware does", k.Problem)})
	default:
		run.Emit(event.Event{Type: event.Evidence, Text: fmt.Sprintf("kexec: %s is loaded, with %q", k.Kernel, k.Args)})
	}
}

// learnKexec records in which attempt a kernel is loaded. Without that a node that its firmware
// starts would be reset in the midst of its self-test.
func (s *Stage) learnKexec(ctx context.Context, run stage.Run, n *inventory.Node, attempt string, k *wire.Kexec) error {
	if k == nil {
		return nil
	}
	if k.Problem != "" {
		attempt = ""
	}
	return learnFact(ctx, run, KexecFact, n, attempt)
}

// learnHostKey records the host key before the effect counts as done, so that a
// crash in between repeats the harmless task instead of losing the key.
func (s *Stage) learnHostKey(ctx context.Context, run stage.Run, n *inventory.Node, line string) error {
	pub, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return errkind.New(errkind.Invalid, "configure: the node's host key %q cannot be read: %w", line, err)
	}
	return learnFact(ctx, run, HostKeyFact, n, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(pub))))
}

// hostSettings is what is written for a node. It holds no secret.
func (s *Stage) hostSettings(n *inventory.Node, disk wire.Disk) wire.ConfigureParams {
	p := hostParams(s.inv, n)
	p.Disk, p.Agent = disk, true
	if n.Hardware.Boot != inventory.BootBIOS {
		p.BootOrder = n.Hardware.BootOrder
	}
	p.AuthorizedKeys = append([]string{s.w.SSHKey}, p.AuthorizedKeys...)
	return p
}

// ConsoleArg is the kernel's console argument of a serial console.
func ConsoleArg(c inventory.Console) string {
	if c.Baud == 0 {
		return c.Port
	}
	return fmt.Sprintf("%s,%dn8", c.Port, c.Baud)
}
