// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// stateFolder is that of the product, beside the site's files.
const stateFolder = ".ironrail"

// copySite copies the site with its edits. Images and repositories are linked,
// not copied: they are never written again.
func (l *Lab) copySite(o Options) {
	l.t.Helper()
	built := filepath.Join(l.source(), stateFolder)
	for _, part := range []string{"images", "repo", "keys"} {
		err := link(filepath.Join(built, part), filepath.Join(l.site, stateFolder, part))
		if errors.Is(err, fs.ErrNotExist) {
			l.t.Skip("needs the lab's image: run make lab-image")
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(l.site, stateFolder, "keys"), 0o700); err != nil {
		l.t.Fatal(err)
	}
	hcl, err := os.ReadFile(filepath.Join(l.source(), "site.hcl"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.write("site.hcl", string(hcl))
	for _, e := range o.HCL {
		l.Edit(e)
	}
	l.writeCSV(o)
}

// link makes a folder of hard links. Keys are linked too: nothing rewrites them.
func link(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			old, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(old, target)
		}
		return os.Link(path, target)
	})
}

// writeCSV writes machines.csv with exactly the machines of this lab.
func (l *Lab) writeCSV(o Options) {
	l.t.Helper()
	rows := l.rows("machines.csv")
	if len(o.Machines) > 0 {
		all := rows
		for _, more := range []string{"machines-http.csv", "machines-disks.csv", "machines-arm64.csv", "machines-secure.csv", "machines-tpm.csv", "machines-tagged.csv"} {
			all = append(all, l.rows(more)[1:]...)
		}
		rows = slices.DeleteFunc(all, func(r []string) bool { return r[0] != "name" && !slices.Contains(o.Machines, r[0]) })
	}
	if o.CSV != nil {
		rows = o.CSV(rows)
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		l.t.Fatal(err)
	}
	l.write("machines.csv", b.String())
}

func (l *Lab) rows(name string) [][]string {
	l.t.Helper()
	f, err := os.Open(filepath.Join(l.source(), name))
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		l.t.Fatal(err)
	}
	return rows
}

// Swap exchanges one column of the rows of two machines.
func Swap(column, a, b string) func([][]string) [][]string {
	return func(rows [][]string) [][]string {
		at := slices.Index(rows[0], column)
		find := func(name string) int {
			return slices.IndexFunc(rows, func(r []string) bool { return r[0] == name })
		}
		x, y := find(a), find(b)
		rows[x][at], rows[y][at] = rows[y][at], rows[x][at]
		return rows
	}
}

// Edit changes site.hcl, as an operator does between two runs.
func (l *Lab) Edit(e Edit) {
	l.t.Helper()
	b, err := os.ReadFile(filepath.Join(l.site, "site.hcl"))
	if err != nil {
		l.t.Fatal(err)
	}
	if n := strings.Count(string(b), e.Old); n == 0 || n > 1 && !e.All {
		l.t.Fatalf("site.hcl has %q %d times", e.Old, n)
	}
	l.write("site.hcl", strings.ReplaceAll(string(b), e.Old, e.New))
}

func (l *Lab) write(name, text string) {
	l.t.Helper()
	if err := os.MkdirAll(l.site, 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.site, name), []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// Program writes an executable script beside the site and returns its path.
func (l *Lab) Program(name, text string) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // it is to be executed
		l.t.Fatal(err)
	}
	return path
}

// File reads a file of the lab's folder; "" when it is not there.
func (l *Lab) File(name string) string {
	l.t.Helper()
	b, err := os.ReadFile(filepath.Join(l.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.t.Fatal(err)
	}
	return string(b)
}

// LoseState moves the journal away, as if the state folder had been lost but for
// images and keys, and returns a function that puts it back.
func (l *Lab) LoseState() (restore func()) {
	l.t.Helper()
	at := filepath.Join(l.site, stateFolder)
	move := func(from, to string) {
		if err := os.Rename(filepath.Join(at, from), filepath.Join(at, to)); err != nil {
			l.t.Fatal(err)
		}
	}
	move("state.db", "state.db.lost")
	return func() {
		_ = os.Remove(filepath.Join(at, "state.db"))
		move("state.db.lost", "state.db")
	}
}

// AddHardware adds hardware to the lab's site that is as its UEFI machine, with further attributes
// and blocks.
func AddHardware(name, further string) Edit {
	const before = "hardware \"lab-uefi\" {\n"
	return Edit{Old: before, New: "hardware \"" + name + "\" {\n  product      = \"" + name + "\"\n" + further + `  vendor       = "ironrail"
  rack_units   = 1
  boot         = "uefi"
  power {
    typical  = "100W"
    max      = "150W"
    supplies = 1
    required = 1
  }
  cpu {
    sockets = 1
    cores   = 1
  }
  memory {
    size = "1GiB"
  }
  disk "os" {
    type  = "virtio"
    count = 1
    size  = ">= 4GB"
  }
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:00:03.0"]
    boot    = true
  }
  nic "rail" {
    fabric        = fabric.rail
    software_rdma = "rxe"
    ports         = [{ rail = 0, pci = "0000:00:04.0", panel = "rail 0" }]
  }
}

` + before}
}
