// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"fmt"
	"strconv"
	"strings"
)

// VersionLimit is a demand on a version such as ">= 1.03.18". The zero value
// allows every version.
type VersionLimit struct {
	Op      Op
	Version string
}

// ParseVersionLimit reads ">= V", "<= V", "= V" or "V" (exactly V).
func ParseVersionLimit(s string) (VersionLimit, error) {
	l, err := ParseLimit(s, func(v string) (string, error) {
		if v == "" || strings.ContainsAny(v, " \t\r\n<>=") {
			return "", fmt.Errorf("%q is no version such as %q or %q", s, "28.39.3560", ">= 1.03.18")
		}
		return v, nil
	})
	return VersionLimit{Op: l.Op, Version: l.Value}, err
}

// IsZero reports whether there is no limit.
func (l VersionLimit) IsZero() bool { return l.Op == NoLimit }

// Allows reports whether version v keeps the limit.
func (l VersionLimit) Allows(v string) bool {
	c := CompareVersions(v, l.Version)
	switch l.Op {
	case AtLeast:
		return c >= 0
	case AtMost:
		return c <= 0
	case Exactly:
		return c == 0
	}
	return true
}

// String writes the limit as the language does.
func (l VersionLimit) String() string {
	if int(l.Op) >= len(opTexts) {
		return ""
	}
	return opTexts[l.Op] + l.Version
}

// MarshalText writes String.
func (l VersionLimit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// CompareVersions orders two versions part by part: runs of digits as numbers
// ("1.03" equals "1.3"), others as text; a longer version is later. It returns
// -1, 0 or 1.
func CompareVersions(a, b string) int {
	pa, pb := strings.FieldsFunc(a, isSeparator), strings.FieldsFunc(b, isSeparator)
	for i := range min(len(pa), len(pb)) {
		if c := comparePart(pa[i], pb[i]); c != 0 {
			return c
		}
	}
	switch {
	case len(pa) < len(pb):
		return -1
	case len(pa) > len(pb):
		return 1
	}
	return 0
}

func isSeparator(r rune) bool { return r == '.' || r == '-' || r == '_' || r == '+' }

func comparePart(a, b string) int {
	na, erra := strconv.ParseUint(a, 10, 64)
	nb, errb := strconv.ParseUint(b, 10, 64)
	if erra != nil || errb != nil {
		return strings.Compare(a, b)
	}
	switch {
	case na < nb:
		return -1
	case na > nb:
		return 1
	}
	return 0
}
