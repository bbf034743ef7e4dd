// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestListedImage: an image that a rollback holds nodes at is marked, damaged or
// not: whoever removes it takes their reinstallation away.
func TestListedImage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		of   listed
		want string
	}{
		{"free", listed{Digest: "sha256:ab", Name: "os", Size: 2 << 30, Stored: 1 << 30}, "sha256:ab  os                   2048 MiB plain, 1024 MiB stored"},
		{"pinned", listed{Digest: "sha256:ab", Error: "chunk 3", Pinned: []string{"n1", "n2"}}, "sha256:ab  damaged: chunk 3  keep: pinned to it: n1, n2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.of.line(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
