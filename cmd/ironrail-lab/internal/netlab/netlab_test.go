// SPDX-License-Identifier: Apache-2.0

package netlab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/internal/peertest"
)

func machines() []rack.Machine {
	return []rack.Machine{{Name: "n1", BMCAddress: netip.MustParseAddr("10.77.1.11")}, {Name: "n2", BMCAddress: netip.MustParseAddr("10.77.1.12")}}
}

func TestParseRate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want Rate
		ok   bool
	}{
		{"8mbit", 8000, true}, {"800kbit", 800, true}, {"8", 0, false}, {"0mbit", 0, false}, {"-1mbit", 0, false}, {"1kbit", 0, false}, {"8mbit; reboot", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			t.Parallel()
			if got, err := ParseRate(tt.in); got != tt.want || (err == nil) != tt.ok {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	got := string(batchCommands("/state", machines()))
	for _, want := range []string{"addr add 10.77.0.2/24 dev lab-boot\n", "addr add 10.77.1.1/24 dev lab-oob\n", "addr add 10.77.1.12/32 dev lab-oob\n", "link set n2-rail master lab-rail up\n", "link set lab-oob alias /state\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "dev lab-rail\n") {
		t.Error("the rail bridge has an address")
	}
}

// TestPeerNamespace makes and removes a real namespace.
func TestPeerNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	peertest.Need(t, "ip")
	ctx, name := t.Context(), fmt.Sprintf("labnet%d", os.Getpid())
	if err := Up(ctx, name, "/state", machines()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Down(context.Background(), name); err != nil {
			t.Error(err)
		}
		if Exists(name) {
			t.Error("still there")
		}
	})
	if err := Up(ctx, name, "/other", nil); err == nil {
		t.Error("an existing namespace was taken over")
	}
	if got := OwnerOf(ctx, name); got != "/state" {
		t.Errorf("owner %q", got)
	}
	if pids, err := PIDs(ctx, name); err != nil || pids != "" {
		t.Errorf("processes %q, %v", pids, err)
	}
	testSlow(ctx, t, name, machines()[1])
}

func testSlow(ctx context.Context, t *testing.T, name string, m rack.Machine) {
	for range 2 { // a second limit replaces the first
		if err := SlowRail(ctx, name, m, 8000); err != nil {
			t.Fatal(err)
		}
	}
	show := func(dev string) string {
		out, err := runIP(ctx, nil, "tc", "-n", name, "qdisc", "show", "dev", dev)
		if err != nil {
			return err.Error()
		}
		return out
	}
	for _, dev := range []string{"n2-rail", "n2-slow"} {
		if got := show(dev); !strings.Contains(got, "tbf") || !strings.Contains(got, "rate 8Mbit") {
			t.Errorf("%s: %s", dev, got)
		}
	}
	if got := show("n1-rail"); strings.Contains(got, "tbf") {
		t.Errorf("the other rail is limited too: %s", got)
	}
	if err := ClearRail(ctx, name, m); err != nil {
		t.Fatal(err)
	}
	if got := show("n2-rail"); strings.Contains(got, "tbf") || strings.Contains(got, "ingress") {
		t.Errorf("after clear: %s", got)
	}
}
