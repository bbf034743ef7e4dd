// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/images/repo/repodata"
)

// Pin keeps packages at one version, also where a newer one is installed or on
// offer.
type Pin struct {
	Packages []string // names, or patterns of glob(7)
	Version  string   // a pattern of glob(7) over the whole version, such as 535.261.03-*
}

// pinPriority is above 1000: such a version is installed even when that means to
// go back (apt_preferences(5)).
const pinPriority = 1001

// Preferences writes pins in the form of apt_preferences(5). Packages that the
// pattern of a pin names but that have no such version are not touched by it.
func Preferences(pins []Pin) []byte {
	var b strings.Builder
	for i, p := range pins {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "Package: %s\nPin: version %s\nPin-Priority: %d\n", strings.Join(p.Packages, " "), p.Version, pinPriority)
	}
	return []byte(b.String())
}

// check refuses what would not be safe in a file of preferences, or in a configuration of dnf.
// A pin of RPM packages is compared with VERSION-RELEASE, whatever their epoch is.
func (p Pin) check(rpm bool) error {
	isName, isVersion := func(s string) bool { return isPattern(s, "+-.*") }, versionText
	if rpm {
		isName, isVersion = func(s string) bool { return s != "" && repodata.IsName("0"+strings.ReplaceAll(s, "*", "")) }, repodata.IsVersion
	}
	for _, name := range p.Packages {
		if !isName(name) {
			return fmt.Errorf("%q is no pattern of package names", name)
		}
	}
	if len(p.Packages) == 0 || !isVersion("0"+strings.Trim(p.Version, "*")) || strings.Contains(strings.Trim(p.Version, "*"), "*") {
		return fmt.Errorf("%q is no pattern of versions", p.Version)
	}
	return nil
}

// isPattern is word for patterns, which may also begin with a star.
func isPattern(s, signs string) bool { return s != "" && isWord("0"+s, signs) }

// Source is a repository beside those of the image.
type Source struct {
	URL        string
	Suite      string   // "./" and "/" for a flat one
	Components []string // none for a flat one
	Key        []byte   // OpenPGP public key, armored; nil: one of the image's keys signed it
}

// check refuses what would not be safe in a list of sources.
func (s Source) check() error {
	for _, w := range append([]string{s.URL, s.Suite}, s.Components...) {
		if w == "" || strings.ContainsAny(w, " \t\r\n[]#\"") {
			return fmt.Errorf("%q cannot stand in a list of sources", w)
		}
	}
	return nil
}

// line is the source in the one-line format of sources.list(5). Of a folder of this controller
// packages are copied: apt leaves those of a file: where they are, and they would be lacking.
func (s Source) line(signedBy string) string {
	option := ""
	if rest, ok := strings.CutPrefix(s.URL, "file:"); ok {
		s.URL = "copy:" + rest
	}
	if signedBy != "" {
		option = "[signed-by=" + signedBy + "] "
	}
	return "deb " + option + strings.Join(append([]string{s.URL, s.Suite}, s.Components...), " ") + "\n"
}

// withComponents adds components to sources of distributions in the one-line
// format; flat ones, whose suite ends in a slash, have none.
func withComponents(sources []byte, add []string) []byte {
	var out []string
	for line := range strings.Lines(string(sources)) {
		f := strings.Fields(line)
		if len(f) > 2 && (f[0] == "deb" || f[0] == "deb-src") && !isFlat(f[1:]) {
			for _, c := range add {
				if !strings.Contains(" "+strings.Join(f[2:], " ")+" ", " "+c+" ") {
					f = append(f, c)
				}
			}
			line = strings.Join(f, " ") + "\n"
		}
		out = append(out, line)
	}
	return []byte(strings.Join(out, ""))
}

// isFlat reports whether the words behind "deb" are of a flat repository.
func isFlat(words []string) bool {
	for i, w := range words {
		if strings.HasPrefix(w, "[") || strings.HasSuffix(w, "]") || strings.Contains(w, "=") {
			continue // options
		}
		return i+1 < len(words) && strings.HasSuffix(words[i+1], "/")
	}
	return false
}
