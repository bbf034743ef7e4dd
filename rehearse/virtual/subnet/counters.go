// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/onnode"
)

// octets is how many bytes a count of PortXmitData and PortRcvData stands for (IBTA,
// PortCounters).
const octets = 4

// count is ibqueryerrors of all switches: what they carried (--counters), or every
// error (an empty file of thresholds), in which case it ends with status 1 when there
// is one. Only ports with cables to other switches count. The lines are those of
// ibqueryerrors.c of rdma-core 44.
func (m *Manager) count(args []string) onnode.Output {
	data := slices.Equal(args, []string{"--counters", "--switch"})
	if !data && !slices.Equal(args, []string{"--threshold-file", "/dev/null", "--switch"}) {
		return onnode.Output{Exit: 1, Stderr: []byte("Usage: ibqueryerrors [options] \n")}
	}
	counted := map[string]map[int]Counted{}
	for _, t := range m.wiring.Trunks() {
		for i, name := range []string{t.From, t.To} {
			if counted[name] == nil {
				counted[name] = map[int]Counted{}
			}
			counted[name][[]int{t.FromPort, t.ToPort}[i]] = t.Counted[i]
		}
	}
	var b strings.Builder
	list := m.wiring.Switches()
	bad := 0
	for _, s := range list {
		if data {
			writeData(&b, s, counted[s.Name])
		} else if writeErrors(&b, s, counted[s.Name]) {
			bad++
		}
	}
	if data {
		return onnode.Output{Stdout: []byte(b.String())}
	}
	fmt.Fprintf(&b, "\n## Summary: %d nodes checked, %d bad nodes found\n## Thresholds: \n## Suppressed:\n\n", len(list), bad)
	return onnode.Output{Exit: min(bad, 1), Stdout: []byte(b.String())}
}

// writeData writes what the ports of a switch carried.
func writeData(b *strings.Builder, s Switch, ports map[int]Counted) {
	guid := uint64(GUIDOf(s.Name))
	fmt.Fprintf(b, "Data Counters for 0x%x \"%s\"\n", guid, switchName(s.Name))
	for _, n := range slices.Sorted(maps.Keys(ports)) {
		c := ports[n]
		fmt.Fprintf(b, "   GUID 0x%x port %d: [PortXmitData == %d (%sB)] [PortRcvData == %d (%sB)] [PortXmitPkts == %d (%s)] [PortRcvPkts == %d (%s)]\n", guid, n,
			c.XmitData/octets, shorten(c.XmitData), c.RcvData/octets, shorten(c.RcvData), c.XmitPackets, shorten(c.XmitPackets), c.RcvPackets, shorten(c.RcvPackets))
	}
}

// writeErrors writes the errors of the ports of a switch, and reports whether there
// are any.
func writeErrors(b *strings.Builder, s Switch, ports map[int]Counted) bool {
	var all Counted
	for _, c := range ports {
		all.SymbolErrors, all.RcvErrors = all.SymbolErrors+c.SymbolErrors, all.RcvErrors+c.RcvErrors
	}
	if all == (Counted{}) {
		return false
	}
	guid := uint64(GUIDOf(s.Name))
	line := func(port string, c Counted) {
		var text string
		if c.SymbolErrors > 0 {
			text += fmt.Sprintf(" [SymbolErrorCounter == %d]", min(c.SymbolErrors, math.MaxUint16))
		}
		if c.RcvErrors > 0 {
			text += fmt.Sprintf(" [PortRcvErrors == %d]", min(c.RcvErrors, math.MaxUint16))
		}
		if text != "" {
			fmt.Fprintf(b, "   GUID 0x%x port %s:%s\n", guid, port, text)
		}
	}
	fmt.Fprintf(b, "Errors for 0x%x \"%s\"\n", guid, switchName(s.Name))
	line("ALL", all)
	for _, n := range slices.Sorted(maps.Keys(ports)) {
		line(strconv.Itoa(n), ports[n])
	}
	return true
}

// shorten writes a count with the letter of its power of 1,024.
func shorten(n int64) string {
	v, unit := float64(n), 0
	for ; v >= 1024 && unit < 6; unit++ {
		v /= 1024
	}
	return fmt.Sprintf("%.3f%s", v, []string{"", "K", "M", "G", "T", "P", "E"}[unit])
}
