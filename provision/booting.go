// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/services"
)

// Booting answers nodes that boot while no run is active: with their disk, since no
// attempt to install them is open, and BMCs with their address. Of an interrupted run the
// attempts that are open still boot the ramdisk, whose agent waits for the next run.
type Booting struct {
	site     *Site
	services *services.Services
	log      *services.BootLog
}

// OpenBooting opens the boot services of the site as the state has it. Nothing is answered
// before Serve.
func (s *Site) OpenBooting(ctx context.Context, r state.Reader, bus *event.Bus) (*Booting, error) {
	s, err := s.Desired(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	b := &Booting{site: s, log: services.NewBootLog(bus)}
	b.services, err = s.openServices(ctx, r, b.log)
	return b, err
}

// Serve answers until ctx is done; nil then. What it finds goes to report.
func (b *Booting) Serve(ctx context.Context, report func(context.Context, stage.Finding) error) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.services.ReportFindings(ctx, report)
	}()
	err := b.services.Serve(ctx)
	cancel()
	<-ended
	return err
}

// Counters are the counts until now.
func (b *Booting) Counters() Counters {
	return Counters{DHCP: b.services.DHCPStats(), Boot: b.services.BootCounts()}
}

// Root is where the boot files are: a URL.
func (b *Booting) Root() string { return b.services.Root() }

// Booted is when nodes whose system is in memory last fetched their boot script since these services
// were opened, with a program that their firmware had loaded from here. A system that asks for its
// address does not count.
func (b *Booting) Booted() map[string]time.Time { return bootedIn(b.site.Inv, b.log) }

// Booted is that of Booting, since the run began.
func (r *Running) Booted() map[string]time.Time { return bootedIn(r.site.Inv, r.bootLog) }

func bootedIn(inv *inventory.Inventory, log *services.BootLog) map[string]time.Time {
	at := map[string]time.Time{}
	for _, n := range inv.Nodes {
		if !n.Diskless() {
			continue
		}
		if t := lastEvent(log, n.Name, func(e install.BootEvent) bool { return e.Proto == boot.IPXE }); !t.IsZero() {
			at[n.Name] = t
		}
	}
	return at
}

// lastEvent is when the last event of a node was that counts and was not refused; zero: there is none.
func lastEvent(log *services.BootLog, node string, counts func(install.BootEvent) bool) time.Time {
	for _, e := range slices.Backward(log.Of(node, time.Time{})) {
		if !e.Refused && counts(e) {
			return e.Time
		}
	}
	return time.Time{}
}

// Seen says of a node that asked to boot since these services were opened when that was, what
// it was answered and what is to be done; "" of one that did not. kept is why one whose system
// was in memory is not started again; "": it is.
func (b *Booting) Seen(n state.Node, kept string) string {
	node, ok := b.site.Inv.Node(n.Name)
	at := lastEvent(b.log, n.Name, func(install.BootEvent) bool { return true })
	if !ok || at.IsZero() {
		return ""
	}
	return fmt.Sprintf("asked to boot at %s: %s", at.Local().Format(time.DateTime), b.answered(node, n, kept))
}

// answered says what a node that boots is given while no run is active.
func (b *Booting) answered(node *inventory.Node, n state.Node, kept string) string {
	if _, open := b.services.Boots().Attempt(n.Name); open {
		return "a run that was interrupted installs it, and its ramdisk waits; `ironrail apply` goes on"
	}
	switch up := n.Accepted || n.Adopted; {
	case node.Diskless() && up && kept != "":
		return fmt.Sprintf("its system was in memory, and is not started by itself: %s; `ironrail rebuild %s` boots it again, and no disk is touched", kept, n.Name)
	case node.Diskless() && up:
		return "its system was in memory, and is started again from the image in a moment; no disk is touched"
	case up:
		return "it was sent to its disk"
	}
	return "it is not installed, and no plan that was approved installs it: it was sent to its disk; `ironrail plan` shows what would be done"
}
