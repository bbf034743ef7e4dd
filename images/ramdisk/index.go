// SPDX-License-Identifier: Apache-2.0

package ramdisk

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// index is what depmod knows of one kernel's modules, cut down to those that the
// ramdisk carries. It filters depmod's own files instead of running depmod, so
// that the result depends on the image alone.
type index struct {
	files map[string]string   // module -> file below the release's folder, suffix as found
	deps  map[string][]string // module -> modules, in depmod's order
	soft  map[string][]string // module -> words of its softdeps, modules or aliases
	alias []aliasLine
}

type aliasLine struct{ pattern, module, line string }

// moduleName returns how the kernel calls the module in a file: no folder, no .ko, no dash.
func moduleName(file string) string {
	base, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(base, "-", "_")
}

// plainKo is a module's path in the ramdisk, where no module is compressed.
func plainKo(file string) string {
	base, _, _ := strings.Cut(file, ".ko")
	return base + ".ko"
}

// parseIndex reads modules.dep, modules.alias and modules.softdep. A line that it
// does not understand is an error in modules.dep and left out of the others.
func parseIndex(dep, alias, soft []byte) (*index, error) {
	x := &index{files: map[string]string{}, deps: map[string][]string{}, soft: map[string][]string{}}
	for line := range eachLine(dep) {
		file, deps, ok := strings.Cut(line, ":")
		if !ok || !strings.Contains(file, ".ko") || !fs.ValidPath(file) {
			return nil, fmt.Errorf("modules.dep: line %q is not FILE: FILES", line)
		}
		x.files[moduleName(file)] = file
		for _, d := range strings.Fields(deps) {
			x.deps[moduleName(file)] = append(x.deps[moduleName(file)], moduleName(d))
		}
	}
	for line := range eachLine(alias) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "alias" {
			x.alias = append(x.alias, aliasLine{pattern: replaceDashes(f[1]), module: moduleName(f[2]), line: line})
		}
	}
	for line := range eachLine(soft) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "softdep" {
			words := slices.DeleteFunc(f[2:], func(w string) bool { return strings.HasSuffix(w, ":") })
			x.soft[moduleName(f[1])] = append(x.soft[moduleName(f[1])], words...)
		}
	}
	return x, nil
}

// eachLine yields the lines that are neither empty nor a comment.
func eachLine(b []byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range bytes.Lines(b) {
			text := strings.TrimSpace(string(line))
			if text != "" && text[0] != '#' && !yield(text) {
				return
			}
		}
	}
}

func replaceDashes(s string) string { return strings.ReplaceAll(s, "-", "_") }

// closure returns the wanted modules and all that they need, sorted. A softdep
// that nothing provides is skipped, as modprobe does.
func (x *index) closure(want func(file string) bool) []string {
	in := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if in[name] || x.files[name] == "" {
			return
		}
		in[name] = true
		for _, d := range x.deps[name] {
			add(d)
		}
		for _, word := range x.soft[name] {
			for _, m := range x.resolve(word) {
				add(m)
			}
		}
	}
	for name, file := range x.files {
		if want(file) {
			add(name)
		}
	}
	names := make([]string, 0, len(in))
	for name := range in {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// resolve returns the modules that a name or an alias without wildcards means.
func (x *index) resolve(word string) []string {
	if m := moduleName(word); x.files[m] != "" {
		return []string{m}
	}
	var found []string
	for _, a := range x.alias {
		if a.pattern == replaceDashes(word) {
			found = append(found, a.module)
		}
	}
	return found
}

// writeDep writes modules.dep of the given modules.
func (x *index) writeDep(w io.Writer, names []string) {
	for _, name := range names {
		fmt.Fprintf(w, "%s:", plainKo(x.files[name]))
		for _, d := range x.deps[name] {
			fmt.Fprintf(w, " %s", plainKo(x.files[d]))
		}
		fmt.Fprintln(w)
	}
}

// writeAlias writes those lines of modules.alias that lead to the given modules.
func (x *index) writeAlias(w io.Writer, names []string) {
	for _, a := range x.alias {
		if _, ok := slices.BinarySearch(names, a.module); ok {
			fmt.Fprintln(w, a.line)
		}
	}
}

// filterSoft writes those lines of modules.softdep that are about the given modules.
func filterSoft(w io.Writer, soft []byte, names []string) {
	for line := range eachLine(soft) {
		if f := strings.Fields(line); len(f) > 2 {
			if _, ok := slices.BinarySearch(names, moduleName(f[1])); ok {
				fmt.Fprintln(w, line)
			}
		}
	}
}
