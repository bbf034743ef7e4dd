// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/efiboot"
)

// nvram are the variables of a UEFI node's firmware. It is safe for concurrent use.
type nvram struct {
	mu   sync.Mutex
	vars map[string][]byte // guarded by mu, like lost
	lost bool              // what is written of shim's variables is not kept
}

var _ efiboot.Vars = (*nvram)(nil)

// mokList is shim's list of the owner's certificates.
const mokList = "MokList"

// entries is how many boot entries the firmware has room for.
const entries = 16

// Names is efiboot.Vars.
func (v *nvram) Names() ([]string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.vars) == 0 {
		return nil, efiboot.ErrNone
	}
	return slices.Sorted(maps.Keys(v.vars)), nil
}

// Get is efiboot.Vars.
func (v *nvram) Get(name string) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, ok := v.vars[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(b), nil
}

// Set is efiboot.Vars.
func (v *nvram) Set(name string, value []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lost && strings.HasPrefix(name, "Mok") {
		return nil
	}
	if v.vars == nil {
		v.vars = map[string][]byte{}
	}
	v.vars[name] = slices.Clone(value)
	return nil
}

// Delete takes a variable away; one that is not there stays so.
func (v *nvram) Delete(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.vars, name)
}

// LoseShim makes the firmware keep none of shim's variables that are written from now on.
func (n *Node) LoseShim() {
	n.nvram.mu.Lock()
	defer n.nvram.mu.Unlock()
	n.nvram.lost = true
}

// DropKeys empties shim's list of the owner's certificates, as a reset of the firmware's variables
// does.
func (n *Node) DropKeys() { n.nvram.Delete(mokList) }

// Variables are those of the firmware that shim keeps.
func (n *Node) Variables() interface {
	Get(name string) ([]byte, error)
	Set(name string, value []byte) error
	Delete(name string)
} {
	return &n.nvram
}

// ResetNVRAM makes the firmware forget its boot entries and their order, as an
// update of it, or an empty battery, does.
func (n *Node) ResetNVRAM() {
	n.nvram.mu.Lock()
	defer n.nvram.mu.Unlock()
	clear(n.nvram.vars)
}

// uefi reports whether the node has boot variables.
func (n *Node) uefi() bool { return n.shape.hardware.Boot != inventory.BootBIOS }

// order reads BootOrder.
func (v *nvram) order() (numbers []uint16) {
	b, _ := v.Get("BootOrder") // none is empty
	for ; len(b) >= 2; b = b[2:] {
		numbers = append(numbers, binary.LittleEndian.Uint16(b))
	}
	return numbers
}

// add appends an entry to the order and returns its number, or -1 when there is no
// room.
func (v *nvram) add(value []byte) int {
	for number := range entries {
		name := fmt.Sprintf("Boot%04X", number)
		if _, err := v.Get(name); err == nil {
			continue
		}
		_ = v.Set(name, value) // memory takes it
		var b []byte
		for _, o := range append(v.order(), uint16(number)) {
			b = binary.LittleEndian.AppendUint16(b, o)
		}
		_ = v.Set("BootOrder", b)
		return number
	}
	return -1
}

// started notes which entry starts a kernel: that of the boot NIC, or that of the
// disk, which the firmware makes when there is none.
func (n *Node) started(root *Root) {
	if !n.uefi() {
		return
	}
	mac := n.Identity().BootMAC
	all, _, _ := efiboot.Read(&n.nvram) // none yet is empty
	current := -1
	if i := slices.IndexFunc(all, func(e efiboot.Entry) bool { return e.MAC == mac }); i >= 0 {
		current = int(all[i].Number)
	} else {
		current = n.nvram.add(networkEntry(mac))
	}
	for _, d := range n.disks {
		l, ok := d.loader()
		if !ok || !d.holds(root) {
			continue
		}
		if i := slices.IndexFunc(all, func(e efiboot.Entry) bool { return e.Active && e.Partition == partitionGUID(l.GUID) }); i >= 0 {
			current = int(all[i].Number)
		} else {
			current = n.nvram.add(l.Bytes())
		}
	}
	if current >= 0 {
		_ = n.nvram.Set("BootCurrent", binary.LittleEndian.AppendUint16(nil, uint16(current)))
	}
}

// networkEntry is how EDK2 describes a NIC that it boots from: PciRoot, Pci, MAC, IPv4.
func networkEntry(mac addr.MAC) []byte {
	node := func(kind, sub byte, data []byte) []byte {
		return append([]byte{kind, sub, byte(len(data) + 4), 0}, data...)
	}
	path := slices.Concat(node(2, 1, []byte{0xd0, 0x41, 3, 0x0a, 0, 0, 0, 0}), node(1, 1, []byte{0, 3}),
		node(3, 11, slices.Concat(mac[:], make([]byte, 26), []byte{1})), node(3, 12, make([]byte, 23)), []byte{0x7f, 0xff, 4, 0})
	b := binary.LittleEndian.AppendUint32(nil, 1) // active
	b = binary.LittleEndian.AppendUint16(b, uint16(len(path)))
	for _, u := range utf16.Encode([]rune("UEFI PXEv4 (MAC:" + strings.ToUpper(strings.ReplaceAll(mac.String(), ":", "")) + ")\x00")) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return append(b, path...)
}

// loader is what the firmware starts from a disk without an entry.
func (d *Disk) loader() (efiboot.Loader, bool) {
	table, err := gpt.Read(d, d.slot.size)
	if err != nil {
		return efiboot.Loader{}, false
	}
	for _, p := range table.Partitions() {
		if p.Type == gpt.EFISystem {
			return efiboot.Loader{Name: "UEFI OS", Partition: p.Number, First: p.First, Sectors: p.Last - p.First + 1, GUID: table.GUID(p.Number), File: efiboot.Removable()}, true
		}
	}
	return efiboot.Loader{}, false
}

// guidText prints a partition's GUID as package gpt does.
func partitionGUID(b [16]byte) string {
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:]), b[8:10], b[10:])
}

// bootDisks lists the disks in the order in which the firmware tries them: those
// with an entry by the order of the entries, then all, as they are plugged in.
func (n *Node) bootDisks() (disks []*Disk) {
	if n.uefi() {
		order := n.nvram.order()
		all, _, _ := efiboot.Read(&n.nvram) // none is empty
		for _, e := range all {
			if e.Partition == "" || !e.Active || !slices.Contains(order, e.Number) {
				continue
			}
			for _, d := range n.disks {
				// A GUID that two disks have is that of the first: firmware looks no further.
				if l, ok := d.loader(); ok && partitionGUID(l.GUID) == e.Partition && !n.missing(d.slot.function) {
					disks = append(disks, d)
					break
				}
			}
		}
	}
	return append(disks, n.disks...)
}

// keys are the certificates in db.
func (n *Node) keys() []string {
	if n.options.Keys == nil {
		return nil
	}
	return n.options.Keys()
}

// signatureLists are certificates as db has them: an EFI_SIGNATURE_LIST for each (UEFI 2.10,
// 32.4.1).
func signatureLists(certificates []string) string {
	var b []byte
	for _, text := range certificates {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			continue
		}
		b = append(b, 0xa1, 0x59, 0xc0, 0xa5, 0xe4, 0x94, 0xa7, 0x4a, 0x87, 0xb5, 0xab, 0x15, 0x5c, 0x2b, 0xf0, 0x72) // EFI_CERT_X509_GUID
		b = binary.LittleEndian.AppendUint32(b, uint32(28+16+len(block.Bytes)))
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint32(b, uint32(16+len(block.Bytes)))
		b = append(append(b, make([]byte, 16)...), block.Bytes...)
	}
	return string(b)
}

// addVariables shows the boot variables as efivarfs does.
func (s *shape) addVariables(b branch) {
	names := []string{"BootOrder", "BootCurrent"}
	for number := range entries {
		names = append(names, fmt.Sprintf("Boot%04X", number))
	}
	global := func(name string, value byte) {
		b.attr(name+"-8be4df61-93ca-11d2-aa0d-00e098032b8c", func(*Kernel) (string, error) { return "\x06\x00\x00\x00" + string(rune(value)), nil })
	}
	b.attr("SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", func(k *Kernel) (string, error) {
		if k.node.SecureBoot() {
			return "\x06\x00\x00\x00\x01", nil
		}
		return "\x06\x00\x00\x00\x00", nil
	})
	global("SetupMode", 0)
	db := b
	db.there = func(k *Kernel) bool { return len(k.node.keys()) > 0 }
	db.attr("db-d719b2cb-3d3a-4596-a3bc-dad00e67656f", func(k *Kernel) (string, error) { return "\x27\x00\x00\x00" + signatureLists(k.node.keys()), nil })
	for _, name := range names {
		at := b
		at.there = func(k *Kernel) bool { _, err := k.node.nvram.Get(name); return err == nil }
		at.attr(name+"-8be4df61-93ca-11d2-aa0d-00e098032b8c", func(k *Kernel) (string, error) {
			value, err := k.node.nvram.Get(name)
			return "\x07\x00\x00\x00" + string(value), err
		})
	}
}
