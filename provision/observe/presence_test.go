// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/network"
)

// full is a network on which this machine has no room for a connection.
type full struct{ network.Network }

func (full) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
}

// TestNoRoomIsNotSilence: a connection that this machine could not make says nothing of
// the node, and the plan says so; one that the node refuses is silence.
func TestNoRoomIsNotSilence(t *testing.T) {
	t.Parallel()
	ob := newObserver()
	look := func() []string {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing is tried again
		_, warnings := ob.BeginPresence(ctx, plan.Prior{}, nil).Result()
		return warnings
	}
	if got := look(); len(got) > 0 {
		t.Errorf("silent nodes: %q", got)
	}
	ob.Network = full{ob.Network}
	if got := look(); len(got) != 1 || !strings.Contains(got[0], "no room for a connection to 2 nodes: n[1-2] ") {
		t.Errorf("no room: %q", got)
	}
}
