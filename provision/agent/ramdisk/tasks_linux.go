package ramdisk

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/ironrail/ironrail/provision/agent"
	"github.com/ironrail/ironrail/provision/agent/inspect"
	"github.com/ironrail/ironrail/provision/agent/wire"
)

// handlers is the list of what the ramdisk can do.
func handlers(inspector inspect.Inspector, _ *slog.Logger) map[wire.TaskKind]agent.Handler {
	return map[wire.TaskKind]agent.Handler{
		wire.Inspect: func(context.Context, json.RawMessage, func(wire.Progress)) (any, error) {
			return inspector.Hardware(), nil
		},
	}
}
