// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
)

// BootNetwork is what is known of other DHCP servers on the boot network, and of our loaders. The run
// makes one finding of each; nodes are not blamed for it.
type BootNetwork struct {
	SearchUntil time.Time // the first search for them goes on until then; zero: it has ended
	OtherServer string    // one that answers now, in words; empty: none
	Since       time.Time // when it was first heard
	Untagged    string    // version of this controller's iPXE, where it is known to send untagged frames on a VLAN; "": it is not
}

// OtherServerTimeout is how long after another DHCP server was heard nodes that have not
// been powered for their boot wait for it to go away. All of them stop waiting at the
// same time, so that the run comes to its end.
const OtherServerTimeout = 5 * time.Minute

// alonePause is how often a node that waits looks whether the other server is gone.
const alonePause = 2 * time.Second

// waitAlone waits until our DHCP server is the only one of the boot network: a node
// that is switched on to netboot beside another would take the offer of either. What
// is in its way for too long is an error of type stage.BlockedError, and so is at once a loader that
// would send untagged frames on the node's VLAN.
func (s *Stage) waitAlone(ctx context.Context, run stage.Run, n *inventory.Node) error {
	if s.w.BootNetwork == nil {
		return nil
	}
	shown := ""
	for {
		b, now := s.w.BootNetwork(), run.Clock().Now()
		wait, text := alonePause, "waits until "+b.OtherServer+" is gone from the boot network"
		switch {
		case b.Untagged != "" && n.BootNetwork != nil && n.BootNetwork.VLAN != 0:
			return &stage.BlockedError{Err: errkind.New(errkind.Unsupported, "%s was not switched on: its boot network has vlan = %d, and the iPXE of this controller, %s, sends untagged frames", n.Name, n.BootNetwork.VLAN, b.Untagged).
				Do("Put snponly.efi of Debian 13's package ipxe, or of another iPXE since 2023, into /usr/lib/ipxe of this controller, or build an image of kind debian for its node anew, which brings one; then run `ironrail apply` again.")}
		case now.Before(b.SearchUntil):
			wait, text = b.SearchUntil.Sub(now), "waits for the search for other DHCP servers on the boot network"
		case b.OtherServer == "":
			return nil
		case now.Sub(b.Since) > OtherServerTimeout:
			return &stage.BlockedError{Err: errkind.New(errkind.Refused, "%s was not switched on: %s answers on the boot network beside this controller", n.Name, b.OtherServer).
				Do(actionAlone(n) + ", then run `ironrail apply` again.")}
		}
		if text != shown {
			until := b.SearchUntil
			if b.OtherServer != "" {
				until = b.Since.Add(OtherServerTimeout)
			}
			run.Emit(event.Event{Type: event.StepProgress, Text: text, Until: until})
			shown = text
		}
		if err := run.Clock().Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// actionAlone is what makes our boot files the only ones on a node's network.
func actionAlone(n *inventory.Node) string {
	if isProxied(n) {
		return "Take the boot file out of that server's settings"
	}
	return "Stop that DHCP server or take it off this network"
}

// isProxied reports whether another server gives the node its address.
func isProxied(n *inventory.Node) bool {
	return n.BootNetwork != nil && n.BootNetwork.DHCP.Mode == inventory.DHCPProxy
}

// findOtherServer finds the event by which a node took the offer of another DHCP server,
// if nothing that we serve has brought it further since.
func findOtherServer(seen []BootEvent) (took BootEvent, yes bool) {
	for _, s := range seen {
		switch {
		case s.Proto == boot.DHCP && s.What == dhcp.EventOtherServer:
			took, yes = s, true
		case s.Refused, s.Proto == boot.RA:
		case s.Proto != boot.DHCP, s.What == dhcp.EventAck:
			yes = false
		}
	}
	return took, yes
}
