// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/provision"
)

// inits are the first sites, by kind. @SITE@ and @NODES@ in them are replaced; a line
// "@include NAME@" stands for a block that several kinds have, inits/parts/NAME.hcl.
//
//go:embed inits/*.hcl inits/parts/*.hcl
var inits embed.FS

// includes are the lines of a first site that stand for a part.
var includes = lazyregexp.New(`(?m)^@include ([a-z0-9-]+)@\n`)

// readTemplate returns the first site of a kind with its parts.
func readTemplate(kind string) (text string, err error) {
	b, err := inits.ReadFile("inits/" + kind + ".hcl")
	if err != nil {
		return "", err
	}
	text = includes.ReplaceAllStringFunc(string(b), func(line string) string {
		part, e := inits.ReadFile("inits/parts/" + includes.FindStringSubmatch(line)[1] + ".hcl")
		err = errors.Join(err, e)
		return string(part)
	})
	return text, err
}

// initKind is one kind of first site: how its nodes fill a rack.
type initKind struct {
	name, about string
	units       []int // where the nodes of a full rack stand, from the first
}

func (k initKind) most() int { return len(k.units) }

// node is the name of a node of the first site.
func (k initKind) node(i int) string { return fmt.Sprintf("r01-u%02d", k.units[i]) }

// initKinds in the order of the help; the first is the default.
var initKinds = []initKind{
	{name: "cpu", about: "1 U nodes with IPMI and a 100G RoCE rail", units: []int{1, 2, 3, 4, 5, 6}},
	{name: "hgx-h100", about: "8 U nodes of 8 H100, eight InfiniBand rails", units: []int{1, 9, 17, 25}},
	{name: "mi300x", about: "8 U nodes of 8 MI300X, eight RoCE rails", units: []int{1, 9, 17, 25}},
	{
		name: "nvl72", about: "1 U trays of a GB200 NVL72 rack: 4 GPUs, liquid, NVLink",
		units: []int{7, 8, 9, 10, 11, 12, 13, 14, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33},
	},
}

func (a *app) initCommand() *cobra.Command {
	kind, nodes := initKinds[0].name, 2
	var kinds page
	for _, k := range initKinds {
		kinds.linef("  %-9s %s, up to %d", k.name, k.about, k.most())
	}
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a first site to start from",
		Long: `Write a small site with comments that explain it: site.hcl, manifest.csv (the
vendor's list of nodes) and .gitignore. It is one rack (nvl72: and that of its
switches), and passes check and rehearse as it is. The folder is made when it is
not there; without DIR it is that of --chdir.

Kinds of sites:
` + kinds.String() + `
Nothing is ever overwritten.`,
		Example: "  ironrail init site\n  ironrail init --kind hgx-h100 --nodes 4 site",
		Args:    asUsage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			dir := a.dir
			if len(args) == 1 {
				dir = filepath.Join(a.dir, args[0])
				if filepath.IsAbs(args[0]) {
					dir = args[0]
				}
			}
			for _, k := range initKinds {
				if k.name != kind {
					continue
				}
				if nodes < 1 || nodes > k.most() {
					return wrongUsage(c, fmt.Errorf("--nodes is 1 to %d for kind %s", k.most(), kind))
				}
				return a.init(dir, k, nodes)
			}
			return wrongUsage(c, fmt.Errorf("--kind %q is not one of: %s", kind, strings.Join(initNames(), ", ")))
		},
	}
	c.Flags().StringVar(&kind, "kind", kind, "what the nodes are: "+strings.Join(initNames(), ", "))
	c.Flags().IntVar(&nodes, "nodes", nodes, "how many")
	return c
}

func initNames() (names []string) {
	for _, k := range initKinds {
		names = append(names, k.name)
	}
	return names
}

// init writes the files of a first site, all of them or none.
func (a *app) init(dir string, k initKind, nodes int) error {
	name, err := siteName(dir)
	if err != nil {
		return err
	}
	text, err := readTemplate(k.name)
	if err != nil {
		return err
	}
	site := strings.NewReplacer("@SITE@", name, "@NODES@", strconv.Itoa(nodes)+" "+pluralOf(nodes, "node", "nodes")).Replace(text)
	files := []struct{ name, text string }{
		{"site.hcl", string(hclwrite.Format([]byte(site)))}, // a longer name moves comments
		{"manifest.csv", writeManifest(k, nodes)}, {".gitignore", provision.StateFolder + "/\n"},
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := inTheWay(dir); err != nil {
		return err
	}
	var written []string
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := writeNew(path, f.text); err != nil {
			return err
		}
		written = append(written, path)
	}
	if a.json {
		return a.printJSON(struct {
			Files []string `json:"files"`
		}{written})
	}
	a.showFirst(dir, k, written)
	return nil
}

// inTheWay reports files that a first site would overwrite, or would be one site
// with.
func inTheWay(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var there []string
	for _, e := range entries {
		switch n := e.Name(); {
		case n == "manifest.csv", n == ".gitignore", strings.HasSuffix(n, ".hcl"), strings.HasSuffix(n, ".hcl.json"):
			there = append(there, filepath.Join(dir, n))
		}
	}
	if len(there) == 0 {
		return nil
	}
	return errkind.New(errkind.Refused, "%s %s there already, and nothing is overwritten: no file was written", strings.Join(there, ", "), pluralOf(len(there), "is", "are")).
		Do("Name another folder: `ironrail init DIR`.")
}

// writeNew writes a file that must not be there.
func writeNew(path, text string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return errkind.New(errkind.Refused, "%s is there already, and nothing is overwritten", path).Do("Name another folder: `ironrail init DIR`.")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.WriteString(text)
	return err
}

// showFirst says what was written and what to do next.
func (a *app) showFirst(dir string, k initKind, written []string) {
	var out page
	for _, path := range written {
		out.linef("%s", path)
	}
	out.to(a.out)
	at := ""
	if dir != "." {
		at = "-C " + dir + " "
	}
	a.sayf("")
	a.sayf("Read site.hcl, and try:")
	a.sayf("  ironrail %scheck", at)
	a.sayf("  ironrail %srehearse", at)
	a.sayf("  ironrail %srehearse --fault kind=missing-dimm,node=%s", at, k.node(0))
}

// writeManifest returns a vendor's list. The MACs are locally administered (IEEE 802), so
// that they are nobody's.
func writeManifest(k initKind, nodes int) string {
	var p page
	p.linef("rack,unit,serial,bmc_mac,boot_mac")
	for i := range nodes {
		p.linef("r01,%d,MADE%04d,02:00:00:00:01:%02x,02:00:00:00:02:%02x", k.units[i], i+1, i+1, i+1)
	}
	return p.String()
}

// siteName makes a site's name of its folder's: lower-case letters, digits and
// hyphens, as in a host name.
func siteName(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, filepath.Base(abs)), "-")
	if name == "" || len(name) > 40 {
		name = "site"
	}
	return name, nil
}
