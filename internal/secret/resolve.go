// SPDX-License-Identifier: Apache-2.0

package secret

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxSecret bounds what is read as one secret, in bytes.
const maxSecret = 64 << 10

// schemes are the sources that a Resolver reads, with the form of each.
var schemes = map[string]string{
	"env":  "env:NAME",
	"file": "file:PATH",
	"csv":  "csv:FILE#ROW/COLUMN",
}

// Resolver turns references into secrets. Relative paths are below Dir, the
// site's folder. Environ looks up environment variables; only cmd gives it one.
type Resolver struct {
	Dir     string
	Environ func(string) (string, bool)
}

// Check reports whether a reference is of a form that Resolve reads, without
// looking at the secret.
func (r Ref) Check() error {
	scheme, rest, ok := strings.Cut(string(r), ":")
	form, known := schemes[scheme]
	switch {
	case !ok || !known:
		return fmt.Errorf("secret %q is of a kind that this version does not read; it reads env:NAME, file:PATH and csv:FILE#ROW/COLUMN", r)
	case rest == "", scheme == "csv" && (!strings.Contains(rest, "#") || !strings.Contains(rest[strings.Index(rest, "#"):], "/")):
		return fmt.Errorf("secret %q is not of the form %s", r, form)
	}
	return nil
}

// Resolve reads the secret that ref points at. Errors name the reference and
// never the secret. The empty Ref is the zero Value.
func (v Resolver) Resolve(ref Ref) (Value, error) {
	if ref == "" {
		return Value{}, nil
	}
	if err := ref.Check(); err != nil {
		return Value{}, err
	}
	scheme, rest, _ := strings.Cut(string(ref), ":")
	var s string
	var err error
	switch scheme {
	case "env":
		s, err = v.env(rest)
	case "file":
		s, err = v.file(rest)
		s = strings.TrimRight(s, "\r\n")
	case "csv":
		s, err = v.csv(rest)
	}
	if err != nil {
		return Value{}, fmt.Errorf("secret %q: %w", ref, err)
	}
	if s == "" {
		return Value{}, fmt.Errorf("secret %q is empty", ref)
	}
	return NewValue(s), nil
}

func (v Resolver) env(name string) (string, error) {
	if v.Environ != nil {
		if s, ok := v.Environ(name); ok {
			return s, nil
		}
	}
	return "", fmt.Errorf("environment variable %s is not set", name)
}

func (v Resolver) file(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(v.Dir, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() > maxSecret && filepath.Ext(path) != ".csv" {
		return "", fmt.Errorf("file has %d bytes; a secret has at most %d", info.Size(), maxSecret)
	}
	b, err := os.ReadFile(path)
	return string(b), err
}

// csv reads FILE#ROW/COLUMN: the row in which some cell is ROW, the column of
// that header.
func (v Resolver) csv(rest string) (string, error) {
	path, cell, _ := strings.Cut(rest, "#")
	slash := strings.LastIndexByte(cell, '/')
	row, column := cell[:slash], cell[slash+1:]
	text, err := v.file(path)
	if err != nil {
		return "", err
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		return "", fmt.Errorf("not a CSV file with a header: %w", err)
	}
	for c, name := range rows[0] {
		if name != column {
			continue
		}
		for _, r := range rows[1:] {
			for i, field := range r {
				if i != c && field == row {
					return r[c], nil
				}
			}
		}
		return "", fmt.Errorf("no row has a cell %q", row)
	}
	return "", fmt.Errorf("no column is called %q", column)
}
