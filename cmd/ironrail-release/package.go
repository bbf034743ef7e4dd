// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// nfpm writes packages. Versions since 2.46 pack for Windows too, with modules for that.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"

//go:embed files
var files embed.FS

// common writes what is the same for all kinds of processors: pages, completions, documents,
// and the licences of what is linked.
func (r *release) common(ctx context.Context) error {
	if err := os.CopyFS(r.work, files); err != nil {
		return err
	}
	if _, err := command(ctx, nil, r.self(), "man", "--out", filepath.Join(r.work, "man1")); err != nil {
		return err
	}
	for _, shell := range []string{"bash", "fish", "zsh"} {
		text, err := command(ctx, nil, r.self(), "completion", shell)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(r.work, "completion", shell), text+"\n"); err != nil {
			return err
		}
	}
	return r.documents(ctx)
}

// documents copies what users read without the repository: the guide and its pages, and the
// examples that the tour rehearses.
func (r *release) documents(ctx context.Context) error {
	doc := filepath.Join(r.work, "doc")
	for _, name := range []string{"README.md", "CHANGELOG.md", "LICENSE", "SECURITY.md"} {
		if err := copyFile(name, filepath.Join(doc, name)); err != nil {
			return err
		}
	}
	list, err := command(ctx, nil, "git", "ls-files", "--", "docs", "examples")
	if err != nil {
		return err
	}
	for name := range strings.Lines(list) {
		name = strings.TrimSpace(name)
		if ext := filepath.Ext(name); ext == ".go" || ext == ".sh" || strings.HasPrefix(name, "examples/lab/") || strings.Contains(name, "/testdata/") {
			continue
		}
		to := filepath.Join(doc, name)
		if strings.HasPrefix(name, "examples/") {
			to = filepath.Join(r.work, name)
		}
		if err := copyFile(name, to); err != nil {
			return err
		}
	}
	notices, err := r.notices(ctx)
	if err != nil {
		return err
	}
	return write(filepath.Join(doc, "licenses-of-modules.txt"), notices)
}

// writePackage has nfpm write a package.
func (r *release) writePackage(ctx context.Context, arch, format string) error {
	if err := setTimes(r.work, r.at); err != nil {
		return err
	}
	to, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "run", nfpm, "package", "--config", "files/nfpm.yaml", "--packager", format, "--target", to+"/")
	cmd.Dir = r.work
	cmd.Env = append(os.Environ(), "RELEASE_ARCH="+arch, "RELEASE_VERSION="+r.version, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.at.Unix()), "CGO_ENABLED=0", "GOFLAGS=")
	_, err = output(cmd)
	return err
}

// copyFile copies a file, its times and rights aside.
func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return write(to, string(text))
}

func write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// each calls f for every regular file below a folder, in order, with its path there.
func each(folder string, f func(path, name string) error) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		return f(path, filepath.ToSlash(name))
	})
}
