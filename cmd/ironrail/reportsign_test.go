// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

// TestPeerMinisign: what ironrail signs minisign verifies, and the other way round, with
// keys of both.
func TestPeerMinisign(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "minisign")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("report.json"), []byte(`{"format":1,"site":"demo","at":"2026-11-20T10:00:00Z","nodes":[]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	minisign := func(argv ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "minisign", argv...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("minisign %v: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	ours := func(argv ...string) {
		t.Helper()
		var out, talk strings.Builder
		if code := newApp(&out, &talk).run(t.Context(), argv); code != exitDone {
			t.Fatalf("%v: %d\n%s%s", argv, code, &out, &talk)
		}
	}
	minisign("-G", "-W", "-p", "theirs.pub", "-s", "theirs.key")
	ours("report", "keygen", "--key", at("ours.key"), "--no-passphrase")
	if err := os.Rename(at("ours.key.pub"), at("ours.pub")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"theirs", "ours"} {
		ours("report", "sign", "--key", at(key+".key"), at("report.json"))
		if said := minisign("-V", "-m", "report.json", "-p", key+".pub"); !strings.Contains(said, "Trusted comment: site demo, report of 2026-11-20T10:00:00Z") {
			t.Errorf("minisign says %s", said)
		}
		minisign("-S", "-W", "-m", "report.json", "-s", key+".key")
		ours("report", "verify", "--key", at(key+".pub"), at("report.json"))
	}
}
