// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"bufio"
	"io"
	"strings"
)

// NewestOf is the release of the newest kernel among packages, by their names with version,
// release and architecture as in kernel-core-5.14.0-570.el9.x86_64; "" when none is one.
func NewestOf(packages []string) (found string) {
	for _, name := range packages {
		for _, f := range Families() {
			if !strings.HasPrefix(name, f.kernels) {
				continue
			}
			if release := f.KernelRelease(name); release != "" && (found == "" || CompareKernels(release, found) > 0) {
				found = release
			}
		}
	}
	return found
}

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
