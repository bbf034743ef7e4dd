// SPDX-License-Identifier: Apache-2.0

package chassis

import "slices"

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
	if len(c.log) >= logSize {
		c.log = slices.Delete(c.log, 0, len(c.log)-logSize+1)
	}
	c.log = append(c.log, Entry{ID: c.lastID, Created: c.cfg.Clock.Now(), Severity: severity, Message: message, SensorType: sensorType})
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
	c.log = nil
	c.record("OK", "Event Logging Disabled", "Log cleared")
}
