// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"strconv"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// logs returns the ids of the log services of {kind}/{owner}; nil: none.
func (c *call) logs() []string {
	kind, owner := c.args[0], c.args[1]
	if owner == "" || c.s.owner(kind) != owner {
		return nil
	}
	var out []string
	for _, l := range c.s.p.Logs {
		if l.Parent == kind {
			out = append(out, l.ID)
		}
	}
	if c.s.p.Dump.Parent == kind {
		out = append(out, c.s.p.Dump.ID)
	}
	return out
}

// isLog reports whether the path names one of them.
func (c *call) isLog() bool {
	for _, id := range c.logs() {
		if id == c.args[2] {
			return true
		}
	}
	return false
}

// log is the URI of the log service that the path names.
func (c *call) log() string { return joinURI(c.args[0], c.args[1], "LogServices", c.args[2]) }

func getLogServices(c *call) obj {
	all := c.logs()
	if all == nil {
		return nil
	}
	return c.collection("LogService", "System Log Services Collection", all)
}

func getLogService(c *call) obj {
	if !c.isLog() {
		return nil
	}
	if c.isDump() {
		return c.dumpService()
	}
	policy := "WrapsWhenFull"
	size, linear, _ := c.s.c.LogState()
	if linear {
		policy = "NeverOverWrites"
	}
	return obj{"@odata.type": "#LogService.v1_3_0.LogService", "Id": c.args[2], "Name": "Event Log Service", "ServiceEnabled": true,
		"LogEntryType": "SEL", "OverWritePolicy": policy, "MaxNumberOfRecords": size, "Status": statusOK(),
		"Entries": obj{"@odata.id": c.log() + "/Entries"},
		"Actions": obj{"#LogService.ClearLog": obj{"target": c.log() + "/Actions/LogService.ClearLog"}}}
}

// getEntries holds the entries themselves, as the specification allows for
// logs, not links to them.
func getEntries(c *call) obj {
	if !c.isLog() {
		return nil
	}
	if c.isDump() {
		return c.dumpEntries()
	}
	entries := c.s.c.Entries()
	members := make([]obj, len(entries))
	for i, e := range entries {
		members[i] = c.show(e)
	}
	return obj{"@odata.type": "#LogEntryCollection.LogEntryCollection", "Name": "System Event Log Entries",
		"Members": members, "Members@odata.count": len(members)}
}

func getEntry(c *call) obj {
	if !c.isLog() {
		return nil
	}
	if c.isDump() {
		return c.dumpEntry(c.args[3])
	}
	for _, e := range c.s.c.Entries() {
		if strconv.Itoa(e.ID) == c.args[3] {
			return c.show(e)
		}
	}
	return nil
}

func (c *call) show(e chassis.Entry) obj {
	id := strconv.Itoa(e.ID)
	return obj{"@odata.type": "#LogEntry.v1_13_0.LogEntry", "@odata.id": c.log() + "/Entries/" + id, "Id": id, "Name": "System Event Log Entry",
		"EntryType": "SEL", "Severity": e.Severity, "Created": formatTime(e.Created), "Message": e.Message, "SensorType": e.SensorType,
		"EntryCode": "Assert"}
}

func clearLog(c *call) {
	if !c.isLog() {
		c.missing()
		return
	}
	if c.isDump() {
		c.s.mu.Lock()
		c.s.dumps = nil
		c.s.mu.Unlock()
	} else {
		c.s.c.ClearLog()
	}
	c.done(c.s.p.PatchStatus)
}
