// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// How much of each kind of detail is shown, the last of it.
const (
	shownLines   = 24
	shownRefused = 8

	shownEvidence = 8
)

// page collects lines. Whatever text is put into one is escaped.
type page struct{ strings.Builder }

func (p *page) linef(format string, args ...any) {
	for i, a := range args {
		switch v := a.(type) {
		case string:
			args[i] = escapeText(shortDigests(v))
		case fmt.Stringer:
			args[i] = escapeText(v.String())
		}
	}
	fmt.Fprintf(p, format+"\n", args...)
}

// digest is what a person does not read to its end.
var digest = lazyregexp.New(`sha256:[0-9a-f]{64}`)

func shortDigests(s string) string {
	return digest.ReplaceAllStringFunc(s, func(d string) string { return d[:len("sha256:")+12] })
}

// section begins a section that has lines.
func (p *page) section(title string, lines int) {
	if lines > 0 {
		p.linef("")
		p.linef("%s:", title)
	}
}

// Text is a story for a person: the answer, what happened, then the rest. What a
// Look says is in Live. Times are in the zone of now.
func (s Explanation) Text(now time.Time) string { return s.text(now, shownLines) }

// FullText is Text with everything that happened, however long ago.
func (s Explanation) FullText(now time.Time) string { return s.text(now, len(s.Lines)) }

func (s Explanation) text(now time.Time, most int) string {
	var p page
	p.answer(s.Answer, s.Node.Name, now)
	p.concerns(s)
	for _, n := range s.Notes {
		p.linef("Of this node: %s", endSentence(n))
	}
	if q := s.Node.Quarantine; q != nil {
		p.finding(q.Finding)
		p.besides(q.More)
	}
	p.console(s.Console, s.Node.Name, now)
	p.section("What happened", len(s.Lines))
	if n := len(s.Lines) - most; n > 0 {
		p.linef("  (%d earlier: `ironrail why --all %s`)", n, s.Node.Name)
	}
	for _, l := range s.Lines[max(0, len(s.Lines)-most):] {
		p.linef("  %s  %-8s %s%s", formatMoment(l.Time, now), l.From, l.Text, formatTimes(l, now))
	}
	p.skipped(s)
	p.section("Refused clients that no node owns", len(s.Refused))
	for _, r := range s.Refused[max(0, len(s.Refused)-shownRefused):] {
		mac := r.MAC
		if mac == "" {
			mac = "unknown MAC"
		}
		p.linef("  %s %s (%d times, last %s)", mac, r.Reason, r.Times, formatMoment(r.Last, now))
	}
	p.place(s, now)
	return p.String()
}

// answer is what a person reads first.
func (p *page) answer(a Answer, node string, now time.Time) {
	up := "is not up"
	if a.Up {
		up = "is up"
	}
	p.verdict(node+" "+up, a, now)
}

// verdict is an answer; is says of whom, and in a word how that stands.
func (p *page) verdict(is string, a Answer, now time.Time) {
	first := is + ": " + a.State
	if when := formatSpan(a, now); when != "" {
		first += ", " + when
	}
	first = endSentence(first)
	if a.Pace != nil {
		pace := a.Pace.String()
		first += " " + endSentence(strings.ToUpper(pace[:1])+pace[1:])
	}
	p.linef("%s", first)
	if a.Cause != "" {
		p.linef("Most likely cause: %s", endSentence(a.Cause))
	}
	if a.Alike != "" {
		p.linef("The same elsewhere: %s", endSentence(a.Alike))
	}
	if a.Action != "" {
		p.linef("Next: %s", endSentence(a.Action))
	}
}

// formatSpan says since when, and until when at the latest.
func formatSpan(a Answer, now time.Time) string {
	var parts []string
	if !a.Since.IsZero() {
		parts = append(parts, fmt.Sprintf("since %s (%s)", formatMoment(a.Since, now), formatAgo(a.Since, now)))
	}
	if !a.Until.IsZero() {
		parts = append(parts, "until "+formatMoment(a.Until, now)+" at the latest")
	}
	return strings.Join(parts, ", ")
}

// finding is what was found of a node that is out. Cause and action stand above.
func (p *page) finding(f stage.Finding) {
	p.section("Found", 1)
	if len(f.Suspects) > 0 {
		p.linef("  part  %s", listParts(f))
	}
	for i, e := range f.Evidence {
		if i == shownEvidence {
			p.linef("  and %d more (--json has all)", len(f.Evidence)-i)
			break
		}
		p.linef("  seen  %s", e)
	}
}

// listParts lists what a finding suspects.
func listParts(f stage.Finding) string {
	var parts []string
	for _, x := range f.Suspects {
		parts = append(parts, strings.TrimSpace(strings.TrimPrefix(x.Subject.String(), "node/")+" "+x.Part))
	}
	return strings.Join(parts, ", ")
}

// besides is what was found of a node after it was taken out.
func (p *page) besides(list []stage.Finding) {
	p.section("Found besides", len(list))
	for _, f := range list {
		cause := f.Cause
		if len(f.Suspects) == 0 || f.Suspects[0].Part == "" || !strings.HasPrefix(cause, f.Suspects[0].Part) {
			cause = listParts(f) + ": " + cause
		}
		p.linef("  %s %s", endSentence(cause), endSentence(f.Action))
	}
}

// concerns are findings about what the node hangs on.
func (p *page) concerns(s Explanation) {
	for _, f := range s.Near {
		if q := s.Node.Quarantine; q != nil && q.Finding.Cause == f.Cause {
			continue
		}
		of := ""
		if len(f.Suspects) > 0 {
			of = strings.ReplaceAll(f.Suspects[0].Subject.String(), "pdu/", "PDU ") + ": "
		}
		by := "the boot services"
		if f.Step != "" {
			by = "step " + f.Step
		}
		p.linef("Found near it: %s%s (by %s). %s", of, strings.TrimRight(f.Cause, "."), by, endSentence(f.Action))
	}
}

// formatTimes says that a line happened more than once.
func formatTimes(l Line, now time.Time) string {
	if l.Times < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times, last %s)", l.Times, formatMoment(l.Last, now))
}

// skipped names the steps that were not started, by cause.
func (p *page) skipped(s Explanation) {
	p.section("Not started", len(s.Skipped))
	causes, steps := groupSkips(s)
	for _, c := range causes {
		text := c
		if q := s.Node.Quarantine; q != nil && q.Finding.Cause == c || s.Answer.Cause == c {
			text = "for the cause above"
		}
		p.linef("  %s: %s", strings.Join(steps[c], ", "), text)
	}
}

// place is where a technician goes.
func (p *page) place(s Explanation, now time.Time) {
	w := s.Place
	if w == nil {
		return
	}
	p.section("Where it is", 1)
	row := func(name, value string) {
		if value != "" {
			p.linef("  %-9s%s", name, value)
		}
	}
	row("rack", fmt.Sprintf("%s, unit %d", w.Rack, w.Unit))
	row("role", strings.TrimSuffix(w.Role+", "+w.Hardware, ", "))
	row("serial", w.Serial)
	row("BMC", strings.TrimSpace(w.BMC+" "+w.Protocol))
	row("mains", strings.Join(w.PDUs, ", "))
	boot := strings.TrimSpace(w.BootNIC + " " + w.BootMAC)
	if boot != "" && !slices.ContainsFunc(w.Ports, func(c control.Port) bool { return mayBootFrom(w, c.Port) }) {
		boot += " (the files do not say in which switch port)"
	}
	row("boot NIC", boot)
	p.ports(s, now)
}

// mayBootFrom reports whether a port is the one that the node boots from, or one of those
// of its boot NIC where the files do not say which.
func mayBootFrom(w *control.Place, port string) bool {
	return w.BootNIC != "" && (port == w.BootNIC || strings.HasPrefix(port, w.BootNIC+"/"))
}

// ports are the node's cables: those that the answer is about one by one, the
// others by their number.
func (p *page) ports(s Explanation, now time.Time) {
	about := s.Answer.Cause + " " + strings.Join(s.Answer.Evidence, " ")
	heard, rest := 0, 0
	var last time.Time
	for _, c := range s.Place.Ports {
		if c.Heard != "" {
			heard++
			last = c.HeardAt
		}
		if !namesPort(about, c.Port) && !mayBootFrom(s.Place, c.Port) {
			rest++
			continue
		}
		far := "nothing was heard of it yet"
		if c.Heard != "" {
			far = "heard " + c.Heard + ", " + formatMoment(c.HeardAt, now)
		}
		p.linef("  %-9sto %s (%s)", c.Port, c.To, far)
	}
	if rest == 0 {
		return
	}
	text := fmt.Sprintf("%d to switches; none was heard by LLDP yet", len(s.Place.Ports))
	if heard > 0 {
		text = fmt.Sprintf("%d to switches, %d of them heard by LLDP, %s", len(s.Place.Ports), heard, formatMoment(last, now))
	}
	p.linef("  %-9s%s", "cables", text)
}

// namesPort reports whether a text has a port's name as a word: rail/1 is not in
// rail/12.
func namesPort(text, port string) bool {
	for rest := text; ; {
		i := strings.Index(rest, port)
		if i < 0 {
			return false
		}
		if rest = rest[i+len(port):]; rest == "" || rest[0] < '0' || rest[0] > '9' {
			return true
		}
	}
}
