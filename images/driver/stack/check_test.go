// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/inventory"
)

// TestCheckRepositories: a key that apt would refuse is found when the site is loaded,
// at its own place.
func TestCheckRepositories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, err := repo.LoadKey(filepath.Join(dir, "vendor"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"good.asc": string(key.Public()), "cut.asc": string(key.Public()[:100]), "ssh.asc": "ssh-ed25519 AAAA ops\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ key, says string }{
		{`key = file("good.asc")`, ""},
		{``, ""},
		{`key = ""`, "is empty"},
		{`key = file("cut.asc")`, "is cut off or damaged"},
		{`key = file("ssh.asc")`, "is no OpenPGP public key"},
	} {
		site := fmt.Sprintf("site \"s\" {}\ndriver \"inbox\" \"d\" {\n  packages = [\"rdma-core\"]\n  repository {\n    url = \"http://192.0.2.1/\"\n    %s\n  }\n}\n", c.key)
		if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(site), 0o600); err != nil {
			t.Fatal(err)
		}
		_, found, _ := inventory.Load(dir, inventory.Options{Checks: []inventory.Check{stack.CheckRepositories}})
		var of []string
		for _, d := range found {
			if d.Check == "driver.repository" {
				of = append(of, fmt.Sprintf("%d:%d %s", d.Subject.Start.Line, d.Subject.Start.Column, d.Detail))
			}
		}
		if c.says == "" && len(of) > 0 || c.says != "" && (len(of) != 1 || !strings.HasPrefix(of[0], "6:11 ") || !strings.Contains(of[0], c.says)) {
			t.Errorf("%s: %q, want %q; all: %v", c.key, of, c.says, found)
		}
	}
}
