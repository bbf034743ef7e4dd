// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// TestKernelLogOfManyLines: what a kernel log says behind its first megabytes is seen.
func TestKernelLogOfManyLines(t *testing.T) {
	t.Parallel()
	log := strings.Repeat("2026-03-01T12:00:00+0000 n1 kernel: audit: something that nobody asks for\n", 100_000) +
		"2026-03-01T12:09:00+0000 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
	nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{
		onnodetest.On(onnode.AgentPath+" health", "{}", 0),
		func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
			if c.Argv[0] != "journalctl" {
				return onnode.Output{}, nil, false
			}
			if c.NeedsWhole() {
				return onnode.Output{}, onnode.Output{Omitted: 1}.Whole(), true
			}
			return onnode.Output{Stdout: []byte(log)}, nil, true
		},
	}}
	seen, _, err := look.ReadNode(t.Context(), nodes, "n1", &inventory.Hardware{})
	if err != nil || seen.Kernel == nil || len(seen.Kernel.Events) != 1 {
		t.Fatalf("%v, %+v", err, seen.Kernel)
	}
}
