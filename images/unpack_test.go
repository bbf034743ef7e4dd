// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ironrail/ironrail/images/store"
)

var diskOut = flag.String("disk", "", "write the image DIGEST of -lab to this file, to boot it in an emulator")
var digestIn = flag.String("digest", "", "image for -disk")

// TestUnpack writes an image out the way the agent does, chunk by chunk.
func TestUnpack(t *testing.T) {
	if *diskOut == "" || *labDir == "" {
		t.Skip("needs -lab DIR -digest DIGEST -disk FILE")
	}
	key, err := store.Key(filepath.Join(*labDir, "keys", "manifest.pem"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(*labDir, "images"), key)
	if err != nil {
		t.Fatal(err)
	}
	unpack(t, s, *digestIn, *diskOut)
}

func unpack(t *testing.T, s *store.Store, digest, to string) {
	t.Helper()
	m, err := s.Manifest(digest)
	if err != nil {
		t.Fatal(err)
	}
	blob, err := s.Open(digest, store.BlobFile)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := out.Truncate(m.Size); err != nil {
		t.Fatal(err)
	}
	var at int64
	for i, c := range m.Chunks {
		if !c.Zero() {
			dec, err := zstd.NewReader(io.NewSectionReader(blob, c.Offset, c.Length))
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.NewOffsetWriter(out, at), dec); err != nil || n != c.Plain {
				t.Fatalf("chunk %d: %d bytes, %v", i, n, err)
			}
			dec.Close()
		}
		at += c.Plain
	}
}
