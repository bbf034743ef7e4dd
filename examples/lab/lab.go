// SPDX-License-Identifier: Apache-2.0

// Package lab carries the lab's list of Debian packages, so that the list is in
// one place: packages.txt, beside the site that needs them.
package lab

import (
	"bufio"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed packages.txt
var list string

// Use is who needs a package.
type Use string

// The uses.
const (
	Lab  Use = "lab"  // to bring the lab up
	Test Use = "test" // to test against peers that are not ours
)

// Package is one Debian package.
type Package struct {
	Name string
	Use  Use
	Why  string
}

// Packages returns the list in the file's order.
func Packages() ([]Package, error) { return parse(list) }

func parse(text string) ([]Package, error) {
	var out []Package
	in := bufio.NewScanner(strings.NewReader(text))
	for n := 1; in.Scan(); n++ {
		line := strings.TrimSpace(in.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 3 || Use(f[1]) != Lab && Use(f[1]) != Test {
			return nil, fmt.Errorf("packages.txt line %d: want package, lab or test, and what for", n)
		}
		out = append(out, Package{Name: f[0], Use: Use(f[1]), Why: strings.Join(f[2:], " ")})
	}
	return out, in.Err()
}
