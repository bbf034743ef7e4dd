// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/dpkg"
	"github.com/ironrail/ironrail/internal/wire"
)

// maxStatus bounds dpkg's status file, in bytes: real ones have some 3 MiB.
const maxStatus = 64 << 20

// ParseStatus reads dpkg's status file and returns the installed packages by name. A
// package of an architecture other than that of dpkg itself carries it in its name.
func ParseStatus(text []byte) ([]wire.Package, error) {
	installed, err := dpkg.Installed(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	native := ""
	for _, p := range installed {
		if p.Name == "dpkg" {
			native = p.Arch
		}
	}
	var list []wire.Package
	for _, p := range installed {
		name := p.Name
		if p.Arch != native && p.Arch != "all" && p.Arch != "" && native != "" {
			name += ":" + p.Arch
		}
		list = append(list, wire.Package{Name: name, Version: p.Version})
	}
	slices.SortFunc(list, func(a, b wire.Package) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return slices.Compact(list), nil
}

// Digest names a package list.
func Digest(list []wire.Package) string {
	h := sha256.New()
	for _, p := range list {
		fmt.Fprintf(h, "%s\t%s\n", p.Name, p.Version) // a hash never fails
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
