// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"os"
	"path/filepath"
	"testing"
)

// TestConsole: hardware of arm64 has the console of its servers where the block names none.
func TestConsole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want Console
	}{
		"x86":               {``, Console{}},
		"arm64":             {`arch = "arm64"`, Console{Port: "ttyAMA0", Baud: 115200}},
		"arm64, another":    {"arch = \"arm64\"\n  console {\n    port = \"ttyS0\"\n    baud = 9600\n  }", Console{Port: "ttyS0", Baud: 9600}},
		"x86, with console": {"console {\n    port = \"ttyS1\"\n  }", Console{Port: "ttyS1", Baud: 115200}},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte("site \"s\" {}\nhardware \"h\" {\n  disk \"os\" {}\n  "+c.text+"\n}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		inv, found, _ := Load(dir, Options{})
		if inv == nil || len(inv.Hardware) != 1 {
			t.Fatalf("%s: no hardware: %v", name, found)
		}
		got := inv.Hardware[0].Console
		got.Decl = c.want.Decl
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
