// SPDX-License-Identifier: Apache-2.0

package yang_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/fabric/switchos/sonic/yang"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// examples are the sites with SONiC switches, from this folder.
var examples = []string{"csv-12500", "demo", "mi300x-roce"}

// rendered makes the configuration of every SONiC switch of an example, merged into
// what the switch has of its own: the lanes of its ports.
func rendered(t *testing.T, example string) (names []string, all []yang.DB) {
	t.Helper()
	kinds := inventory.DefaultKinds()
	designed := kinds.Fabric[roce.Name]
	designed.Design = roce.Design
	kinds.Fabric[roce.Name] = designed
	inv, diags, _ := inventory.Load(filepath.Join("../../../../examples", example), inventory.Options{Kinds: &kinds})
	if diags.HasErrors() {
		t.Fatalf("%s: %v", example, diags)
	}
	links := roce.Addresses(inv)
	for _, f := range inv.Fabrics {
		var of *roce.Links
		if i := slices.IndexFunc(links, func(l *roce.Links) bool { return l.Fabric == f }); i >= 0 {
			of = links[i]
		}
		for _, s := range sonic.Switches(inv, f, of) {
			db := parse(t, string(s.Render().JSON()))
			for _, p := range db["PORT"].(yang.DB) {
				p.(yang.DB)["lanes"] = "1,2,3,4"
			}
			names, all = append(names, s.Switch.Name), append(all, db)
		}
	}
	return names, all
}

// TestExamples: no switch of an example is refused by the rules of the models.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, example := range examples {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			names, all := rendered(t, example)
			if len(all) == 0 {
				t.Fatal("no SONiC switch")
			}
			for i, db := range all {
				for _, p := range yang.Check(db, yang.Whole) {
					t.Errorf("%s: %s", names[i], p)
				}
				if _, left, err := yang.Instance(db); err != nil || len(left) > 0 {
					t.Errorf("%s: without rules: %v, %v", names[i], left, err)
				}
			}
		})
	}
}

// models writes the YANG models of the folder IRONRAIL_SONIC_YANG, which is
// src/sonic-yang-models of sonic-buildimage, into a folder of their own: templates are
// rendered for the model type "py", as setup.py there does.
func models(t *testing.T) string {
	t.Helper()
	from := peertest.Checkout(t, "IRONRAIL_SONIC_YANG", "src/sonic-yang-models of a checkout of sonic-buildimage", "yanglint")
	to := t.TempDir()
	for _, pattern := range []string{"yang-models/*.yang", "yang-templates/*.yang.j2"} {
		list, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil || len(list) == 0 {
			t.Fatalf("%s holds no %s: %v", from, pattern, err)
		}
		for _, path := range list {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(path, ".j2") {
				b = render(b)
			}
			if err := os.WriteFile(filepath.Join(to, strings.TrimSuffix(filepath.Base(path), ".j2")), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return to
}

// render takes the else branch of {% if yang_model_type == "cvl" %}.
func render(b []byte) []byte {
	var out [][]byte
	keep := true
	for line := range bytes.Lines(b) {
		switch {
		case bytes.Contains(line, []byte("{% if")):
			keep = false
		case bytes.Contains(line, []byte("{% else")), bytes.Contains(line, []byte("{% endif")):
			keep = true
		case keep:
			out = append(out, line)
		}
	}
	return bytes.Join(out, nil)
}

// lint judges a configuration by the models and returns what yanglint says.
func lint(t *testing.T, models string, db yang.DB) (string, bool) {
	t.Helper()
	data, left, err := yang.Instance(db)
	if err != nil || len(left) > 0 {
		return strings.Join(left, ", ") + " are not parsed", false
	}
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var instance map[string]any
	if err := json.Unmarshal(data, &instance); err != nil {
		t.Fatal(err)
	}
	args := []string{"-p", models, "-t", "config"}
	loaded := []string{"sonic-device_metadata", "sonic-vrf", "sonic-vnet", "sonic-portchannel", "sonic-buffer-profile"}
	for module := range instance {
		loaded = append(loaded, strings.SplitN(module, ":", 2)[0])
	}
	slices.Sort(loaded)
	for _, m := range slices.Compact(loaded) {
		args = append(args, filepath.Join(models, m+".yang"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "yanglint", append(args, file)...).CombinedOutput()
	var said []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "libyang err") {
			said = append(said, strings.TrimSpace(line))
		}
	}
	return strings.Join(said, "; "), err == nil
}

// TestPeerYanglintExamples: the models themselves take every switch of the examples. Of
// the largest site one switch of each tier is judged.
func TestPeerYanglintExamples(t *testing.T) {
	t.Parallel()
	dir := models(t)
	for _, example := range examples {
		names, all := rendered(t, example)
		step := max(1, len(all)/40)
		for i := 0; i < len(all); i += step {
			out, ok := lint(t, dir, all[i])
			if !ok {
				t.Errorf("%s %s: %s", example, names[i], out)
				continue
			}
			t.Logf("%s %s: valid", example, names[i])
		}
	}
}

// TestPeerYanglintAgrees: the models take what Check takes, and refuse what it refuses.
func TestPeerYanglintAgrees(t *testing.T) {
	t.Parallel()
	dir := models(t)
	if out, ok := lint(t, dir, parse(t, valid)); !ok {
		t.Errorf("the valid configuration is refused: %s", out)
	}
	for _, c := range refused {
		out, ok := lint(t, dir, parse(t, strings.Replace(valid, c.old, c.with, 1)))
		if ok {
			t.Errorf("%s: the models take it", c.name)
			continue
		}
		t.Logf("%s: %s", c.name, out)
	}
}
