// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// LogEntry is one record of the event log.
type LogEntry struct {
	ID       string
	Created  time.Time // zero: the BMC's text is no time
	Severity string    // OK, Warning, Critical
	Message  string
	Sensor   string // SensorType
}

// logIDs are the names of the hardware event log, the likelier first: SEL of
// most, IML of HPE, the others of Lenovo, Supermicro and AMI, OpenBMC's last.
var logIDs = []string{"SEL", "Sel", "IML", "Log1", "PlatformLog", "StandardLog", "EventLog"}

// maxEntries bounds an event log; those of real BMCs end at some thousand.
const maxEntries = 5000

// record is one member of a log's entries.
type record struct {
	Path       text `json:"@odata.id"`
	ID         text `json:"Id"`
	Created    text
	Severity   text
	Message    text
	SensorType text
}

func (r record) entry() LogEntry {
	return LogEntry{ID: OneLine(string(r.ID)), Created: parseTime(string(r.Created)), Severity: OneLine(string(r.Severity)),
		Message: OneLine(string(r.Message)), Sensor: OneLine(string(r.SensorType))}
}

// EventLog reads the newest entries of the node's hardware event log, the oldest
// of them first; zero means all.
func (c *Client) EventLog(ctx context.Context, most int) ([]LogEntry, error) {
	service, err := c.logService(ctx)
	if err != nil || service == "" {
		return nil, err
	}
	var doc struct{ Entries link }
	if _, err := c.get(ctx, service, &doc); err != nil {
		return nil, err
	}
	all, err := c.records(ctx, string(doc.Entries))
	if err != nil {
		return nil, err
	}
	if n := len(all); n > 1 && parseTime(string(all[0].Created)).After(parseTime(string(all[n-1].Created))) {
		slices.Reverse(all) // iDRAC begins with the newest
	}
	if most > 0 && len(all) > most {
		all = all[len(all)-most:]
	}
	out := make([]LogEntry, 0, len(all))
	for _, r := range all {
		if r.ID == "" && r.Message == "" { // a reference instead of the entry
			path, ok := cleanPath(string(r.Path))
			if !ok {
				continue
			}
			if _, err := c.get(ctx, path, &r); err != nil {
				return nil, err
			}
		}
		out = append(out, r.entry())
	}
	return out, nil
}

// LogFull says why the node's hardware event log takes no new entries: it holds as many as
// it can and keeps the oldest (Redfish LogService, OverWritePolicy and MaxNumberOfRecords).
// It is empty where the log takes them, or the service does not say.
func (c *Client) LogFull(ctx context.Context) (string, error) {
	service, err := c.logService(ctx)
	if err != nil || service == "" {
		return "", err
	}
	var doc struct {
		OverWritePolicy    text
		MaxNumberOfRecords int
		Entries            link
	}
	if _, err := c.get(ctx, service, &doc); err != nil || doc.OverWritePolicy != "NeverOverWrites" || doc.MaxNumberOfRecords < 1 {
		return "", err
	}
	all, err := c.records(ctx, string(doc.Entries))
	if err != nil || len(all) < doc.MaxNumberOfRecords {
		return "", err
	}
	return fmt.Sprintf("%d of %d entries, and none is overwritten", len(all), doc.MaxNumberOfRecords), nil
}

// Time reads the manager's clock; zero where it shows none.
func (c *Client) Time(ctx context.Context) (time.Time, error) {
	if _, err := c.system(ctx); err != nil {
		return time.Time{}, err
	}
	if c.place.manager == "" {
		return time.Time{}, nil
	}
	var m struct{ DateTime text }
	_, err := c.get(ctx, c.place.manager, &m)
	return parseTime(string(m.DateTime)), err
}

// SetTime sets the manager's clock. Services that follow a time server refuse it.
func (c *Client) SetTime(ctx context.Context, at time.Time) error {
	_, err := c.patch(ctx, c.place.manager, map[string]string{"DateTime": at.UTC().Format("2006-01-02T15:04:05+00:00")})
	return err
}

// records reads all pages of a log.
func (c *Client) records(ctx context.Context, path string) ([]record, error) {
	var out []record
	for page := 0; path != "" && page < maxPages && len(out) < maxEntries; page++ {
		var part struct {
			Members []record
			Next    link `json:"Members@odata.nextLink"`
		}
		if _, err := c.get(ctx, path, &part); err != nil {
			return nil, err
		}
		out = append(out, part.Members...)
		path = string(part.Next)
	}
	return out, nil
}

// logService finds the hardware event log, of the system or of the manager.
func (c *Client) logService(ctx context.Context) (string, error) {
	s, err := c.system(ctx)
	if err != nil {
		return "", err
	}
	var m struct{ LogServices link }
	if c.place.manager != "" {
		if _, err := c.get(ctx, c.place.manager, &m); err != nil && !isStatus(err, http.StatusNotFound) {
			return "", err
		}
	}
	var all links
	for _, l := range []link{s.LogServices, m.LogServices} {
		if l == "" {
			continue
		}
		got, err := c.members(ctx, string(l), maxSystems)
		if err != nil && !isStatus(err, http.StatusNotFound) {
			return "", err
		}
		all = append(all, got...)
	}
	for _, id := range logIDs {
		for _, l := range all {
			if l.id() == id {
				return string(l), nil
			}
		}
	}
	return "", c.place.managers // one of them may have it
}

// ClearLog empties the node's hardware event log.
func (c *Client) ClearLog(ctx context.Context) error {
	service, err := c.logService(ctx)
	if err != nil {
		return err
	}
	if service == "" {
		return unsupported("event log")
	}
	var doc struct {
		Actions struct {
			Clear struct {
				Target text `json:"target"`
			} `json:"#LogService.ClearLog"`
		}
	}
	if _, err := c.get(ctx, service, &doc); err != nil {
		return err
	}
	return c.act(ctx, string(doc.Actions.Clear.Target), "clear the event log", map[string]string{})
}

// parseTime reads a time as services write it: with and without a colon in the
// offset; Dell's year 0 and times alone are none.
func parseTime(s string) time.Time {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05-0700", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(form, s); err == nil && t.Year() > 0 {
			return t
		}
	}
	return time.Time{}
}
