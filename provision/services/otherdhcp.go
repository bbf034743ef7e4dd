// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
)

// BootNetwork is what the install stage is told of other DHCP servers, and of our loaders.
func (v *Services) BootNetwork() (b install.BootNetwork) {
	b.Untagged = v.boot.Untagged()
	w := v.boot.Watch()
	if w == nil {
		return b
	}
	if ends, searching := w.Searching(); searching {
		b.SearchUntil = ends
	}
	if others := w.Others(); len(others) > 0 {
		b.OtherServer, b.Since = others[0].String(), others[0].First
	}
	return b
}

// ReportOthers makes one finding of each other DHCP server, until ctx is done. One
// that comes back after it was gone is told, and is no new finding.
func (v *Services) ReportOthers(ctx context.Context, report func(context.Context, stage.Finding) error) {
	w := v.boot.Watch()
	if w == nil {
		return
	}
	known := map[netip.Addr]bool{}
	for {
		select {
		case o := <-w.Found():
			if known[o.Address] {
				v.bootLog.bus.Emit(event.Event{Type: event.Note, Text: "warning: " + event.Escape(o.String()) + " is on the boot network again"})
				continue
			}
			known[o.Address] = true
			f := otherFinding(v.network, o)
			if v.proxy {
				f = otherBootFinding(v.network, o)
			}
			if err := report(ctx, f); err != nil {
				return // the run has ended, or cannot record anything any more
			}
		case <-ctx.Done():
			return
		}
	}
}

// otherFinding is the finding of another DHCP server on a boot network.
func otherFinding(network string, o dhcp.Other) stage.Finding {
	where := "at which port"
	if !o.MAC.IsZero() {
		where = "behind which port MAC " + o.MAC.String() + " is"
	}
	f := stage.Finding{Suspects: []stage.Suspect{siteSuspect(network, "DHCP server "+o.Address.String())},
		Cause:    "another DHCP server answers on the boot network: " + event.Escape(o.String()),
		Evidence: []string{o.First.UTC().Format(time.TimeOnly) + " " + event.Escape(o.Seen)},
		Action: fmt.Sprintf("Stop that DHCP server or take it off this network; the switches' MAC tables say %s. Nodes that were not switched on yet wait for that, no longer than %v; then run `ironrail apply` again.",
			where, install.OtherServerTimeout)}
	if gives := o.Gives(); gives != "" {
		f.Evidence = append(f.Evidence, event.Escape(gives))
	}
	return f
}

// otherBootFinding is the finding of another server of boot files on a network where
// addresses are not ours to give.
func otherBootFinding(network string, o dhcp.Other) stage.Finding {
	f := otherFinding(network, o)
	f.Cause = "another server gives boot files on the boot network, where ironrail answers beside a DHCP server: " + event.Escape(o.String())
	f.Action = fmt.Sprintf("Take the boot file out of that server's settings (dhcp-boot of dnsmasq, filename of ISC's, boot-file-name of Kea, option 67 of others), so that it gives addresses only. Nodes that were not switched on yet wait for that, no longer than %v; then run `ironrail apply` again.",
		install.OtherServerTimeout)
	return f
}
