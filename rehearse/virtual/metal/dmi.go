// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

const biosVendor = "American Megatrends International, LLC."

// The structure types of DSP0134, section 7, that a node shows.
const (
	typeBIOS, typeSystem, typeBoard, typeChassis, typeProcessor = 0, 1, 2, 3, 4
	typeMemoryArray, typeMemoryDevice, typeEnd                  = 16, 17, 127
)

// tableWriter collects structures.
type tableWriter struct {
	bytes  []byte
	handle uint16
}

// add appends a structure: formatted is what follows the header, with strings by
// their number from 1.
func (w *tableWriter) add(kind byte, formatted []byte, strs ...string) {
	w.bytes = append(w.bytes, kind, byte(4+len(formatted)))
	w.bytes = binary.LittleEndian.AppendUint16(w.bytes, w.handle)
	w.bytes = append(w.bytes, formatted...)
	for _, s := range strs {
		if s = strings.ReplaceAll(s, "\x00", ""); s == "" {
			s = " " // an empty string would end the set
		}
		w.bytes = append(append(w.bytes, s...), 0)
	}
	if len(strs) == 0 {
		w.bytes = append(w.bytes, 0)
	}
	w.bytes = append(w.bytes, 0)
	w.handle++
}

// dmi is the structure table as firmware makes it from what is there now.
func (n *Node) dmi() []byte {
	id := n.Identity()
	var w tableWriter
	w.add(typeBIOS, bytesAt(0x18-4, map[int]byte{0x04: 1, 0x05: 2, 0x08: 3}), biosVendor, n.biosVersion(), "01/01/2026")
	system := bytesAt(0x1b-4, map[int]byte{0x04: 1, 0x05: 2, 0x06: 3, 0x07: 4, 0x18: 6}) // woken by the power switch
	copy(system[0x08-4:], smbiosUUID(id.UUID))
	w.add(typeSystem, system, id.Vendor, id.Product, "1", id.Serial)
	w.add(typeBoard, bytesAt(0x0f-4, map[int]byte{0x04: 1, 0x05: 2, 0x06: 3, 0x07: 4, 0x0d: 10}), id.Vendor, id.Product, "1", serialOf(n.origin(), "board"))
	w.add(typeChassis, bytesAt(0x15-4, map[int]byte{0x04: 1, 0x05: 0x17, 0x06: 2, 0x07: 3}), id.Vendor, "1", id.Serial) // 17h: rack mount
	for i := range n.shape.sockets {
		n.processor(&w, i)
	}
	w.add(typeMemoryArray, bytesAt(0x0f-4, map[int]byte{0x04: 3, 0x05: 3, 0x06: 6, 0x0d: byte(len(n.shape.dimm))}))
	for i := range n.shape.dimm {
		n.memoryDevice(&w, i)
	}
	w.add(typeEnd, nil)
	return w.bytes
}

// bytesAt makes the formatted part of a structure; offsets count from its header.
func bytesAt(size int, at map[int]byte) []byte {
	b := make([]byte, size)
	for off, v := range at {
		b[off-4] = v
	}
	return b
}

// smbiosUUID is a UUID as SMBIOS 2.6 has it: the first three fields little-endian
// (DSP0134, section 7.2.1).
func smbiosUUID(text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != 16 {
		return make([]byte, 16)
	}
	for _, r := range [][2]int{{0, 4}, {4, 6}, {6, 8}} {
		for i, j := r[0], r[1]-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
	return b
}

func (n *Node) processor(w *tableWriter, socket int) {
	cores := min(n.shape.cores/n.shape.sockets, 0xff)
	f := bytesAt(0x30-4, map[int]byte{
		0x04: 1, 0x05: 3, 0x06: 0xb3, 0x07: 2, 0x10: 3, 0x18: 0x41, // populated and enabled
		0x23: byte(cores), 0x24: byte(cores), 0x25: byte(min(n.threads()/n.shape.sockets, 0xff)),
	})
	binary.LittleEndian.PutUint16(f[0x2a-4:], uint16(n.shape.cores/n.shape.sockets))
	w.add(typeProcessor, f, fmt.Sprintf("CPU%d", socket), "Generic", n.cpuModel())
}

// memoryDevice adds one slot (section 7.18). A size from 32 GiB - 1 MiB on stands
// in the extended field, in MiB.
func (n *Node) memoryDevice(w *tableWriter, slot int) {
	serial, there := n.DIMM(slot)
	n.mu.Lock()
	in := n.moduleIn(slot)
	n.mu.Unlock()
	f := bytesAt(0x28-4, map[int]byte{0x0e: 9, 0x10: 1, 0x11: 2, 0x12: 0x22}) // DIMM, DDR5
	mib := uint32(in.size >> 20)
	switch {
	case !there:
	case mib < 0x7fff:
		binary.LittleEndian.PutUint16(f[0x0c-4:], uint16(mib))
	default:
		binary.LittleEndian.PutUint16(f[0x0c-4:], 0x7fff)
		binary.LittleEndian.PutUint32(f[0x1c-4:], mib)
	}
	strs := []string{fmt.Sprintf("DIMM%d", slot), fmt.Sprintf("BANK %d", slot)}
	if there {
		f[0x18-4] = 3
		binary.LittleEndian.PutUint16(f[0x15-4:], moduleSpeed)
		binary.LittleEndian.PutUint16(f[0x20-4:], uint16(in.speed))
		strs = append(strs, serial)
	}
	w.add(typeMemoryDevice, f, strs...)
}
