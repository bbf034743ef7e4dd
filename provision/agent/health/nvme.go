// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/binary"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// smartBytes is the size of the SMART / Health Information log page.
const smartBytes = 512

// Disks reads the NVMe disks on the PCI bus. read returns the SMART log page of a
// device such as /dev/nvme0: ReadSMART, but on a virtual node.
func Disks(fs sysfs.FS, read func(device string) ([]byte, error)) []wire.NVMe {
	const class = "sys/class/nvme"
	var list []wire.NVMe
	for _, name := range fs.Names(class) {
		d := wire.NVMe{Name: name, PCI: fs.Text(class, name, "address"), Model: fs.Text(class, name, "model"), Serial: fs.Text(class, name, "serial")}
		if fs.Text(class, name, "transport") != "pcie" { // a disk over a network is another node's
			continue
		}
		page, err := read("/dev/" + name)
		switch {
		case err != nil:
			d.Why = err.Error()
		case len(page) < smartBytes:
			d.Why = "its log page is short"
		default:
			d.SMART = smart(page)
		}
		list = append(list, d)
	}
	return list
}

// smart reads a log page (NVM Express Base Specification 2.0, figure 207). The
// counters have 16 bytes, of which the upper eight are never reached.
func smart(page []byte) *wire.SMART {
	return &wire.SMART{
		Critical: int(page[0]), Spare: int(page[3]), SpareLeast: int(page[4]), Used: int(page[5]),
		Hours: binary.LittleEndian.Uint64(page[128:]), MediaErrors: binary.LittleEndian.Uint64(page[160:]),
	}
}

// device reports whether a path is one of a controller, such as /dev/nvme0.
func device(path string) bool {
	number, ok := strings.CutPrefix(path, "/dev/nvme")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}
