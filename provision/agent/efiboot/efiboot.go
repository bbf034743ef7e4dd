// SPDX-License-Identifier: Apache-2.0

// Package efiboot reads and writes the boot entries of UEFI firmware (UEFI
// specification, sections 3.1 and 10.3): which entries there are, in which order
// they are tried, and which one started the running system. An entry is told by
// what its device path names, a partition's GUID or a NIC's MAC, never by its
// number or its description. What comes from the firmware is not trusted.
package efiboot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/wire"
)

// Vars are the global variables of the firmware, by name, without their attributes.
type Vars interface {
	Names() ([]string, error)
	Get(name string) ([]byte, error) // fs.ErrNotExist where there is none
	Set(name string, value []byte) error
}

// Entry is one Boot#### variable.
type Entry struct {
	Number    uint16
	Name      string // description, text from outside
	Active    bool
	Partition string   // GUID of the partition that it starts from, lower case
	File      string   // that it starts from there, such as \EFI\BOOT\BOOTX64.EFI
	MAC       addr.MAC // of the NIC that it starts from
}

// The parts of a load option and of its device path.
const (
	active       = 1 // LOAD_OPTION_ACTIVE
	typeMedia    = 4
	mediaHD      = 1
	mediaFile    = 4
	typeMessage  = 3
	messageMAC   = 11
	typeEnd      = 0x7f
	hdNodeSize   = 42
	formatGPT    = 2
	signatureGPT = 2
)

var entryName = lazyregexp.New(`^Boot([0-9A-Fa-f]{4})$`)

// name is the variable of an entry.
func name(number uint16) string { return fmt.Sprintf("Boot%04X", number) }

// parse reads a load option. A device path that is not whole is read as far as it is.
func parse(number uint16, b []byte) (Entry, error) {
	if len(b) < 8 {
		return Entry{}, fmt.Errorf("%s has %d bytes", name(number), len(b))
	}
	e := Entry{Number: number, Active: binary.LittleEndian.Uint32(b)&active != 0}
	length := int(binary.LittleEndian.Uint16(b[4:]))
	text, rest, ok := cutText(b[6:])
	if !ok {
		return Entry{}, fmt.Errorf("%s has a description without end", name(number))
	}
	e.Name = text
	path := rest[:min(length, len(rest))]
	for len(path) >= 4 {
		n := int(binary.LittleEndian.Uint16(path[2:]))
		if path[0] == typeEnd || n < 4 || n > len(path) {
			break
		}
		e.take(path[0], path[1], path[4:n])
		path = path[n:]
	}
	return e, nil
}

// take reads one node of a device path, without its header.
func (e *Entry) take(kind, sub byte, node []byte) {
	switch {
	case kind == typeMedia && sub == mediaHD && len(node) == hdNodeSize-4 && node[37] == signatureGPT:
		e.Partition = guid(node[20:36])
	case kind == typeMedia && sub == mediaFile:
		if file, _, ok := cutText(node); ok {
			e.File = file
		}
	case kind == typeMessage && sub == messageMAC && len(node) >= 6:
		e.MAC = addr.MAC(node[:6])
	}
}

// cutText takes a UTF-16 text off that ends with a NUL.
func cutText(b []byte) (text string, rest []byte, ok bool) {
	var units []uint16
	for i := 0; i+2 <= len(b); i += 2 {
		u := binary.LittleEndian.Uint16(b[i:])
		if u == 0 {
			return string(utf16.Decode(units)), b[i+2:], true
		}
		units = append(units, u)
	}
	return "", nil, false
}

// guid prints the mixed-endian form.
func guid(b []byte) string {
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:]), b[8:10], b[10:16])
}

// Loader is what an entry of a disk starts.
type Loader struct {
	Name      string // description
	Partition int    // number of the EFI system partition
	First     uint64 // its first sector, and how many it has, in sectors of the disk
	Sectors   uint64
	GUID      [16]byte // of the partition, as it stands in the table
	File      string   // \EFI\BOOT\BOOTX64.EFI
}

// Removable is the file that firmware starts from a disk without an entry (UEFI
// specification, section 3.5.1.1), and that an image therefore has.
func Removable() string {
	if runtime.GOARCH == "arm64" {
		return `\EFI\BOOT\BOOTAA64.EFI`
	}
	return `\EFI\BOOT\BOOTX64.EFI`
}

// Bytes is the load option of a loader, as its variable has it.
func (l Loader) Bytes() []byte {
	hd := make([]byte, hdNodeSize)
	hd[0], hd[1], hd[2] = typeMedia, mediaHD, hdNodeSize
	binary.LittleEndian.PutUint32(hd[4:], uint32(l.Partition))
	binary.LittleEndian.PutUint64(hd[8:], l.First)
	binary.LittleEndian.PutUint64(hd[16:], l.Sectors)
	copy(hd[24:], l.GUID[:])
	hd[40], hd[41] = formatGPT, signatureGPT
	file := append([]byte{typeMedia, mediaFile, 0, 0}, text(l.File)...)
	binary.LittleEndian.PutUint16(file[2:], uint16(len(file)))
	path := slices.Concat(hd, file, []byte{typeEnd, 0xff, 4, 0})
	b := binary.LittleEndian.AppendUint32(nil, active)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(path)))
	return slices.Concat(b, text(l.Name), path)
}

// text is UTF-16 with its NUL.
func text(s string) (b []byte) {
	for _, u := range append(utf16.Encode([]rune(s)), 0) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// Read returns the entries in the order in which the firmware tries them, those that
// it does not try last, and the one that started this system: -1 when it is not
// known. Entries that cannot be read are left out.
func Read(v Vars) (entries []Entry, current int, err error) {
	names, err := v.Names()
	if err != nil {
		return nil, -1, err
	}
	order, err := numbers(v, "BootOrder")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, -1, err
	}
	for _, n := range names {
		m := entryName.FindStringSubmatch(n)
		if m == nil {
			continue
		}
		number, _ := strconv.ParseUint(m[1], 16, 16) // the pattern was matched
		b, err := v.Get(n)
		if err != nil {
			continue
		}
		if e, err := parse(uint16(number), b); err == nil {
			entries = append(entries, e)
		}
	}
	place := func(e Entry) int {
		if i := slices.Index(order, e.Number); i >= 0 {
			return i
		}
		return len(order) + int(e.Number)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return place(a) - place(b) })
	current = -1
	if now, err := numbers(v, "BootCurrent"); err == nil && len(now) == 1 {
		current = int(now[0])
	}
	return entries, current, nil
}

// numbers reads a variable that lists entries.
func numbers(v Vars, name string) ([]uint16, error) {
	b, err := v.Get(name)
	if err != nil {
		return nil, err
	}
	var out []uint16
	for ; len(b) >= 2; b = b[2:] {
		out = append(out, binary.LittleEndian.Uint16(b))
	}
	return out, nil
}

// Goal is how the order is to be.
type Goal struct {
	Disk    Loader
	BootNIC addr.MAC
	First   string // wire.BootDisk or wire.BootNetwork
}

// Apply makes an entry for the disk when there is none, puts the order right, and
// reads both back. It removes nothing. The result says what stands there
// afterwards, and in Problem what is not as it was to be: firmware may keep an
// order of its own.
func Apply(v Vars, g Goal) wire.BootOrder {
	out := wire.BootOrder{First: g.First, Current: -1}
	problem := func(err error) wire.BootOrder {
		out.Problem = err.Error()
		return out
	}
	entries, current, err := Read(v)
	if err != nil {
		return problem(err)
	}
	out.Current = current
	number, created, err := diskEntry(v, entries, g.Disk)
	out.Changed = created
	if err != nil {
		return problem(err)
	}
	old, err := numbers(v, "BootOrder")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem(err)
	}
	want, found := wantedOrder(old, entries, number, g)
	if !slices.Equal(old, want) {
		var b []byte
		for _, n := range want {
			b = binary.LittleEndian.AppendUint16(b, n)
		}
		if err := v.Set("BootOrder", b); err != nil {
			return problem(err)
		}
		out.Changed = true
	}
	after, _, err := Read(v)
	if err != nil {
		return problem(err)
	}
	now, err := numbers(v, "BootOrder")
	out.Entries = list(after, now)
	switch {
	case err != nil:
		return problem(err)
	case !slices.Equal(now, want):
		out.Problem = fmt.Sprintf("the firmware keeps the order %s; %s was written", orderText(now), orderText(want))
	case !found:
		out.Problem = fmt.Sprintf("the firmware lists no entry of the boot NIC %s", g.BootNIC)
	}
	return out
}

// diskEntry returns the number of an active entry of the partition, a new one when
// there is none: the entry that starts the loader's file, else the only one. Several that
// start other files, such as a system's own loader and its firmware updater, are left
// alone, and the loader gets an entry of its own.
func diskEntry(v Vars, entries []Entry, l Loader) (number uint16, created bool, err error) {
	used := map[uint16]bool{}
	var mine []Entry
	for _, e := range entries {
		used[e.Number] = true
		if !e.Active || e.Partition != guid(l.GUID[:]) {
			continue
		}
		if strings.EqualFold(e.File, l.File) {
			return e.Number, false, nil
		}
		mine = append(mine, e)
	}
	if len(mine) == 1 {
		return mine[0].Number, false, nil
	}
	for ; number < 0x1000; number++ {
		if used[number] {
			continue
		}
		if _, err := v.Get(name(number)); !errors.Is(err, fs.ErrNotExist) {
			continue // there, and not readable
		}
		value := l.Bytes()
		if err := v.Set(name(number), value); err != nil {
			return 0, false, err
		}
		if back, err := v.Get(name(number)); err != nil || !bytes.Equal(back, value) {
			return 0, false, errors.Join(fmt.Errorf("the firmware does not keep %s", name(number)), err)
		}
		return number, true, nil
	}
	return 0, false, errors.New("the firmware has no free number for a boot entry")
}

// wantedOrder moves the entries that come first to the front, and keeps the order
// of all others. found is false when the network is to be first and no entry is of
// the boot NIC: the disk then comes last, where it was in no order.
func wantedOrder(old []uint16, entries []Entry, disk uint16, g Goal) (want []uint16, found bool) {
	found = true
	if g.First == wire.BootDisk {
		want = append(want, disk)
	} else {
		for _, e := range entries {
			if e.Active && e.MAC == g.BootNIC {
				want = append(want, e.Number)
			}
		}
		if found = len(want) > 0; found {
			want = append(want, disk)
		}
	}
	for _, n := range append(slices.Clone(old), disk) {
		if !slices.Contains(want, n) {
			want = append(want, n)
		}
	}
	return want, found
}

// list is the order as evidence.
func list(entries []Entry, order []uint16) (out []wire.BootEntry) {
	for _, e := range entries {
		if !slices.Contains(order, e.Number) {
			continue
		}
		w := wire.BootEntry{Number: int(e.Number), Name: e.Name, Active: e.Active, Partition: e.Partition}
		if e.MAC != (addr.MAC{}) {
			w.MAC = e.MAC.String()
		}
		out = append(out, w)
	}
	return out
}

func orderText(order []uint16) string {
	s := ""
	for i, n := range order {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprintf("%04X", n)
	}
	return s
}
