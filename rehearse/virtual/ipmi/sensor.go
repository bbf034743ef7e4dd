// SPDX-License-Identifier: Apache-2.0

package ipmi

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/bougou/go-ipmi/pkg/hal"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// scale is how a unit is put into one byte: reading = raw * m * 10^exp (IPMI 2.0,
// 36.3), with the codes of tables 42-3 and 43-15.
type scale struct {
	m      int
	exp    int8
	kind   byte // sensor type
	unit   byte
	entity byte // table 43-13
}

var scales = map[string]scale{
	"Cel": {1, 0, 0x01, 1, 0x37},
	"V":   {6, -2, 0x02, 4, 0x14},
	"RPM": {100, 0, 0x04, 18, 0x1d},
	"W":   {50, 0, 0x0b, 6, 0x15},
}

func (s scale) raw(v float64) byte {
	return byte(min(max(math.Round(v/(float64(s.m)*math.Pow10(int(s.exp)))), 0), 255))
}

// maxSensors is what a sensor's number has room for.
const maxSensors = 254

// learn keeps the sensors' numbers as they come and go with the power: a
// repository is not rewritten by a power-off.
func (k *controller) learn() []chassis.Sensor {
	now := k.c.Sensors()
	for _, s := range now {
		if _, ok := scales[s.Unit]; ok && len(k.sensors) < maxSensors && !slices.Contains(k.sensors, s.Name) {
			k.sensors = append(k.sensors, s.Name)
		}
	}
	return now
}

// find returns a sensor's reading now; ok is false for a number that is none.
func (k *controller) find(number byte) (s chassis.Sensor, present, ok bool) {
	now := k.learn()
	if number == 0 || int(number) > len(k.sensors) {
		return s, false, false
	}
	i := slices.IndexFunc(now, func(s chassis.Sensor) bool { return s.Name == k.sensors[number-1] })
	if i < 0 {
		return chassis.Sensor{Name: k.sensors[number-1]}, false, true
	}
	return now[i], true, true
}

// reading is Get Sensor Reading (35.14).
func (k *controller) reading(req []byte) ([]byte, types.CompletionCode) {
	s, present, ok := k.find(req[0])
	const scanning, unavailable = 0xc0, 0x20
	switch {
	case !ok:
		return nil, types.CodeRequestedDataNotPresent
	case !present:
		return []byte{0, scanning | unavailable, 0}, types.CodeOK
	}
	state := byte(0xc0)
	switch {
	case s.Critical && s.Unit == "RPM":
		state |= 0x02 // at or below the lower critical limit
	case s.Critical:
		state |= 0x10 // at or above the upper one
	}
	return []byte{scales[s.Unit].raw(s.Reading), scanning, state}, types.CodeOK
}

// thresholds says that there are none (35.9).
func (k *controller) thresholds(req []byte) ([]byte, types.CompletionCode) {
	if _, _, ok := k.find(req[0]); !ok {
		return nil, types.CodeRequestedDataNotPresent
	}
	return make([]byte, 7), types.CodeOK
}

// sdrStore is the repository of sensor records.
type sdrStore struct{ k *controller }

// RecordIDs are the sensors' numbers.
func (s sdrStore) RecordIDs(context.Context) ([]uint16, error) {
	s.k.learn()
	ids := make([]uint16, len(s.k.sensors))
	for i := range ids {
		ids[i] = uint16(i + 1)
	}
	return ids, nil
}

// Read makes a full sensor record (43.1). A sensor without a reading now keeps
// its number, with the scale of temperatures.
func (s sdrStore) Read(_ context.Context, id uint16) ([]byte, error) {
	if id == 0 || id > maxSensors {
		return nil, hal.ErrNotFound
	}
	now, _, ok := s.k.find(byte(id))
	if !ok {
		return nil, hal.ErrNotFound
	}
	sc, known := scales[now.Unit]
	if !known {
		sc = scales["Cel"]
	}
	name := now.Name[:min(len(now.Name), 16)]
	r := make([]byte, 48, 48+len(name))
	binary.LittleEndian.PutUint16(r, id)
	r[2], r[3], r[4] = 0x51, 0x01, byte(len(r)-5+len(name)) // version, full record, length of the rest
	r[5], r[7] = 0x20, byte(id)                             // owner, number
	r[8], r[9] = sc.entity, byte(id)
	r[10], r[11] = 0x7f, 0x40 // initialised; re-arms by itself
	r[12], r[13] = sc.kind, 0x01
	r[21] = sc.unit
	r[24], r[25] = byte(sc.m), byte(sc.m>>8)<<6
	r[29] = byte(sc.exp) << 4
	r[34] = 0xff // largest reading
	r[47] = 0xc0 | byte(len(name))
	return append(r, name...), nil
}
