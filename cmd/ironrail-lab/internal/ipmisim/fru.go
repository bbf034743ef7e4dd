// SPDX-License-Identifier: Apache-2.0

package ipmisim

import (
	"fmt"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
)

// fruBytes is the size of the FRU device.
const fruBytes = 256

// PackFRU encodes board and product area with the machine's serial, after IPMI
// Platform Management FRU Information Storage Definition 1.0 revision 1.3,
// sections 8, 11 and 12.
func PackFRU(m rack.Machine) ([]byte, error) {
	board, err := packArea([]byte{1, 0, 0, 0, 0, 0}, "ironrail", string(m.Hardware), m.Serial, "lab-board", "")
	if err != nil {
		return nil, fmt.Errorf("fru board: %w", err)
	}
	product, err := packArea([]byte{1, 0, 0}, "ironrail", string(m.Hardware), "lab", "v1", m.Serial, "", "")
	if err != nil {
		return nil, fmt.Errorf("fru product: %w", err)
	}
	out := []byte{1, 0, 0, 1, byte(1 + len(board)/8), 0, 0, 0}
	out[7] = checksumOf(out)
	out = append(append(out, board...), product...)
	if len(out) > fruBytes {
		return nil, fmt.Errorf("fru: %d bytes, the device holds %d", len(out), fruBytes)
	}
	return append(out, make([]byte, fruBytes-len(out))...), nil
}

// packArea puts fields behind the area's head, ends them with 0xC1 (no more
// fields), pads to 8 bytes and closes with the checksum. head[1] becomes the
// length in units of 8 bytes.
func packArea(head []byte, fields ...string) ([]byte, error) {
	a := head
	for _, f := range fields {
		if len(f) > 63 || len(f) == 1 { // a length of 1 would read as the end mark
			return nil, fmt.Errorf("field %q cannot be encoded", f)
		}
		a = append(append(a, 0xc0|byte(len(f))), f...)
	}
	a = append(a, 0xc1)
	for len(a)%8 != 7 {
		a = append(a, 0)
	}
	a[1] = byte((len(a) + 1) / 8)
	return append(a, checksumOf(a)), nil
}

// checksumOf makes the sum of the area zero modulo 256.
func checksumOf(b []byte) byte {
	var sum byte
	for _, c := range b {
		sum += c
	}
	return -sum
}
