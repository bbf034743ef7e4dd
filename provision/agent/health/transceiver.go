// SPDX-License-Identifier: Apache-2.0

package health

import (
	"bytes"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// ReadModule reads bytes of page 0 of the memory of the transceiver or cable in a network
// interface: ReadEEPROM, but on a virtual node.
type ReadModule func(netdev string, offset, length int) ([]byte, error)

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
	kind, err := read(netdev, 0, 1)
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
		b, err := read(netdev, f[0], f[1])
		if err != nil || len(b) != f[1] {
			return ""
		}
		return printable(b)
	}
	t := wire.Transceiver{Maker: field(at.vendor), Part: field(at.part), Serial: field(at.serial)}
	if t.Part == "" {
		return nil
	}
	return &t
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
