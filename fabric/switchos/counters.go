// SPDX-License-Identifier: Apache-2.0

package switchos

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
)

// SwitchCounters implements fabric.Counting, by `show interfaces counters` on each switch
// that the site has a login for. Ports of others are absent; a switch that does not
// answer is an error beside what the others said.
func (k *Kind) SwitchCounters(ctx context.Context, f *inventory.Fabric) (map[fabric.SwitchPort]fabric.SwitchCounters, error) {
	list := k.managed(f)
	if len(list) == 0 || k.switches == nil {
		return nil, errkind.New(errkind.Unsupported, "fabric %s: the site has no login for its switches", f.Name)
	}
	all, errs := map[fabric.SwitchPort]fabric.SwitchCounters{}, make([]error, len(list))
	var mu sync.Mutex // guards all
	var g errgroup.Group
	g.SetLimit(AtOnce)
	for i, s := range list {
		g.Go(func() error {
			out, err := k.switches.Run(ctx, s.Switch.Name, onnode.Command{Argv: []string{"show", "interfaces", "counters"}})
			if err == nil && out.Exit != 0 {
				err = errkind.New(errkind.Refused, "switch %s: show interfaces counters ended with status %d", s.Switch.Name, out.Exit)
			}
			if err != nil {
				errs[i] = err
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			errs[i] = addCounters(all, s, string(out.Stdout))
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	return all, errors.Join(errs...)
}

// addCounters adds the rows of `show interfaces counters` (SONiC command reference): a
// header names the columns, and numbers have commas at the thousands. What arrived
// damaged is RX_ERR; drops come of congestion. A state is U, D or, of a port that is shut, X.
// The error is that the table lacks a column: what it would say is not 0.
func addCounters(all map[fabric.SwitchPort]fabric.SwitchCounters, s *sonic.Switch, text string) error {
	names := map[string]fabric.SwitchPort{}
	for i := range s.Ports {
		names[s.Ports[i].Name] = s.Ports[i].End.String()
	}
	column := map[string]int{}
	for line := range strings.Lines(text) {
		words := joinUnits(strings.Fields(line))
		if len(words) > 0 && words[0] == "IFACE" {
			for i, w := range words {
				column[w] = i
			}
			for _, needed := range []string{"STATE", "RX_OK", "RX_ERR", "TX_OK"} {
				if _, has := column[needed]; !has {
					return errkind.New(errkind.Unsupported, "switch %s: show interfaces counters has no column %s", s.Switch.Name, needed)
				}
			}
			continue
		}
		name, known := "", false
		if len(words) == len(column) && len(words) > 0 {
			name, known = names[words[0]]
		}
		if !known {
			continue
		}
		number := func(of string) uint64 {
			n, _ := strconv.ParseUint(strings.ReplaceAll(words[column[of]], ",", ""), 10, 64) // "N/A": nothing was counted
			return n
		}
		all[name] = fabric.SwitchCounters{Sent: number("TX_OK"), Received: number("RX_OK"), Errors: number("RX_ERR"), Down: words[column["STATE"]] != "U"}
	}
	return nil
}

// joinUnits makes one word of a rate and the unit that follows it, as in "653.87 MB/s".
func joinUnits(words []string) (joined []string) {
	for _, w := range words {
		if strings.HasSuffix(w, "B/s") && len(w) <= len("MB/s") && len(joined) > 0 {
			joined[len(joined)-1] += w
			continue
		}
		joined = append(joined, w)
	}
	return joined
}
