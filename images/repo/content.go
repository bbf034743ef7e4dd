// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Content is one package of a repository.
type Content struct {
	Name, Version, Arch string
	Digest              string // sha256:HEX of the file
}

// Content lists the packages as the index has them. Verify first: it compares the
// index with the signature, and the packages with the index.
func (r Repo) Content() ([]Content, error) {
	if r.isDnf() {
		return r.contentDnf()
	}
	index, err := os.ReadFile(filepath.Join(r.Dir, packages))
	if err != nil {
		return nil, r.damaged("%w", err)
	}
	var all []Content
	for text := range strings.SplitSeq(string(index), "\n\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		s, err := parseStanza([]byte(text))
		if err != nil {
			return nil, r.damaged("%w", err)
		}
		sum := s.field("SHA256")
		if !isDigestFolder("sha256-" + sum) {
			return nil, r.damaged("%w", fmt.Errorf("package %s has no SHA-256", s.name))
		}
		all = append(all, Content{Name: s.name, Version: s.version, Arch: s.arch, Digest: "sha256:" + sum})
	}
	return all, nil
}

// contentDnf is Content of a repository of dnf.
func (r Repo) contentDnf() (all []Content, err error) {
	list, err := readPrimary(r.Dir)
	if err != nil {
		return nil, r.damaged("%w", err)
	}
	for _, p := range list {
		all = append(all, Content{Name: p.Name, Version: p.EVR(), Arch: p.Arch, Digest: "sha256:" + p.Sum})
	}
	return all, nil
}
