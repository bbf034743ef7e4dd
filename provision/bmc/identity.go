// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/provision/bmc/quirk"
)

// Firmware is the revision of Get Device ID.
type Firmware = quirk.Firmware

// Identity is what a BMC says about itself and its node. What it does not know
// is zero; Gaps says why. Manufacturer, Product and Firmware are IPMI's numbers;
// a Redfish BMC has texts instead.
type Identity struct {
	Manufacturer  uint32 // IANA enterprise number of the BMC's maker
	Product       uint16 // the maker's product id
	Firmware      Firmware
	GUID          GUID   // system GUID as the BMC sends it
	ProductSerial string // FRU product area: the node's serial number, SMBIOS type 1
	BoardSerial   string // FRU board area: the mainboard's serial number, SMBIOS type 2
	ChassisSerial string // FRU chassis area, SMBIOS type 3
	ProductName   string
	Maker         string   // the node's maker in words; Redfish only
	BIOS          string   // version of the node's firmware; Redfish only
	BMCModel      string   // Redfish only
	BMCFirmware   string   // version of the BMC's firmware as its maker writes it; Redfish only
	Gaps          []string // what could not be read and why, one line each
}

// Serial returns the node's serial number: the product area's, or "" when the
// BMC does not know it, or holds what makers write before they know it. A board's
// or chassis' serial is another number and no stand-in.
func (i Identity) Serial() string {
	if slices.Contains(blanks, strings.ToLower(strings.TrimSpace(i.ProductSerial))) {
		return ""
	}
	return i.ProductSerial
}

// blanks are texts that stand for no serial number, in lower case; seen in FRUs
// and in SMBIOS tables of boards that were sold without a chassis.
var blanks = []string{"to be filled by o.e.m.", "default string", "system serial number", "not specified", "not available",
	"n/a", "na", "none", "unknown", "0123456789", "0000000000", "0", "empty"}

// Version returns the version of the BMC's firmware, or "".
func (i Identity) Version() string {
	if i.BMCFirmware != "" || i.Firmware == (Firmware{}) {
		return i.BMCFirmware
	}
	return i.Firmware.String()
}

// GUID is the system GUID: 16 bytes in the order in which they came.
type GUID [16]byte

// guidOrders are the byte orders in which BMCs send one and the same UUID. Each
// lists, for every byte of the written UUID, its place on the wire.
var guidOrders = []struct {
	name  string
	place [16]int
}{
	// SMBIOS 7.2.1: the first three groups little-endian. Most BMCs copy this.
	{"smbios", [16]int{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15}},
	// RFC 4122 network order.
	{"rfc4122", [16]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
	// IPMI 2.0, 20.8: least significant byte first throughout.
	{"ipmi", [16]int{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
}

// IsZero reports whether the BMC has no GUID: all zeros, or all ones, which
// SMBIOS defines as "not set".
func (g GUID) IsZero() bool {
	return g == GUID{} || g == GUID(bytes.Repeat([]byte{0xff}, 16))
}

// Match reports whether g is the UUID uuid in any byte order that BMCs use, and
// which one. An uuid that cannot be read and a GUID that is not set match
// nothing.
func (g GUID) Match(uuid string) (order string, ok bool) {
	want, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(uuid), "-", ""))
	if err != nil || len(want) != len(g) || g.IsZero() {
		return "", false
	}
	for _, o := range guidOrders {
		if bytes.Equal(g.ordered(o.place), want) {
			return o.name, true
		}
	}
	return "", false
}

// String writes g as the UUID that it is in SMBIOS order, the usual one.
func (g GUID) String() string {
	h := hex.EncodeToString(g.ordered(guidOrders[0].place))
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

func (g GUID) ordered(place [16]int) []byte {
	out := make([]byte, len(g))
	for i, p := range place {
		out[i] = g[p]
	}
	return out
}

// deviceID asks who the BMC is and settles its quirks.
func (d *ipmiDriver) deviceID(ctx context.Context, id *Identity) error {
	return d.read(ctx, func(ctx context.Context) error {
		r, err := d.client.GetDeviceID(ctx)
		if err != nil {
			return err
		}
		id.Manufacturer, id.Product = r.ManufacturerID, r.ProductID
		id.Firmware = Firmware{Major: r.MajorFirmwareRevision, Minor: r.MinorFirmwareRevision}
		d.quirks = quirk.Of(quirk.BMC{Manufacturer: id.Manufacturer, Product: id.Product, Firmware: id.Firmware})
		return nil
	})
}

// identity reads all of Identity. Only a lost BMC or an interruption is an
// error; what the BMC refuses to tell is a gap.
func (d *ipmiDriver) identity(ctx context.Context) (Identity, error) {
	var id Identity
	if err := d.deviceID(ctx, &id); err != nil {
		return id, fmt.Errorf("get device id: %w", err)
	}
	err := d.read(ctx, func(ctx context.Context) error {
		r, err := d.client.GetSystemGUID(ctx)
		if err == nil {
			id.GUID = r.GUID
		}
		return err
	})
	if err := id.gap(ctx, "system guid", err); err != nil {
		return id, err
	}
	return id, d.serials(ctx, &id)
}

// gap notes that something could not be read; it returns the error again when
// nothing more can be asked.
func (id *Identity) gap(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case isLost(err) || ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	id.Gaps = append(id.Gaps, what+": "+err.Error())
	return nil
}

// serials reads the serial numbers from FRU device 0, the one of the node that
// the BMC sits in (IPMI 2.0, 34).
func (d *ipmiDriver) serials(ctx context.Context, id *Identity) error {
	header, err := d.readFRU(ctx, 0, fruHeaderSize)
	if err == nil {
		err = checkSum(header)
	}
	if err != nil {
		return id.gap(ctx, "fru header", err)
	}
	for _, area := range fruAreas {
		offset := int(header[area.at]) * 8
		if offset == 0 {
			continue
		}
		data, err := d.readArea(ctx, offset)
		if err == nil {
			err = area.parse(data, id)
		}
		if err := id.gap(ctx, "fru "+area.name+" area", err); err != nil {
			return err
		}
	}
	return nil
}

// readArea reads one FRU area; its second byte is its length in 8 bytes.
func (d *ipmiDriver) readArea(ctx context.Context, offset int) ([]byte, error) {
	head, err := d.readFRU(ctx, offset, 8)
	if err != nil {
		return nil, err
	}
	rest, err := d.readFRU(ctx, offset+len(head), int(head[1])*8-len(head))
	return slices.Concat(head, rest), err
}

// fruChunk is how much is read at once: what every LAN channel can carry and
// what ipmitool falls back to.
const fruChunk = 16

// readFRU reads n bytes of FRU device 0.
func (d *ipmiDriver) readFRU(ctx context.Context, offset, n int) ([]byte, error) {
	var out []byte
	for len(out) < n {
		count := min(fruChunk, n-len(out))
		var got []byte
		err := d.read(ctx, func(ctx context.Context) error {
			r, err := d.client.ReadFRUData(ctx, 0, uint16(offset+len(out)), uint8(count))
			if err == nil {
				got = r.Data
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(got) == 0 || len(got) > count {
			return nil, fmt.Errorf("%w: %d bytes for %d asked", types.ErrUnpackedDataTooShort, len(got), count)
		}
		out = append(out, got...)
	}
	return out, nil
}
