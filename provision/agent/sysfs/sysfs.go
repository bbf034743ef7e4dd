// SPDX-License-Identifier: Apache-2.0

// Package sysfs reads the small text files in which the kernel describes the
// hardware: those of this very node, of a made-up tree in a test, or of a virtual
// node in memory. Nothing in it writes. Attributes that are absent or unreadable
// read as "" or 0: drivers leave many of them out, and some (speed of a NIC
// without link) fail on read.
package sysfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/natural"
)

// FS is the root of a node, for reading. Paths are given in pieces that are
// joined; a leading slash makes no difference. It is safe for concurrent use when
// what lies below it is.
type FS struct{ tree fs.FS }

// Dir is the tree below a folder of this very node: Dir("/") on a real one. Links
// are followed wherever they lead.
func Dir(dir string) FS { return FS{os.DirFS(dir)} }

// Of is a tree of another kind. For links it must be an fs.ReadLinkFS, and an
// absolute link starts at the root of the tree.
func Of(tree fs.FS) FS { return FS{tree} }

// maxAttribute bounds one attribute; sysfs itself stops at a page, DMI tables are larger.
const maxAttribute = 1 << 20

// at joins the pieces of a path in the form of package fs.
func at(elem []string) string {
	if name := strings.TrimPrefix(path.Clean(strings.Join(elem, "/")), "/"); name != "" {
		return name
	}
	return "."
}

// Bytes returns the content of a file, or nil.
func (f FS) Bytes(elem ...string) []byte {
	file, err := f.tree.Open(at(elem))
	if err != nil {
		return nil
	}
	defer file.Close()
	page := pages.Get().(*[pageSize]byte)
	defer pages.Put(page)
	n, err := io.ReadFull(file, page[:])
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return bytes.Clone(page[:n])
	case err != nil:
		return nil
	}
	rest, err := io.ReadAll(io.LimitReader(file, maxAttribute-pageSize))
	if err != nil {
		return nil
	}
	return slices.Concat(page[:], rest)
}

// pageSize is the length of nearly all attributes at most.
const pageSize = 4096

// pages are what attributes are read into: a node has thousands, of a few bytes each.
var pages = sync.Pool{New: func() any { return new([pageSize]byte) }}

// Whole returns a file that is larger than an attribute, or an error: it is not
// there, or has more than most bytes.
func (f FS) Whole(most int64, elem ...string) ([]byte, error) {
	file, err := f.tree.Open(at(elem))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s has more than %d bytes", at(elem), most)
	}
	return b, err
}

// Text returns an attribute without the NULs and the space around it, or "".
func (f FS) Text(elem ...string) string {
	return strings.TrimSpace(string(bytes.Trim(f.Bytes(elem...), "\x00")))
}

// Int returns a decimal attribute, or 0.
func (f FS) Int(elem ...string) int64 {
	n, err := strconv.ParseInt(f.Text(elem...), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Names returns the names in a folder, sorted as the kernel counts them:
// eth2 before eth10. A folder that is absent has none.
func (f FS) Names(elem ...string) []string {
	entries, err := fs.ReadDir(f.tree, at(elem))
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.SortFunc(names, natural.Compare)
	return names
}

// Exists reports whether a path is there, its links followed.
func (f FS) Exists(elem ...string) bool {
	_, err := fs.Stat(f.tree, at(elem))
	return err == nil
}

// maxLinks bounds the links on the way to a path, as the kernel does (path_resolution(7)).
const maxLinks = 40

// Real returns the absolute path, below the root, with its links resolved, or "".
func (f FS) Real(elem ...string) string {
	rest, real, links := strings.Split(at(elem), "/"), "", 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case ".", "":
			continue
		case "..":
			real = strings.TrimPrefix(path.Dir("/"+real), "/")
			continue
		}
		next := part
		if real != "" {
			next = real + "/" + part
		}
		info, err := fs.Lstat(f.tree, next)
		if err != nil {
			return ""
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			real = next
			continue
		}
		to, err := fs.ReadLink(f.tree, next)
		if links++; err != nil || links > maxLinks {
			return ""
		}
		if path.IsAbs(to) {
			real = ""
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return "/" + real
}

// Target returns what a link says, or "" when there is no link.
func (f FS) Target(elem ...string) string {
	to, err := fs.ReadLink(f.tree, at(elem))
	if err != nil {
		return ""
	}
	return to
}

// Link returns the last element of what a link points to: the name of a driver
// or of a subsystem; "" when there is no link.
func (f FS) Link(elem ...string) string {
	to := f.Target(elem...)
	if to == "" {
		return ""
	}
	return path.Base(to)
}

var pciAddress = lazyregexp.New(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// PCI returns the PCI address of the function nearest to a device in its real
// path, such as 0000:00:03.0 of .../pci0000:00/0000:00:03.0/virtio0/net/eth0.
// A device behind USB has none: the BMC's USB NIC is not a NIC of the node.
func PCI(real string) string {
	found := ""
	for part := range strings.SplitSeq(real, "/") {
		if strings.HasPrefix(part, "usb") {
			return ""
		}
		if pciAddress.MatchString(part) {
			found = part
		}
	}
	return found
}

// Netdevs returns the network interfaces that have a PCI parent.
func (f FS) Netdevs() []string {
	return slices.DeleteFunc(f.Names("sys/class/net"), func(name string) bool { return f.NetdevPCI(name) == "" })
}

// NetdevPCI returns the PCI address below a network interface, or "".
func (f FS) NetdevPCI(name string) string {
	return PCI(f.Real("sys/class/net", name, "device"))
}

// Bridges returns the PCI addresses above a function in its real path, such as
// .../pci0000:15/0000:15:01.0/0000:16:00.0/0000:18:00.0, the root port first.
func Bridges(real string) []string {
	var list []string
	for part := range strings.SplitSeq(path.Dir(real), "/") {
		if pciAddress.MatchString(part) {
			list = append(list, part)
		}
	}
	return list
}

// AvailableMemory is how much memory programs can take, bytes; kernels before 3.14 and the
// simulator's say only how much there is.
func (f FS) AvailableMemory() int64 {
	var total, free int64
	for line := range strings.Lines(f.Text("proc/meminfo")) {
		name, rest, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch {
		case err != nil:
		case name == "MemTotal":
			total = n << 10
		case name == "MemAvailable":
			free = n << 10
		}
	}
	if free == 0 {
		return total / 2
	}
	return free
}
