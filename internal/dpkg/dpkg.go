// SPDX-License-Identifier: Apache-2.0

// Package dpkg reads what is installed on a system from dpkg's own list.
package dpkg

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// StatusFile is where dpkg keeps the list, below the root of a system.
const StatusFile = "var/lib/dpkg/status"

// Bounds of a list: real ones have some 3,000 packages.
const (
	MaxPackages = 50_000
	MaxField    = 512 // bytes of a value
)

// Package is an installed package (deb-control(5)).
type Package struct {
	Name, Version, Arch string
	Source              string // the source package, with its version where that is another one; "": of the same name
	Maintainer          string
	Homepage            string
}

// Installed reads a list, stanzas of deb822(5), and returns the packages whose files are
// there, in its order. Stanzas that are not understood are passed over; more of them than
// a system can have are an error.
func Installed(status io.Reader) (list []Package, err error) {
	lines := bufio.NewScanner(status)
	lines.Buffer(nil, 1<<20)
	var s stanza
	for more := true; more; {
		more = lines.Scan()
		line := lines.Text()
		if more && strings.TrimSpace(line) != "" {
			s.take(line)
			continue
		}
		if s.installed() {
			list = append(list, s.Package)
		}
		if len(list) > MaxPackages {
			return nil, fmt.Errorf("more than %d packages", MaxPackages)
		}
		s = stanza{}
	}
	return list, lines.Err()
}

// stanza is what the list has of one package.
type stanza struct {
	Package
	status string
}

// take takes up one line. One that goes on from the line before begins with a space, and
// is no field.
func (s *stanza) take(line string) {
	key, value, ok := strings.Cut(line, ":")
	if value = strings.TrimSpace(value); !ok || len(value) > MaxField {
		return
	}
	switch key {
	case "Package":
		s.Name = value
	case "Version":
		s.Version = value
	case "Architecture":
		s.Arch = value
	case "Source":
		s.Source = value
	case "Maintainer":
		s.Maintainer = value
	case "Homepage":
		s.Homepage = value
	case "Status":
		s.status = value
	}
}

// installed reports whether the files of a package are there: "install ok installed" and
// "hold ok installed" are, "deinstall ok config-files" is not (dpkg(1)).
func (s stanza) installed() bool {
	return s.Name != "" && s.Version != "" && !strings.ContainsAny(s.Name, ": \t") && strings.HasSuffix(s.status, " installed")
}
