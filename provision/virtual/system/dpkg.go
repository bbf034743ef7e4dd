package system

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// statusFile is where dpkg keeps what is installed.
const statusFile = "var/lib/dpkg/status"

// dpkg is what is installed on a node, beside what its image brought. It is safe
// for concurrent use.
type dpkg struct {
	mu     sync.Mutex // guards what follows
	read   bool
	have   map[string]string // version by name
	locked bool              // by a running apt-get
}

// packages returns what is installed, read from the root file system once.
func (n *node) packages() map[string]string {
	d := &n.dpkg
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.read {
		b, _ := n.tree.ReadFile(statusFile) // absent: nothing was installed
		d.have, d.read = parseStatus(string(b)), true
		if n.cfg.Image != nil {
			for _, p := range n.cfg.Image.Packages {
				if d.have[p] == "" {
					d.have[p] = imageVersion
				}
			}
		}
	}
	return maps.Clone(d.have)
}

// imageVersion is what packages of an image call themselves, whose true versions
// nobody knows before the image is built.
const imageVersion = "1.0~image1"

func (n *node) hasPackage(name string) bool { return n.packages()[name] != "" }

// add records packages as installed, on the disk.
func (n *node) add(list map[string]string) error {
	have := n.packages()
	maps.Copy(have, list)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(have)) {
		fmt.Fprintf(&b, "Package: %s\nStatus: install ok installed\nArchitecture: amd64\nVersion: %s\n\n", name, have[name])
	}
	if err := n.tree.MkdirAll("var/lib/dpkg", 0o755); err != nil {
		return err
	}
	if err := n.tree.write(statusFile, []byte(b.String()), 0o644); err != nil {
		return err
	}
	n.dpkg.mu.Lock()
	defer n.dpkg.mu.Unlock()
	n.dpkg.have = have
	return nil
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

// parseStatus reads dpkg's status file.
func parseStatus(text string) map[string]string {
	have := map[string]string{}
	for stanza := range strings.SplitSeq(text, "\n\n") {
		f := fieldsOf(stanza)
		if f["Package"] != "" && f["Version"] != "" && strings.HasSuffix(f["Status"], " installed") {
			have[f["Package"]] = f["Version"]
		}
	}
	return have
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
	for _, name := range names {
		if have[name] == "" {
			_, _ = fmt.Fprintf(c.Err, "dpkg-query: no packages found matching %s\n", name)
			status = 1
			continue
		}
		c.print(strings.NewReplacer("${Package}", name, "${binary:Package}", name, "${Version}", have[name], "${db:Status-Status}", "installed",
			"${Status}", "install ok installed", "${Architecture}", "amd64").Replace(format))
	}
	return status
}
