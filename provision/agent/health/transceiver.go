// SPDX-License-Identifier: Apache-2.0

package health

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// ReadModule reads bytes of a page of the memory of the transceiver or cable in a network
// interface: ReadEEPROM, but on a virtual node.
type ReadModule func(netdev string, page byte, offset, length int) ([]byte, error)

// Identifiers of modules (SFF-8024, table 4-1) by how their memory is laid out.
var (
	ofSFP  = []byte{0x03, 0x0b}                               // SFF-8472
	ofQSFP = []byte{0x0c, 0x0d, 0x11}                         // SFF-8636
	ofCMIS = []byte{0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f, 0x20} // CMIS 5.0: QSFP-DD, OSFP, DSFP, QSFP+ or later, SFP-DD
)

// fields are where a memory says who made the module: offset and length.
type fields struct{ vendor, part, serial [2]int }

var (
	fieldsSFP  = fields{vendor: [2]int{20, 16}, part: [2]int{40, 16}, serial: [2]int{68, 16}}
	fieldsQSFP = fields{vendor: [2]int{148, 16}, part: [2]int{168, 16}, serial: [2]int{196, 16}}
	fieldsCMIS = fields{vendor: [2]int{129, 16}, part: [2]int{148, 16}, serial: [2]int{166, 16}}
)

// Transceivers reads what is plugged into the NICs that were found. A NIC whose driver does
// not give the memory of its module, as those of InfiniBand ports, is left out.
func Transceivers(fs sysfs.FS, list []wire.PCILink, read ReadModule) {
	for i, l := range list {
		if !strings.HasPrefix(l.Class, "02") {
			continue
		}
		for _, name := range fs.Names(bus, l.Address, "net") {
			if t := transceiver(name, read); t != nil {
				list[i].Transceiver = t
				break
			}
		}
	}
}

// transceiver reads one; nil where there is none, or nothing is known of it.
func transceiver(netdev string, read ReadModule) *wire.Transceiver {
	kind, err := read(netdev, 0, 0, 1)
	if err != nil || len(kind) != 1 {
		return nil
	}
	at := fields{}
	switch {
	case bytes.Contains(ofSFP, kind):
		at = fieldsSFP
	case bytes.Contains(ofQSFP, kind):
		at = fieldsQSFP
	case bytes.Contains(ofCMIS, kind):
		at = fieldsCMIS
	default:
		return nil
	}
	field := func(f [2]int) string {
		b, err := read(netdev, 0, f[0], f[1])
		if err != nil || len(b) != f[1] {
			return ""
		}
		return printable(b)
	}
	t := wire.Transceiver{Maker: field(at.vendor), Part: field(at.part), Serial: field(at.serial)}
	if t.Part == "" {
		return nil
	}
	switch {
	case bytes.Contains(ofQSFP, kind):
		t.Received, t.Sent = readPower(netdev, read, powerQSFP)
	case bytes.Contains(ofCMIS, kind):
		t.Firmware = firmwareOf(netdev, read)
		if flat, err := read(netdev, 0, 2, 1); err == nil && len(flat) == 1 && flat[0]&0x80 == 0 { // else it has page 0 only
			t.Received, t.Sent = readPower(netdev, read, powerCMIS)
		}
	}
	return &t
}

// powers are where a memory has the optical power of its lanes: a page, the offsets of the
// first lane, and how many lanes. Each is two bytes, the higher first, in 0.1 µW.
type powers struct {
	page                  byte
	received, sent, lanes int
}

var (
	powerQSFP = powers{0, 34, 50, 4}      // SFF-8636, table 6-7: channel monitoring
	powerCMIS = powers{0x11, 186, 154, 8} // CMIS 5.0, table 8-76: media lane monitors
)

// noLight is what is said of a lane without light, dBm; its logarithm has no value.
const noLight = -40

// readPower reads what each lane receives and sends, in dBm; nil where nothing is read, or
// no lane has light, as in a copper cable.
func readPower(netdev string, read ReadModule, at powers) (received, sent []float64) {
	lanes := func(offset int) (list []float64) {
		b, err := read(netdev, at.page, offset, 2*at.lanes)
		if err != nil || len(b) != 2*at.lanes {
			return nil
		}
		light := false
		for i := range at.lanes {
			dBm := float64(noLight)
			if v := binary.BigEndian.Uint16(b[2*i:]); v > 0 {
				light, dBm = true, math.Round(100*math.Log10(float64(v)/10000))/10 // 10 log10 of mW, to a tenth
			}
			list = append(list, dBm)
		}
		if !light {
			return nil
		}
		return list
	}
	return lanes(at.received), lanes(at.sent)
}

// firmwareOf is the active firmware of a module (CMIS 5.0, bytes 39 and 40 of the lower
// memory); "" where it has none.
func firmwareOf(netdev string, read ReadModule) string {
	b, err := read(netdev, 0, 39, 2)
	if err != nil || len(b) != 2 || b[0] == 0 && b[1] == 0 || b[0] == 0xff && b[1] == 0xff {
		return ""
	}
	return fmt.Sprintf("%d.%d", b[0], b[1])
}

// printable is the text of a field of ASCII that is padded with spaces; "" where it has
// anything else.
func printable(b []byte) string {
	b = bytes.TrimRight(b, " \x00\xff")
	for _, c := range b {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return strings.TrimSpace(string(b))
}
