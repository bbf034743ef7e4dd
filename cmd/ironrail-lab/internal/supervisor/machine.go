package supervisor

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/qemu"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/provision/errkind"
)

// verb is what a machine's queue can hold.
type verb uint8

const (
	doStart  verb = iota
	doStop        // power off, hard
	doReset       // reset, with the boot order of the action
	doButton      // the power button: ask the guest to switch itself off
	doDown        // the guest has switched itself off
	doLink        // the fault of the management cable has changed
)

// action is one entry of the queue.
type action struct {
	do    verb
	index int // of the NIC, for doStart and doReset
	vm    *vm // for doDown: the run that it is about
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
		return m.start(ctx, a.index)
	case v == nil:
		return nil // off: nothing to stop, reset or unplug
	case a.do == doStop:
		m.stop(ctx, ByBMC)
	case a.do == doReset:
		return v.reset(ctx, a.index)
	case a.do == doButton:
		return v.execute(ctx, "system_powerdown", nil, nil)
	case a.do == doDown && a.vm == v:
		m.stop(ctx, ByGuest)
		m.offUnlessAsked()
	case a.do == doLink:
		return v.link(ctx, !m.fault().Unplugged)
	}
	return nil
}

// start starts QEMU. When that goes wrong the power reads as off again.
func (m *machine) start(ctx context.Context, index int) error {
	if m.current() != nil {
		return nil
	}
	err := m.tryStart(ctx, index)
	if err != nil {
		m.offUnlessAsked()
	}
	return err
}

func (m *machine) tryStart(ctx context.Context, index int) error {
	if err := qemu.Prepare(m.Machine, m.files); err != nil {
		return err
	}
	if err := os.Remove(m.files.QMP); err != nil && !os.IsNotExist(err) {
		return err
	}
	faults := m.fault()
	v, err := m.launch(m.files.Log, qemu.Args(m.Machine, m.files, qemu.Start{NICIndex: index, SOLPort: m.sol, NoRail: faults.NoRail}))
	if err != nil {
		return err
	}
	v.index = index
	v.onReset = func(by By, from qemu.Source) { m.note(Effect{Kind: Reset, By: by, Boot: from}) }
	v.onDown = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if err := m.enqueue(action{do: doDown, vm: v}); err != nil {
			m.slog.Error("switched itself off", "node", m.Name, "err", err)
		}
	}
	if err := m.procs.Add(m.Name+"/qemu", v.cmd.Process.Pid); err != nil {
		m.slog.Error("process not recorded", "node", m.Name, "err", err)
	}
	if err := v.connect(ctx, m.files.QMP); err != nil {
		v.end(ctx)
		return err
	}
	m.note(Effect{Kind: Started, By: ByBMC, Boot: qemu.SourceOf(index)})
	if err := v.begin(ctx, faults.Unplugged); err != nil {
		v.end(ctx)
		m.note(Effect{Kind: Stopped, By: ByCrash, Note: err.Error()})
		return err
	}
	m.setVM(v)
	return nil
}

// stop ends QEMU, if it runs, and records what it wrote. A crashed run has
// taken its counters with it.
func (m *machine) stop(ctx context.Context, by By) {
	v := m.current()
	if v == nil {
		return
	}
	e := Effect{Kind: Stopped, By: by}
	if by != ByCrash {
		var err error
		if e.Written, e.Writes, err = v.written(ctx); err != nil {
			e.Note = err.Error()
		}
	}
	v.end(ctx)
	if by == ByCrash && v.exitErr != nil {
		e.Note = v.exitErr.Error()
	}
	m.setVM(nil)
	if err := m.procs.Remove(m.Name + "/qemu"); err != nil {
		m.slog.Error("process not recorded", "node", m.Name, "err", err)
	}
	m.note(e)
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
