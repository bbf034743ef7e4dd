// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/services"
)

// TestFindController: ironrail runs on the controller that is no standby, and of several
// it takes none.
func TestFindController(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../examples/hgx-h100/site.hcl")
	if err != nil {
		t.Fatal(err)
	}
	const one, on = `controller "head1" {`, "run_on = [controller.head1]"
	two := "controller \"head0\" {\n  address = \"10.20.0.9\"\n}\n" + one
	for _, c := range []struct{ name, controllers, runOn, want, err string }{
		{"one", one, on, "head1", ""},
		{"a standby", two, "run_on = [controller.head1, controller.head0]", "head1", ""},
		{"the other is the master", two, "run_on = [controller.head0, controller.head1]", "head0", ""},
		{"a second without a task", two, on, "", "nothing says on which of head0, head1"},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("../examples/hgx-h100")); err != nil {
			t.Fatal(err)
		}
		changed := strings.NewReplacer(one, c.controllers, on, c.runOn).Replace(string(text))
		if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		inv, diags, _ := Load(dir, inventory.Options{})
		if diags.HasErrors() {
			t.Fatal(c.name, diags)
		}
		got, err := services.FindController(inv)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || errkind.Action(err) == "" || !services.CheckControllers(inv).HasErrors() {
				t.Errorf("%s: got %v", c.name, err)
			}
			continue
		}
		if err != nil || got.Name != c.want || services.CheckControllers(inv).HasErrors() {
			t.Errorf("%s: got %v, %v", c.name, got, err)
		}
	}
}
