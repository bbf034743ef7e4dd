// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// frameSize is what a frame carries, in bytes: RDMA messages of 4 KiB.
const frameSize = 4096

// Counters are those of a switch port: Rx is what comes in by its cable.
type Counters struct {
	RxFrames, RxErrors, RxDrops int64
	TxFrames, TxErrors, TxDrops int64
	RxBytes, TxBytes            int64
	Down                        bool // of a cable to another switch: it has no link
}

// rate is what flows until a time.
type rate struct {
	bytes float64 // per second
	until time.Time
}

func (r rate) now(t time.Time) float64 {
	if r.until.Before(t) {
		return 0
	}
	return r.bytes
}

// Remote is what a node says of itself by LLDP once its operating system runs.
type Remote struct{ Host, PortID, Description string }

// Say sets what a node's port says; the zero Remote: nothing.
func (p *Plant) Say(port Port, r Remote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.says[port] = r; r == (Remote{}) {
		delete(p.says, port)
	}
}

// Carry counts traffic of a node's port that takes so long from now on: bytes from
// the node and to it. Frames that the cable breaks are errors of who receives
// them.
func (p *Plant) Carry(port Port, from, to int64, d time.Duration) error {
	now := p.clock.Now()
	return p.change(port, func(c *cable) {
		frames := func(bytes int64) (good, bad int64) {
			all := (bytes + frameSize - 1) / frameSize
			bad = int64(math.Round(float64(all) * c.quality.ErrorRate))
			return all - bad, bad
		}
		good, bad := frames(from)
		c.count.RxFrames, c.count.RxErrors, c.count.RxBytes = c.count.RxFrames+good, c.count.RxErrors+bad, c.count.RxBytes+from
		good, bad = frames(to)
		c.count.TxFrames, c.count.TxBytes = c.count.TxFrames+good+bad, c.count.TxBytes+to
		for i, bytes := range []int64{from, to} {
			if d > 0 {
				c.rate[i] = rate{float64(bytes) / d.Seconds(), now.Add(d)}
			}
		}
	})
}

// Counters returns the counters of a switch port.
func (p *Plant) Counters(end End) Counters {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.plugs[end]; c != nil {
		return c.count
	}
	return Counters{}
}

// ShowCounters is `show interfaces counters` of a SONiC switch.
func (p *Plant) ShowCounters(name string) string {
	s := p.switches[name]
	if s == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	rows := [][]string{{"IFACE", "STATE", "RX_OK", "RX_BPS", "RX_UTIL", "RX_ERR", "RX_DRP", "RX_OVR", "TX_OK", "TX_BPS", "TX_UTIL", "TX_ERR", "TX_DRP", "TX_OVR"}}
	for n := 1; n <= s.Ports; n++ {
		ends := slices.Concat(p.ends(name, n), p.trunks(s, n))
		if len(ends) == 0 {
			ends = []End{{Switch: name, Number: n}}
		}
		for _, end := range ends {
			rows = append(rows, p.row(s, end, now))
		}
	}
	return formatTable(rows, true)
}

// trunks lists the ends of a port with cables to other switches: itself, or its lanes.
func (p *Plant) trunks(s *Switch, number int) (list []End) {
	for lane := range s.split + 1 {
		end := End{s.Name, number, lane}
		if _, is := p.trunk(end); is && p.plugs[end] == nil {
			list = append(list, end)
		}
	}
	return list
}

// row is a line of ShowCounters.
func (p *Plant) row(s *Switch, end End, now time.Time) []string {
	state, count, rx, tx, speed := "D", Counters{}, 0.0, 0.0, s.speed
	if c := p.plugs[end]; c != nil {
		count, rx, tx, speed = c.count, c.rate[0].now(now), c.rate[1].now(now), c.speed
		if !c.pulled && !c.quality.Down {
			state = "U"
		}
	} else if at, is := p.trunk(end); is {
		if count = at; !at.Down {
			state = "U"
		}
	}
	return []string{
		sonicName(s, end), state, formatThousands(count.RxFrames), formatBps(rx), formatShare(rx, speed), formatThousands(count.RxErrors), formatThousands(count.RxDrops), "0",
		formatThousands(count.TxFrames), formatBps(tx), formatShare(tx, speed), formatThousands(count.TxErrors), formatThousands(count.TxDrops), "0",
	}
}

// ShowLLDP is `show lldp table` of a SONiC switch.
func (p *Plant) ShowLLDP(name string) string {
	s := p.switches[name]
	if s == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	rows := [][]string{{"LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr"}}
	for n := 1; n <= s.Ports; n++ {
		for _, end := range p.ends(name, n) {
			c := p.plugs[end]
			if c.pulled || c.quality.Down {
				continue
			}
			if r, ok := p.says[c.port]; ok {
				rows = append(rows, []string{sonicName(s, end), r.Host, r.PortID, "O", r.Description})
			}
		}
	}
	return fmt.Sprintf("Capability codes: (R) Router, (B) Bridge, (O) Other\n%s%s\nTotal entries displayed:  %d\n", formatTable(rows, false), strings.Repeat("-", 50), len(rows)-1)
}

// formatTable is python-tabulate's format "simple": a header is two wider than its text
// at least, columns are two apart, and no line ends in blanks.
func formatTable(rows [][]string, right bool) string {
	width := make([]int, len(rows[0]))
	for i, row := range rows {
		for j, cell := range row {
			n := len([]rune(cell))
			if i == 0 {
				n += 2
			}
			width[j] = max(width[j], n)
		}
	}
	var dashes []string
	for _, w := range width {
		dashes = append(dashes, strings.Repeat("-", w))
	}
	var b strings.Builder
	for _, row := range slices.Insert(slices.Clone(rows), 1, dashes) {
		line := ""
		for j, cell := range row {
			pad := strings.Repeat(" ", width[j]-len([]rune(cell)))
			if right {
				cell = pad + cell
			} else {
				cell += pad
			}
			line += cell + "  "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// formatThousands writes 1,234,567.
func formatThousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// formatBps is format_brate of sonic-utilities' utilities_common/netstat.py.
func formatBps(bytes float64) string {
	switch {
	case bytes > 10e6:
		return fmt.Sprintf("%.2f MB/s", bytes/1e6)
	case bytes > 10e3:
		return fmt.Sprintf("%.2f KB/s", bytes/1e3)
	}
	return fmt.Sprintf("%.2f B/s", bytes)
}

func formatShare(bytes, speed float64) string {
	if speed == 0 {
		return "N/A"
	}
	return fmt.Sprintf("%.2f%%", bytes*8/speed*100)
}
