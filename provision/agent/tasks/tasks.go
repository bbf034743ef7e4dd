// SPDX-License-Identifier: Apache-2.0

// Package tasks puts together what the install ramdisk can do: inspect, write,
// configure, enrol and wipe, on the disks of a real node or of a virtual one.
package tasks

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent"
	"github.com/ironrail/ironrail/provision/agent/configure"
	"github.com/ironrail/ironrail/provision/agent/efiboot"
	"github.com/ironrail/ironrail/provision/agent/inspect"
	"github.com/ironrail/ironrail/provision/agent/memory"
	"github.com/ironrail/ironrail/provision/agent/secureboot"
	"github.com/ironrail/ironrail/provision/agent/volumes"
	"github.com/ironrail/ironrail/provision/agent/wipe"
	"github.com/ironrail/ironrail/provision/agent/write"
)

// Tools are what the tasks work with. All but Settled, Neighbours, EFI, Shim and Buffers
// is required.
type Tools struct {
	Inspector inspect.Inspector // its Open opens the disks of every task
	Settled   <-chan struct{}   // closed when no more hardware is expected; an inspection waits for it; nil: it is all there
	// Neighbours tells whom the NICs have heard, at the end of a configuration; it
	// may wait some seconds. nil: nobody listens.
	Neighbours func() []wire.Neighbour
	Client     *http.Client // for images; see write.NewClient
	Mount      configure.Mount
	MakeInitrd configure.MakeInitrd          // nil: none is made
	Node       volumes.Node                  // makes disk layouts; nil: none is made
	Memory     memory.Node                   // keeps systems in memory; nil: none is kept
	EFI        efiboot.Vars                  // of the firmware, where the node has UEFI
	Shim       secureboot.Vars               // of shim, likewise
	Kexec      func(fs.FS) wire.Kexec        // has the kernel load that of a system; nil: it cannot
	Self       func() (io.ReadCloser, error) // this very program
	Workers    int                           // of a write; 0: write's default
	Buffers    *write.Buffers                // nil: each write has its own
}

// Handlers is the list of what the ramdisk can do. Reboot is the agent's own.
func Handlers(t Tools) map[wire.TaskKind]agent.Handler {
	return map[wire.TaskKind]agent.Handler{
		wire.Inspect: func(ctx context.Context, _ json.RawMessage, _ func(wire.Progress)) (any, error) {
			if t.Settled != nil {
				select {
				case <-t.Settled:
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
			return t.Inspector.Hardware(), nil
		},
		wire.Write: handler(func(ctx context.Context, p wire.WriteParams, progress func(wire.Progress)) (wire.WriteResult, error) {
			w := write.Writer{Find: t.Inspector.Find, Open: t.Inspector.Open, Progress: progress, Client: t.Client, Workers: t.Workers, Buffers: t.Buffers, Node: t.Node, Memory: t.Memory, BIOS: !t.Inspector.UEFI()}
			return w.Run(ctx, p)
		}),
		wire.Wipe: handler(func(ctx context.Context, p wire.WipeParams, progress func(wire.Progress)) (wire.WipeResult, error) {
			return wipe.Wiper{Find: t.Inspector.Find, Open: t.Inspector.Open, Progress: progress}.Run(ctx, p)
		}),
		wire.Enrol: handler(func(_ context.Context, p wire.EnrolParams, _ func(wire.Progress)) (struct{}, error) {
			if t.Shim == nil || !t.Inspector.UEFI() {
				return struct{}{}, errkind.New(errkind.Unsupported, "this node has no variables of UEFI")
			}
			return struct{}{}, secureboot.Request(t.Shim, p)
		}),
		wire.Configure: handler(func(ctx context.Context, p wire.ConfigureParams, progress func(wire.Progress)) (wire.ConfigureResult, error) {
			c := configure.Configurator{FS: t.Inspector.FS, Find: t.Inspector.Find, Open: t.Inspector.Open, Self: t.Self, Mount: t.Mount, Node: t.Node, Memory: t.Memory, Progress: progress, MakeInitrd: t.MakeInitrd, Kexec: t.Kexec}
			if t.EFI != nil && t.Inspector.UEFI() {
				c.EFI = t.EFI
			}
			r, err := c.Run(ctx, p)
			if err == nil && t.Neighbours != nil {
				r.Neighbours = t.Neighbours()
			}
			return r, err
		}),
	}
}

// handler decodes the parameters of a task for a function that takes them typed.
func handler[P, R any](do func(context.Context, P, func(wire.Progress)) (R, error)) agent.Handler {
	return func(ctx context.Context, params json.RawMessage, progress func(wire.Progress)) (any, error) {
		var p P
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, errkind.New(errkind.Internal, "parameters of the task: %w", err)
		}
		return do(ctx, p, progress)
	}
}
