// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/lvm"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

// Where a LUKS2 header has what others read of it (LUKS2 On-Disk Format Specification, 2.1), and
// where a virtual one has the rest, bytes.
const (
	luksMagic     = "LUKS\xba\xbe\x00\x02"
	luksLabel     = 24
	luksUUID      = 168
	luksSubsystem = 208
	luksText      = 48 // longest label and subsystem
	luksRest      = 4096
	luksSize      = 8192
)

// LUKS is a LUKS2 volume on a virtual disk, without what is encrypted in it.
type LUKS struct {
	UUID, Label, Subsystem string

	Key        [sha256.Size]byte // of a passphrase; zero: it has no key slot for one
	Token      string            // the TPM and its PCR 7 that another key was sealed by; "": none
	Filesystem string            // that was made in it; "": none
}

// partitionsOf are the partitions of all disks that have a table.
func (k *Kernel) partitionsOf(do func(*Disk, gpt.Partition)) {
	for _, d := range k.node.disks {
		if k.node.missing(d.slot.function) {
			continue
		}
		if table, err := gpt.Read(d, d.slot.size); err == nil {
			for _, p := range table.Partitions() {
				do(d, p)
			}
		}
	}
}

// device finds where the data of a partition, of an array or of a logical volume lie, by a name
// that does not change: that of udev, or of device mapper.
func (k *Kernel) device(name string) (all []extent) {
	if id, ok := strings.CutPrefix(name, "/dev/disk/by-uuid/"); ok {
		return k.deviceOfLUKS(id)
	}
	guid, isPart := strings.CutPrefix(name, "/dev/disk/by-partuuid/")
	array, isArray := strings.CutPrefix(name, "/dev/disk/by-id/md-uuid-")
	array = strings.ReplaceAll(array, ":", "")
	logical, isMapped := strings.CutPrefix(name, "/dev/mapper/")
	k.partitionsOf(func(d *Disk, p gpt.Partition) {
		at, size := p.Offset(), p.Size()
		id, data := d.member(at)
		switch {
		case isPart && p.GUID == guid:
			all = append(all, extent{d, at, size})
			return
		case isArray && strings.ReplaceAll(id, "-", "") == array:
			all = append(all, extent{d, at + data, size - data})
			return
		case isMapped && id != "":
			at, size = at+data, size-data
		}
		if !isMapped {
			return
		}
		g, ok, err := lvm.Read(io.NewSectionReader(d, at, size), size)
		if !ok || err != nil {
			return
		}
		for _, v := range g.Volumes {
			if strings.ReplaceAll(g.Name, "-", "--")+"-"+strings.ReplaceAll(v.Name, "-", "--") == logical && v.At >= 0 {
				all = append(all, extent{d, at + v.At, v.Extents * g.ExtentSize})
			}
		}
	})
	return all
}

// deviceOfLUKS finds where the LUKS2 volume with a UUID lies.
func (k *Kernel) deviceOfLUKS(id string) (all []extent) {
	k.partitionsOf(func(d *Disk, p gpt.Partition) {
		at, size := p.Offset(), p.Size()
		if array, data := d.member(at); array != "" {
			at, size = at+data, size-data
		}
		places := []extent{{d, at, size}}
		if g, ok, err := lvm.Read(io.NewSectionReader(d, at, size), size); ok && err == nil {
			for _, v := range g.Volumes {
				if v.At >= 0 {
					places = append(places, extent{d, at + v.At, v.Extents * g.ExtentSize})
				}
			}
		}
		for _, e := range places {
			b := make([]byte, luksSize)
			if _, err := e.disk.ReadAt(b, e.at); err == nil && string(b[:len(luksMagic)]) == luksMagic && string(b[luksUUID:luksUUID+len(id)]) == id {
				all = append(all, e)
			}
		}
	})
	return all
}

// ReadLUKS reads the LUKS2 volume on a device, and what else is there, in words; NotFound where
// there is no such device.
func (k *Kernel) ReadLUKS(name string) (v LUKS, content string, err error) {
	all := k.device(name)
	if len(all) == 0 {
		return v, "", errkind.New(errkind.NotFound, "%s: No such file or directory", name)
	}
	e := all[0]
	b := make([]byte, luksSize)
	if _, err := e.disk.ReadAt(b, e.at); err != nil {
		return v, "", err
	}
	if string(b[:len(luksMagic)]) != luksMagic {
		return v, disk.Probe(io.NewSectionReader(e.disk, e.at, e.size), e.size), nil
	}
	text := func(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }
	err = json.Unmarshal(bytes.TrimRight(b[luksRest:], "\x00"), &v)
	v.Label, v.UUID, v.Subsystem = text(b[luksLabel:luksLabel+luksText]), text(b[luksUUID:luksUUID+40]), text(b[luksSubsystem:luksSubsystem+luksText])
	return v, "crypto_LUKS", err
}

// WriteLUKS writes a LUKS2 volume onto a device.
func (k *Kernel) WriteLUKS(name string, v LUKS) error {
	rest, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b := make([]byte, luksSize)
	copy(b, luksMagic)
	binary.BigEndian.PutUint64(b[8:], luksSize)
	copy(b[luksLabel:luksLabel+luksText], v.Label)
	copy(b[luksUUID:], v.UUID)
	copy(b[luksSubsystem:luksSubsystem+luksText], v.Subsystem)
	copy(b[luksRest:], rest)
	for _, e := range k.device(name) {
		if err := e.disk.put(b, e.at); err != nil {
			return err
		}
	}
	return nil
}

// put writes what belongs to no root file system.
func (d *Disk) put(p []byte, off int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if off+int64(len(p)) > d.slot.size {
		return fmt.Errorf("write of %d bytes at %d: disk has %d", len(p), off, d.slot.size)
	}
	d.counters.Writes, d.counters.BytesWritten = d.counters.Writes+1, d.counters.BytesWritten+int64(len(p))
	d.content.write(p, off)
	return nil
}

// pcr7 is PCR 7 of the node's TPM in the bank SHA-256, upper case: of its firmware and its keys,
// which all nodes of a hardware block have in common.
func (n *Node) pcr7() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s secure boot %v", n.shape.hardware.Name, n.shape.hardware.SecureBoot))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// TPM is what the node's TPM seals by: its own seed, and PCR 7. "": there is no TPM 2.0.
func (k *Kernel) TPM() string {
	if k.node.shape.hardware.TPM == "1.2" || !k.node.showsTPM() {
		return ""
	}
	return k.node.tpmSeed() + " " + k.node.pcr7()
}

// tpmSeed is what a TPM derives its keys from: it is part of the mainboard, which has the serial
// number.
func (n *Node) tpmSeed() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprintf("%s %d", n.serial, n.delivered.cleared)
}

// ClearTPM makes the TPM forget all keys, as the firmware's setup does.
func (n *Node) ClearTPM() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delivered.cleared++
}
