// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSitesAreOpenedInOnePlace: with --rack every command reaches the virtual rack, so that
// none opens a site, or names a state folder, by itself.
func TestSitesAreOpenedInOnePlace(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 50 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for word, only := range map[string]string{"provision.Open(": "rack.go", "provision.StatePath(": "site.go", "network.OS{": "", "net.Dial": ""} {
			if strings.Contains(string(b), word) && name != only && !strings.HasSuffix(name, "_test.go") {
				t.Errorf("%s has %s: use openSite, statePath and the network of the site", name, word)
			}
		}
	}
}

// TestRackKnowsCommands: what --rack can be given to are commands that there are.
func TestRackKnowsCommands(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	for _, c := range newApp(nil, nil).root().Commands() {
		have[c.Name()] = true
	}
	for _, name := range append(append([]string{}, onRack...), rackRecords...) {
		if !have[name] {
			t.Errorf("there is no command %s", name)
		}
	}
	var refused []string
	for _, c := range newApp(nil, nil).root().Commands() {
		a := newApp(os.Stdout, os.Stderr)
		a.rack, a.dir = true, t.TempDir()
		if err := a.checkRack(c); err != nil && strings.Contains(err.Error(), "--rack is for") {
			refused = append(refused, c.Name())
		}
	}
	for _, name := range []string{"image", "lock", "rehearse", "rack", "repo"} {
		if !strings.Contains(strings.Join(refused, " ")+" ", name+" ") {
			t.Errorf("--rack is taken by %s; refused are %v", name, refused)
		}
	}
}
