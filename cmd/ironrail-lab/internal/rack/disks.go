// SPDX-License-Identifier: Apache-2.0

package rack

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory/unit"
)

// SystemDisk is the name of the disk that every machine has.
const SystemDisk = "os"

// Disk is one virtio disk of a machine, kept in a file of its own.
type Disk struct {
	Machine string     `json:"machine"`
	Name    string     `json:"name"`   // also of its file; SystemDisk is there without a row
	PCI     string     `json:"pci"`    // as the site writes it, 0000:00:07.0: the slot that the disk is in
	Serial  string     `json:"serial"` // what the guest reads
	Size    unit.Bytes `json:"size"`
	Block   int        `json:"block"` // bytes of a logical block: 512 or 4096
}

// The defaults of a disk. The PCI address of the system disk is part of the site.
const (
	systemSlot  = "0000:00:05.0"
	DefaultSize = unit.Bytes(6 << 30) // sparse
)

// diskColumns are those of a file of disks. Empty fields of the system disk, and an
// empty block anywhere, take the default.
var diskColumns = []string{"machine", "name", "pci", "serial", "size", "block"}

var (
	diskName = lazyregexp.New(`^[a-z][a-z0-9]{0,9}$`)
	diskSlot = lazyregexp.New(`^0000:00:([01][0-9a-f])\.0$`)
)

// taken are the slots of what every machine has beside its disks: host bridge, boot
// NIC, rail NIC, random numbers, and the LPC bridge of q35.
var taken = []string{"00", "03", "04", "06", "1f"}

// SystemDiskOf returns the disk that a machine has without a row in a file of disks.
func SystemDiskOf(m Machine) Disk {
	return Disk{Machine: m.Name, Name: SystemDisk, PCI: systemSlot, Serial: m.Serial, Size: DefaultSize, Block: 512}
}

// LoadDisks reads a file of disks; "" and a file that is not there are the default.
// Every machine has at least its system disk, which is first.
func LoadDisks(name string, ms []Machine) ([]Disk, error) {
	var rows []Disk
	f, err := os.Open(name)
	switch {
	case name == "", errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, errkind.New(errkind.Refused, "disks: %w", err)
	default:
		defer f.Close()
		if rows, err = parseDisks(f); err != nil {
			return nil, errkind.New(errkind.Invalid, "%s: %w", name, err).Do("correct the file; its first line names the columns " + strings.Join(diskColumns, ","))
		}
	}
	out, err := arrangeDisks(rows, ms)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "%s: %w", name, err).Do("correct the file")
	}
	return out, nil
}

// parseDisks reads the rows of a file of disks, without defaults.
func parseDisks(r io.Reader) (ds []Disk, err error) {
	cr := csv.NewReader(r)
	header, err := cr.Read()
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if !slices.Equal(header, diskColumns) {
		return nil, fmt.Errorf("columns are %q, want %q", header, diskColumns)
	}
	for {
		row, err := cr.Read()
		if errors.Is(err, io.EOF) {
			return ds, nil
		}
		if err != nil {
			return nil, err
		}
		d, err := diskOf(row)
		if err != nil {
			line, _ := cr.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		ds = append(ds, d)
	}
}

func diskOf(row []string) (Disk, error) {
	d := Disk{Machine: row[0], Name: row[1], PCI: row[2], Serial: row[3]}
	slot := diskSlot.FindStringSubmatch(d.PCI)
	switch {
	case !diskName.MatchString(d.Name):
		return d, fmt.Errorf("name %q: want 1 to 10 of a-z and 0-9, a letter first", d.Name)
	case d.PCI == "" && d.Name == SystemDisk:
	case slot == nil || slices.Contains(taken, slot[1]):
		return d, fmt.Errorf("pci %q of %s/%s: want 0000:00:DD.0 with DD from 01 to 1e and not one of %s", d.PCI, d.Machine, d.Name, strings.Join(taken[1:4], ", "))
	}
	if !serialPattern.MatchString(d.Serial) && (d.Serial != "" || d.Name != SystemDisk) {
		return d, fmt.Errorf("serial %q of %s/%s: want 1 to 20 of A-Z, a-z, 0-9 and . _ -", d.Serial, d.Machine, d.Name)
	}
	if row[4] != "" || d.Name != SystemDisk {
		size, err := unit.ParseBytes(row[4])
		if err != nil {
			return d, fmt.Errorf("size of %s/%s: %w", d.Machine, d.Name, err)
		}
		if d.Size = size; size <= 0 || size%4096 != 0 {
			return d, fmt.Errorf("size %q of %s/%s is not a multiple of 4096 bytes", row[4], d.Machine, d.Name)
		}
	}
	switch row[5] {
	case "", "512", "4096":
		d.Block, _ = strconv.Atoi(row[5])
	default:
		return d, fmt.Errorf("block %q of %s/%s: want 512 or 4096", row[5], d.Machine, d.Name)
	}
	return d, nil
}

// arrangeDisks fills in the defaults, and refuses what no machine can be.
func arrangeDisks(rows []Disk, ms []Machine) (out []Disk, err error) {
	known := map[string]bool{}
	for _, m := range ms {
		known[m.Name] = true
		mine := []Disk{SystemDiskOf(m)}
		for _, d := range rows {
			switch {
			case d.Machine != m.Name:
			case d.Name == SystemDisk:
				mine[0] = overrideDisk(mine[0], d)
			default:
				mine = append(mine, overrideDisk(Disk{Block: 512}, d))
			}
		}
		seen := map[string]string{}
		for _, d := range mine {
			for _, v := range []string{"pci " + d.PCI, "name " + d.Name} {
				if other, ok := seen[v]; ok {
					return nil, fmt.Errorf("disks %s and %s of %s both have %s", other, d.Name, m.Name, v)
				}
				seen[v] = d.Name
			}
		}
		out = append(out, mine...)
	}
	for _, d := range rows {
		if !known[d.Machine] {
			return nil, fmt.Errorf("disk %s: machine %q is not in this lab", d.Name, d.Machine)
		}
	}
	return out, nil
}

// overrideDisk returns base with what a row says.
func overrideDisk(base, d Disk) Disk {
	out := Disk{Machine: d.Machine, Name: d.Name, PCI: base.PCI, Serial: base.Serial, Size: base.Size, Block: base.Block}
	if d.PCI != "" {
		out.PCI = d.PCI
	}
	if d.Serial != "" {
		out.Serial = d.Serial
	}
	if d.Size != 0 {
		out.Size = d.Size
	}
	if d.Block != 0 {
		out.Block = d.Block
	}
	return out
}

// DisksOf keeps the disks of one machine.
func DisksOf(ds []Disk, machine string) (out []Disk) {
	for _, d := range ds {
		if d.Machine == machine {
			out = append(out, d)
		}
	}
	return out
}
