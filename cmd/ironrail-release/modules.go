// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/sbom"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// linked are the modules that the programs for an architecture are made of, each once, in
// the order of their paths, and the version of Go.
func (r *release) linked(arch string) (modules []*debug.Module, version string, err error) {
	list, err := os.ReadDir(r.programs(arch))
	if err != nil {
		return nil, "", err
	}
	for _, f := range list {
		info, err := buildinfo.ReadFile(filepath.Join(r.programs(arch), f.Name()))
		if err != nil {
			return nil, "", err
		}
		version = info.GoVersion
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			modules = append(modules, m)
		}
	}
	slices.SortFunc(modules, func(a, b *debug.Module) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(modules, func(a, b *debug.Module) bool { return a.Path == b.Path }), version, nil
}

// legal are the names of files that have to go with a program.
var legal = lazyregexp.New(`(?i)^(licen[cs]e|copying|notice|copyright|patents|unlicense)`)

// notices are the licences of all that is linked, for every kind of controllers. A module without
// one may not be passed on.
func (r *release) notices(ctx context.Context) (string, error) {
	var all []*debug.Module
	for _, arch := range r.archs {
		modules, _, err := r.linked(arch)
		if err != nil {
			return "", err
		}
		all = append(all, modules...)
	}
	slices.SortFunc(all, func(a, b *debug.Module) int { return cmp.Compare(a.Path, b.Path) })
	all = slices.CompactFunc(all, func(a, b *debug.Module) bool { return a.Path == b.Path })

	root, err := command(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("ironrail is made of the modules below as well. The source of each is at the address that its name is, at that version.\n")
	if err := notice(&b, "the standard library of Go", root); err != nil {
		return "", err
	}
	list, err := command(ctx, nil, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}", "all")
	if err != nil {
		return "", err
	}
	folders := map[string]string{}
	for line := range strings.Lines(list) {
		path, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		folders[path] = folder
	}
	for _, m := range all {
		if err := notice(&b, m.Path+" "+m.Version, folders[m.Path]); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// notice adds the legal files of one module.
func notice(b *strings.Builder, name, folder string) error {
	list, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	found := false
	for _, f := range list {
		if !f.Type().IsRegular() || !legal.MatchString(f.Name()) || filepath.Ext(f.Name()) == ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(b, "\n%s\n%s: %s\n%[1]s\n\n%s\n", strings.Repeat("=", 78), name, f.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s has no file with its licence: it may not be passed on", name)
	}
	return nil
}

// writeModules writes the modules of the programs as a software bill of materials in SPDX
// 2.3, JSON, which scanners compare with lists of vulnerabilities.
func (r *release) writeModules(arch string) error {
	modules, version, err := r.linked(arch)
	if err != nil {
		return err
	}
	p := sbom.Program{Version: r.version, Commit: r.commit, At: r.at, Arch: arch, Tool: "ironrail-release", Modules: []sbom.Module{{Path: "stdlib", Version: strings.TrimPrefix(version, "go")}}}
	for _, m := range modules {
		p.Modules = append(p.Modules, sbom.Module{Path: m.Path, Version: m.Version})
	}
	text, err := sbom.MarshalProgram(p)
	if err != nil {
		return err
	}
	return write(filepath.Join(r.out, fmt.Sprintf("ironrail_%s_linux_%s.spdx.json", r.version, arch)), string(text))
}
