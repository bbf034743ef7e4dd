// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"context"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/onnode"
)

// TestAskNode: what the scheduler says of 12,500 nodes is read whole.
func TestAskNode(t *testing.T) {
	t.Parallel()
	all := bytes.Repeat(append(bytes.Repeat([]byte("x"), 1200), '\n'), 12_500)
	nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		if c.NeedsWhole() {
			return onnode.Output{}, onnode.Output{Omitted: 1}.Whole(), true
		}
		return onnode.Output{Stdout: all}, nil, true
	}}}
	if got, err := askNode(t.Context(), nodes, "n1", []string{"scontrol", "-o", "show", "node"}); err != nil || !bytes.Equal(got, all) {
		t.Errorf("%d of %d bytes: %v", len(got), len(all), err)
	}
}
