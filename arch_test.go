// Package ironrail holds the rules of the repository as tests: which packages
// may import which, and that every package says what it owns. The files are read
// with go/parser, so that the result never comes from a cache of `go list`.
package ironrail

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ironrail/ironrail/"

// Layers of the repository. A package belongs to the longest matching prefix.
var (
	leaves = []string{"internal/addr", "internal/subject", "internal/fact", "internal/errkind", "internal/fold", "internal/clock", "internal/network", "internal/secret", "internal/manifest", "tool"}
	engine = []string{"engine/plan", "engine/stage", "engine/state", "engine/apply", "engine/event", "engine/control", "engine/report"}
	world  = []string{"provision/netboot", "provision/bmc", "provision/pdu", "provision/remote", "provision/agent", "provision/hub", "internal/onnode"}
	stages = []string{"provision/oob", "provision/install", "provision/handover", "provision/hook", "provision/supply", "fabric", "validate", "images/driver"}
	// design is what follows from a site on paper: pure, before anything is bought.
	design = []string{"inventory/power", "inventory/lock", "fabric/topology", "fabric/cable", "draw"}
	// The virtual rack, and who may know it: nothing that detects may.
	simulator = []string{"rehearse/virtual", "rehearse/rehearsal"}
)

// rule says what the packages below From may not import, and why.
type rule struct {
	from, not []string
	why       string
}

var rules = []rule{
	{leaves, concat(engine, world, stages, []string{"inventory", "cmd", "images/store", "images/debian"}), "a leaf knows nobody above it"},
	{design, concat(engine, world, []string{"provision/oob", "provision/install", "provision/handover", "provision/supply", "rehearse/rehearsal", "provision/predict", "validate", "images/driver", "fabric/roce", "fabric/infiniband", "fabric/cabling", "cmd"}), "what is drawn is computed from the inventory alone"},
	{[]string{"inventory"}, concat(engine, world, stages, []string{"cmd", "images/store", "images/debian", "images/repo"}), "the language knows no engine and no world"},
	{engine, concat(world, stages, []string{"inventory", "cmd"}), "the engine never learns what it schedules"},
	{world, concat(engine, stages, []string{"inventory", "cmd"}), "the world never learns why it is asked"},
	{stages, []string{"cmd", "engine/apply", "engine/state", "engine/control"}, "a stage records through its Run only"},
	{concat(leaves, engine, world, stages, []string{"inventory", "images"}), []string{"cmd"}, "only cmd prints, exits and reads flags"},
	{concat(leaves, engine, world, stages, []string{"inventory", "images", "provision/predict"}), simulator, "what finds a fault may not know where it was planted"},
	{[]string{"rehearse/virtual"}, concat(engine, []string{"provision/install", "provision/oob", "provision/supply", "validate", "cmd", "rehearse/rehearsal"}), "the virtual rack is hardware: it knows no plan and no stage"},
	{[]string{"provision/predict"}, concat(world, stages, []string{"engine/apply", "engine/control", "cmd"}), "a prediction is made from the plan and the past alone"},
	{[]string{"engine/why"}, concat(world, stages, simulator, []string{"provision/predict", "cmd"}), "why is answered from what others have seen"},
}

// owned modules are imported in one place.
var owned = map[string][]string{
	"github.com/pin/tftp":                  {"provision/netboot/"},
	"github.com/bmc-toolbox/bmclib":        {"provision/bmc/"},
	"github.com/stmcginnis/gofish":         {"provision/bmc/"},
	"github.com/bougou/go-ipmi":            {"provision/bmc/", "rehearse/virtual/ipmi/"},
	"github.com/insomniacslk/dhcp":         {"provision/netboot/", "rehearse/virtual/firmware/"},
	"github.com/gosnmp/gosnmp":             {"provision/pdu/", "rehearse/virtual/power/"},
	"github.com/Mellanox/rdmamap":          {"provision/agent/"},
	"github.com/spf13/cobra":               {"cmd/"},
	"go.etcd.io/bbolt":                     {"engine/state/"},
	"github.com/hashicorp/hcl/v2/hclparse": {"inventory/"},
	"testing/synctest":                     {"rehearse/virtual/bubble/"},
}

func concat(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
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

func TestImportsGoDownwards(t *testing.T) {
	t.Parallel()
	seen := 0
	files(t, parser.ImportsOnly, func(dir, file string, f *ast.File) {
		for _, imp := range f.Imports {
			path := strings.Trim(imp.Path.Value, `"`)
			checkOwned(t, dir, file, path)
			if strings.HasPrefix(path, module) && !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(dir, "test") {
				seen++
				checkRules(t, dir, file, strings.TrimPrefix(path, module))
			}
		}
	})
	if seen < 50 {
		t.Fatalf("only %d imports were seen: this test reads the wrong folder", seen)
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
