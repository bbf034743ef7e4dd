// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
)

// deriveBytes makes bytes that belong to a node and a part of it, and to no other.
func deriveBytes(node, part string) [sha256.Size]byte {
	return sha256.Sum256([]byte(node + "\x00" + part))
}

// serialOf makes a serial number for a part without one.
func serialOf(node, part string) string {
	b := deriveBytes(node, "serial "+part)
	return "V" + strings.ToUpper(hex.EncodeToString(b[:5]))
}

// uuidOf makes the UUID of a chassis without one: version 8, which is for such
// (RFC 9562, section 5.8).
func uuidOf(node string) string {
	b := deriveBytes(node, "uuid")
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// macOf makes the MAC of a port: locally administered (IEEE 802, section 8.2.2).
func macOf(node, nic string, index int) addr.MAC {
	b := deriveBytes(node, fmt.Sprintf("mac %s/%d", nic, index))
	return addr.MAC{b[0]&^0x01 | 0x02, b[1], b[2], b[3], b[4], b[5]}
}

// guidOf makes the GUID of an RDMA device from its MAC, as vendors do.
func guidOf(m addr.MAC) addr.GUID {
	return addr.GUID(binary.BigEndian.Uint64([]byte{m[0], m[1], m[2], 0x03, 0x00, m[3], m[4], m[5]}))
}
