// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"bufio"
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
