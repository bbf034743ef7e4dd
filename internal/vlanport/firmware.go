// SPDX-License-Identifier: Apache-2.0

package vlanport

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"unicode/utf16"
)

// Where the variables of OVMF's store begin (behind the headers of volume and store), and the size of the
// header of one, bytes (MdeModulePkg, Guid/VariableFormat.h, with authenticated variables).
const (
	firstVariable  = 0x48 + 28
	variableHeader = 60
	startID        = 0x55aa
)

// vlanConfig is the owner of the variable, EFI_VLAN_CONFIG_PROTOCOL_GUID (UEFI 2.10, 28.1), as it is stored.
var vlanConfig = []byte{0x68, 0xd7, 0x23, 0x9e, 0xf3, 0xd2, 0x66, 0x43, 0x9f, 0xc3, 0x3a, 0x7a, 0xba, 0x86, 0x43, 0x74}

// Firmware returns a store of OVMF's variables in which a NIC has a VLAN, as its setup sets it: a variable with
// the name of the MAC that holds the tag (NetworkPkg, MnpDxe/MnpVlan.c). What is no such store, or full,
// is an error.
func Firmware(store []byte, mac net.HardwareAddr, id int) ([]byte, error) {
	name := utf16.Encode([]rune(strings.ToUpper(strings.ReplaceAll(mac.String(), ":", "")) + "\x00"))
	v := make([]byte, variableHeader)
	copy(v, []byte{0xaa, 0x55, 0x3f}) // a variable, added
	const stored, atBoot = 1, 2       // attributes: non-volatile, for boot services
	binary.LittleEndian.PutUint32(v[4:], stored|atBoot)
	binary.LittleEndian.PutUint32(v[36:], uint32(2*len(name)))
	binary.LittleEndian.PutUint32(v[40:], 2)
	copy(v[44:], vlanConfig)
	for _, u := range name {
		v = binary.LittleEndian.AppendUint16(v, u)
	}
	v = binary.LittleEndian.AppendUint16(v, uint16(id))
	at := firstVariable
	for at+variableHeader < len(store) && binary.LittleEndian.Uint16(store[at:]) == startID {
		at = (at + variableHeader + int(binary.LittleEndian.Uint32(store[at+36:])) + int(binary.LittleEndian.Uint32(store[at+40:])) + 3) &^ 3
	}
	if end := at + len(v); end > len(store) || !bytes.Equal(store[at:end], bytes.Repeat([]byte{0xff}, len(v))) {
		return nil, fmt.Errorf("variables of OVMF: no free space at %d of %d bytes", at, len(store))
	}
	store = bytes.Clone(store)
	copy(store[at:], v)
	return store, nil
}
