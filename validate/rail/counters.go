// SPDX-License-Identifier: Apache-2.0

package rail

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/internal/onnode"
)

// countersScript prints what a port counts, a "name:value" a line. What a
// driver does not offer is left out.
const countersScript = `cd "/sys/class/net/$1" && grep -Hs . speed carrier_changes statistics/rx_errors statistics/rx_crc_errors statistics/rx_frame_errors statistics/tx_errors statistics/tx_carrier_errors
cd "/sys/class/infiniband/$2/ports/1/counters" && grep -Hs . symbol_error link_downed link_error_recovery port_rcv_errors local_link_integrity_errors excessive_buffer_overrun_errors
true`

// PortCounters are the counters of one port by name; speed is in Mb/s.
type PortCounters map[string]int64

// readAtOnce is how many ports are read side by side.
const readAtOnce = 64

// ReadCounters reads the counters of ports, of many nodes at a time. A port that
// cannot be read has none.
func ReadCounters(ctx context.Context, nodes onnode.Nodes, ends []End) map[string]PortCounters {
	all := map[string]PortCounters{}
	var mu sync.Mutex // guards all
	var g errgroup.Group
	g.SetLimit(readAtOnce)
	for _, e := range ends {
		g.Go(func() error {
			out, err := nodes.Run(ctx, e.Node.Name, onnode.Command{Argv: []string{"sh", "-c", countersScript, "sh", e.Port.Netdev, e.Port.Device}})
			if err == nil && out.Exit == 0 {
				c := parseCounters(out.Stdout)
				mu.Lock()
				defer mu.Unlock()
				all[e.Key()] = c
			}
			return nil
		})
	}
	_ = g.Wait() // none of them fails
	return all
}

// Key tells a port from all others: two fabrics of a node may both have a rail 0.
func (e End) Key() string { return e.Node.Name + "/" + e.Port.Device }

// parseCounters reads "path:number" lines. A speed of -1 means that the driver
// does not know it.
func parseCounters(b []byte) PortCounters {
	c := PortCounters{}
	for line := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		n, err := strconv.ParseInt(value, 10, 64)
		if !ok || err != nil || n < 0 {
			continue
		}
		c[name[strings.LastIndex(name, "/")+1:]] = n
	}
	return c
}

// GrownCounters lists the error counters that rose during the test.
func GrownCounters(before, after PortCounters) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		was, ok := before[name]
		if name != speed && ok && after[name] > was {
			list = append(list, fmt.Sprintf("%s +%d", name, after[name]-was))
		}
	}
	return list
}
