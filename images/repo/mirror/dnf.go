// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/images/repo/repodata"
	"github.com/ironrail/ironrail/internal/errkind"
)

// dnfIndex brings the index of a repository of dnf. Files for SQLite, which dnf does not read,
// are left out.
func (m *maker) dnfIndex(ctx context.Context, c *Copy) (offers, error) {
	index, err := m.small(ctx, repodata.Index)
	if err != nil {
		return nil, err
	}
	detached, err := m.small(ctx, repodata.Signature)
	switch {
	case errkind.Of(err) == errkind.NotFound:
		c.Unsigned = true
	case err != nil:
		return nil, err
	default:
		if _, err := signature.Verify(m.keys, bytes.NewReader(index), detached, time.Now()); err != nil {
			return nil, errkind.New(errkind.Corrupt, "its key did not sign its index: %w", err).Do("Give the key that signs this repository, as its vendor publishes it, in ASCII armor.")
		}
	}
	files, err := repodata.ParseIndex(index)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if strings.HasSuffix(f.Type, "_db") {
			continue
		}
		if _, err := m.bring(ctx, f.Name, f.Size, f.Sum, "index "+f.Type); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(filepath.Join(m.out, filepath.FromSlash(repodata.Find(files, repodata.Primary).Name)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := repodata.ParsePrimary(f)
	if err != nil {
		return nil, err
	}
	var all offers
	for _, p := range list {
		if strings.HasPrefix(p.Arch, "i") && strings.HasSuffix(p.Arch, "86") || p.Arch == "src" {
			continue
		}
		all = append(all, offer{name: p.Name, version: p.Version + "-" + p.Release, file: p.File, sum: p.Sum, size: p.Size, needs: needsOf(p.Needs), provides: p.Provides})
	}
	return all, nil
}

// needsOf are the names of what a package requires. Of a rich dependency (rpm's manual,
// "Boolean Dependencies"), as in (a if b), each is one.
func needsOf(requires []string) (needs []string) {
	for _, r := range requires {
		if !strings.HasPrefix(r, "(") {
			needs = append(needs, r)
			continue
		}
		for word := range strings.FieldsSeq(strings.NewReplacer("(", " ", ")", " ").Replace(r)) {
			if repodata.IsName(word) && word != "and" && word != "or" && word != "if" && word != "else" && word != "with" && word != "without" && word != "unless" {
				needs = append(needs, word)
			}
		}
	}
	return needs
}
