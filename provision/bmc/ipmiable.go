// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/command/storage"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/errkind"
)

var (
	_ Sensors  = (*ipmiDriver)(nil)
	_ EventLog = (*ipmiDriver)(nil)
	_ Locator  = (*ipmiDriver)(nil)
)

// units are the units of IPMI (IPMI 2.0, table 43-15) that are told.
var units = map[types.SensorUnitType]string{
	types.SensorUnitType_DegreesC: "Cel",
	types.SensorUnitType_Volts:    "V",
	types.SensorUnitType_Watts:    "W",
	types.SensorUnitType_RPM:      "RPM",
}

// codeNoRecord: the sensor, data or record that was asked for is not there (IPMI 2.0, table 5-2).
const codeNoRecord types.CompletionCode = 0xcb

// sensorsTime is how long all sensors may take: two exchanges for each of up to
// 200, at 50 ms.
const sensorsTime = 20 * time.Second

// Sensors implements the interface Sensors: the sensors of the SDR repository
// that have an analog reading now.
func (d *ipmiDriver) Sensors(ctx context.Context) ([]Reading, error) {
	if d.client == nil {
		return nil, errkind.New(errkind.Unreachable, "the session is closed")
	}
	var all []*types.Sensor
	err := d.exchange(ctx, max(sensorsTime, d.target.Timeout), func(ctx context.Context) (err error) {
		all, err = d.client.GetSensors(ctx, client.SensorFilterOptionIsReadingValid)
		// Of an empty repository (IPMI 2.0, 33.12), or of a sensor.
		if resp, ok := errors.AsType[*types.ResponseError](err); ok && resp.CompletionCode() == codeNoRecord {
			if info, ierr := d.client.GetSDRRepoInfo(ctx); ierr == nil && info.RecordCount == 0 {
				return nil
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []Reading
	for _, s := range all {
		if unit, ok := units[s.SensorUnit.BaseUnit]; ok && s.HasAnalogReading && !s.NotPresent {
			out = append(out, Reading{Name: s.Name, Unit: unit, Value: s.Value})
		}
	}
	return out, nil
}

// The ids with which reading the event log begins and ends (IPMI 2.0, 31.5).
const (
	selFirst = 0
	selLast  = 0xffff
	selMost  = 5000 // entries that are read; a guard against a log that goes in circles
)

// EventLog implements the interface EventLog: the SEL.
func (d *ipmiDriver) EventLog(ctx context.Context, most int) ([]LogEntry, error) {
	var out []LogEntry
	for id := uint16(selFirst); id != selLast && len(out) < selMost; {
		var r *storage.GetSELEntryResponse
		err := d.read(ctx, func(ctx context.Context) (err error) { r, err = d.client.GetSELEntry(ctx, 0, id); return err })
		if isCode(err, types.CodeRequestedDataNotPresent) {
			break // an empty log
		}
		if err != nil {
			return nil, err
		}
		e, err := selEntry(r.Data)
		if err != nil {
			return nil, classify(ctx, err)
		}
		out = append(out, e)
		id = r.NextRecordID
	}
	if most > 0 && len(out) > most {
		out = out[len(out)-most:]
	}
	return out, nil
}

// LogFull implements LogSpace: Get SEL Info (IPMI 2.0, 31.2). A record has 16 bytes, and
// 0xffff means that more are free than the field can say.
func (d *ipmiDriver) LogFull(ctx context.Context) (string, error) {
	var r *storage.GetSELInfoResponse
	if err := d.read(ctx, func(ctx context.Context) (err error) { r, err = d.client.GetSELInfo(ctx); return err }); err != nil {
		return "", err
	}
	switch {
	case r.OperationSupport.Overflow:
		return fmt.Sprintf("%d entries, and events were dropped for lack of space", r.Entries), nil
	case r.FreeBytes < 16:
		return fmt.Sprintf("%d entries, and %d bytes are free", r.Entries, r.FreeBytes), nil
	}
	return "", nil
}

// Time implements Timekeeper: Get SEL Time (31.10).
func (d *ipmiDriver) Time(ctx context.Context) (time.Time, error) {
	var r *storage.GetSELTimeResponse
	if err := d.read(ctx, func(ctx context.Context) (err error) { r, err = d.client.GetSELTime(ctx); return err }); err != nil {
		return time.Time{}, err
	}
	return r.Time, nil
}

// SetTime implements Timekeeper: Set SEL Time (31.11).
func (d *ipmiDriver) SetTime(ctx context.Context, at time.Time) (Outcome, error) {
	before := d.sent
	err := d.write(ctx, func(ctx context.Context) error { _, err := d.client.SetSELTime(ctx, at); return err })
	out := Outcome{Sent: d.sent - before}
	if err != nil && !isLost(err) {
		out.Evidence = "the request was refused"
		return out, err
	}
	now, rerr := d.Time(ctx)
	out.Evidence = formatClock(now)
	switch {
	case rerr != nil:
		return out, rerr
	case isNear(now, at):
		out.Verdict = Verified
		return out, nil
	}
	out.Verdict = Contradicted
	return out, err
}

// severities are the library's words in Redfish's.
var severities = map[types.EventSeverity]string{
	types.EventSeverityInfo:     "OK",
	types.EventSeverityOK:       "OK",
	types.EventSeverityWarning:  "Warning",
	types.EventSeverityDegraded: "Warning",
	types.EventSeverityCritical: "Critical",
	types.EventSeverityNonFatal: "Critical",
}

// cutName is a name of the library's table that lacks its last letter (table 42-3, offset 0
// of Power Unit).
const cutName = "Power Off / Power Dow"

// selEntry reads one SEL record. The library trusts the record's bytes.
func selEntry(record []byte) (e LogEntry, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed SEL record: %v", p)
		}
	}()
	s, err := types.ParseSEL(record)
	if err != nil {
		return e, err
	}
	e.ID = strconv.Itoa(int(s.RecordID))
	switch {
	case s.Standard != nil:
		e.Created, e.Sensor, e.Message = s.Standard.Timestamp, s.Standard.SensorType.String(), s.Standard.EventString()
		e.Severity = severities[s.Standard.EventSeverity()]
		if e.Message == cutName {
			e.Message += "n"
		}
		if s.Standard.EventDir { // bit 7 of the event type (32.1): what was so is so no more
			e.Message += " (deasserted)"
		}
	case s.OEMTimestamped != nil:
		e.Created, e.Message = s.OEMTimestamped.Timestamp, fmt.Sprintf("maker's record of type %#02x", uint8(s.RecordType))
	default:
		e.Message = fmt.Sprintf("maker's record of type %#02x", uint8(s.RecordType))
	}
	return e, nil
}

// ClearEventLog implements EventLog. BMCs leave one entry that says so.
func (d *ipmiDriver) ClearEventLog(ctx context.Context) (Outcome, error) {
	var r *storage.ReserveSELResponse
	if err := d.read(ctx, func(ctx context.Context) (err error) { r, err = d.client.ReserveSEL(ctx); return err }); err != nil {
		return Outcome{}, err
	}
	before := d.sent
	err := d.write(ctx, func(ctx context.Context) error { _, err := d.client.ClearSEL(ctx, r.ReservationID); return err })
	out := Outcome{Sent: d.sent - before}
	if err != nil && !isLost(err) {
		return out, err
	}
	left, lerr := d.EventLog(ctx, 0)
	out.Evidence = fmt.Sprintf("%d entries are left", len(left))
	switch {
	case lerr != nil:
		return out, lerr
	case len(left) <= 1:
		out.Verdict = Verified
		return out, nil
	}
	out.Verdict = Contradicted
	return out, err
}
