package ramdisk

import (
	"context"
	"encoding/json"

	"github.com/ironrail/ironrail/provision/agent"
	"github.com/ironrail/ironrail/provision/agent/configure"
	"github.com/ironrail/ironrail/provision/agent/inspect"
	"github.com/ironrail/ironrail/provision/agent/wire"
	"github.com/ironrail/ironrail/provision/agent/write"
	"github.com/ironrail/ironrail/provision/errkind"
)

// handlers is the list of what the ramdisk can do. Reboot is the agent's own. self
// is the file of this very program; an inspection waits for settled.
func handlers(inspector inspect.Inspector, settled <-chan struct{}, self string) map[wire.TaskKind]agent.Handler {
	return map[wire.TaskKind]agent.Handler{
		wire.Inspect: func(ctx context.Context, _ json.RawMessage, _ func(wire.Progress)) (any, error) {
			select {
			case <-settled:
				return inspector.Hardware(), nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		},
		wire.Write: handler(func(ctx context.Context, p wire.WriteParams, progress func(wire.Progress)) (wire.WriteResult, error) {
			w := write.Writer{Find: inspector.Find, Progress: progress, Client: write.NewClient()}
			return w.Run(ctx, p)
		}),
		wire.Configure: handler(func(ctx context.Context, p wire.ConfigureParams, progress func(wire.Progress)) (wire.ConfigureResult, error) {
			c := configure.Configurator{Find: inspector.Find, Self: self, MountAt: MountPoint, Progress: progress}
			return c.Run(ctx, p)
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
