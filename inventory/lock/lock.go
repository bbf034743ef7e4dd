// SPDX-License-Identifier: Apache-2.0

// Package lock owns ironrail.lock: what a site resolved once and keeps, so that
// every laptop and every day gives the same answer. It holds the addresses that
// were allocated rather than given, the digests of images, and the packages of
// driver stacks. The file is in git beside the site's files and made for merges:
// a header with the version of the format, then one record a line, sorted.
//
//	ironrail.lock 1
//	# Written by `ironrail lock`. Keep it in git; do not edit it.
//	address FABRIC OWNER PREFIX
//	closure DRIVER IMAGE sha256:INPUTS
//	image NAME sha256:INPUTS sha256:DIGEST
//	package DRIVER IMAGE NAME VERSION ARCH sha256:DEB
//
// INPUTS is the digest of what the site declares of the thing: while it is the
// same, what is locked holds. OWNER is the name of a port, as cables write it, or
// of a switch.
//
// The package knows no inventory: who needs an address says so by name. Its
// functions are pure, except for Write.
package lock

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// File is the name of the file in the site's folder.
const File = "ironrail.lock"

// Format is the version of the format that this version reads and writes.
const Format = 1

// Address is an address that a port or a switch keeps.
type Address struct {
	Fabric string
	Owner  string       // "r01-u01/storage/0", or the name of a switch
	Prefix netip.Prefix // the owner's address with the length of its network
	At     Place        // in the file that was read
}

// Image is the image that nodes are installed with.
type Image struct {
	Name   string // of the image block
	Inputs string // sha256:HEX of what the block declares
	Digest string // sha256:HEX of the image's manifest
	At     Place
}

// Closure is what the packages of a driver stack were resolved from.
type Closure struct {
	Driver, Image string // names of the blocks
	Inputs        string // sha256:HEX of what they declare
	At            Place
	Packages      []Package // by name
}

// Package is one package of a closure.
type Package struct {
	Name, Version, Arch string
	Digest              string // sha256:HEX of the .deb file
	At                  Place
}

// Place is where a record stands in the file. The zero Place is nowhere: the
// record is not in the file yet.
type Place struct {
	Line        int32 // from 1
	Byte, Width int32 // where the line begins, and how long it is, in bytes
}

// Range is the whole line, for messages.
func (p Place) Range() hcl.Range {
	line := int(max(p.Line, 1))
	return hcl.Range{Filename: File, Start: hcl.Pos{Line: line, Column: 1, Byte: int(p.Byte)}, End: hcl.Pos{Line: line, Column: int(p.Width) + 1, Byte: int(p.Byte + p.Width)}}
}

// Lock is what a lock file says. The zero value is an empty one. It may be read
// by many goroutines while nobody changes it.
type Lock struct {
	Addresses []Address // by fabric and owner, once written; else in the order of the file
	Images    []Image
	Closures  []Closure
}

// Empty reports whether there is nothing in the lock. A nil lock is empty.
func (l *Lock) Empty() bool {
	return l == nil || len(l.Addresses)+len(l.Images)+len(l.Closures) == 0
}

// Of lists the addresses of one fabric. A nil lock has none.
func (l *Lock) Of(fabric string) []Address {
	if l == nil {
		return nil
	}
	var list []Address
	for _, a := range l.Addresses {
		if a.Fabric == fabric {
			list = append(list, a)
		}
	}
	return list
}

// Image returns the entry of an image block.
func (l *Lock) Image(name string) (Image, bool) {
	if l == nil {
		return Image{}, false
	}
	i := slices.IndexFunc(l.Images, func(i Image) bool { return i.Name == name })
	if i < 0 {
		return Image{}, false
	}
	return l.Images[i], true
}

// SetImage adds the entry of an image block, or replaces it.
func (l *Lock) SetImage(entry Image) {
	l.Images = slices.DeleteFunc(slices.Clone(l.Images), func(i Image) bool { return i.Name == entry.Name })
	l.Images = append(l.Images, entry)
}

// Closure returns the packages of a driver stack for the nodes of an image.
func (l *Lock) Closure(driver, image string) (Closure, bool) {
	if l == nil {
		return Closure{}, false
	}
	i := slices.IndexFunc(l.Closures, func(c Closure) bool { return c.Driver == driver && c.Image == image })
	if i < 0 {
		return Closure{}, false
	}
	return l.Closures[i], true
}

// SetClosure adds the packages of a driver stack, or replaces them.
func (l *Lock) SetClosure(entry Closure) {
	l.Closures = slices.DeleteFunc(slices.Clone(l.Closures), func(c Closure) bool { return c.Driver == entry.Driver && c.Image == entry.Image })
	l.Closures = append(l.Closures, entry)
}

// Moved returns a package of which want and have differ, in words; "" when they
// hold the same.
func Moved(want, have []Package) string {
	a, b := slices.Clone(want), slices.Clone(have)
	slices.SortFunc(a, comparePackages)
	slices.SortFunc(b, comparePackages)
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && compareNames(a[0], b[0]) < 0:
			return a[0].Name + " " + a[0].Version + " is gone"
		case len(a) == 0 || compareNames(a[0], b[0]) > 0:
			return b[0].Name + " " + b[0].Version + " is new"
		case a[0].Version != b[0].Version:
			return a[0].Name + " " + a[0].Version + " became " + b[0].Version
		case a[0].Digest != b[0].Digest:
			return a[0].Name + " " + a[0].Version + " has other content"
		}
		a, b = a[1:], b[1:]
	}
	return ""
}

func compareNames(a, b Package) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Arch, b.Arch))
}

func comparePackages(a, b Package) int {
	return cmp.Or(compareNames(a, b), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Digest, b.Digest))
}
