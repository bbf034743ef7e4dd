// SPDX-License-Identifier: Apache-2.0

// Package supervisor owns the machines of one lab while it is up: QEMU, the BMC
// simulators, the boot order, the faults, and the record of every effect. It
// runs inside the lab's network namespace; everybody else talks to it over a
// Unix socket in the state folder.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/qemu"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Supervisor is one running lab.
type Supervisor struct {
	lab      Lab
	slog     *slog.Logger
	machines []*machine
	stop     context.CancelFunc // ends Run; set by Run
	ready    chan struct{}      // closed when every BMC answers
}

// Run supervises the lab of the state folder until ctx ends or a client asks it
// to stop, then switches every machine off and returns nil.
func Run(ctx context.Context, dir string, log *slog.Logger) error {
	lab, err := Load(dir)
	if err != nil {
		return err
	}
	release, err := Lock(dir)
	if err != nil {
		return err
	}
	defer release()
	s, closeLog, err := newSupervisor(lab, log)
	if err != nil {
		return err
	}
	defer closeLog()
	socket, err := listenSocket(lab.Socket())
	if err != nil {
		return err
	}
	ctx, s.stop = context.WithCancel(ctx)
	defer s.stop()
	return s.serve(ctx, socket)
}

func newSupervisor(lab Lab, log *slog.Logger) (*Supervisor, func(), error) {
	f, err := os.OpenFile(lab.Effects(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("effects: %w", err)
	}
	procs, err := LoadProcesses(lab.Dir)
	if err == nil {
		err = procs.Add("supervisor", os.Getpid())
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	s := &Supervisor{lab: lab, slog: log, ready: make(chan struct{})}
	effects := NewLog(f, time.Now)
	for i, m := range lab.Machines {
		s.machines = append(s.machines, &machine{
			Machine: m, files: lab.FilesOf(m.Name), sol: SOLPort(i), log: effects, slog: log, procs: procs,
			queue: make(chan action, queueLength), launch: launchVM, limitCPU: limitCPU,
			disks: func() ([]rack.Disk, error) {
				all, err := lab.LoadDisks()
				return rack.DisksOf(all, m.Name), err
			},
		})
	}
	return s, func() { _ = f.Close() }, nil
}

// listenSocket opens the control socket. A path left by a crash is replaced: the lock
// says that nobody serves it.
func listenSocket(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, errkind.New(errkind.Refused, "socket %s: the path has %d characters, the kernel takes %d", path, len(path), maxSocketPath).Do("choose a shorter --dir")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return l, nil
}

// maxSocketPath is what fits into sockaddr_un (unix(7)), less the zero.
const maxSocketPath = 107

// serve runs everything and returns when all of it has ended.
func (s *Supervisor) serve(ctx context.Context, socket net.Listener) error {
	var all sync.WaitGroup
	for _, m := range s.machines {
		disks, err := m.disks()
		if err == nil {
			err = qemu.Prepare(m.Machine, m.files, disks)
		}
		if err != nil {
			_ = socket.Close()
			return err
		}
	}
	if err := s.restoreFaults(ctx); err != nil {
		_ = socket.Close()
		return err
	}
	for _, m := range s.machines {
		serve, err := m.openPort()
		if err != nil {
			_ = socket.Close()
			s.stop()
			all.Wait()
			return err
		}
		if serve != nil {
			all.Go(func() {
				if err := serve(ctx); err != nil {
					s.slog.Error("switch port", "node", m.Name, "err", err)
				}
			})
		}
		all.Go(func() { m.run(ctx) })
		all.Go(func() { m.keepBMC(ctx) })
	}
	all.Go(func() { s.awaitBMCs(ctx) })
	context.AfterFunc(ctx, func() { _ = socket.Close() })
	s.control(ctx, socket, &all)
	s.stop() // the socket may also have failed by itself
	all.Wait()
	return nil
}

// awaitBMCs closes ready once every BMC answers.
func (s *Supervisor) awaitBMCs(ctx context.Context) {
	for _, m := range s.machines {
		if err := awaitBMC(ctx, m.BMCAddress); err != nil {
			if ctx.Err() == nil {
				s.slog.Error("bmc not ready", "node", m.Name, "err", err)
				s.stop()
			}
			return
		}
	}
	s.slog.Info("lab is up", "name", s.lab.Name, "machines", len(s.machines))
	close(s.ready)
}

func (s *Supervisor) machine(name string) (*machine, error) {
	for _, m := range s.machines {
		if m.Name == name {
			return m, nil
		}
	}
	return nil, errkind.New(errkind.Refused, "machine %q is not in this lab", name).Do("ironrail-lab status lists them")
}
