// SPDX-License-Identifier: Apache-2.0

package sonicshow

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/tool"
)

// countOf reads "1,234"; 0 for N/A.
func countOf(cell string) uint64 {
	n, err := strconv.ParseUint(strings.ReplaceAll(cell, ",", ""), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// judgeStatus finds ports that are enabled and have no link.
func judgeStatus(r *reader, t *Table) {
	t.each(func(line int, cell func(string) string) {
		if cell("Admin") == "up" && cell("Oper") == "down" {
			r.few.Add(&r.problems, "ports that are enabled and down", tool.Failed, line, "%s (%s) is enabled and down.", cell("Interface"), cell("Alias"))
		}
	})
}

// judgeCounters finds ports with errors. Drops are told in the summary: a port drops what
// is of none of its VLANs as well.
func judgeCounters(r *reader, t *Table) {
	t.each(func(line int, cell func(string) string) {
		for _, c := range []string{"RX_ERR", "TX_ERR"} {
			if n := countOf(cell(c)); n > 0 {
				r.few.Add(&r.problems, "ports with errors", tool.Failed, line, "%s counts %d in %s.", cell("IFACE"), n, c)
			}
		}
	})
}

// judgeFEC finds ports that lost code words.
func judgeFEC(r *reader, t *Table) {
	t.each(func(line int, cell func(string) string) {
		if n := countOf(cell("FEC_UNCORR")); n > 0 {
			r.few.Add(&r.problems, "ports with code words that were not corrected", tool.Failed, line, "%s counts %d code words that were not corrected.", cell("IFACE"), n)
		}
	})
}

// judgeModules finds modules with an error.
func judgeModules(r *reader, t *Table) {
	t.each(func(line int, cell func(string) string) {
		if s := cell("Error Status"); s != "OK" && s != "N/A" && s != "Unplugged" && s != "" {
			r.few.Add(&r.problems, "modules with an error", tool.Failed, line, "The module of %s says: %s.", cell("Port"), s)
		}
	})
}

// judgeQueues finds queues that dropped.
func judgeQueues(r *reader, t *Table) {
	t.each(func(line int, cell func(string) string) {
		if n := countOf(cell("Drop/pkts")); n > 0 {
			r.few.Add(&r.problems, "queues that dropped", tool.Failed, line, "Queue %s of %s dropped %d packets.", cell("TxQ"), cell("Port"), n)
		}
	})
}

// judgeDrops finds priority groups that dropped: a lossless one must not.
func judgeDrops(r *reader, t *Table) {
	t.each(func(line int, cell func(string) string) {
		for _, c := range t.Columns[1:] {
			if n := countOf(cell(c)); n > 0 {
				r.few.Add(&r.problems, "priority groups that dropped", tool.Failed, line, "%s of %s dropped %d packets.", c, cell("Port"), n)
			}
		}
	})
}

// judgeNeighbors compares the rows with their count, and finds ports that hear several
// neighbours, and ends that several ports hear.
func judgeNeighbors(r *reader, t *Table) {
	if t.total >= 0 && t.total != len(t.Rows) {
		r.problems.Add(tool.Inconsistent, 0, "%d entries were displayed, and %d are here.", t.total, len(t.Rows))
	} else if t.total < 0 {
		r.problems.Add(tool.Truncated, 0, "The line \"Total entries displayed\", which is the last one, is not there.")
	}
	heard, by := map[string]int{}, map[string]string{}
	t.each(func(line int, cell func(string) string) {
		port := cell("LocalPort")
		if heard[port]++; heard[port] == 2 {
			r.few.Add(&r.problems, "ports with several neighbours", tool.Inconsistent, line, "%s has more than one neighbour: a second sender, or a device between that forwards LLDP.", port)
		}
		end := cell("RemoteDevice") + " " + cell("RemotePortID")
		if other := by[end]; other != "" && other != port && cell("RemoteDevice") != "" {
			r.few.Add(&r.problems, "ends that two ports hear", tool.Inconsistent, line, "%s and %s hear the same port, %s of %s.", other, port, cell("RemotePortID"), cell("RemoteDevice"))
		}
		by[end] = port
	})
}

// note says what stands out in a table, for its summary.
func (t *Table) note() string {
	up, drops, absent := 0, 0, 0
	t.each(func(_ int, cell func(string) string) {
		if cell("Oper") == "up" || cell("STATE") == "U" {
			up++
		}
		if countOf(cell("RX_DRP"))+countOf(cell("TX_DRP"))+countOf(cell("RX_OVR"))+countOf(cell("TX_OVR")) > 0 {
			drops++
		}
		if cell("Presence") == "Not present" {
			absent++
		}
	})
	switch t.Command {
	case "interfaces status", "interfaces description", "interfaces counters fec-stats":
		return fmt.Sprintf(", %d up", up)
	case "interfaces counters":
		return fmt.Sprintf(", %d up, %d with drops", up, drops)
	case "interfaces transceiver presence":
		return fmt.Sprintf(", %d without a module", absent)
	}
	return ""
}
