// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/ironrail/ironrail/internal/durable"
)

// Bytes is the text of a lock file: the same for the same records, in whatever
// order they are.
func (l *Lock) Bytes() []byte {
	lines := make([]string, 0, len(l.Addresses)+len(l.Images)+len(l.Closures))
	for _, a := range l.Addresses {
		lines = append(lines, "address "+a.Fabric+" "+a.Owner+" "+a.Prefix.String())
	}
	for _, i := range l.Images {
		lines = append(lines, "image "+i.Name+" "+i.Inputs+" "+i.Digest)
	}
	for _, c := range l.Closures {
		if c.Inputs != "" {
			lines = append(lines, "closure "+c.Driver+" "+c.Image+" "+c.Inputs)
		}
		for _, p := range c.Packages {
			lines = append(lines, "package "+c.Driver+" "+c.Image+" "+p.Name+" "+p.Version+" "+p.Arch+" "+p.Digest)
		}
	}
	slices.Sort(lines)
	var b bytes.Buffer
	b.WriteString(header + " " + strconv.Itoa(Format) + "\n# Written by `ironrail lock`. Keep it in git; do not edit it.\n")
	for _, line := range lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// Write writes the lock of the site in dir, mode 0644, unless the file holds the
// same already; an empty lock is not written where there is no file. The file is
// replaced in one step and synced, so that a crash leaves the old or the new one.
func (l *Lock) Write(dir string) (changed bool, err error) {
	path, text := filepath.Join(dir, File), l.Bytes()
	was, err := os.ReadFile(path)
	if err == nil && bytes.Equal(was, text) || errors.Is(err, os.ErrNotExist) && l.Empty() {
		return false, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("lock file: %w", err)
	}
	if err := durable.Write(path, text, 0o644); err != nil {
		return false, fmt.Errorf("lock file: %w", err)
	}
	return true, nil
}
