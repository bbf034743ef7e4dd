// SPDX-License-Identifier: Apache-2.0

package chassis

import (
	"slices"
	"time"
)

// logSize is how many entries the event log holds; the oldest go first, as in
// a circular SEL.
const logSize = 512

// Log adds an entry to the system event log.
func (c *Chassis) Log(severity, sensorType, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record(severity, sensorType, message)
}

// record is Log with c.mu held.
func (c *Chassis) record(severity, sensorType, message string) {
	c.lastID++
	switch {
	case len(c.log) >= logSize && c.linear:
		c.dropped = true
		return
	case len(c.log) >= logSize:
		c.log = slices.Delete(c.log, 0, len(c.log)-logSize+1)
	}
	c.log = append(c.log, Entry{ID: c.lastID, Created: c.now(), Severity: severity, Message: message, SensorType: sensorType})
}

// Entries returns a copy of the event log, oldest first.
func (c *Chassis) Entries() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// ClearLog empties the event log; the next entry says so.
func (c *Chassis) ClearLog() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log, c.dropped = nil, false
	c.record("OK", "Event Logging Disabled", "Log cleared")
}

// KeepOldLog makes the event log one that keeps its oldest entries and drops new ones when
// it is full, as the SELs of many BMCs are.
func (c *Chassis) KeepOldLog() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.linear = true
}

// LogState is how many entries the event log can hold, whether it keeps the oldest of
// them, and whether entries were dropped since it was cleared.
func (c *Chassis) LogState() (size int, linear, dropped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return logSize, c.linear, c.dropped
}

// now is the BMC's own time of day, with c.mu held: the controller's, however fast hardware
// is, until somebody sets it.
func (c *Chassis) now() time.Time { return time.Now().Add(c.ahead) }

// Time is what the BMC's clock says.
func (c *Chassis) Time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// SetTime sets the BMC's clock.
func (c *Chassis) SetTime(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = time.Until(t)
}
