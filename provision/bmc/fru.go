// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bougou/go-ipmi/pkg/types"
)

// fruHeaderSize is the common header's length (FRU Information Storage
// Definition 1.3, 8).
const fruHeaderSize = 8

// fruAreas are the areas with serial numbers: where the header keeps their
// offset, and how they are read.
var fruAreas = []struct {
	name  string
	at    int
	parse func([]byte, *Identity) error
}{
	{"chassis", 2, parseChassis},
	{"board", 3, parseBoard},
	{"product", 4, parseProduct},
}

// errChecksum says that FRU data is damaged. A damaged serial number must not be
// compared with the inventory, so nothing is taken from such an area.
var errChecksum = errors.New("checksum is wrong")

// checkSum checks that the bytes sum up to zero, as headers and areas must.
func checkSum(b []byte) error {
	var sum byte
	for _, v := range b {
		sum += v
	}
	if sum != 0 || len(b) == 0 {
		return errChecksum
	}
	return nil
}

// unpackArea checks an area and gives it to the library's parser, which trusts
// lengths inside it.
func unpackArea(b []byte, area interface{ Unpack([]byte) error }) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed: %v", p)
		}
	}()
	if len(b) < 8 || b[0]&0x0f != types.FRUFormatVersion || int(b[1])*8 != len(b) {
		return errors.New("not an information area of format 1")
	}
	if err := checkSum(b); err != nil {
		return err
	}
	return area.Unpack(b)
}

func parseChassis(b []byte, id *Identity) error {
	var a types.FRUChassisInfoArea
	err := unpackArea(b, &a)
	id.ChassisSerial = fruText(err, a.SerialNumberTypeLength, a.SerialNumber)
	return err
}

func parseBoard(b []byte, id *Identity) error {
	var a types.FRUBoardInfoArea
	err := unpackArea(b, &a)
	id.BoardSerial = fruText(err, a.SerialNumberTypeLength, a.SerialNumber)
	return err
}

func parseProduct(b []byte, id *Identity) error {
	var a types.FRUProductInfoArea
	err := unpackArea(b, &a)
	id.ProductSerial = fruText(err, a.SerialNumberTypeLength, a.SerialNumber)
	id.ProductName = fruText(err, a.NameTypeLength, a.Name)
	return err
}

// fruText decodes one field. Some BMCs pad with spaces or NUL (seen on HPE).
func fruText(err error, tl types.TypeLength, raw []byte) (text string) {
	if err != nil {
		return ""
	}
	defer func() {
		if recover() != nil { // the library's 6-bit decoder trusts lengths
			text = ""
		}
	}()
	return strings.Trim(strings.ToValidUTF8(types.FRUFieldString(tl, raw), "?"), " \x00")
}
