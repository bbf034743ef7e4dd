// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/internal/errkind"
)

// maxPackages bounds an index, unpacked, in bytes.
const maxPackages = 1 << 30

// packings are the forms of a Packages file that are read here, best first; all that the
// repository has are copied, since apt takes the one that it likes best.
var packings = []string{".gz", ".bz2", ""}

// listed is a file that a Release file names.
type listed struct {
	sum  string
	size int64
}

// aptIndex brings the index of a repository of apt.
func (m *maker) aptIndex(ctx context.Context) (offers, error) {
	folder, prefixes := m.aptFolders()
	text, err := m.release(ctx, folder)
	if err != nil {
		return nil, err
	}
	files, byHash, err := parseRelease(text)
	if err != nil {
		return nil, err
	}
	var all offers
	for _, prefix := range prefixes {
		some, err := m.packages(ctx, folder, prefix+"Packages", files, byHash)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// aptFolders are the folder of the Release file below the repository, "" or with a slash at its
// end, and those of Packages files below that.
func (m *maker) aptFolders() (string, []string) {
	if flat, ok := strings.CutSuffix(m.Source.Suite, "/"); ok {
		if flat = strings.Trim(path.Clean(flat), "./"); flat != "" {
			flat += "/"
		}
		return flat, []string{""}
	}
	var list []string
	for _, c := range m.Source.Components {
		list = append(list, c+"/binary-"+m.Arch+"/")
	}
	return "dists/" + m.Source.Suite + "/", list
}

// release is the text of the Release file, after its signature was looked at.
func (m *maker) release(ctx context.Context, folder string) (text []byte, err error) {
	refused := func(err error) error {
		return errkind.New(errkind.Corrupt, "its key did not sign it: %w", err).Do("Give the key that signs this repository, as its vendor publishes it, in ASCII armor.")
	}
	signed, err := m.small(ctx, folder+"InRelease")
	if err == nil {
		if text, _, err = signature.OpenText(m.keys, signed, time.Now()); err != nil {
			return nil, refused(err)
		}
		return text, nil
	}
	if errkind.Of(err) != errkind.NotFound {
		return nil, err
	}
	if text, err = m.small(ctx, folder+"Release"); err != nil {
		return nil, err
	}
	detached, err := m.small(ctx, folder+"Release.gpg")
	if err != nil {
		return nil, err
	}
	if _, err := signature.Verify(m.keys, bytes.NewReader(text), detached, time.Now()); err != nil {
		return nil, refused(err)
	}
	return text, nil
}

// parseRelease reads the SHA256 section of a Release file, and whether files lie by their
// digests too (wiki.debian.org/DebianRepository/Format).
func parseRelease(text []byte) (files map[string]listed, byHash bool, err error) {
	files = map[string]listed{}
	in := false
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, " ") {
			in = strings.HasPrefix(line, "SHA256:")
			key, value, _ := strings.Cut(line, ":")
			byHash = byHash || key == "Acquire-By-Hash" && strings.TrimSpace(value) == "yes"
			continue
		}
		f := strings.Fields(line)
		if !in || len(f) != 3 {
			continue
		}
		size, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || len(f[0]) != 64 {
			return nil, false, errkind.New(errkind.Invalid, "its Release file says %q", strings.TrimSpace(line))
		}
		files[strings.TrimPrefix(f[2], "./")] = listed{strings.ToLower(f[0]), size}
	}
	if len(files) == 0 {
		return nil, false, errkind.New(errkind.Invalid, "its Release file names no file with a SHA-256")
	}
	return files, byHash, nil
}

// packages brings the forms of a Packages file, and reads one of them.
func (m *maker) packages(ctx context.Context, folder, name string, files map[string]listed, byHash bool) (offers, error) {
	read := ""
	for _, packing := range append(slices.Clone(packings), ".xz", ".zst", ".lzma") {
		f, ok := files[name+packing]
		if !ok || packing == "" && read != "" {
			continue // apt needs no plain one beside a packed one
		}
		_, err := m.bring(ctx, folder+name+packing, f.size, f.sum, "index "+name+packing)
		if errkind.Of(err) == errkind.NotFound {
			continue // Release files name forms that are not there
		}
		if err != nil {
			return nil, err
		}
		if byHash {
			if _, err := m.bring(ctx, folder+path.Dir(name)+"/by-hash/SHA256/"+f.sum, f.size, f.sum, "index "+name+packing+" by its digest"); err != nil && errkind.Of(err) != errkind.NotFound {
				return nil, err
			}
		}
		if read == "" && slices.Contains(packings, packing) {
			read = folder + name + packing
		}
	}
	if read == "" {
		return nil, errkind.New(errkind.NotFound, "it has no %s in a form that is read here (gzip, bzip2 or plain)", name).Do("Correct suite, components and architecture.")
	}
	f, err := os.Open(filepath.Join(m.out, filepath.FromSlash(read)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return m.parsePackages(f, path.Ext(read))
}

// parsePackages reads a Packages file of a form.
func (m *maker) parsePackages(f io.Reader, packing string) (all offers, err error) {
	switch packing {
	case ".gz":
		if f, err = gzip.NewReader(f); err != nil {
			return nil, errkind.New(errkind.Invalid, "Packages.gz: %w", err)
		}
	case ".bz2":
		f = bzip2.NewReader(f)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxPackages))
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "Packages%s: %w", packing, err)
	}
	for text := range strings.SplitSeq(string(b), "\n\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		o, arch, err := parseOffer(text)
		if err != nil {
			return nil, err
		}
		if arch == m.Arch || arch == "all" {
			all = append(all, o)
		}
	}
	return all, nil
}

// parseOffer reads one stanza (deb-control(5)), and the architecture of its package.
func parseOffer(text string) (o offer, arch string, err error) {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			fields[strings.ToLower(key)] = strings.TrimSpace(value)
		}
	}
	o = offer{name: fields["package"], version: fields["version"], file: strings.TrimPrefix(fields["filename"], "./"), sum: strings.ToLower(fields["sha256"])}
	o.size, err = strconv.ParseInt(fields["size"], 10, 64)
	if err != nil || o.name == "" || o.version == "" || o.file == "" || len(o.sum) != 64 {
		return o, "", errkind.New(errkind.Invalid, "its index has a package %q without version, file, size or SHA-256", fmt.Sprintf("%.60s", o.name))
	}
	for _, key := range []string{"pre-depends", "depends"} {
		for need := range strings.SplitSeq(fields[key], ",") {
			if names := namesOf(need); names != "" {
				o.needs = append(o.needs, names)
			}
		}
	}
	for p := range strings.SplitSeq(fields["provides"], ",") {
		if names := namesOf(p); names != "" {
			o.provides = append(o.provides, names)
		}
	}
	return o, fields["architecture"], nil
}

// namesOf are the names in a field of relations, without versions and architectures.
func namesOf(relation string) string {
	var names []string
	for alternative := range strings.SplitSeq(relation, "|") {
		name, _, _ := strings.Cut(strings.TrimSpace(alternative), " ")
		name, _, _ = strings.Cut(name, "(")
		if name, _, _ = strings.Cut(name, ":"); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " | ")
}
