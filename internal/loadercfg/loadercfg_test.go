// SPDX-License-Identifier: Apache-2.0

package loadercfg

import (
	"bytes"
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	old, err := ByLabel("ironrail-root")
	if err != nil || len(old) != Size {
		t.Fatal(len(old), err)
	}
	text, err := ByUUID("11111111-2222-3333-4444-555555555555")
	if err != nil || !strings.Contains(string(text), "--set=root 11111111-") {
		t.Fatalf("%q, %v", text, err)
	}
	esp := bytes.Repeat([]byte("x"), 8*512)
	copy(esp[3*512:], old)
	want := bytes.Clone(esp)
	copy(want[3*512:], text)
	if err := Replace(esp, text); err != nil || !bytes.Equal(esp, want) {
		t.Errorf("%v, %q", err, esp)
	}
	copy(esp[6*512:], old)
	for name, b := range map[string][]byte{"two": esp, "none": esp[:512], "short": old[:100]} {
		if err := Replace(b, text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := ByLabel(strings.Repeat("x", 512)); err == nil {
		t.Error("a text that is too long")
	}
}
