// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/internal/clock"
)

// page collects lines for a person. Whatever text is put into a line is escaped
// first: it may come from a BMC, a DHCP client or a console.
type page struct{ strings.Builder }

// linef adds a line.
func (p *page) linef(format string, args ...any) {
	fmt.Fprintf(p, format+"\n", escapeArgs(args)...)
}

// to writes the page. An error is a closed pipe or terminal: nobody is left to
// be told.
func (p *page) to(w io.Writer) { _, _ = io.WriteString(w, p.String()) }

// sayf prints a line of talk.
func (a *app) sayf(format string, args ...any) {
	var p page
	p.linef(format, args...)
	if a.notice != nil {
		a.notice.interrupt(func() { p.to(a.err) })
		return
	}
	p.to(a.err)
}

// escapeArgs escapes every argument that is a text.
func escapeArgs(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case error:
			out[i] = event.Escape(v.Error())
		case fmt.Stringer:
			out[i] = event.Escape(v.String())
		default:
			out[i] = arg
			if r := reflect.ValueOf(arg); r.Kind() == reflect.String {
				out[i] = event.Escape(r.String())
			}
		}
	}
	return out
}

// printJSON prints one value as data.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printLine prints one value as a line of JSON.
func (a *app) printLine(v any) {
	// An error here is a closed pipe: there is nobody left to tell.
	_ = json.NewEncoder(a.out).Encode(v)
}

// formatMoment shows a time: without its day when that is today's.
func formatMoment(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// formatSpan shows when something began, how long ago that is, and when it ends at the
// latest: "since 10:04:05 (3m12s), until 10:24:05".
func formatSpan(since, until, now time.Time) string {
	var parts []string
	if !since.IsZero() {
		parts = append(parts, fmt.Sprintf("since %s (%s)", formatMoment(since, now), formatAgo(since, now)))
	}
	if !until.IsZero() {
		parts = append(parts, "until "+formatMoment(until, now))
	}
	return strings.Join(parts, ", ")
}

// formatAgo returns the time from t to now.
func formatAgo(t, now time.Time) string { return clock.Took(t, now) }

// addProgress adds to a text how far its work is. Totals below a MiB are counts,
// not bytes.
func addProgress(text string, done, total int64) string {
	switch {
	case total <= 0:
		return text
	case total < 1<<20:
		return fmt.Sprintf("%s (%d of %d)", text, done, total)
	}
	return fmt.Sprintf("%s %d%% of %s", text, int64(100*(float64(done)/float64(total))), formatSize(total))
}

// formatSize shows bytes.
func formatSize(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// clipLine cuts a line to a width in characters.
func clipLine(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:max(0, width-1)]) + "…"
}

// pluralOf returns the word that goes with n.
func pluralOf(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// shortenNames lists names, and says how many more there are.
func shortenNames(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// textOr returns s, or other when s is empty.
func textOr(s, other string) string {
	if s != "" {
		return s
	}
	return other
}
