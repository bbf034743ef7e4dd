// SPDX-License-Identifier: Apache-2.0

package ipmi

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// The library's server has no event log (v0.9.0); these commands are IPMI 2.0,
// section 31, on the chassis' log.

const (
	selVersion  = 0x51
	selFirst    = 0x0000
	selLast     = 0xffff
	selRecord   = 16
	specific    = 0x6f // event type: by the sensor's type
	deasserted  = 0x80
	unspecified = 0xffffffff // a time
)

// happening is a log entry in the words of IPMI (table 42-3).
type happening struct {
	kind, offset byte
	over         bool // the event is no longer there
}

// kinds are the sensor types of the chassis' words, and the offset of what goes
// wrong with each.
var kinds = map[string]happening{
	"Temperature":            {kind: 0x01, offset: 0x09},
	"Voltage":                {kind: 0x02, offset: 0x02},
	"Fan":                    {kind: 0x04, offset: 0x02},
	"Security":               {kind: 0x06, offset: 0x05}, // out-of-band password violation
	"Processor":              {kind: 0x07, offset: 0x00},
	"Power Supply":           {kind: 0x08, offset: 0x03}, // input lost
	"Power Unit":             {kind: 0x09, offset: 0x00}, // power off
	"Memory":                 {kind: 0x0c, offset: 0x01},
	"Drive Slot / Bay":       {kind: 0x0d, offset: 0x01},
	"Event Logging Disabled": {kind: 0x10, offset: 0x02}, // log area cleared
	"System Event":           {kind: 0x12, offset: 0x01},
	"Cable/Interconnect":     {kind: 0x1b, offset: 0x01},
	"Version Change":         {kind: 0x2b, offset: 0x07},
}

// translateEntry translates an entry. IPMI keeps no text: what it says beyond its type
// is taken from the words that the chassis writes.
func translateEntry(e chassis.Entry) happening {
	h, ok := kinds[e.SensorType]
	if !ok {
		h = kinds["System Event"]
	}
	switch e.SensorType {
	case "Power Unit":
		if strings.Contains(e.Message, "AC lost") {
			h.offset = 0x04
		}
		h.over = strings.HasSuffix(e.Message, "power on")
	case "Power Supply":
		if strings.HasSuffix(e.Message, "failure detected") {
			h.offset = 0x01
		}
		h.over = e.Severity == "OK"
	case "Event Logging Disabled", "System Event", "Version Change":
	default:
		h.over = e.Severity == "OK"
	}
	return h
}

// packRecord packs an entry (32.1).
func packRecord(e chassis.Entry) []byte {
	h := translateEntry(e)
	r := make([]byte, selRecord)
	binary.LittleEndian.PutUint16(r, selID(e))
	r[2] = 0x02 // system event
	binary.LittleEndian.PutUint32(r[3:], uint32(e.Created.Unix()))
	r[7], r[9], r[10] = 0x20, 0x04, h.kind // the BMC says so, in event messages of IPMI 2.0
	r[12] = specific
	if h.over {
		r[12] |= deasserted
	}
	r[13] = h.offset
	return r
}

// selID is an entry's record number; 0 and 0xffff mean first and last.
func selID(e chassis.Entry) uint16 { return uint16((e.ID-1)%(selLast-1)) + 1 }

// selInfo is Get SEL Info (31.2).
func (k *controller) selInfo([]byte) ([]byte, types.CompletionCode) {
	all := k.c.Entries()
	out := make([]byte, 14)
	out[0] = selVersion
	binary.LittleEndian.PutUint16(out[1:], uint16(len(all)))
	size, linear, _ := k.c.LogState()
	if !linear {
		size = max(size, len(all)+1) // it overwrites its oldest entry
	}
	binary.LittleEndian.PutUint16(out[3:], uint16(max(0, size-len(all))*selRecord))
	last := uint32(unspecified)
	if len(all) > 0 {
		last = uint32(all[len(all)-1].Created.Unix())
	}
	binary.LittleEndian.PutUint32(out[5:], last)
	binary.LittleEndian.PutUint32(out[9:], unspecified)
	out[13] = 0x02 // Reserve SEL
	if _, _, dropped := k.c.LogState(); dropped {
		out[13] |= 0x80
	}
	return out, types.CodeOK
}

// selReserve is Reserve SEL (31.4).
func (k *controller) selReserve([]byte) ([]byte, types.CompletionCode) {
	if k.sel++; k.sel == 0 {
		k.sel = 1
	}
	return binary.LittleEndian.AppendUint16(nil, k.sel), types.CodeOK
}

// selEntry is Get SEL Entry (31.5).
func (k *controller) selEntry(req []byte) ([]byte, types.CompletionCode) {
	want, offset, count := binary.LittleEndian.Uint16(req[2:]), int(req[4]), int(req[5])
	all := k.c.Entries()
	at := -1
	for i, e := range all {
		if want == selFirst && i == 0 || want == selLast && i == len(all)-1 || want == selID(e) {
			at = i
			break
		}
	}
	if at < 0 || offset >= selRecord {
		return nil, types.CodeRequestedDataNotPresent
	}
	next := uint16(selLast)
	if at+1 < len(all) {
		next = selID(all[at+1])
	}
	out := binary.LittleEndian.AppendUint16(nil, next)
	return append(out, packRecord(all[at])[offset:min(selRecord, offset+count)]...), types.CodeOK
}

// selClear is Clear SEL (31.9), done at once.
func (k *controller) selClear(req []byte) ([]byte, types.CompletionCode) {
	const initiate, done = 0xaa, 0x01
	switch {
	case string(req[2:5]) != "CLR":
		return nil, types.CodeParameterOutOfRange
	case binary.LittleEndian.Uint16(req) != k.sel || k.sel == 0:
		return nil, types.CodeReservationCanceled
	case req[5] == initiate:
		k.c.ClearLog()
	}
	return []byte{done}, types.CodeOK
}

// selTime is Get SEL Time (31.10).
func (k *controller) selTime([]byte) ([]byte, types.CompletionCode) {
	return binary.LittleEndian.AppendUint32(nil, uint32(k.c.Time().Unix())), types.CodeOK
}

// setSELTime is Set SEL Time (31.11).
func (k *controller) setSELTime(req []byte) ([]byte, types.CompletionCode) {
	k.c.SetTime(time.Unix(int64(binary.LittleEndian.Uint32(req)), 0))
	return nil, types.CodeOK
}
