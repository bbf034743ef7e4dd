// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/rehearse/virtual/twin"
)

// statusFile is where dpkg keeps what is installed.
const statusFile = "var/lib/dpkg/status"

// statusFile is the file of what is installed. rpm's database is another one here than on a real
// node: its content is dpkg's.
func (n *node) statusFile() string {
	if n.cfg.Twin.OfRPM() {
		return "var/lib/rpm/status"
	}
	return statusFile
}

// dpkg is what is installed on a node, beside what its image brought. It is safe
// for concurrent use.
type dpkg struct {
	mu     sync.Mutex // guards what follows
	read   bool
	have   map[string]string // version by name
	hold   map[string]bool
	half   map[string]bool // unpacked, and could not be configured
	locked bool            // by a running apt-get
}

// packages returns what is installed, read from the root file system once.
func (n *node) packages() map[string]string {
	d := &n.dpkg
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.read {
		b, _ := n.tree.ReadFile(n.statusFile()) // absent: nothing was installed
		d.have, d.hold, d.half = parseStatus(string(b))
		d.read = true
		if n.cfg.Image != nil {
			for _, p := range n.cfg.Image.Packages {
				if d.have[p] == "" {
					d.have[p] = twin.ImageVersion
				}
			}
		}
	}
	return maps.Clone(d.have)
}

func (n *node) hasPackage(name string) bool { return n.packages()[name] != "" }

// add records packages as installed, on the disk.
func (n *node) add(list map[string]string) error {
	n.packages() // read once
	n.dpkg.mu.Lock()
	defer n.dpkg.mu.Unlock()
	d := &n.dpkg
	have := maps.Clone(d.have)
	maps.Copy(have, list)
	d.have = have
	for name := range list {
		delete(d.half, name)
	}
	return n.writeStatus()
}

// unfinished records packages that could not be configured.
func (n *node) unfinished(names []string) error {
	if len(names) == 0 {
		return nil
	}
	n.dpkg.mu.Lock()
	defer n.dpkg.mu.Unlock()
	for _, name := range names {
		n.dpkg.half[name] = true
	}
	return n.writeStatus()
}

func (n *node) isUnfinished(name string) bool {
	n.packages()
	n.dpkg.mu.Lock()
	defer n.dpkg.mu.Unlock()
	return n.dpkg.half[name]
}

// heldPackages returns what is held.
func (n *node) heldPackages() map[string]bool {
	n.packages()
	n.dpkg.mu.Lock()
	defer n.dpkg.mu.Unlock()
	return maps.Clone(n.dpkg.hold)
}

// setHold holds packages, or lets them go, and returns those that are not known.
func (n *node) setHold(names []string, hold bool) (unknown []string, err error) {
	n.packages()
	d := &n.dpkg
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		switch {
		case d.have[name] == "":
			unknown = append(unknown, name)
		case hold:
			d.hold[name] = true
		default:
			delete(d.hold, name)
		}
	}
	return unknown, n.writeStatus()
}

// state is what dpkg says of a package that is there; mu is held.
func (d *dpkg) state(name string) (want, status string) {
	want, status = "install", "installed"
	if d.hold[name] {
		want = "hold"
	}
	if d.half[name] {
		status = "half-configured"
	}
	return want, status
}

// writeStatus writes dpkg's file; mu is held.
func (n *node) writeStatus() error {
	d := &n.dpkg
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.have)) {
		want, status := d.state(name)
		fmt.Fprintf(&b, "Package: %s\nStatus: %s ok %s\nArchitecture: %s\nVersion: %s\n\n", name, want, status, n.cfg.Twin.PackageArch(), d.have[name])
	}
	if err := n.tree.MkdirAll(path.Dir(n.statusFile()), 0o755); err != nil {
		return err
	}
	return n.tree.write(n.statusFile(), []byte(b.String()), 0o644)
}

// lock takes dpkg's lock, and reports whether it was free.
func (d *dpkg) lock() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.locked
	d.locked = true
	return !was
}

func (d *dpkg) unlock() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.locked = false
}

// parseStatus reads dpkg's status file: versions, what is held, and what is not
// configured.
func parseStatus(text string) (have map[string]string, hold, half map[string]bool) {
	have, hold, half = map[string]string{}, map[string]bool{}, map[string]bool{}
	for stanza := range strings.SplitSeq(text, "\n\n") {
		f := fieldsOf(stanza)
		name, words := f["Package"], strings.Fields(f["Status"])
		if name == "" || f["Version"] == "" || len(words) != 3 || words[2] != "installed" && words[2] != "half-configured" {
			continue
		}
		have[name] = f["Version"]
		if words[0] == "hold" {
			hold[name] = true
		}
		if words[2] == "half-configured" {
			half[name] = true
		}
	}
	return have, hold, half
}

// fieldsOf reads the one-line fields of a deb822 stanza.
func fieldsOf(stanza string) map[string]string {
	f := map[string]string{}
	for line := range strings.Lines(stanza) {
		if key, value, ok := strings.Cut(line, ":"); ok && key != "" && key[0] != ' ' && key[0] != '\t' {
			f[key] = strings.TrimSpace(value)
		}
	}
	return f
}

// dpkgQuery is dpkg-query --show (-W) with a format, and -s of one package.
func dpkgQuery(_ context.Context, c call) int {
	format, names := "${Package}\t${Version}\n", []string(nil)
	rest := false
	for _, a := range c.Argv[1:] {
		switch {
		case rest || !strings.HasPrefix(a, "-"):
			names = append(names, a)
		case a == "--":
			rest = true
		case strings.HasPrefix(a, "--showformat="):
			format = strings.TrimPrefix(a, "--showformat=")
		case strings.HasPrefix(a, "-f="):
			format = strings.TrimPrefix(a, "-f=")
		}
	}
	format = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(format)
	have, status := c.n.packages(), 0
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(have))
	}
	for _, name := range expandNames(names, have) {
		if have[name] == "" {
			_, _ = fmt.Fprintf(c.Err, "dpkg-query: no packages found matching %s\n", name)
			status = 1
			continue
		}
		want, state := c.n.dpkgState(name)
		c.print(strings.NewReplacer("${Package}", name, "${binary:Package}", name, "${Version}", have[name], "${db:Status-Status}", state,
			"${Status}", want+" ok "+state, "${Architecture}", c.n.cfg.Twin.PackageArch()).Replace(format))
	}
	return status
}

// expandNames returns the packages that names stand for, which may have stars; a name
// that no package has stays.
func expandNames(names []string, have map[string]string) (all []string) {
	for _, pattern := range names {
		if have[pattern] != "" || !strings.ContainsAny(pattern, "*?[") {
			all = append(all, pattern)
			continue
		}
		before := len(all)
		for _, name := range slices.Sorted(maps.Keys(have)) {
			if ok, err := path.Match(pattern, name); ok && err == nil {
				all = append(all, name)
			}
		}
		if len(all) == before {
			all = append(all, pattern)
		}
	}
	return all
}

func (n *node) dpkgState(name string) (want, status string) {
	n.dpkg.mu.Lock()
	defer n.dpkg.mu.Unlock()
	return n.dpkg.state(name)
}

// aptMark is apt-mark hold, unhold and showhold.
func aptMark(_ context.Context, c call) int {
	_, words := splitOperands(c.Argv, "")
	if len(words) == 0 {
		_, _ = fmt.Fprintln(c.Err, "E: No operation given")
		return 100
	}
	switch words[0] {
	case "showhold":
		for _, name := range slices.Sorted(maps.Keys(c.n.heldPackages())) {
			c.print(name + "\n")
		}
		return 0
	case "hold", "unhold":
		unknown, err := c.n.setHold(words[1:], words[0] == "hold")
		for _, name := range unknown {
			_, _ = fmt.Fprintf(c.Err, "E: Unable to locate package %s\n", name)
		}
		if err != nil || len(unknown) > 0 {
			return 100
		}
		for _, name := range words[1:] {
			c.print(fmt.Sprintf("%s set %s.\n", name, map[string]string{"hold": "on hold", "unhold": "no longer on hold"}[words[0]]))
		}
		return 0
	}
	_, _ = fmt.Fprintf(c.Err, "E: Invalid operation %s\n", words[0])
	return 100
}
