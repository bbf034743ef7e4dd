// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
)

// reportEvery is how often a new end of a silence limit is reported of a node that goes on.
const reportEvery = 15 * time.Second

// mostKnown bounds the console lines that a watched boot remembers.
const mostKnown = 4096

// progress is what is seen of a node that is waited for. A limit on silence counts from
// the last of it: events of the boot services, bytes that the node fetched, an
// answer by ARP, and console lines that it has not printed before in this wait. A
// firmware that tries the same again and again prints the same: that is none.
type progress struct {
	s     *Stage
	node  string
	limit time.Duration

	at          time.Time // of the last
	what        string    // the last, in words
	sent        int64     // bytes that it fetched of kernel and initrd
	lines       int       // that its console ever printed
	known       map[string]bool
	kexec       bool // its ramdisk may have started its system: the firmware can still do so
	leftRamdisk bool // nobody answered on its address: it has left the ramdisk
	answer      bool // somebody does since

	lastReported string
	reportedAt   time.Time
}

// watchProgress begins to look at a node, whose limit on silence follows from the step.
func (s *Stage) watchProgress(n *inventory.Node, st plan.Step, now time.Time, what string) *progress {
	p := &progress{s: s, node: n.Name, limit: silenceLimit(n, st), at: now, what: what, known: map[string]bool{}}
	p.sent = s.w.Boots.Served(n.Name)
	return p
}

// set takes progress over.
func (p *progress) set(at time.Time, what string) {
	if at.After(p.at) {
		p.at = at
	}
	p.what = what
}

// poll looks for progress that nobody tells: bytes and the console.
func (p *progress) poll(now time.Time) {
	if sent := p.s.w.Boots.Served(p.node); sent > p.sent {
		p.sent = sent
		p.set(now, "it fetches the install ramdisk")
	}
	lines, ever := p.s.printed(p.node)
	news := min(max(ever-p.lines, 0), len(lines))
	if ever < p.lines {
		news = len(lines) // a console that was opened anew
	}
	p.lines = ever
	for _, line := range lines[len(lines)-news:] {
		if k := normalizeLine(line); k != "" && !p.known[k] && len(p.known) < mostKnown {
			p.known[k] = true
			p.set(now, "console: "+strings.TrimSpace(line))
		}
	}
}

// normalizeLine returns a console line without what differs when the same is printed again: times,
// counters, addresses.
func normalizeLine(line string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, line))
}

// noteLoginError takes over why an attempt to log in failed: a connection that is refused came to
// a node that answers ARP and has no SSH server yet. The ramdisk, which the node leaves
// first, refuses too.
func (p *progress) noteLoginError(err error, now time.Time) {
	switch refused := errors.Is(err, syscall.ECONNREFUSED); {
	case !refused:
		p.leftRamdisk = true
	case p.leftRamdisk && !p.answer:
		p.answer = true
		p.set(now, "it answers on its address, and its SSH server does not yet")
	}
}

// isSilent reports whether nothing was seen for longer than the limit.
func (p *progress) isSilent(now time.Time) bool { return now.Sub(p.at) > p.limit }

// report shows what was seen last and until when the node may be silent: at once where a
// boot service saw it, else now and then.
func (p *progress) report(run stage.Run, now time.Time, soon bool) {
	if p.what == p.lastReported || !soon && now.Sub(p.reportedAt) < reportEvery {
		return
	}
	p.lastReported, p.reportedAt = p.what, now
	run.Emit(event.Event{Type: event.StepProgress, Text: p.what, Until: p.at.Add(p.limit)})
}
