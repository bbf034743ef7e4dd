// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Disk is one row of a file of disks, as `ironrail-lab up --disks` reads it.
type Disk struct {
	Machine, Name, PCI, Serial, Size, Block string
}

// SystemDisk is the name of the disk that every machine has without a row.
const SystemDisk = "os"

// writeDisks writes the file of disks and returns its path.
func (l *Lab) writeDisks(ds []Disk) string {
	l.t.Helper()
	rows := [][]string{{"machine", "name", "pci", "serial", "size", "block"}}
	for _, d := range ds {
		rows = append(rows, []string{d.Machine, d.Name, d.PCI, d.Serial, d.Size, d.Block})
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		l.t.Fatal(err)
	}
	path := filepath.Join(l.dir, "disks.csv")
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// SetDisks moves the disks of machines, which must have no power: the whole file of
// disks is replaced, and what a disk holds stays with its name.
func (l *Lab) SetDisks(ds []Disk) {
	l.t.Helper()
	if out := l.lab("disks", "--dir", l.machines, "--file", l.writeDisks(ds)); out.Code != 0 {
		l.t.Fatalf("disks: %s", out)
	}
}

// DiskFile is the raw file behind a disk.
func (l *Lab) DiskFile(machine, name string) string {
	if name == SystemDisk {
		return filepath.Join(l.machines, machine, "disk.raw")
	}
	return filepath.Join(l.machines, machine, "disk-"+name+".raw")
}

// Fill runs a shell command with the real tools on the disk of a machine without
// power; $D is its file.
func (l *Lab) Fill(machine, name, command string) {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), "bash", "-euc", command)
	cmd.Env = append(os.Environ(), "D="+l.DiskFile(machine, name))
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("%s/%s: %s: %v\n%s", machine, name, command, err, out)
	}
}

// Hash is the SHA-256 of all bytes of a disk that are not zero, and of where they
// stand, so that a disk of many GiB with little on it is soon read.
func (l *Lab) Hash(machine, name string) string {
	l.t.Helper()
	sum, err := hashDisk(l.DiskFile(machine, name))
	if err != nil {
		l.t.Fatalf("%s/%s: %v", machine, name, err)
	}
	return sum
}

// The whences of lseek(2) for sparse files.
const (
	seekData = 3
	seekHole = 4
)

const hashBlock = 64 << 10

func hashDisk(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	h, block, zero := sha256.New(), make([]byte, hashBlock), make([]byte, hashBlock)
	fmt.Fprintf(h, "%d\n", info.Size())
	for at := int64(0); ; {
		from, err := f.Seek(at, seekData)
		if errors.Is(err, syscall.ENXIO) { // no more data
			return fmt.Sprintf("%x", h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
		end, err := f.Seek(from, seekHole)
		if err != nil {
			return "", err
		}
		for at = from - from%hashBlock; at < end; at += hashBlock {
			n, err := f.ReadAt(block, at)
			if err != nil && !errors.Is(err, io.EOF) {
				return "", err
			}
			if !bytes.Equal(block[:n], zero[:n]) {
				_ = binary.Write(h, binary.BigEndian, at) // a hash takes all
				h.Write(block[:n])
			}
		}
	}
}

// Unchanged remembers disks and returns a function that fails the test when one byte
// of them has changed since. Each disk is "machine/name".
func (l *Lab) Unchanged(disks ...string) (check func()) {
	l.t.Helper()
	sum := func(disk string) string {
		machine, name, _ := strings.Cut(disk, "/")
		return l.Hash(machine, name)
	}
	before := map[string]string{}
	for _, d := range disks {
		before[d] = sum(d)
		l.t.Logf("before %s  %s", before[d], d)
	}
	return func() {
		l.t.Helper()
		for _, d := range disks {
			now := sum(d)
			if l.t.Logf("after  %s  %s", now, d); now != before[d] {
				l.t.Errorf("disk %s has changed", d)
			}
		}
	}
}
