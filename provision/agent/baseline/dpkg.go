// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
)

// Bounds of dpkg's status file: real ones have some 1,500 stanzas and 3 MiB.
const (
	maxStatus   = 64 << 20
	maxPackages = 50_000
	maxField    = 512 // of a name or a version
)

// ParseStatus reads dpkg's status file (deb822 stanzas, see deb-control(5) and
// dpkg(1)) and returns the installed packages by name. A package of an
// architecture other than the first "amd64"-like one of dpkg itself carries it in
// its name. Stanzas that are not understood are passed over; more of them than a
// node can have is an error.
func ParseStatus(text []byte) ([]wire.Package, error) {
	var list []wire.Package
	native := ""
	p := stanza{}
	end := func() {
		if p.installed() {
			if p.name == "dpkg" {
				native = p.arch
			}
			list = append(list, wire.Package{Name: p.name + ":" + p.arch, Version: p.version})
		}
		p = stanza{}
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.TrimSpace(line) == "" {
			if end(); len(list) > maxPackages {
				return nil, fmt.Errorf("more than %d packages", maxPackages)
			}
			continue
		}
		p.field(line)
	}
	end()
	if err := lines.Err(); err != nil {
		return nil, err
	}
	for i := range list {
		name, arch, _ := strings.Cut(list[i].Name, ":")
		if arch == native || arch == "all" || arch == "" || native == "" {
			list[i].Name = name
		}
	}
	slices.SortFunc(list, func(a, b wire.Package) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return slices.Compact(list), nil
}

// stanza is what matters of one package.
type stanza struct{ name, arch, version, status string }

// field takes up one line; continuation lines begin with space and say nothing.
func (p *stanza) field(line string) {
	key, value, ok := strings.Cut(line, ":")
	if value = strings.TrimSpace(value); !ok || len(value) > maxField {
		return
	}
	switch key {
	case "Package":
		p.name = value
	case "Architecture":
		p.arch = value
	case "Version":
		p.version = value
	case "Status":
		p.status = value
	}
}

// installed reports whether the files of a package are there: "install ok
// installed" and "hold ok installed" are, "deinstall ok config-files" is not.
func (p stanza) installed() bool {
	return p.name != "" && p.version != "" && !strings.ContainsAny(p.name, ": \t") && strings.HasSuffix(p.status, " installed")
}

// Digest names a package list.
func Digest(list []wire.Package) string {
	h := sha256.New()
	for _, p := range list {
		fmt.Fprintf(h, "%s\t%s\n", p.Name, p.Version) // a hash never fails
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
