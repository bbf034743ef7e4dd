// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
)

// limits are how many errors an hour a good link may count, by the kernel's name
// of the counter. Ten symbol errors an hour is what the InfiniBand trade
// association's compliance test allows a port; the others follow from it: a
// packet is lost when several symbols are. A link that goes down by itself once a
// day is a bad link; one that an operator pulled is one too, until it is accepted.
var limits = map[string]float64{
	"symbol_error":                    10,
	"port_rcv_errors":                 10,
	"rx_crc_errors":                   10,
	"rx_frame_errors":                 10,
	"local_link_integrity_errors":     1,
	"excessive_buffer_overrun_errors": 1,
	"link_error_recovery":             1,
	"tx_carrier_errors":               1,
	"link_downed":                     1.0 / 24,
	// The node checks of GPUd: fewer than ten correctable errors an hour are good.
	wire.CorrectedPCIe: 10,
	// ce-error-threshold of [dimm] in mcelog.conf: ten a day.
	wire.CorrectedMemory: 10.0 / 24,
}

// doCounter is what to do about counters that are no link's.
var doCounter = map[string]string{
	wire.CorrectedPCIe:   "reseat the part, then exchange its slot, riser and cable one by one; look at the slot's settings in the BIOS",
	wire.CorrectedMemory: "have the DIMM replaced: dmesg and the BMC's event log name its slot",
}

// shortest is the time that a rate is over at least: a few errors in a minute are
// no rate.
const shortest = time.Hour

// counters compares how fast errors came since the baseline. Counters start anew
// with the node: after another boot, what they show came since then.
func (c *comparison) counters() {
	if !c.bothKnow(wire.ItemLink) {
		return
	}
	was := map[[2]string]int64{}
	for _, x := range c.was.Counters {
		was[[2]string{x.Part, x.Name}] = x.Value
	}
	for _, x := range c.now.Counters {
		most, known := limits[x.Name]
		before, ok := was[[2]string{x.Part, x.Name}]
		if !known || !ok {
			continue
		}
		grown, over := x.Value-before, c.now.At.Sub(c.was.At)
		if c.was.BootID != c.now.BootID || grown < 0 {
			before, grown, over = 0, x.Value, time.Duration(c.now.Uptime*float64(time.Second))
		}
		rate := float64(grown) / max(over, shortest).Hours()
		if grown > 0 && rate > most {
			changed := c.change(Errors, x.Part, x.Name, fmt.Sprint(before), fmt.Sprintf("%d (%+d in %s; at most %s)", x.Value, grown, over.Round(time.Minute), perHour(most)))
			changed.Action = cmp.Or(doCounter[x.Name], changed.Action)
		}
	}
}

// perHour writes a limit.
func perHour(n float64) string {
	if n < 1 {
		return fmt.Sprintf("%.0f a day", n*24)
	}
	return fmt.Sprintf("%.0f an hour", n)
}

// doTrunk is what to do about the counters of a cable between switches.
const doTrunk = "clean and reseat both ends of the cable, look at its transceivers, and exchange it; then clear the counters of both ports (`perfquery -R`, `sonic-clear counters`), so that only what is new counts"

// EndCounts are what an end of a cable between switches has counted: packets that arrived damaged and
// what else says so, and how often its link went down, which is among these.
type EndCounts struct{ Errors, Downed uint64 }

// CompareErrors compares what an end of a cable between switches had counted when c.Since was with now, by
// the limits of a node's ports. A counter that is lower than it was has been cleared in
// between.
func CompareErrors(c Change, was, is EndCounts, now time.Time) (list []Change) {
	for _, x := range []struct {
		name    string
		was, is uint64
		most    float64 // an hour
	}{{"errors", was.Errors - min(was.Downed, was.Errors), is.Errors - min(is.Downed, is.Errors), limits["port_rcv_errors"]}, {"link_downed", was.Downed, is.Downed, limits["link_downed"]}} {
		grown := x.is
		if x.is >= x.was {
			grown = x.is - x.was
		}
		over := now.Sub(c.Since)
		if rate := float64(grown) / max(over, shortest).Hours(); grown == 0 || rate <= x.most {
			continue
		}
		d := c
		d.Kind, d.Name, d.Action = Errors, x.name, doTrunk
		d.Was, d.Is = fmt.Sprint(x.was), fmt.Sprintf("%d (%+d in %s; at most %s)", x.is, grown, over.Round(time.Minute), perHour(x.most))
		list = append(list, d)
	}
	return list
}
