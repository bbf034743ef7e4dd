// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
)

// Prefix is the node's address on its boot network.
func Prefix(n *inventory.Node) netip.Prefix {
	bits := n.Address.BitLen()
	if n.BootNetwork != nil {
		bits = n.BootNetwork.CIDR.Bits()
	}
	return netip.PrefixFrom(n.Address, bits)
}

// observeBoot asks the installed node over SSH whether it runs what was written.
func (s *Stage) observeBoot(ctx context.Context, run stage.Run, n *inventory.Node) (stage.Observation, error) {
	if _, ok, err := readFact(run, HostKeyFact, n.Name); err != nil || !ok {
		return stage.Observation{State: stage.Unknown}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	sys, err := s.system(ctx, n.Name)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	if w, ok, err := readFact(run, WriteFact, n.Name); err != nil || !ok || w.Key != sys.Marker {
		return stage.Observation{State: stage.Unknown, Evidence: "runs " + sys.Marker}, err
	}
	if err := checkRootDisk(run, n, sys); err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	if err := s.phase(ctx, run, n, Ended, "installed"); err != nil {
		return stage.Observation{}, err
	}
	return stage.Observation{State: stage.Conforms, Evidence: "runs kernel " + sys.Kernel}, learnFact(ctx, run, SystemFact, n, sys)
}

// system asks an installed node what it runs.
func (s *Stage) system(ctx context.Context, node string) (sys System, err error) {
	err = onnode.Agent(ctx, s.w.Nodes, node, struct{}{}, &sys, "check")
	return sys, err
}

// boot sends the node to its disk and waits for a login with the pinned key.
func (s *Stage) boot(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	at, _ := s.w.Boots.Current(n.Name)
	if err := s.leaveRamdisk(ctx, run, n, at); err != nil {
		return err
	}
	if err := s.phase(ctx, run, n, Ended, "sent to its disk"); err != nil {
		return err
	}
	return s.waitLogin(ctx, run, n, st)
}

// leaveRamdisk has the agent reboot its node. Without an agent it powers the node
// on, if need be; one with power whose agent never calls again has rebooted
// already: the run was killed before that was recorded.
func (s *Stage) leaveRamdisk(ctx context.Context, run stage.Run, n *inventory.Node, at Attempt) error {
	into := "reboot " + n.Name + " into its disk"
	if n.Diskless() {
		into = "start the system of " + n.Name + " in memory"
	}
	if _, here := s.w.Hub.Connected(at.grant()); !here {
		if up, err := s.powerUp(ctx, run, n, at); up || err != nil {
			return err
		}
		if back, err := s.agentReturns(ctx, run, at); !back || err != nil {
			return err
		}
	}
	if err := s.restoreBootDevice(ctx, run, n, at); err != nil {
		return err
	}
	return run.Effect(ctx, stage.Effect{Key: n.Name + "/" + at.ID + "/reboot", Kind: plan.Power, Does: into, Repeatable: true,
		Probe: func(context.Context) (stage.Probe, string, error) {
			return stage.NotDone, "the agent of the ramdisk still answers", nil
		},
		Do: func(ctx context.Context) error {
			_, err := s.do(ctx, run, n, wire.Reboot, at.ID+"/reboot", wire.RebootParams{Kexec: n.Hardware.Kexec, SwitchRoot: n.Diskless()})
			return err
		}})
}

// callsAgain is how long an agent may take to call a controller that was started
// again: as long as the hub lets one be silent.
const callsAgain = 100 * time.Second

// agentReturns waits for the agent of a live attempt, which has to find out first
// that there is a controller again. It reports whether it came.
func (s *Stage) agentReturns(ctx context.Context, run stage.Run, at Attempt) (bool, error) {
	if !at.live(run.Clock().Now()) {
		return false, nil
	}
	wait, cancel := run.Clock().WithTimeout(ctx, callsAgain)
	defer cancel()
	if _, err := s.w.Hub.Wait(wait, at.grant()); err == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return false, nil
}

// powerUp switches on a node that has no power and whose agent is gone: a run
// that was killed between its reboot and its login. It reports whether it did.
func (s *Stage) powerUp(ctx context.Context, run stage.Run, n *inventory.Node, at Attempt) (bool, error) {
	control, err := s.control(ctx, n)
	if err != nil {
		return false, err
	}
	state, err := control.PowerState(ctx)
	if err != nil || state != bmc.PowerOff {
		return false, err
	}
	if n.Diskless() {
		return false, errkind.New(errkind.NotFound, "%s was switched off, and its system was in memory", n.Name).Do(fmt.Sprintf("`ironrail rebuild %s` boots it again; no disk is touched.", n.Name))
	}
	return true, run.Effect(ctx, stage.Effect{Key: n.Name + "/" + at.ID + "/power-to-disk", Kind: plan.Power, Does: "power on " + n.Name, Repeatable: true,
		Probe: func(ctx context.Context) (stage.Probe, string, error) { return stage.NotDone, "power was off", nil },
		Do: func(ctx context.Context) error {
			_, err := control.SetPower(ctx, bmc.On)
			return err
		}})
}

// pollPause is how long to wait until the node is asked again: a twentieth of
// what it took until now, since thousands may be booting.
func pollPause(since time.Duration) time.Duration {
	return min(max(since/20, time.Second), 5*time.Second)
}

// waitLogin polls until the node runs the system that was written.
func (s *Stage) waitLogin(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	w, ok, err := readFact(run, WriteFact, n.Name)
	if err != nil || !ok {
		return errkind.New(errkind.Internal, "no write is recorded: %w", err)
	}
	began := run.Clock().Now()
	p := s.watchLogin(run, n, st, began)
	p.report(run, began, true)
	for {
		try, cancel := context.WithTimeout(ctx, 15*time.Second)
		sys, err := s.system(try, n.Name)
		cancel()
		switch k := errkind.Of(err); {
		case err == nil:
			return s.cameUp(ctx, run, n, sys, w.Key)
		case k == errkind.Auth || k.Base() == errkind.Mismatch:
			return s.noLogin(ctx, run, n, err)
		}
		now := run.Clock().Now()
		p.poll(now)
		p.noteLoginError(err, now)
		p.report(run, now, false)
		if p.isSilent(now) {
			if p = s.leaveToFirmware(ctx, run, n, st, p); p == nil {
				return s.noLogin(ctx, run, n, err)
			}
		}
		if sleep := run.Clock().Sleep(ctx, pollPause(now.Sub(began))); errors.Is(sleep, context.DeadlineExceeded) {
			return s.noLogin(context.WithoutCancel(ctx), run, n, err) // it never stopped to show progress, and never came up
		} else if sleep != nil {
			return sleep
		}
	}
}

// cameUp judges what a node runs that has answered: the system of a write, on the disk that was written.
func (s *Stage) cameUp(ctx context.Context, run stage.Run, n *inventory.Node, sys System, write string) error {
	if other := checkRootDisk(run, n, sys); other != nil {
		return s.blameRootDisk(ctx, run, n, other)
	}
	if sys.Marker != write {
		return s.noLogin(ctx, run, n, errkind.New(errkind.Mismatch, "the node runs a system of write %q, not of %q: it booted another disk", sys.Marker, write).
			Do("Check the boot order of the firmware."))
	}
	noteArrays(run, sys)
	if f := cmp.Or(compareSecureBoot(n, sys.SecureBoot), s.compareModuleKey(n, sys.SecureBoot)); f != nil {
		return blameHardware(ctx, run, n, []Fault{*f})
	}
	noteSecureBoot(run, n, sys.SecureBoot)
	return learnFact(ctx, run, SystemFact, n, sys)
}

// kexecSilence is how long a node may show nothing whose ramdisk has started its system: no firmware
// tests itself meanwhile. Belief: kernel and initrd print within seconds, and a disk is
// checked within minutes.
const kexecSilence = 5 * time.Minute

// watchLogin begins to look at a node that is to come up from its disk.
func (s *Stage) watchLogin(run stage.Run, n *inventory.Node, st plan.Step, now time.Time) *progress {
	p := s.watchProgress(n, st, now, "waits for SSH on "+n.Address.String())
	at, _ := s.w.Boots.Current(n.Name)
	if loaded, ok, err := readFact(run, KexecFact, n.Name); n.Hardware.Kexec && err == nil && ok && loaded != "" && loaded == at.ID {
		p.kexec, p.limit = true, min(p.limit, kexecSilence)
	}
	return p
}

// leaveToFirmware resets a node whose ramdisk may have started its system, and that has shown nothing
// since, and begins to look anew: a device that another kernel has used does not always come
// up again without the firmware. nil: the firmware had its turn, or the BMC does not reset it.
func (s *Stage) leaveToFirmware(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step, p *progress) *progress {
	if !p.kexec {
		return nil
	}
	at, _ := s.w.Boots.Current(n.Name)
	run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("nothing was seen of the node for %s since its ramdisk was to start the installed system: it is reset, and the firmware starts it", p.limit)})
	err := run.Effect(ctx, stage.Effect{Key: n.Name + "/" + at.ID + "/reset-after-kexec", Kind: plan.Power, Does: "reset " + n.Name + ", which did not come up by kexec", Repeatable: true,
		Do: func(ctx context.Context) error {
			control, err := s.control(ctx, n)
			if err == nil {
				_, err = control.SetPower(ctx, bmc.Reset)
			}
			return err
		}})
	if err != nil {
		run.Emit(event.Event{Type: event.Note, Text: "it was not reset: " + err.Error()})
		return nil
	}
	return s.watchProgress(n, st, run.Clock().Now(), "waits for SSH on "+n.Address.String()+", started by the firmware")
}

// checkRootDisk compares the disk that a node runs from with the one that its image
// was written to, by their serial numbers. Where either is not known there is
// nothing to compare.
func checkRootDisk(run factReader, n *inventory.Node, sys System) error {
	want, is, err := otherRoot(run, n, sys)
	if err != nil || is == nil {
		return err
	}
	by := ""
	if o := sys.BootOrder; o != nil {
		if e, ok := o.Entry(o.Current); ok {
			by = fmt.Sprintf("; the firmware started it by Boot%04X %q", e.Number, e.Name)
		}
	}
	return errkind.New(errkind.Mismatch, "the node runs from disk %s (%s, serial %q); its image was written to disk %s (%s, serial %q)%s",
		is.Name, is.Model, is.Serial, want.Name, want.Model, want.Serial, by).
		Do(fmt.Sprintf("Put disk %s first in the boot order of the firmware, or take the system off disk %s, and boot %s again.", want.Serial, is.Serial, n.Name))
}

// otherRoot returns a disk that a node's system lies on and that its image was not written
// to, with the one that it was; nil: there is none.
func otherRoot(run factReader, n *inventory.Node, sys System) (want wire.Disk, is *wire.Disk, err error) {
	want, ok, err := readFact(run, DiskFact, n.Name)
	if err != nil || !ok || n.Diskless() { // what is known of a disk is from before
		return want, nil, err
	}
	written, roots := []wire.Disk{want}, sys.Roots
	if w, ok, err := readFact(run, WriteFact, n.Name); err != nil {
		return want, nil, err
	} else if ok && len(w.Disks) > 0 {
		written = disksIn(w.Disks)
	}
	if sys.Root != nil {
		roots = []wire.Disk{*sys.Root}
	}
	if slices.ContainsFunc(written, func(d wire.Disk) bool { return d.Serial == "" }) {
		return want, nil, nil
	}
	for i, r := range roots {
		if r.Serial != "" && !slices.ContainsFunc(written, func(d wire.Disk) bool { return d.Serial == r.Serial }) {
			return want, &roots[i], nil
		}
	}
	return want, nil, nil
}

// noteArrays says which arrays the kernel still copies: what loads or measures the node
// meanwhile shares its disks with that.
func noteArrays(run stage.Run, sys System) {
	for _, a := range sys.Arrays {
		if a.Doing != "" {
			run.Emit(event.Event{Type: event.Evidence, Text: fmt.Sprintf("array %s (%s) is being copied onto its disks: %s at %.0f %%; its disks are slower until that ends", a.Name, a.Level, a.Doing, a.Percent)})
		}
		if a.Active < a.Disks {
			run.Emit(event.Event{Type: event.Evidence, Text: fmt.Sprintf("array %s (%s) has %d of %d disks", a.Name, a.Level, a.Active, a.Disks)})
		}
	}
}

// blameRootDisk is the finding of a node that booted another disk.
func (s *Stage) blameRootDisk(ctx context.Context, run stage.Run, n *inventory.Node, err error) error {
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "disk " + n.Disks.On}},
		Cause: "the firmware boots another disk than the one that was written", Evidence: []string{err.Error()}, Action: errkind.Action(err)}
	if berr := run.Blame(ctx, f); berr != nil {
		return berr
	}
	return fmt.Errorf("boot from disk: %w", err)
}

// noLogin blames the boot from disk.
func (s *Stage) noLogin(ctx context.Context, run stage.Run, n *inventory.Node, err error) error {
	action := errkind.Action(err)
	if action == "" {
		action = fmt.Sprintf("Read the serial console of %s: the firmware may not boot this disk, or the kernel may have stopped.", n.Name)
		if n.Diskless() {
			action = fmt.Sprintf("Read the serial console of %s: its system may have stopped while it started, or the node lost its power; `ironrail rebuild %s` boots it again.", n.Name, n.Name)
		}
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "memory"}},
		Cause: "the image is in memory, and the node does not answer from it", Evidence: []string{err.Error()}, Action: action}
	from := "start from memory"
	if !n.Diskless() {
		f.Suspects[0].Part, f.Cause, from = "disk "+n.Disks.On, "the image is on the disk, and the node does not answer from it", "boot from disk"
	}
	if berr := run.Blame(ctx, f); berr != nil {
		return berr
	}
	return fmt.Errorf("%s: %w", from, err)
}
