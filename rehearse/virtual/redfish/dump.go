// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// dumpTime is how long a BMC collects its diagnostic data. Belief: those of OpenBMC take one
// to several minutes.
const dumpTime = 75 * time.Second

// mostDumps is how many a BMC keeps; the next one is refused until the log is cleared, as by
// phosphor-debug-collector when its quota is used up.
const mostDumps = 8

// isDump reports whether the path names the log service of diagnostic data.
func (c *call) isDump() bool {
	return c.s.p.Dump.ID != "" && c.args[0] == c.s.p.Dump.Parent && c.args[2] == c.s.p.Dump.ID
}

// dumpService is that log service, as bmcweb shows it.
func (c *call) dumpService() obj {
	return obj{"@odata.type": "#LogService.v1_3_0.LogService", "Id": c.args[2], "Name": "Dump LogService", "ServiceEnabled": true,
		"LogEntryType": "Multiple", "OverWritePolicy": "NeverOverWrites", "Status": statusOK(), "Entries": obj{"@odata.id": c.log() + "/Entries"},
		"Actions": obj{"#LogService.ClearLog": obj{"target": c.log() + "/Actions/LogService.ClearLog"},
			"#LogService.CollectDiagnosticData": obj{"target": c.log() + "/Actions/LogService.CollectDiagnosticData",
				"DiagnosticDataType@Redfish.AllowableValues": []string{"Manager"}}}}
}

// collectDump collects diagnostic data: a task that makes a log entry.
func collectDump(c *call) {
	if !c.isLog() || !c.isDump() {
		c.missing()
		return
	}
	o, ok := c.body()
	if !ok {
		return
	}
	switch kind, has, ok := c.text(o, "DiagnosticDataType"); {
	case !ok:
		return
	case !has:
		c.fail("ActionParameterMissing", "LogService.CollectDiagnosticData", "DiagnosticDataType")
		return
	case kind != "Manager":
		c.fail("ActionParameterNotSupported", "DiagnosticDataType", "LogService.CollectDiagnosticData")
		return
	}
	c.s.mu.Lock()
	full := len(c.s.dumps) >= mostDumps
	c.s.mu.Unlock()
	if full {
		c.failWith(http.StatusInternalServerError, "InternalError")
		return
	}
	t := c.s.newTask("Collect diagnostic data")
	c.s.setTask(t, func(t *task) { t.state, t.end = "Running", t.start.Add(dumpTime) })
	content := c.s.makeDump()
	c.s.later(dumpTime, func() {
		c.s.mu.Lock()
		c.s.dumps = append(c.s.dumps, content)
		c.s.mu.Unlock()
		c.s.finishTask(t, "Completed", "The diagnostic data is collected.")
	})
	c.accepted(t)
}

// makeDump is the data: the event log and the state of the chassis, compressed.
func (s *server) makeDump() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	id := s.c.Identity()
	text, err := json.MarshalIndent(obj{"node": id.Node, "serial": id.Serial, "collected": formatTime(s.clock.Now()), "events": s.c.Entries()}, "", "  ")
	if err == nil {
		_, err = z.Write(text)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err) // into memory
	}
	return b.Bytes()
}

// dump is one that was collected, by its entry; nil: there is none.
func (s *server) dump(entry string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, err := strconv.Atoi(entry); err == nil && n >= 1 && n <= len(s.dumps) {
		return s.dumps[n-1]
	}
	return nil
}

func (c *call) dumpEntries() obj {
	members := []obj{}
	for i := 1; c.s.dump(strconv.Itoa(i)) != nil; i++ {
		members = append(members, c.dumpEntry(strconv.Itoa(i)))
	}
	return obj{"@odata.type": "#LogEntryCollection.LogEntryCollection", "Name": "Manager Dump Entries", "Members": members, "Members@odata.count": len(members)}
}

func (c *call) dumpEntry(entry string) obj {
	b := c.s.dump(entry)
	if b == nil {
		return nil
	}
	uri := c.log() + "/Entries/" + entry
	return obj{"@odata.type": "#LogEntry.v1_13_0.LogEntry", "@odata.id": uri, "Id": entry, "Name": "Manager Dump Entry", "EntryType": "Event",
		"Created": formatTime(c.s.clock.Now()), "DiagnosticDataType": "Manager", "AdditionalDataURI": uri + "/attachment", "AdditionalDataSizeBytes": len(b)}
}

// getDump sends what was collected.
func getDump(c *call) {
	b := c.s.dump(c.args[3])
	if !c.isLog() || !c.isDump() || b == nil {
		c.missing()
		return
	}
	c.w.Header().Set("Content-Type", "application/octet-stream")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(b)
}
