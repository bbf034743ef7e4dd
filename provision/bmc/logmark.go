// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"strconv"
	"time"

	"github.com/bougou/go-ipmi/pkg/command/storage"
	"github.com/bougou/go-ipmi/pkg/types"
)

// LogMark is a place in an event log: its newest entry at one time. The zero mark
// is the beginning. Times in it are the BMC's own, and may be wrong.
type LogMark struct {
	ID      string    `json:"id,omitempty"`
	Created time.Time `json:"created,omitzero"`
	Message string    `json:"message,omitempty"`
}

// markOf is the place of an entry.
func markOf(e LogEntry) LogMark { return LogMark{ID: e.ID, Created: e.Created, Message: e.Message} }

// LogSince reads what is new in the hardware event log.
type LogSince interface {
	// LogMark returns where the log ends now.
	LogMark(context.Context) (LogMark, error)
	// LogSince returns the entries after a mark, the oldest first. Of a log that was
	// emptied since, or has wrapped, these are all.
	LogSince(context.Context, LogMark) ([]LogEntry, error)
}

var (
	_ LogSince = (*redfishDriver)(nil)
	_ LogSince = (*ipmiDriver)(nil)
)

// LogMark implements LogSince.
func (d *redfishDriver) LogMark(ctx context.Context) (LogMark, error) {
	last, err := d.client.EventLog(ctx, 1)
	if err != nil || len(last) == 0 {
		return LogMark{}, err
	}
	return markOf(last[0]), nil
}

// LogSince implements LogSince.
func (d *redfishDriver) LogSince(ctx context.Context, m LogMark) ([]LogEntry, error) {
	all, err := d.client.EventLog(ctx, 0)
	if err != nil {
		return nil, err
	}
	return after(all, m), nil
}

// after returns the entries that follow a mark. Some services number entries anew
// by their place, so that an id alone proves nothing: time and text decide, and the
// id among entries that are alike in both.
func after(all []LogEntry, m LogMark) []LogEntry {
	if m == (LogMark{}) {
		return all
	}
	at := -1
	for i, e := range all {
		if e.Created.Equal(m.Created) && e.Message == m.Message && (at < 0 || all[at].ID != m.ID) {
			at = i
		}
	}
	return all[at+1:]
}

// LogMark implements LogSince: one exchange, however long the log is.
func (d *ipmiDriver) LogMark(ctx context.Context) (LogMark, error) {
	e, _, there, err := d.selAt(ctx, selLast)
	if err != nil || !there {
		return LogMark{}, err
	}
	return markOf(e), nil
}

// LogSince implements LogSince. It reads from the mark on: a full log is some
// thousand exchanges.
func (d *ipmiDriver) LogSince(ctx context.Context, m LogMark) (out []LogEntry, err error) {
	from := uint16(selFirst)
	if id, err := strconv.ParseUint(m.ID, 10, 16); err == nil {
		e, next, there, err := d.selAt(ctx, uint16(id))
		if err != nil {
			return nil, err
		}
		if there && e.Created.Equal(m.Created) && e.Message == m.Message {
			from = next
		}
	}
	for len(out) < selMost && (from != selLast) {
		e, next, there, err := d.selAt(ctx, from)
		if err != nil {
			return nil, err
		}
		if !there {
			break
		}
		out, from = append(out, e), next
	}
	return out, nil
}

// selAt reads one entry of the SEL, and the id of the next; there is false when it
// has no such entry.
func (d *ipmiDriver) selAt(ctx context.Context, id uint16) (e LogEntry, next uint16, there bool, err error) {
	var r *storage.GetSELEntryResponse
	err = d.read(ctx, func(ctx context.Context) (err error) { r, err = d.client.GetSELEntry(ctx, 0, id); return err })
	if isCode(err, types.CodeRequestedDataNotPresent) {
		return e, 0, false, nil
	}
	if err != nil {
		return e, 0, false, err
	}
	e, err = selEntry(r.Data)
	if err != nil {
		return e, 0, false, classify(ctx, err)
	}
	return e, r.NextRecordID, true, nil
}
