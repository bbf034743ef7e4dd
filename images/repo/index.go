// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// stanza is the control file of one package.
type stanza struct {
	text                string // ends with a newline, holds no empty line
	name, version, arch string
}

// parseStanza reads one control file (deb-control(5)).
func parseStanza(b []byte) (stanza, error) {
	s := stanza{text: strings.TrimRight(string(b), "\n") + "\n"}
	if strings.Contains(s.text, "\n\n") {
		return s, errkind.New(errkind.Invalid, "control file: an empty line")
	}
	s.name, s.version, s.arch = s.field("Package"), s.field("Version"), s.field("Architecture")
	if !isWord(s.name, "+-.") || !versionText(s.version) || !isWord(s.arch, "-") {
		return s, errkind.New(errkind.Invalid, "control file: package %q, version %q, architecture %q", s.name, s.version, s.arch)
	}
	return s, nil
}

// versionText reports whether v has only what Debian Policy 5.6.12 allows.
func versionText(v string) bool {
	ok := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(".+-:~", c)
	}
	return v != "" && v[0] != '.' && !strings.ContainsFunc(v, func(c rune) bool { return !ok(c) })
}

// field returns the value of a field of one line; "" when there is none.
func (s stanza) field(name string) string {
	for line := range strings.Lines(s.text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(key, name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// fileName is NAME_VERSION_ARCH.deb without the version's epoch, whose colon
// would have to be escaped in URLs.
func (s stanza) fileName() string {
	v := s.version
	if _, rest, ok := strings.Cut(v, ":"); ok {
		v = rest
	}
	return s.name + "_" + v + "_" + s.arch + ".deb"
}

// writeIndex writes everything beside the pool, and returns the digest of the
// index.
func writeIndex(o Options, out string, stanzas map[string]stanza) (digest string, err error) {
	var index bytes.Buffer
	var total int64
	for i, name := range slices.Sorted(maps.Keys(stanzas)) {
		size, sum, err := folder.Sum(filepath.Join(out, pool, name))
		if err != nil {
			return "", err
		}
		if i > 0 {
			index.WriteByte('\n')
		}
		fmt.Fprintf(&index, "%sFilename: %s/%s\nSize: %d\nSHA256: %s\n", stanzas[name].text, pool, name, size, sum)
		total += size
	}
	packed, err := gzipBytes(index.Bytes())
	if err != nil {
		return "", err
	}
	signed, err := o.Key.sign(writeRelease(o.Name, o.Image.arch(), time.Now(), map[string][]byte{packages: index.Bytes(), packagesGz: packed}))
	if err != nil {
		return "", err
	}
	for name, b := range map[string][]byte{packages: index.Bytes(), packagesGz: packed, inRelease: signed, publicKey: o.Key.Public()} {
		if err := durable.Write(filepath.Join(out, name), b, 0o644); err != nil {
			return "", err
		}
	}
	o.logf("%d packages, %.1f MiB", len(stanzas), float64(total)/(1<<20))
	versions := map[string]string{}
	for _, s := range stanzas {
		versions[s.name] = s.version
	}
	return digestOf(index.Bytes()), writeRecord(o, out, versions, total)
}

// digestOf is sha256:HEX of an index.
func digestOf(index []byte) string {
	sum := sha256.Sum256(index)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// writeRelease returns the Release file of a flat repository. It has no Valid-Until: a
// site may run for years without a new build.
func writeRelease(name, arch string, now time.Time, files map[string][]byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Origin: ironrail\nLabel: ironrail %s\nCodename: %s\nDate: %s\nArchitectures: %s\n", name, name, now.UTC().Format("Mon, 02 Jan 2006 15:04:05 UTC"), arch)
	b.WriteString("SHA256:\n")
	for _, file := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, " %x %d %s\n", sha256.Sum256(files[file]), len(files[file]), file)
	}
	return b.Bytes()
}

func gzipBytes(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// entry is a file with its length and sum, as an index lists it.
type entry struct {
	name string
	size int64
	sum  string
}

// parseRelease reads the SHA256 section of a Release file.
func parseRelease(b []byte) ([]entry, error) {
	var all []entry
	inside := false
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, " ") {
			inside = strings.TrimSpace(line) == "SHA256:"
			continue
		}
		if !inside {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, errkind.New(errkind.Invalid, "Release: line %q is not SUM SIZE FILE", line)
		}
		size, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return nil, errkind.New(errkind.Invalid, "Release: %w", err)
		}
		all = append(all, entry{name: f[2], size: size, sum: f[0]})
	}
	return all, nil
}

// parsePackages reads the files that a Packages file lists.
func parsePackages(b []byte) ([]entry, error) {
	var all []entry
	for text := range strings.SplitSeq(string(b), "\n\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		s, err := parseStanza([]byte(text))
		if err != nil {
			return nil, err
		}
		size, err := strconv.ParseInt(s.field("Size"), 10, 64)
		if err != nil {
			return nil, errkind.New(errkind.Invalid, "Packages: %s: %w", s.name, err)
		}
		all = append(all, entry{name: s.field("Filename"), size: size, sum: s.field("SHA256")})
	}
	return all, nil
}
