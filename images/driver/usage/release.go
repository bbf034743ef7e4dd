// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Release is major and minor of a stack, a toolkit or a kernel driver: what the
// tables of the kinds are about.
type Release [2]int

// Major returns the first number.
func (r Release) Major() int { return r[0] }

// Minor returns the second number.
func (r Release) Minor() int { return r[1] }

// ParseRelease reads a version whose form was checked, such as "3.2.1"; what is
// behind the minor is of no matter.
func ParseRelease(version string) Release {
	parts := strings.SplitN(version, ".", 3)
	major, _ := strconv.Atoi(parts[0])
	minor := 0
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	return Release{major, minor}
}

// Before reports whether r came out before o.
func (r Release) Before(o Release) bool { return slices.Compare(r[:], o[:]) < 0 }

// String returns "3.2".
func (r Release) String() string { return fmt.Sprintf("%d.%d", r[0], r[1]) }
