// SPDX-License-Identifier: Apache-2.0

package ipmi

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/bougou/go-ipmi/pkg/hal"
	"github.com/bougou/go-ipmi/pkg/types"
)

// store is the library's view of the hardware: FRU 0 and the sensor records. All
// else is answered by our own commands.
type store struct{ k *controller }

// The parts that the library's handlers are not to use.
func (store) Chassis() hal.ChassisHAL   { return nil }
func (store) Sensors() hal.SensorHAL    { return nil }
func (store) Network() hal.NetworkHAL   { return nil }
func (store) GPIO() hal.GPIOHAL         { return nil }
func (store) I2C() hal.I2CHAL           { return nil }
func (store) Close() error              { return nil }
func (s store) Storage() hal.StorageHAL { return s }
func (s store) FRU() hal.FRUStore       { return fruStore(s) }
func (s store) SDR() hal.SDRStore       { return sdrStore(s) }

// fruStore is FRU device 0, read-only.
type fruStore struct{ k *controller }

// Read packs the node's names and serial numbers anew: it is asked once a boot.
func (s fruStore) Read(_ context.Context, device uint8) ([]byte, error) {
	if device != 0 {
		return nil, hal.ErrNotFound
	}
	id := s.k.c.Identity()
	const rackMount = 0x17 // SMBIOS 7.4.1
	maker, product := fitField(id.Manufacturer), fitField(id.Product)
	return types.PackFRU(types.FRUPackConfig{
		Chassis: &types.FRUPackChassis{Type: rackMount, Serial: fitField(id.ChassisSerial)},
		Board:   &types.FRUPackBoard{MfgDate: madeAt(), Mfg: maker, Product: product, Serial: fitField(id.BoardSerial)},
		Product: &types.FRUPackProduct{Manufacturer: maker, Name: product, Serial: fitField(id.Serial)},
	})
}

// madeAt returns the board's date of manufacture; nothing depends on it.
func madeAt() time.Time { return time.Date(2024, 6, 3, 0, 0, 0, 0, time.UTC) }

// fitField makes text fit into one field: 63 bytes at most, and never one byte, for
// that is the end mark (FRU Information Storage Definition 1.3, 13).
func fitField(s string) string {
	s = s[:min(len(s), 63)]
	if len(s) == 1 {
		return s + " "
	}
	return s
}

func (fruStore) Write(context.Context, uint8, []byte) error  { return hal.ErrNotSupported }
func (fruStore) Delete(context.Context, uint8) error         { return hal.ErrNotSupported }
func (fruStore) DeviceIDs(context.Context) ([]uint8, error)  { return []uint8{0}, nil }
func (sdrStore) Write(context.Context, uint16, []byte) error { return hal.ErrNotSupported }
func (sdrStore) Delete(context.Context, uint16) error        { return hal.ErrNotSupported }

// parseGUID turns a UUID's text into the bytes of SMBIOS, which BMCs copy: the first
// three groups little-endian (DSP0134, 7.2.1).
func parseGUID(text string) (g [16]byte) {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), "-", ""))
	if err != nil || len(b) != len(g) {
		return g // not set
	}
	copy(g[:], b)
	slices.Reverse(g[0:4])
	slices.Reverse(g[4:6])
	slices.Reverse(g[6:8])
	return g
}
