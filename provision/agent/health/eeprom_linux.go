// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Of linux/ethtool_netlink.h.
const (
	moduleEEPROMGet = 31 // ETHTOOL_MSG_MODULE_EEPROM_GET
	eepromHeader    = 1  // ETHTOOL_A_MODULE_EEPROM_HEADER, and so on
	eepromOffset    = 2
	eepromLength    = 3
	eepromPage      = 4
	eepromBank      = 5
	eepromAddress   = 6
	eepromData      = 7
	headerName      = 2    // ETHTOOL_A_HEADER_DEV_NAME
	modulesI2C      = 0x50 // where all kinds of modules have page 0
)

// ReadEEPROM reads bytes of a page of the module in a network interface by the kernel's ethtool
// netlink (Linux 5.13; root). It changes nothing. The kernel answers within the time that an I2C
// bus takes, or fails where there is no module.
func ReadEEPROM(netdev string, page byte, offset, length int) ([]byte, error) {
	family, err := netlink.GenlFamilyGet("ethtool")
	if err != nil {
		return nil, fmt.Errorf("ethtool netlink: %w", err)
	}
	req := nl.NewNetlinkRequest(int(family.ID), 0)
	req.AddData(&nl.Genlmsg{Command: moduleEEPROMGet, Version: 1})
	header := nl.NewRtAttr(eepromHeader|unix.NLA_F_NESTED, nil)
	header.AddRtAttr(headerName, nl.ZeroTerminated(netdev))
	req.AddData(header)
	word := func(kind int, v uint32) {
		req.AddData(nl.NewRtAttr(kind, binary.NativeEndian.AppendUint32(nil, v)))
	}
	// A request may not pass byte 127 of the lower half or 255 of the upper; the kernel counts the
	// upper half of a page from 128, and page 0 alone has a lower half.
	word(eepromOffset, uint32(offset))
	word(eepromLength, uint32(length))
	for kind, v := range map[int]byte{eepromPage: page, eepromBank: 0, eepromAddress: modulesI2C} {
		req.AddData(nl.NewRtAttr(kind, []byte{v}))
	}
	messages, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return nil, fmt.Errorf("module of %s: %w", netdev, err)
	}
	for _, m := range messages {
		if len(m) < nl.SizeofGenlmsg {
			continue
		}
		attributes, err := nl.ParseRouteAttr(m[nl.SizeofGenlmsg:])
		if err != nil {
			return nil, fmt.Errorf("module of %s: %w", netdev, err)
		}
		for _, a := range attributes {
			if a.Attr.Type&^unix.NLA_F_NESTED == eepromData && len(a.Value) >= length {
				return a.Value[:length], nil
			}
		}
	}
	return nil, errors.New("module of " + netdev + ": the kernel gave nothing")
}
