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

// TestRepositorySuite: a repository of dnf has no suite, and one of apt may have one.
func TestRepositorySuite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ kind, attribute, says string }{
		"rhel":                {"rhel", `suite = "jammy"`, "has no suite there"},
		"components":          {"rhel", `components = ["main"]`, "has no components there"},
		"rhel, by its folder": {"rhel", "", ""},
		"debian":              {"debian", `suite = "jammy"`, ""},
	} {
		dir := t.TempDir()
		site := fmt.Sprintf(`
site "s" {}
image "%s" "os" {
  release = "%s"
}
driver "inbox" "d" {
  packages = ["rdma-core"]
  repository {
    url = "http://192.0.2.1/"
    %s
  }
}
`, c.kind, map[string]string{"rhel": "9", "debian": "bookworm"}[c.kind], c.attribute)
		if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(site), 0o600); err != nil {
			t.Fatal(err)
		}
		inv, _, _ := inventory.Load(dir, inventory.Options{})
		inv.Nodes = []*inventory.Node{{Name: "none"}, {Name: "n1", Image: inv.Images[0], Drivers: inv.Drivers}, {Name: "n2", Image: inv.Images[0], Drivers: inv.Drivers}}
		found := stack.CheckRepositories(inv)
		if c.says == "" && len(found) > 0 || c.says != "" && (len(found) != 1 || found[0].Subject.Start.Line != 10 || len(found[0].Related) != 1 || !strings.Contains(found[0].Detail, c.says)) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestRepositoryArchitecture: a repository for other processors than those of the image is
// found with both places, by what its vendor calls them in the path.
func TestRepositoryArchitecture(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ arch, url, says string }{
		"x86":                   {"amd64", "http://192.0.2.1/cuda/debian12/x86_64/", ""},
		"Grace":                 {"arm64", "http://192.0.2.1/cuda/debian12/sbsa/", ""},
		"DOCA":                  {"arm64", "http://192.0.2.1/doca/3.2.1/debian12/arm64-sbsa/", ""},
		"a path that says none": {"arm64", "http://192.0.2.1/mirror/", ""},
		"x86 for Grace":         {"arm64", "http://192.0.2.1/cuda/debian12/x86_64/", "has x86_64 in its path, that of amd64, and image \"os\", of node \"a\", is of arm64"},
		"Grace for x86":         {"amd64", "http://192.0.2.1/cuda/debian12/sbsa/", "has sbsa in its path, that of arm64"},
	} {
		site := fmt.Sprintf(`site "s" {}
network "oob" { cidr = "10.0.0.0/24" }
bmc "b" {
  protocol = "ipmi"
  network  = network.oob
  username = "u"
  password = secret("env:P")
}
hardware "h" {
  arch = %[1]q
  disk "os" {}
}
image "debian" "os" {
  release = "trixie"
  arch    = %[1]q
}
disk_layout "os" {
  on = "os"
  root { size = "3GiB" }
}
driver "inbox" "d" {
  packages = ["rdma-core"]
  repository {
    url = %[2]q
  }
}
role "r" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
  drivers  = [driver.d]
}
rack "k" {
  units = 42
  node "a" {
    role = role.r
    unit = 1
  }
}
`, c.arch, c.url)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(site), 0o600); err != nil {
			t.Fatal(err)
		}
		inv, found, _ := inventory.Load(dir, inventory.Options{Checks: []inventory.Check{stack.CheckRepositories}})
		if inv == nil || len(inv.Nodes) != 1 {
			t.Fatalf("%s: the site has no node: %v", name, found)
		}
		var of []string
		for _, d := range found {
			if d.Check == "driver.repository" {
				text := fmt.Sprintf("%d %s", d.Subject.Start.Line, d.Detail)
				for _, r := range d.Related {
					text += fmt.Sprintf(" + %s at line %d", r.Message, r.Start.Line)
				}
				of = append(of, text)
			}
		}
		if c.says == "" && len(of) > 0 || c.says != "" && (len(of) != 1 || !strings.HasPrefix(of[0], "24 ") || !strings.Contains(of[0], c.says) || !strings.HasSuffix(of[0], " + the image at line 15")) {
			t.Errorf("%s: %q, want %q; all: %v", name, of, c.says, found)
		}
	}
}
