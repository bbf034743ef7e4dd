// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Sums are checksums of one file, lower-case hex; "": none of that function.
type Sums struct{ SHA256, SHA512 string }

// entry is one line of a list.
type entry struct {
	name string
	Sums
}

// readEntry reads a line of a list of checksums, as sha256sum(1) and sha512sum(1) write
// it, "HEX  NAME" or "HEX *NAME", or as BSD does, "SHA256 (NAME) = HEX"; false for a line
// that is none, such as a comment.
func readEntry(line string) (e entry, ok bool) {
	line = strings.TrimRight(line, "\r\n")
	function, digits := "", ""
	if head, rest, found := strings.Cut(line, " ("); found && (head == "SHA256" || head == "SHA512") {
		i := strings.LastIndex(rest, ") = ")
		if i < 0 {
			return entry{}, false
		}
		function, e.name, digits = head, rest[:i], strings.TrimSpace(rest[i+len(") = "):])
	} else {
		digits, e.name, found = strings.Cut(line, " ")
		if !found || e.name == "" || e.name[0] != ' ' && e.name[0] != '*' {
			return entry{}, false
		}
		e.name = e.name[1:]
		function = map[int]string{64: "SHA256", 128: "SHA512"}[len(digits)]
	}
	e.name = strings.TrimPrefix(e.name, "./")
	digits = strings.ToLower(digits)
	raw, err := hex.DecodeString(digits)
	switch {
	case err != nil || e.name == "":
		return entry{}, false
	case function == "SHA256" && len(raw) == 32:
		e.SHA256 = digits
	case function == "SHA512" && len(raw) == 64:
		e.SHA512 = digits
	default:
		return entry{}, false
	}
	return e, true
}

// findSums returns the checksums that a list has for a file. sha256 is the one that is
// expected, which a list may have for another name.
func findSums(list []byte, name, sha256 string) (found Sums, err error) {
	var others []string
	entries := 0
	for line := range strings.Lines(string(list)) {
		e, ok := readEntry(line)
		if !ok {
			continue
		}
		if entries++; e.name != name {
			if e.SHA256 == sha256 && !slices.Contains(others, e.name) {
				others = append(others, e.name)
			}
			continue
		}
		if differ(found.SHA256, e.SHA256) || differ(found.SHA512, e.SHA512) {
			return Sums{}, errkind.New(errkind.Refused, "it has two checksums for %s", name)
		}
		found = Sums{cmp.Or(found.SHA256, e.SHA256), cmp.Or(found.SHA512, e.SHA512)}
	}
	switch {
	case found != Sums{}:
		return found, nil
	case entries == 0:
		return Sums{}, errkind.New(errkind.Invalid, "it is no list of SHA-256 or SHA-512 checksums").Do("Name the list that the vendor publishes beside the image, such as SHA256SUMS or CHECKSUM.")
	case len(others) > 0:
		return Sums{}, errkind.New(errkind.NotFound, "it has no checksum for %s; the checksum of the block is there for %q", name, others).
			Do("Give the file the name that the vendor signed.")
	}
	return Sums{}, errkind.New(errkind.NotFound, "it has no checksum for %s, among %d", name, entries).
		Do("Name the list that is beside this image, of the same day: vendors drop old images from it.")
}

// differ reports whether two checksums of one function are there and differ.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// Compare compares the checksums that a list has for a file with those that the file
// has. One that have lacks is not compared.
func (s Sums) Compare(name string, have Sums) error {
	for _, c := range []struct{ function, want, got string }{{"SHA-256", s.SHA256, have.SHA256}, {"SHA-512", s.SHA512, have.SHA512}} {
		if differ(c.want, c.got) {
			return errkind.New(errkind.Mismatch, "it has %s %s for %s, which is %s", c.function, c.want, name, c.got).
				Do(fmt.Sprintf("The list may be of another day than checksum, or %s is not what the vendor signed. Take both from one release.", name))
		}
	}
	return nil
}

// OpenList returns what a list of checksums says, and the fingerprint of the primary key
// that signed it: in itself, or apart, in detached. nil: there is none apart.
func OpenList(keys openpgp.EntityList, list, detached []byte, now time.Time) (text []byte, signer string, err error) {
	if detached == nil {
		return OpenText(keys, list, now)
	}
	signer, err = Verify(keys, bytes.NewReader(list), detached, now)
	return list, signer, err
}

// CompareListed compares the checksums that a list has for a file with those that the file
// has, and returns the former.
func CompareListed(list []byte, name string, have Sums) (listed Sums, err error) {
	listed, err = findSums(list, name, have.SHA256)
	if err == nil {
		err = listed.Compare(name, have)
	}
	return listed, err
}
