// SPDX-License-Identifier: Apache-2.0

// Package ironrail holds the rules of the repository as tests: which packages
// may import which, and that every package says what it owns. The files are read
// with go/parser, so that the result never comes from a cache of `go list`.
package ironrail

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ironrail/ironrail/"

// layers are the floors of the house, from the ground. A package belongs to the one
// whose folder it is in, and imports from lower ones only, or from its own.
var layers = [][]string{
	{"internal"},  // words that all share: addresses, facts, errors, clocks, what goes over the wire
	{"tool"},      // other programs' output
	{"inventory"}, // the language, and what the files say
	{"engine"},    // plans, state, the executor, events, the control socket, reports: knows no stage
	{"images"},    // operating systems and drivers
	{"fabric"},    // InfiniBand, RoCE, NVLink, cables, switches
	{"validate"},  // what a node and a cluster must show
	{"draw"},      // the room on paper
	{"provision"}, // the world of a bring-up, its stages, and at its root the composition
	{"rehearse"},  // the virtual rack and the rehearsals on it
	{"web"},
	{"cmd", "bench", "examples", "docs"},
}

// rule says what the packages below From may not import although the floors allow it,
// and why.
type rule struct {
	from, not []string
	why       string
}

var (
	world  = []string{"provision/netboot", "provision/bmc", "provision/pdu", "provision/remote", "provision/agent", "provision/hub"}
	stages = []string{"provision/oob", "provision/install", "provision/host", "provision/handover", "provision/hook", "provision/supply", "fabric", "validate", "images/driver"}
	// design is what follows from a site on paper: pure, before anything is bought.
	design = []string{"inventory/power", "inventory/lock", "fabric/topology", "fabric/cable", "draw"}
)

var rules = []rule{
	{[]string{"engine"}, []string{"inventory"}, "the engine never learns what it schedules"},
	{world, []string{"engine", "inventory"}, "the world never learns why it is asked"},
	{world, stages, "the world never learns why it is asked"},
	{stages, []string{"engine/apply", "engine/state", "engine/control"}, "a stage records through its Run only"},
	{design, []string{"engine", "validate", "images/driver", "fabric/roce", "fabric/infiniband", "fabric/cabling", "provision"}, "what is drawn is computed from the inventory alone"},
	{[]string{"provision/predict"}, slices.Concat(world, stages, []string{"engine/apply", "engine/control"}), "a prediction is made from the plan and the past alone"},
	{[]string{"rehearse/virtual"}, []string{"engine", "provision/install", "provision/oob", "provision/supply", "validate", "rehearse/rehearsal"}, "the virtual rack is hardware: it knows no plan and no stage"},
}

// owned modules are imported in one place.
var owned = map[string][]string{
	"github.com/google/go-containerregistry": {"cmd/ironrail-release/", "images/oci/"},
	"github.com/pin/tftp":                    {"provision/netboot/"},
	"github.com/bmc-toolbox/bmclib":          {"provision/bmc/"},
	"github.com/stmcginnis/gofish":           {"provision/bmc/"},
	"github.com/bougou/go-ipmi":              {"provision/bmc/", "rehearse/virtual/ipmi/"},
	"github.com/insomniacslk/dhcp":           {"provision/netboot/", "rehearse/virtual/firmware/"},
	"github.com/gosnmp/gosnmp":               {"provision/pdu/", "rehearse/virtual/power/"},
	"github.com/Mellanox/rdmamap":            {"provision/agent/"},
	"github.com/spf13/cobra":                 {"cmd/"},
	"github.com/prometheus/client_golang":    {"web/metrics/"},
	"go.etcd.io/bbolt":                       {"engine/state/"},
	"go.etcd.io/etcd":                        {"engine/state/etcd/"},
	"google.golang.org/grpc":                 {"engine/state/etcd/"},
	"github.com/hashicorp/hcl/v2/hclparse":   {"inventory/"},
	"testing/synctest":                       {"rehearse/virtual/bubble/"},
	"mvdan.cc/sh/v3":                         {"rehearse/virtual/system/shell/"},
}

// under reports whether a package path is p or lies below it.
func under(path, p string) bool { return path == p || strings.HasPrefix(path, p+"/") }

// files parses every Go file of the repository; set, if given, learns their lines.
func files(t *testing.T, mode parser.Mode, see func(dir, file string, f *ast.File), sets ...*token.FileSet) {
	t.Helper()
	set := token.NewFileSet()
	if len(sets) > 0 {
		set = sets[0]
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, mode)
		if err != nil {
			return err
		}
		see(filepath.ToSlash(filepath.Dir(path)), path, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// floor is the number of a folder's layer, from the ground; negative: it has none.
func floor(dir string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.ContainsFunc(l, func(f string) bool { return under(dir, f) }) })
}

// TestFloors: every package is on one floor, and imports go down or stay, those of tests
// as well.
func TestFloors(t *testing.T) {
	t.Parallel()
	seen := 0
	files(t, parser.ImportsOnly, func(dir, file string, f *ast.File) {
		if floor(dir) < 0 && dir != "." {
			t.Errorf("%s is on no floor: put its folder into layers", dir)
		}
		for _, imp := range f.Imports {
			path := strings.Trim(imp.Path.Value, `"`)
			checkOwned(t, dir, file, path)
			if !strings.HasPrefix(path, module) {
				continue
			}
			path, seen = strings.TrimPrefix(path, module), seen+1
			if floor(path) > floor(dir) {
				t.Errorf("%s imports %s, which is above it", file, path)
			}
			if !strings.HasSuffix(file, "_test.go") {
				checkRules(t, dir, file, path)
			}
		}
	})
	if seen < 1000 {
		t.Fatalf("only %d imports were seen: this test reads the wrong folder", seen)
	}
}

// TestNoFolderIsTheHouse: no folder holds more than 30 % of the lines.
func TestNoFolderIsTheHouse(t *testing.T) {
	t.Parallel()
	lines, all := map[string]int{}, 0
	files(t, parser.PackageClauseOnly, func(dir, file string, _ *ast.File) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		top, _, _ := strings.Cut(dir, "/")
		n := bytes.Count(b, []byte("\n"))
		lines[top], all = lines[top]+n, all+n
	})
	for dir, n := range lines {
		if 100*n > 30*all {
			t.Errorf("%s holds %d of %d lines", dir, n, all)
		}
	}
}

func checkOwned(t *testing.T, dir, file, path string) {
	t.Helper()
	if strings.HasSuffix(file, "_test.go") {
		return
	}
	for mod, homes := range owned {
		if under(path, mod) && !slices.ContainsFunc(homes, func(home string) bool { return strings.HasPrefix(dir+"/", home) }) {
			t.Errorf("%s imports %s, which only %s may", file, path, strings.Join(homes, " and "))
		}
	}
}

func checkRules(t *testing.T, dir, file, path string) {
	t.Helper()
	for _, r := range rules {
		for _, from := range r.from {
			for _, not := range r.not {
				if under(dir, from) && under(path, not) && !under(path, from) && !below(path, r.from) {
					t.Errorf("%s imports %s: %s", file, path, r.why)
				}
			}
		}
	}
}

// below reports whether path belongs to the layer itself: its packages know
// each other.
func below(path string, layer []string) bool {
	for _, l := range layer {
		if under(path, l) {
			return true
		}
	}
	return false
}

func TestEveryPackageSaysWhatItOwns(t *testing.T) {
	t.Parallel()
	documented, seen := map[string]bool{}, map[string]bool{}
	files(t, parser.PackageClauseOnly|parser.ParseComments, func(dir, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") && dir != "." {
			return
		}
		seen[dir] = true
		if f.Doc != nil && len(strings.TrimSpace(f.Doc.Text())) > 20 {
			documented[dir] = true
		}
	})
	for dir := range seen {
		if !documented[dir] {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

func TestNoInitFunctions(t *testing.T) {
	t.Parallel()
	files(t, 0, func(_, file string, f *ast.File) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init function: main builds everything and passes it down", file)
			}
		}
	})
}

// sizes are how many lines a package may have, without its tests: one by its name,
// and each below it.
var sizes = []struct {
	root        string
	most, below int
}{
	{"validate", 1500, 1000}, // the stage and its list of checks; a check, or what some share
}

func TestPackagesStaySmall(t *testing.T) {
	t.Parallel()
	lines := map[string]int{}
	files(t, parser.PackageClauseOnly, func(dir, file string, _ *ast.File) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		lines[dir] += bytes.Count(bytes.TrimPrefix(src, []byte(licence)), []byte("\n"))
	})
	for _, s := range sizes {
		if lines[s.root] == 0 {
			t.Errorf("there is no package %s", s.root)
		}
		for dir, n := range lines {
			most := s.below
			if dir == s.root {
				most = s.most
			}
			if under(dir, s.root) && n > most {
				t.Errorf("package %s has %d lines, and %d are the most: give a part of what it owns a package", dir, n, most)
			}
		}
	}
}
