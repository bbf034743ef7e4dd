// SPDX-License-Identifier: Apache-2.0

// Package kmod loads kernel modules the way modprobe does: by name or alias,
// dependencies first, from the files that depmod writes. The ramdisk has no
// modprobe; the agent is its own, for itself and for the kernel's requests.
package kmod

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Tree is the modules of one kernel. It is not safe for concurrent use.
type Tree struct {
	dir     string
	paths   map[string]string   // module -> file, below dir
	deps    map[string][]string // module -> modules, nearest first, as in modules.dep
	soft    map[string][]string // modules to try first (softdep pre)
	builtin map[string]bool
	aliases map[string][]alias // by the text before the first colon or wildcard
	insert  func(path string) error
	tried   map[string]error // outcome by module, so that nothing is tried twice
	seen    map[string]bool  // aliases of devices that Coldplug has served
}

// alias is one line of modules.alias.
type alias struct{ pattern, module string } // pattern is in the form of plain

// Open reads the indexes of /lib/modules/RELEASE below root. A missing
// modules.dep is an error; the other files may be absent.
func Open(root, release string) (*Tree, error) {
	t := &Tree{
		dir: filepath.Join(root, "lib/modules", release), paths: map[string]string{}, deps: map[string][]string{},
		soft: map[string][]string{}, builtin: map[string]bool{}, aliases: map[string][]alias{}, tried: map[string]error{}, seen: map[string]bool{}, insert: insert,
	}
	if err := t.lines("modules.dep", t.addDep); err != nil {
		return nil, errkind.New(errkind.NotFound, "kernel modules: %w", err).Do("Build the ramdisk again, with the modules of its own kernel.")
	}
	for name, add := range map[string]func(string){
		"modules.alias": t.addAlias, "modules.softdep": t.addSoft,
		"modules.builtin": func(line string) { t.builtin[name(line)] = true },
	} {
		if err := t.lines(name, add); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("kernel modules: %w", err)
		}
	}
	return t, nil
}

// lines calls add for each line of an index.
func (t *Tree) lines(file string, add func(string)) error {
	f, err := os.Open(filepath.Join(t.dir, file))
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if line := strings.TrimSpace(s.Text()); line != "" && line[0] != '#' {
			add(line)
		}
	}
	return s.Err()
}

// name is how the kernel calls the module in a file: no folder, no .ko, no dash.
func name(file string) string {
	base, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(base, "-", "_")
}

// addDep reads "kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko kernel/fs/jbd2/jbd2.ko".
func (t *Tree) addDep(line string) {
	file, deps, ok := strings.Cut(line, ":")
	if !ok {
		return
	}
	t.paths[name(file)] = file
	for _, dep := range strings.Fields(deps) {
		t.deps[name(file)] = append(t.deps[name(file)], name(dep))
	}
}

// addAlias reads "alias virtio:d00000001v* virtio_net".
func (t *Tree) addAlias(line string) {
	f := strings.Fields(line)
	if len(f) != 3 || f[0] != "alias" {
		return
	}
	t.aliases[bucket(f[1])] = append(t.aliases[bucket(f[1])], alias{plain(f[1]), name(f[2])})
}

// plain makes dashes underscores, as the kernel does, and takes away the slash,
// which is nothing special in an alias but is to path.Match.
func plain(text string) string { return strings.NewReplacer("-", "_", "/", "\x01").Replace(text) }

// bucket is the bus part of an alias, which never holds a wildcard.
func bucket(text string) string {
	text = plain(text)
	if i := strings.IndexAny(text, ":*?["); i >= 0 && text[i] == ':' {
		return text[:i]
	}
	return ""
}

// addSoft reads "softdep ext4 pre: crc32c"; what comes after is left to the kernel.
func (t *Tree) addSoft(line string) {
	f := strings.Fields(line)
	if len(f) < 4 || f[0] != "softdep" {
		return
	}
	pre := false
	for _, word := range f[2:] {
		switch {
		case strings.HasSuffix(word, ":"):
			pre = word == "pre:"
		case pre:
			t.soft[name(f[1])] = append(t.soft[name(f[1])], word)
		}
	}
}

// Modules returns the modules that a name or alias stands for; none when
// it is unknown.
func (t *Tree) Modules(nameOrAlias string) []string {
	if n := name(nameOrAlias); t.paths[n] != "" || t.builtin[n] {
		return []string{n}
	}
	text := plain(nameOrAlias)
	var found []string
	for _, b := range []string{bucket(text), ""} {
		for _, a := range t.aliases[b] {
			if ok, err := path.Match(a.pattern, text); ok && err == nil {
				found = append(found, a.module)
			}
		}
		if b == "" {
			break
		}
	}
	return found
}

// Load loads what a name or alias stands for, dependencies first. What is
// loaded or built in already is no error; an unknown name is Unsupported.
func (t *Tree) Load(nameOrAlias string) error {
	modules := t.Modules(nameOrAlias)
	if len(modules) == 0 {
		return errkind.New(errkind.Unsupported, "no kernel module for %s", nameOrAlias)
	}
	var errs []error
	for _, m := range modules {
		errs = append(errs, t.load(m, 0))
	}
	return errors.Join(errs...)
}

// load loads one module once. depth stops a circle of soft dependencies.
func (t *Tree) load(module string, depth int) error {
	if err, done := t.tried[module]; done || t.builtin[module] || depth > 16 {
		return err
	}
	file := t.paths[module]
	if file == "" {
		return errkind.New(errkind.Unsupported, "kernel module %s is not in the ramdisk", module)
	}
	t.tried[module] = nil
	for _, soft := range t.soft[module] {
		for _, m := range t.Modules(soft) {
			t.load(m, depth+1) // soft: its absence is no error
		}
	}
	err := func() error {
		deps := t.deps[module]
		for i := len(deps) - 1; i >= 0; i-- { // modules.dep lists the nearest first
			if err := t.load(deps[i], depth+1); err != nil {
				return fmt.Errorf("%s: %w", module, err)
			}
		}
		if err := t.insert(filepath.Join(t.dir, file)); err != nil {
			return fmt.Errorf("load %s: %w", module, err)
		}
		return nil
	}()
	t.tried[module] = err
	return err
}

// limit bounds an unpacked module.
const limit = 256 << 20

// readAll reads a whole module.
func readAll(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && len(b) > limit {
		return nil, fmt.Errorf("module has more than %d bytes", limit)
	}
	return b, err
}
