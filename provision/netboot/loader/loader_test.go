// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

// TestUntagged: versions as Debian 12 and 13, Ubuntu 24.04 and upstream write them.
func TestUntagged(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"MZ..1.0.0+git-20190125.36a4c85-5.1\x00..":                                    "1.0.0+git-20190125.36a4c85-5.1",
		"ipxe,1,iPXE,snponly.efi,1.21.1+git20250501.dad20602+dfsg-1,https://ipxe.org": "",
		"iPXE 1.21.1+git-20220113.fbbdc3926-0ubuntu2\n":                               "1.21.1+git-20220113.fbbdc3926-0ubuntu2",
		"iPXE 1.21.1+ (g5ba496a)":                                                     "", "": "",
	} {
		if got := (Set{SNPOnly: []byte(text)}).Untagged(SNPOnly); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		want  []string
		kind  errkind.Kind
	}{
		{"some", map[string]string{"snponly.efi": "MZ", "undionly.kpxe": "x", "ipxe.iso": "not one of ours"}, []string{"snponly.efi", "undionly.kpxe"}, 0},
		{"arm64 in its own folder", map[string]string{"arm64-efi/snponly.efi": "MZ"}, []string{"snponly-arm64.efi"}, 0},
		{"none", map[string]string{"readme": "x"}, nil, errkind.Unsupported},
		{"an empty one", map[string]string{"snponly.efi": ""}, nil, errkind.Unsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range tt.files {
				p := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			set, err := Read(dir)
			if tt.want == nil {
				if err == nil || errkind.Of(err) != tt.kind {
					t.Errorf("got %v, %v", set, err)
				}
				return
			}
			if err != nil || !slices.Equal(set.Names(), tt.want) || !set.Has(tt.want[0]) {
				t.Errorf("got %v, %v, want %v", set.Names(), err, tt.want)
			}
		})
	}
	// A dangling link is a loader that is not there: Debian links ipxe.efi to /boot.
	dir := t.TempDir()
	os.Symlink("/nowhere", filepath.Join(dir, "ipxe.efi"))
	os.WriteFile(filepath.Join(dir, "snponly.efi"), []byte("MZ"), 0o644)
	if set, err := Read(dir); err != nil || len(set) != 1 {
		t.Errorf("dangling link: %v, %v", set.Names(), err)
	}
}
