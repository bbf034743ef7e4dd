// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// NewestKernel is the release of the newest kernel among the packages of dpkg's status
// file; "" when none names one.
func NewestKernel(status io.Reader) (found string, err error) {
	lines := bufio.NewScanner(status)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, ok := strings.CutPrefix(lines.Text(), "Package: ")
		if !ok {
			continue
		}
		for _, f := range Families() {
			if f.Manager != Apt {
				continue
			}
			if release := f.KernelRelease(name); release != "" && (found == "" || CompareKernels(release, found) > 0) {
				found = release
			}
		}
	}
	return found, lines.Err()
}

// Package is an installed package, as dpkg's status file has it (deb-control(5)).
type Package struct {
	Name, Version, Arch string
	Source              string // the source package, with its version where that is another one; "": of the same name
	Maintainer          string
	Homepage            string
}

// maxPackages bounds a list of installed packages: real ones have some 3,000.
const maxPackages = 50_000

// InstalledPackages reads dpkg's status file and returns what is installed, in its order.
func InstalledPackages(status io.Reader) (list []Package, err error) {
	lines := bufio.NewScanner(status)
	lines.Buffer(nil, 1<<20)
	p, state := Package{}, ""
	for more := true; more; {
		more = lines.Scan()
		line := strings.TrimRight(lines.Text(), "\r")
		if !more || strings.TrimSpace(line) == "" {
			if strings.HasSuffix(state, " installed") && p.Name != "" {
				list = append(list, p)
			}
			if len(list) > maxPackages {
				return nil, fmt.Errorf("more than %d packages", maxPackages)
			}
			p, state = Package{}, ""
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			continue
		}
		fields := map[string]*string{"Package": &p.Name, "Version": &p.Version, "Architecture": &p.Arch, "Source": &p.Source,
			"Maintainer": &p.Maintainer, "Homepage": &p.Homepage, "Status": &state}
		if at := fields[key]; at != nil {
			*at = strings.TrimSpace(value)
		}
	}
	return list, lines.Err()
}
