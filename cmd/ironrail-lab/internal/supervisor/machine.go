// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/qemu"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/internal/errkind"
)

// verb is what a machine's queue can hold.
type verb uint8

const (
	doStart      verb = iota
	doStop            // power off, hard
	doReset           // reset, with the boot order of the action
	doButton          // the power button: ask the guest to switch itself off
	doGuestOff        // the guest has switched itself off
	doGuestReset      // the guest has reset the machine
	doLink            // the fault of the management cable has changed
	doSlow            // what its disks and its CPU do less has changed
)

// action is one entry of the queue.
type action struct {
	do    verb
	index int // of the NIC, for doStart and doReset
	vm    *vm // for doGuestOff and doGuestReset: the run that it is about
}

// queueLength is more than a BMC can be asked in the time of one action.
const queueLength = 64

// machine owns one QEMU machine. Commands are noted at once under mu; run, the
// only goroutine that touches QEMU, follows in order.
type machine struct {
	rack.Machine
	files  qemu.Files
	sol    int
	log    *Log
	slog   *slog.Logger
	procs  *Processes
	queue  chan action
	launch func(logFile string, args []string) (*vm, error) // launch, or a test's
	disks  func() ([]rack.Disk, error)                      // as they are now, the system disk first
	// limitCPU lets a process of a machine have so many percent of a CPU; nil: none is limited.
	limitCPU func(pid int, machine string, percent int) error

	mu     sync.Mutex
	wanted bool           // guarded by mu: the power that was asked for
	starts int            // guarded by mu: doStart actions in the queue
	order  qemu.BootOrder // guarded by mu
	faults Faults         // guarded by mu
	vm     *vm            // guarded by mu; written by run alone; nil while off
}

// note writes an effect; a log that cannot be written is itself only logged.
func (m *machine) note(e Effect) {
	e.Machine = m.Name
	if err := m.log.Add(e); err != nil {
		m.slog.Error("effect not recorded", "node", m.Name, "err", err)
	}
}

// enqueue is called with mu held.
func (m *machine) enqueue(a action) error {
	select {
	case m.queue <- a:
		if a.do == doStart {
			m.starts++
		}
		return nil
	default:
		return errkind.New(errkind.Refused, "machine %s: %d commands wait already", m.Name, queueLength).Do("wait until the machine has settled")
	}
}

// run follows the queue until ctx ends, then switches the machine off.
func (m *machine) run(ctx context.Context) {
	for {
		var exited <-chan struct{}
		if v := m.current(); v != nil {
			exited = v.exited
		}
		select {
		case <-ctx.Done():
			m.stop(context.WithoutCancel(ctx), ByLab)
			return
		case a := <-m.queue:
			if err := m.follow(ctx, a); err != nil {
				m.slog.Error("command not carried out", "node", m.Name, "err", err)
				m.note(Effect{Kind: Faulted, What: "lab error", Note: err.Error()})
			}
		case <-exited:
			m.stop(ctx, ByCrash)
			m.offUnlessAsked()
		}
	}
}

func (m *machine) follow(ctx context.Context, a action) error {
	v := m.current()
	switch {
	case a.do == doStart:
		m.mu.Lock()
		m.starts--
		m.mu.Unlock()
		if v != nil {
			return nil
		}
		return m.start(ctx, a.index, Effect{Kind: Started, By: ByBMC})
	case v == nil:
		return nil // off: nothing to stop, reset or unplug
	case a.do == doStop:
		m.stop(ctx, ByBMC)
	case a.do == doReset:
		return m.reset(ctx, a.index, ByBMC)
	case a.do == doButton:
		return v.execute(ctx, "system_powerdown", nil, nil)
	case a.do == doGuestOff && a.vm == v:
		m.stop(ctx, ByGuest)
		m.offUnlessAsked()
	case a.do == doGuestReset && a.vm == v:
		return m.reset(ctx, m.takeOrder(), ByGuest)
	case a.do == doLink:
		return v.link(ctx, !m.fault().Unplugged)
	case a.do == doSlow:
		return m.slow(ctx, v, m.fault())
	}
	return nil
}

// takeOrder uses up the boot device asked for: it holds for the next boot,
// whoever causes it.
func (m *machine) takeOrder() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.order.Take()
}

// reset ends this run of QEMU and starts the next one.
func (m *machine) reset(ctx context.Context, index int, by By) error {
	e := Effect{Kind: Reset, By: by}
	m.end(ctx, &e)
	return m.start(ctx, index, e)
}

// start starts QEMU and records e with the order of the boot. When that goes
// wrong the power reads as off again.
func (m *machine) start(ctx context.Context, index int, e Effect) error {
	v, err := m.tryStart(ctx, index)
	if err != nil {
		by := ByCrash
		if ctx.Err() != nil {
			by = ByLab // it ends in the middle of a start
		}
		m.note(Effect{Kind: Stopped, By: by, Written: e.Written, Writes: e.Writes, Note: err.Error()})
		m.offUnlessAsked()
		return fmt.Errorf("machine %s: power on: %w", m.Name, err)
	}
	e.Boot = qemu.SourceOf(index)
	m.note(e)
	m.setVM(v)
	return nil
}

func (m *machine) tryStart(ctx context.Context, index int) (*vm, error) {
	disks, err := m.disks()
	if err != nil {
		return nil, err
	}
	if err := qemu.Prepare(m.Machine, m.files, disks); err != nil {
		return nil, err
	}
	if err := os.Remove(m.files.QMP); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	faults := m.fault()
	t, err := m.startTPM()
	if err != nil {
		return nil, err
	}
	v, err := m.launch(m.files.Log, qemu.Args(m.Machine, m.files, qemu.Start{NICIndex: index, SOLPort: m.sol, NoRail: faults.NoRail, Disks: disks}))
	if err != nil {
		t.end()
		return nil, err
	}
	v.tpm = t
	v.onGuest = func(reset bool) { m.guestActed(v, reset) }
	if err := m.procs.Add(m.Name+"/qemu", v.cmd.Process.Pid); err != nil {
		m.slog.Error("process not recorded", "node", m.Name, "err", err)
	}
	if err := v.connect(ctx, m.files.QMP); err != nil {
		v.end(ctx)
		return nil, err
	}
	if faults.DiskRate > 0 || faults.CPUShare > 0 {
		err = m.slow(ctx, v, faults)
	}
	if err == nil {
		err = v.begin(ctx, faults.Unplugged)
	}
	if err != nil {
		v.end(ctx)
		return nil, err
	}
	return v, nil
}

// guestActed is called by QMP's reader; the queue does the rest.
func (m *machine) guestActed(v *vm, reset bool) {
	a := action{do: doGuestOff, vm: v}
	if reset {
		a.do = doGuestReset
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enqueue(a); err != nil {
		m.slog.Error("the guest's own reset or power off is lost", "node", m.Name, "err", err)
	}
}

// stop switches the machine off, if it is on.
func (m *machine) stop(ctx context.Context, by By) {
	if m.current() == nil {
		return
	}
	e := Effect{Kind: Stopped, By: by}
	m.end(ctx, &e)
	m.note(e)
}

// end ends QEMU and puts into e what it wrote. A crashed run has taken its
// counters with it.
func (m *machine) end(ctx context.Context, e *Effect) {
	v := m.current()
	if e.By != ByCrash {
		var err error
		if e.Written, e.Writes, err = v.written(ctx); err != nil {
			e.Note = err.Error()
		}
	}
	v.end(ctx)
	if v.limited {
		if err := m.limitCPU(v.cmd.Process.Pid, m.Name, ended); err != nil {
			m.slog.Error("control group not removed", "node", m.Name, "err", err)
		}
	}
	if e.By == ByCrash && v.exitErr != nil {
		e.Note = v.exitErr.Error()
	}
	m.setVM(nil)
	if err := m.procs.Remove(m.Name + "/qemu"); err != nil {
		m.slog.Error("process not recorded", "node", m.Name, "err", err)
	}
}

// offUnlessAsked makes the power read as off after the machine went off by
// itself, unless a power on waits in the queue.
func (m *machine) offUnlessAsked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.starts == 0 {
		m.wanted = false
	}
}

func (m *machine) current() *vm {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.vm
}

func (m *machine) setVM(v *vm) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vm = v
}

func (m *machine) fault() Faults {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults
}
