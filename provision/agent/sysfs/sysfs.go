// Package sysfs reads the small text files in which the kernel describes the
// hardware, below a root folder, so that tests run on a made-up tree. Nothing in
// it writes. Attributes that are absent or unreadable read as "" or 0: drivers
// leave many of them out, and some (speed of a NIC without link) fail on read.
package sysfs

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// FS is the folder that stands for the root of the node: "/" on a real one.
type FS string

// maxAttribute bounds one attribute; sysfs itself stops at a page, DMI tables are larger.
const maxAttribute = 1 << 20

// Path returns the place of a path below the root.
func (f FS) Path(elem ...string) string {
	return filepath.Join(append([]string{string(f)}, elem...)...)
}

// Bytes returns the content of a file, or nil.
func (f FS) Bytes(elem ...string) []byte {
	file, err := os.Open(f.Path(elem...))
	if err != nil {
		return nil
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxAttribute))
	if err != nil {
		return nil
	}
	return b
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
	entries, err := os.ReadDir(f.Path(elem...))
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.SortFunc(names, natural)
	return names
}

// Exists reports whether a path is there.
func (f FS) Exists(elem ...string) bool {
	_, err := os.Stat(f.Path(elem...))
	return err == nil
}

// Real returns the path with its links resolved, or "". The links of sysfs are
// relative, so they stay below the root.
func (f FS) Real(elem ...string) string {
	p, err := filepath.EvalSymlinks(f.Path(elem...))
	if err != nil {
		return ""
	}
	return p
}

// Link returns the last element of what a link points to: the name of a driver
// or of a subsystem; "" when there is no link.
func (f FS) Link(elem ...string) string {
	to, err := os.Readlink(f.Path(elem...))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

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

// natural compares names with the numbers in them as numbers.
func natural(a, b string) int {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na > 0 && nb > 0 {
			x, _ := strconv.ParseUint(a[:na], 10, 64)
			y, _ := strconv.ParseUint(b[:nb], 10, 64)
			if x != y {
				if x < y {
					return -1
				}
				return 1
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

// digits returns how many digits s starts with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
