// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
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

// Root is where the boot files are: a URL.
func (b *Booting) Root() string { return b.services.Root() }

// Seen says of a node that asked to boot since these services were opened when that was, what
// it was answered and what is to be done; "" of one that did not.
func (b *Booting) Seen(n state.Node) string {
	node, ok := b.site.Inv.Node(n.Name)
	if !ok {
		return ""
	}
	all := b.log.Of(n.Name, time.Time{})
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].Refused {
			return fmt.Sprintf("asked to boot at %s: %s", all[i].Time.Local().Format(time.DateTime), b.answered(node, n))
		}
	}
	return ""
}

// answered says what a node that boots is given while no run is active.
func (b *Booting) answered(node *inventory.Node, n state.Node) string {
	if _, open := b.services.Boots().Attempt(n.Name); open {
		return "a run that was interrupted installs it, and its ramdisk waits; `ironrail apply` goes on"
	}
	switch up := n.Accepted || n.Adopted; {
	case node.Diskless() && up:
		return fmt.Sprintf("its system was in memory, and is not started by itself; `ironrail rebuild %s` boots it again, and no disk is touched", n.Name)
	case up:
		return "it was sent to its disk"
	}
	return "it is not installed, and no plan that was approved installs it: it was sent to its disk; `ironrail plan` shows what would be done"
}
