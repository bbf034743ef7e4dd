// SPDX-License-Identifier: Apache-2.0

// Package modalias answers whether the kernel of an image has a driver for a device: it
// keeps the aliases of its modules, and of what is built in, as a small file beside the
// image, and matches PCI functions of a node against them. That a driver is there does
// not say that it works, or that the firmware that it loads is there too.
package modalias

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Function is a PCI function as the kernel of the install ramdisk shows it: hex digits
// without 0x. Alias is its modalias, and Driver the driver that it has there; "": not known.
type Function struct{ Vendor, Device, Class, Alias, Driver string }

// List is what one kernel has drivers for.
type List struct {
	pci     []pciAlias
	virtio  []string        // device types, as in an alias: 00000001
	modules map[string]bool // by name, with what is built in
	builtin map[string]bool // by name; nil: an older version made the list, and did not say
}

// pciAlias is an alias of a PCI driver (scripts/mod/file2alias.c); "" is anything.
type pciAlias struct{ vendor, device, subVendor, subDevice, base, sub, programming string }

// Collect writes what the kernel of a release has drivers for, from an installed system:
// lines "alias PATTERN", "builtin NAME" and "module NAME", sorted.
func Collect(w io.Writer, root fs.FS, release string) error {
	dir := path.Join("lib/modules", release)
	var lines []string
	read := func(name string, each func(line string)) error {
		b, err := fs.ReadFile(root, path.Join(dir, name))
		if err != nil {
			return err
		}
		sep := "\n"
		if bytes.IndexByte(b, 0) >= 0 {
			sep = "\x00"
		}
		for _, line := range strings.Split(string(b), sep) {
			each(strings.TrimSpace(line))
		}
		return nil
	}
	alias := func(pattern string) {
		if strings.HasPrefix(pattern, "pci:") || strings.HasPrefix(pattern, "virtio:") {
			lines = append(lines, "alias "+pattern)
		}
	}
	err := errors.Join(
		read("modules.alias", func(line string) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "alias" {
				alias(f[1])
			}
		}),
		read("modules.dep", func(line string) {
			if file, _, ok := strings.Cut(line, ":"); ok {
				lines = append(lines, "module "+name(file))
			}
		}),
		read("modules.builtin", func(line string) {
			if line != "" {
				lines = append(lines, "builtin "+name(line), "module "+name(line))
			}
		}),
	)
	if err != nil {
		return fmt.Errorf("drivers of kernel %s: %w", release, err)
	}
	// Kernels before 5.2 have no aliases of what is built in, and those before 6.18 none of
	// its device tables (scripts/mod/file2alias.c): see HasDriver.
	err = read("modules.builtin.modinfo", func(line string) {
		if _, pattern, ok := strings.Cut(line, ".alias="); ok {
			alias(pattern)
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drivers of kernel %s: %w", release, err)
	}
	slices.Sort(lines)
	_, err = io.WriteString(w, strings.Join(slices.Compact(lines), "\n")+"\n")
	return err
}

// name is how the kernel calls the module in a file.
func name(file string) string {
	base, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(base, "-", "_")
}

// Parse reads what Collect has written.
func Parse(r io.Reader) (*List, error) {
	l := &List{modules: map[string]bool{}}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		kind, value, _ := strings.Cut(lines.Text(), " ")
		switch {
		case kind == "module":
			l.modules[value] = true
		case kind == "builtin":
			if l.builtin == nil {
				l.builtin = map[string]bool{}
			}
			l.builtin[value] = true
		case kind == "alias" && strings.HasPrefix(value, "pci:"):
			if a, ok := parsePCI(value); ok {
				l.pci = append(l.pci, a)
			}
		case kind == "alias":
			if device, _, ok := strings.Cut(strings.TrimPrefix(value, "virtio:d"), "v"); ok {
				l.virtio = append(l.virtio, device)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(l.pci) == 0 {
		return nil, errkind.New(errkind.Invalid, "the list of drivers has no alias of a PCI driver")
	}
	return l, nil
}

// parsePCI reads pci:vVdDsvSsdSbcBscSiI, where * is anything.
func parsePCI(text string) (a pciAlias, ok bool) {
	rest, ok := strings.CutPrefix(text, "pci:v")
	if !ok {
		return a, false
	}
	for _, f := range []struct {
		to  *string
		end string
	}{{&a.vendor, "d"}, {&a.device, "sv"}, {&a.subVendor, "sd"}, {&a.subDevice, "bc"}, {&a.base, "sc"}, {&a.sub, "i"}, {&a.programming, ""}} {
		value := rest
		if f.end != "" {
			if value, rest, ok = strings.Cut(rest, f.end); !ok {
				return a, false
			}
		}
		*f.to = strings.TrimRight(value, "*")
	}
	return a, true
}

// ids are those of a function, as in an alias. What is "" is not known.
func (f Function) ids() pciAlias {
	if a, ok := parsePCI(f.Alias); ok {
		return a
	}
	pad := func(s string) string {
		return strings.ToUpper(strings.Repeat("0", max(0, 8-len(s))) + s)
	}
	a := pciAlias{vendor: pad(f.Vendor), device: pad(f.Device)}
	if len(f.Class) == 6 {
		class := strings.ToUpper(f.Class)
		a.base, a.sub, a.programming = class[:2], class[2:4], class[4:]
	}
	return a
}

// HasDriver reports whether the kernel has a driver for a function. One whose ids are not
// known has one: nothing is refused for what nobody saw. A driver that is built in names its
// devices only in newer kernels; where it is the one that the function has in the ramdisk,
// the kernel has it.
func (l *List) HasDriver(f Function) bool {
	if f.Vendor == "" || f.Device == "" {
		return true
	}
	return (l.isBuiltIn(f.Driver) || l.hasAlias(f)) && l.hasVirtio(f)
}

// isBuiltIn reports whether a driver is built in. Of a list that does not say it, one that
// is there at all may be.
func (l *List) isBuiltIn(driver string) bool {
	name := strings.ReplaceAll(driver, "-", "_")
	if l.builtin == nil {
		return l.modules[name]
	}
	return l.builtin[name]
}

// hasAlias reports whether a driver names a function.
func (l *List) hasAlias(f Function) bool {
	is := f.ids()
	match := func(want, got string) bool { return want == "" || got == "" || want == got }
	return slices.ContainsFunc(l.pci, func(a pciAlias) bool {
		return match(a.vendor, is.vendor) && match(a.device, is.device) && match(a.subVendor, is.subVendor) && match(a.subDevice, is.subDevice) &&
			match(a.base, is.base) && match(a.sub, is.sub) && match(a.programming, is.programming)
	})
}

// Virtio devices are two: the function on the bus, and what is behind it (Virtual I/O
// Device specification, 4.1.2).
const (
	virtioVendor = "1af4"
	virtioModern = 0x1040 // and the type
)

// transitional are the types of the first devices, and virtioDrivers the drivers of NICs and
// disks by type.
var (
	transitional  = map[uint64]uint64{0x1000: 1, 0x1001: 2, 0x1004: 8}
	virtioDrivers = map[uint64]string{1: "virtio_net", 2: "virtio_blk", 8: "virtio_scsi"}
)

// hasVirtio reports whether what is behind a function of virtio has a driver.
func (l *List) hasVirtio(f Function) bool {
	device, err := strconv.ParseUint(f.Device, 16, 32)
	if err != nil || f.Vendor != virtioVendor {
		return true
	}
	kind := transitional[device]
	if device > virtioModern {
		kind = device - virtioModern
	}
	return kind == 0 || slices.Contains(l.virtio, fmt.Sprintf("%08X", kind)) || l.builtin[virtioDrivers[kind]]
}

// HasModule reports whether the kernel has a module, or has it built in.
func (l *List) HasModule(module string) bool {
	return l.modules[strings.ReplaceAll(module, "-", "_")]
}
