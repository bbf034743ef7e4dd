// SPDX-License-Identifier: Apache-2.0

// Package grubimage reads what an image of GRUB for UEFI has built in: the modules, and the folder
// in which it looks for its configuration. With Secure Boot on it loads no others.
// Source: GRUB 2.12, include/grub/kernel.h and util/mkimage.c.
package grubimage

import (
	"bytes"
	"debug/elf"
	"debug/pe"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Image is what one has.
type Image struct {
	Prefix  string   // folder, without a device: "/EFI/debian"
	Modules []string // sorted
}

// Lacks are those of the modules that an image does not have.
func (i Image) Lacks(modules ...string) []string {
	return slices.DeleteFunc(slices.Clone(modules), func(m string) bool { return slices.Contains(i.Modules, m) })
}

// The section with the modules: a header (magic, 4 bytes of padding, where the first object begins and
// where the last ends, counted from the header, 64 bits each), then objects of a type and a
// size, their header included.
const (
	section      = "mods"
	magic        = 0x676d696d
	infoSize     = 24
	objectHeader = 8
	typeELF      = 0
	typePrefix   = 3
)

// Read reads an image. A file that is none is an error of kind Invalid.
func Read(file []byte) (i Image, err error) {
	invalid := func(format string, args ...any) (Image, error) {
		return Image{}, errkind.New(errkind.Invalid, "no GRUB for UEFI: "+format, args...)
	}
	f, err := pe.NewFile(bytes.NewReader(file))
	if err != nil {
		return invalid("%w", err)
	}
	s := f.Section(section)
	if s == nil {
		return invalid("it has no section %s", section)
	}
	b, err := s.Data()
	if err != nil {
		return invalid("its section %s: %w", section, err)
	}
	if len(b) < infoSize || binary.LittleEndian.Uint32(b) != magic {
		return invalid("its section %s has %d bytes and no header", section, len(b))
	}
	from, to := binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	if from < infoSize || from > to || to > uint64(len(b)) {
		return invalid("its modules are said to be in bytes %d to %d of %d", from, to, len(b))
	}
	for b = b[from:to]; len(b) >= objectHeader; {
		kind, size := binary.LittleEndian.Uint32(b), uint64(binary.LittleEndian.Uint32(b[4:]))
		if size < objectHeader || size > uint64(len(b)) {
			return invalid("an object of %d bytes does not fit the %d that are left", size, len(b))
		}
		switch object := b[objectHeader:size]; kind {
		case typePrefix:
			i.Prefix = folder(object)
		case typeELF:
			name, err := moduleName(object)
			if err != nil {
				return invalid("a module: %w", err)
			}
			i.Modules = append(i.Modules, name)
		}
		b = b[size:]
	}
	slices.Sort(i.Modules)
	return i, nil
}

// folder is a prefix without its device.
func folder(object []byte) string {
	text, _, _ := strings.Cut(string(object), "\x00")
	if strings.HasPrefix(text, "(") {
		_, text, _ = strings.Cut(text, ")")
	}
	return text
}

// moduleName is the name of a module, which stands in a section of its own.
func moduleName(object []byte) (string, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return "", err
	}
	s := f.Section(".modname")
	if s == nil {
		return "", errkind.New(errkind.Invalid, "it has no name")
	}
	b, err := s.Data()
	name, _, _ := strings.Cut(string(b), "\x00")
	return name, err
}
