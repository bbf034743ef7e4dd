// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
)

// offers are the events of a node that took the offer of another DHCP server.
func offers() []BootEvent {
	return []BootEvent{{boot.Evidence{Proto: boot.DHCP, What: dhcp.EventOffer, Detail: "a PXE firmware is offered 10.0.0.11"}},
		{boot.Evidence{Proto: boot.DHCP, What: dhcp.EventOtherServer, Detail: "takes the offer of the DHCP server 10.0.0.9"}}}
}

// TestOtherServersOffer: a node that took the offer of another DHCP server is not
// blamed for it, and the other server is its cause.
func TestOtherServersOffer(t *testing.T) {
	t.Parallel()
	c := whole()
	c.silent, c.alone = true, func() BootNetwork { return BootNetwork{} }
	res, next := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, offers())
	n := res.Nodes[0]
	if n.Outcome != apply.NodeSkipped || n.Finding != nil || n.Cause == nil || n.Cause.Kind != state.BySite || !strings.Contains(n.Cause.Text, "10.0.0.9") {
		t.Errorf("the node is %s, finding %+v, cause %+v; want it skipped because of the server 10.0.0.9", n.Outcome, n.Finding, n.Cause)
	}
	for _, f := range res.Findings {
		t.Errorf("a finding of %v: %s", f.Suspects, f.Cause)
	}
	if next.Empty() {
		t.Error("the next plan does not bring the node up")
	}
}

// TestWaitsToBeAlone: beside another DHCP server no node is powered; when it is gone
// they go on, and when it stays they are left as they are and not blamed.
func TestWaitsToBeAlone(t *testing.T) {
	t.Parallel()
	t.Run("it goes", func(t *testing.T) {
		t.Parallel()
		c := whole()
		var looks atomic.Int32
		c.alone = func() BootNetwork {
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.effects) > 0 {
				t.Errorf("power %v while the other server was there", c.effects)
			}
			switch looks.Add(1) {
			case 1:
				return BootNetwork{SearchUntil: time.Now().Add(10 * time.Millisecond)}
			case 2:
				return BootNetwork{OtherServer: "the DHCP server 10.0.0.9", Since: time.Now()}
			}
			return BootNetwork{}
		}
		res, _ := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil)
		if res.Outcome != state.RunDone || strings.Join(c.effects, " ") != "on" {
			t.Errorf("outcome %s, power %v", res.Outcome, c.effects)
		}
	})
	t.Run("it stays", func(t *testing.T) {
		t.Parallel()
		c := whole()
		c.alone = func() BootNetwork {
			return BootNetwork{OtherServer: "the DHCP server 10.0.0.9", Since: time.Now().Add(-OtherServerTimeout - time.Second)}
		}
		res, _ := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil)
		n := res.Nodes[0]
		if len(c.effects) != 0 || n.Outcome != apply.NodeSkipped || n.Finding != nil || n.Cause == nil || !strings.Contains(n.Cause.Text, "10.0.0.9") {
			t.Errorf("power %v, the node is %s, finding %+v, cause %+v", c.effects, n.Outcome, n.Finding, n.Cause)
		}
	})
}

// TestUntaggedLoader: no node is powered whose VLAN the controller's iPXE would not be on; others are.
func TestUntaggedLoader(t *testing.T) {
	t.Parallel()
	for vlan, powered := range map[int]string{0: "on", 30: ""} {
		c := whole()
		c.edit = func(n *inventory.Node) { n.BootNetwork.VLAN = vlan }
		c.alone = func() BootNetwork { return BootNetwork{Untagged: "1.0.0+git-20190125"} }
		res, _ := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil)
		n := res.Nodes[0]
		if strings.Join(c.effects, " ") != powered {
			t.Errorf("VLAN %d: power %v", vlan, c.effects)
		}
		if vlan != 0 && (n.Outcome != apply.NodeSkipped || n.Finding != nil || n.Cause == nil || !strings.Contains(n.Cause.Text, "vlan = 30, and the iPXE of this controller, 1.0.0+git-20190125")) {
			t.Errorf("the node is %s, finding %+v, cause %+v", n.Outcome, n.Finding, n.Cause)
		}
	}
}

// TestDiagnoseOtherServer: what we served after the other's offer was taken decides.
func TestDiagnoseOtherServer(t *testing.T) {
	t.Parallel()
	n := site().Nodes[0]
	if d := Diagnose(n, offers(), nil); !strings.Contains(d.Cause, "10.0.0.9") || strings.Contains(d.Action, "TFTP") {
		t.Errorf("%+v", d)
	}
	seen := append(offers(), BootEvent{boot.Evidence{Proto: boot.DHCP, What: dhcp.EventAck}}, BootEvent{boot.Evidence{Proto: boot.TFTP, What: "done"}})
	if d := Diagnose(n, seen, nil); strings.Contains(d.Cause, "10.0.0.9") {
		t.Errorf("the node came further with us: %+v", d)
	}
}

// TestDiagnoseProxy: beside a DHCP server of the site's own, what that server did not give
// is the cause.
func TestDiagnoseProxy(t *testing.T) {
	t.Parallel()
	n := *site().Nodes[0]
	of := *n.BootNetwork
	of.DHCP.Mode = inventory.DHCPProxy
	n.BootNetwork = &of
	event := func(proto boot.Proto, what, detail string) BootEvent {
		return BootEvent{boot.Evidence{Proto: proto, What: what, Detail: detail, Refused: what == dhcp.EventOtherAddress}}
	}
	offer, leased := event(boot.DHCP, dhcp.EventOffer, ""), event(boot.DHCP, dhcp.EventLeased, "")
	other := event(boot.DHCP, dhcp.EventOtherAddress, "the DHCP server 10.0.0.9 gives it 10.0.0.77")
	for _, tt := range []struct {
		seen []BootEvent
		want string
	}{
		{[]BootEvent{offer}, "took no address"},
		{[]BootEvent{offer, leased}, "never fetched its loader"},
		{[]BootEvent{offer, other}, "gives it 10.0.0.77"},
		{[]BootEvent{other, leased, event(boot.TFTP, "done", "")}, "fetched its first loader"},
	} {
		if d := Diagnose(&n, tt.seen, nil); !strings.Contains(d.Cause, tt.want) || d.Action == "" {
			t.Errorf("%+v, want %q", d, tt.want)
		}
	}
	wrong := event(boot.DHCP, dhcp.EventPort, "asks at port 3 of switch r01/mgmt-1")
	wrong.Refused = true
	if d := Diagnose(&n, []BootEvent{wrong}, nil); !strings.Contains(d.Cause, "port 3 of switch") || !strings.Contains(d.Action, "Plug the cable") {
		t.Errorf("%+v", d)
	}
	if got := actionAlone(&n); !strings.Contains(got, "boot file") {
		t.Error(got)
	}
}
