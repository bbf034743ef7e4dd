// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/health"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// memory is page 0 of a module of some kind with a maker, a part number and a serial number.
func memory(kind byte, maker, part, serial int, texts ...string) []byte {
	b := make([]byte, 256)
	b[0] = kind
	for i, at := range []int{maker, part, serial} {
		copy(b[at:at+16], "                ")
		copy(b[at:at+16], texts[i])
	}
	return b
}

// TestTransceivers: each kind of module is read where its standard has its fields, and what
// is no text is not taken for one.
func TestTransceivers(t *testing.T) {
	t.Parallel()
	whole := wire.Transceiver{Maker: "NVIDIA", Part: "MMA4Z00-NS400", Serial: "MT2345"}
	for name, c := range map[string]struct {
		memory []byte
		want   wire.Transceiver
	}{
		"OSFP":             {memory(0x19, 129, 148, 166, "NVIDIA", "MMA4Z00-NS400", "MT2345"), whole},
		"QSFP112 by CMIS":  {memory(0x1e, 129, 148, 166, "NVIDIA", "MMA4Z00-NS400", "MT2345"), whole},
		"QSFP28":           {memory(0x11, 148, 168, 196, "NVIDIA", "MMA4Z00-NS400", "MT2345"), whole},
		"SFP28":            {memory(0x03, 20, 40, 68, "NVIDIA", "MMA4Z00-NS400", "MT2345"), whole},
		"another kind":     {memory(0x7f, 20, 40, 68, "NVIDIA", "MMA4Z00-NS400", "MT2345"), wire.Transceiver{}},
		"no part number":   {memory(0x19, 129, 148, 166, "NVIDIA", "", "MT2345"), wire.Transceiver{}},
		"bytes, no text":   {memory(0x19, 129, 148, 166, "NVIDIA", "\x01\x02", "MT2345"), wire.Transceiver{}},
		"a maker unknown":  {memory(0x19, 129, 148, 166, "\xff\xff", "MMA4Z00-NS400", "MT2345"), wire.Transceiver{Part: "MMA4Z00-NS400", Serial: "MT2345"}},
		"nothing to read":  {nil, wire.Transceiver{}},
		"shorter than due": {memory(0x19, 129, 148, 166, "NVIDIA", "MMA4Z00-NS400", "MT2345")[:150], wire.Transceiver{}},
	} {
		fs := sysfs.Of(fstest.MapFS{"sys/bus/pci/devices/0000:18:00.0/net/eth0/mtu": &fstest.MapFile{Data: []byte("1500\n")}})
		links := []wire.PCILink{{Address: "0000:18:00.0", Class: "020000"}, {Address: "0000:19:00.0", Class: "030200"}}
		health.Transceivers(fs, links, func(netdev string, page byte, offset, length int) ([]byte, error) {
			if netdev != "eth0" || page != 0 || offset+length > len(c.memory) {
				return nil, errors.New("no such byte")
			}
			return c.memory[offset : offset+length], nil
		})
		var got wire.Transceiver
		if links[0].Transceiver != nil {
			got = *links[0].Transceiver
		}
		if !reflect.DeepEqual(got, c.want) || links[1].Transceiver != nil {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestTransceiverPower: firmware and light are read where each standard has them; a lane
// without light is said, and a module without any is taken for a copper cable.
func TestTransceiverPower(t *testing.T) {
	t.Parallel()
	put := func(b []byte, at int, values ...uint16) []byte {
		for i, v := range values {
			binary.BigEndian.PutUint16(b[at+2*i:], v)
		}
		return b
	}
	osfp := memory(0x19, 129, 148, 166, "NVIDIA", "MMS4X00-NM", "MT1")
	osfp[39], osfp[40] = 46, 120
	flat := memory(0x19, 129, 148, 166, "NVIDIA", "MCP4Y10-N001", "MT2")
	flat[2] = 0x80
	lanes := put(put(make([]byte, 256), 154, 10000, 10000, 10000, 10000, 10000, 10000, 10000, 20000), 186, 10000, 5000, 1000, 0, 10000, 10000, 10000, 10000)
	qsfp := put(put(memory(0x11, 148, 168, 196, "NVIDIA", "MFA1A00", "MT3"), 34, 10000, 10000, 5000, 10000), 50, 10000, 10000, 10000, 10000)
	for name, c := range map[string]struct {
		pages          map[byte][]byte
		firmware       string
		received, sent []float64
	}{
		"CMIS":           {map[byte][]byte{0: osfp, 0x11: lanes}, "46.120", []float64{0, -3, -10, -40, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0, 0, 0, 3}},
		"SFF-8636":       {map[byte][]byte{0: qsfp}, "", []float64{0, 0, -3, 0}, []float64{0, 0, 0, 0}},
		"a flat memory":  {map[byte][]byte{0: flat, 0x11: lanes}, "", nil, nil},
		"no light":       {map[byte][]byte{0: osfp, 0x11: make([]byte, 256)}, "46.120", nil, nil},
		"no second page": {map[byte][]byte{0: osfp}, "46.120", nil, nil},
	} {
		fs := sysfs.Of(fstest.MapFS{"sys/bus/pci/devices/0000:18:00.0/net/eth0/mtu": &fstest.MapFile{Data: []byte("1500\n")}})
		links := []wire.PCILink{{Address: "0000:18:00.0", Class: "020000"}}
		health.Transceivers(fs, links, func(_ string, page byte, offset, length int) ([]byte, error) {
			if b := c.pages[page]; offset+length <= len(b) {
				return b[offset : offset+length], nil
			}
			return nil, errors.New("no such page")
		})
		got := links[0].Transceiver
		if got == nil || got.Firmware != c.firmware || !reflect.DeepEqual(got.Received, c.received) || !reflect.DeepEqual(got.Sent, c.sent) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestReadEEPROM: an interface without a module is an error, and no more.
func TestReadEEPROM(t *testing.T) {
	t.Parallel()
	if b, err := health.ReadEEPROM("lo", 0, 0, 1); err == nil {
		t.Errorf("lo has a module: %v", b)
	}
}
