// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAllowScript: keys are put in whole; an input that is cut off leaves no file that the
// next run would take for somebody else's, and what is somebody else's stays.
func TestAllowScript(t *testing.T) {
	t.Parallel()
	whole := marker + "\nfrom=\"10.0.0.1\",restrict ssh-ed25519 AAAA\n"
	for _, tt := range []struct {
		name, before, input string
		exit                int
		after               string // content; empty: there is no file
	}{
		{"new", "", whole, 0, whole},
		{"of the run before", marker + "\nold\n", whole, 0, whole},
		{"cut off before it began", "", "", 4, ""},
		{"cut off in the marker", "", marker[:9], 4, ""},
		{"cut off over the run before", marker + "\nold\n", "", 4, marker + "\nold\n"},
		{"somebody else's", "ssh-ed25519 BBBB admin\n", whole, 3, "ssh-ed25519 BBBB admin\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "ssh", "keys")
			if tt.before != "" {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(tt.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", allowScript, "sh", file, marker)
			cmd.Stdin = strings.NewReader(tt.input)
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != tt.exit {
				t.Errorf("exit status %d, want %d: %s", got, tt.exit, out)
			}
			got, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) || string(got) != tt.after {
				t.Errorf("%q, %v; want %q", got, err, tt.after)
			}
			if _, err := os.Stat(file + ".ironrail"); !os.IsNotExist(err) {
				t.Errorf("the new file is left: %v", err)
			}
		})
	}
}
