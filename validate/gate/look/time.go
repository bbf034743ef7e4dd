// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"
	"math"
	"strconv"
	"strings"
)

// Time is what the program that sets the node's clock says of it. One that cannot be asked,
// as when it does not run, sets nothing: then all is zero.
type Time struct {
	Program   string  // Chronyd, or systemd for all that it knows of; empty: chronyd could not be asked
	Offset    float64 // of the clock from the true time, seconds; chronyd alone tells it
	Synced    bool
	Servers   int // that chronyd is to ask
	Answering int // of them, that answered one of the last eight times
}

// Chronyd is the program that tells most of a clock.
const Chronyd = "chronyd"

// Waiting for a chronyd that has just been started: so many times, so many seconds apart.
const (
	syncTries = "15"
	syncEvery = "2"
)

// time asks chronyd, or systemd-timesyncd where there is no chronyd. A node that has just
// booted gets half a minute to hear from its servers.
func (l *looker) time(ctx context.Context) error {
	t, there, err := l.chrony(ctx)
	if err != nil {
		return err
	}
	if !there {
		return l.timesyncd(ctx)
	}
	if t.Servers > 0 && (!t.Synced || t.Answering == 0) {
		if _, _, _, err := l.run(ctx, "chronyc", "-n", "waitsync", syncTries, "0", "0", syncEvery); err != nil {
			return err
		}
		if t, _, err = l.chrony(ctx); err != nil {
			return err
		}
	}
	l.seen.Time = &t
	return nil
}

// chrony asks chronyd how good the clock is, and which of its servers answer.
func (l *looker) chrony(ctx context.Context) (t Time, there bool, err error) {
	out, status, there, err := l.run(ctx, "chronyc", "-n", "-c", "tracking")
	if err != nil || !there {
		return Time{}, there, err
	}
	t, ok := parseTracking(string(out))
	if !ok || status != 0 {
		l.gap("chronyc did not say how good the clock is")
		return Time{}, true, nil
	}
	out, status, _, err = l.run(ctx, "chronyc", "-n", "-c", "sources")
	if err != nil {
		return Time{}, true, err
	}
	if status == 0 {
		t.Servers, t.Answering = parseSources(string(out))
	}
	return t, true, nil
}

// parseTracking reads a report of chronyc -c: comma-separated, the offset fifth, the
// leap status last (chrony, client.c).
func parseTracking(s string) (Time, bool) {
	f := strings.Split(strings.TrimSpace(s), ",")
	if len(f) != 14 {
		return Time{}, false
	}
	offset, err := strconv.ParseFloat(f[4], 64)
	if err != nil || math.IsNaN(offset) || math.IsInf(offset, 0) { // no limit compares with these
		return Time{}, false
	}
	return Time{Program: Chronyd, Offset: offset, Synced: f[13] != "Not synchronised"}, true
}

// parseSources counts the sources that chronyc -c lists, one a line: ^ for a server, = for a
// peer, # for a clock of the node itself; its state, name, stratum, poll, and as the sixth an
// octal number whose bits are the last eight answers (chrony, client.c).
func parseSources(s string) (all, answering int) {
	for line := range strings.Lines(s) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if len(f) != 10 {
			continue
		}
		all++
		if reach, err := strconv.ParseUint(f[5], 8, 16); err == nil && reach != 0 {
			answering++
		}
	}
	return all, answering
}

// timesyncd asks systemd whether the kernel takes the clock for synchronised, which
// systemd-timesyncd tells it, as every other program does.
func (l *looker) timesyncd(ctx context.Context) error {
	out, status, there, err := l.run(ctx, "timedatectl", "show", "--property=NTPSynchronized", "--value")
	if err != nil || !there {
		return err
	}
	switch says := strings.TrimSpace(string(out)); {
	case status == 0 && (says == "yes" || says == "no"):
		l.seen.Time = &Time{Program: "systemd", Synced: says == "yes"}
	default:
		l.gap("timedatectl did not say whether the clock is synchronised")
	}
	return nil
}

func (l *looker) gap(text string) { l.seen.Gaps = append(l.seen.Gaps, text) }
