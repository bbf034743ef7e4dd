// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/userdata"
)

// TestUserData: a script goes to ironrail's unit, settings to the image's cloud-init, and what
// an earlier configuration left goes away.
func TestUserData(t *testing.T) {
	t.Parallel()
	root, dir, _, self := tree(t)
	write := func(text string) error {
		t.Helper()
		p := params(t)
		p.UserData = text
		s, err := prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.write(root, self, true)
		return err
	}
	there := func(name string) (os.FileInfo, bool) {
		info, err := os.Lstat(filepath.Join(dir, name))
		return info, err == nil
	}
	if err := write("#!/bin/sh\ntrue\n"); err != nil {
		t.Fatal(err)
	}
	if info, ok := there(userdata.ScriptFile); !ok || info.Mode().Perm() != 0o700 {
		t.Errorf("script %v", info)
	}
	if to, err := os.Readlink(filepath.Join(dir, userdata.UnitWanted)); err != nil || to != "/"+userdata.UnitFile {
		t.Errorf("unit %q, %v", to, err)
	}
	const cloud = "#cloud-config\nruncmd: [true]\n"
	if err := write(cloud); err == nil || !strings.Contains(err.Error(), "the image has no cloud-init") {
		t.Errorf("without cloud-init: %v", err)
	}
	for _, name := range []string{userdata.CloudProgram, userdata.CloudOff} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := write(cloud); err != nil {
		t.Fatal(err)
	}
	if info, ok := there(userdata.SeedUserData); !ok || info.Mode().Perm() != 0o600 {
		t.Errorf("seed %v", info)
	}
	for _, name := range []string{userdata.ScriptFile, userdata.UnitFile, userdata.UnitWanted, userdata.CloudOff} {
		if _, ok := there(name); ok {
			t.Errorf("/%s is left", name)
		}
	}
	if err := write(""); err != nil {
		t.Fatal(err)
	}
	if _, ok := there(userdata.SeedUserData); ok {
		t.Errorf("/%s is left", userdata.SeedUserData)
	}
}
