// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"
)

func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize)))
}

// valid is a signed manifest of two full chunks, one of zeroes, and a short one.
func valid(t testing.TB) Manifest {
	t.Helper()
	m := Manifest{
		Format: Format, Name: "image.os", Recipe: Digest(nil), Size: 3*ChunkSize + 10, SHA256: "00", Blob: 35,
		Chunks: []Chunk{
			{Offset: 0, Length: 10, Plain: ChunkSize, SHA256: "01"}, {Plain: ChunkSize},
			{Offset: 10, Length: 20, Plain: ChunkSize, SHA256: "02"}, {Offset: 30, Length: 5, Plain: 10, SHA256: "03"},
		},
		Files: []File{{Name: "kernel", Size: 3, SHA256: "04"}},
	}
	if err := m.Sign(key('a')); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestVerify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*Manifest)
		want   string // in the error; empty for none
	}{
		{"as signed", func(*Manifest) {}, ""},
		{"another format", func(m *Manifest) { m.Format++ }, "format"},
		{"a changed chunk", func(m *Manifest) { m.Chunks[0].SHA256 = "ff" }, "not signed"},
		{"a changed file", func(m *Manifest) { m.Files[0].SHA256 = "ff" }, "not signed"},
		{"a file less", func(m *Manifest) { m.Files = nil }, "not signed"},
		{"no signature", func(m *Manifest) { m.Signature = "" }, "not signed"},
		{"no base64", func(m *Manifest) { m.Signature = "%" }, "signature"},
		{"another key", func(m *Manifest) { _ = m.Sign(key('b')) }, "not signed"},
		{"a gap in the blob", signed(func(m *Manifest) { m.Chunks[2].Offset++ }), "does not follow"},
		{"a chunk too long", signed(func(m *Manifest) { m.Chunks[0].Plain++ }), "impossible"},
		{"a short chunk in the middle", signed(func(m *Manifest) { m.Chunks[1].Plain-- }), "impossible"},
		{"a negative length", signed(func(m *Manifest) { m.Chunks[0].Length = -1 }), "impossible"},
		{"an empty chunk", signed(func(m *Manifest) { m.Chunks[3].Plain = 0 }), "impossible"},
		{"another size", signed(func(m *Manifest) { m.Size++ }), "chunks hold"},
		{"another blob", signed(func(m *Manifest) { m.Blob++ }), "chunks hold"},
	} {
		m := valid(t)
		c.change(&m)
		err := m.Verify(key('a').Public().(ed25519.PublicKey))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if err := valid(t).Verify(nil); err == nil {
		t.Error("no key: no error")
	}
}

// signed changes and signs again: what the chunk arithmetic alone must find.
func signed(change func(*Manifest)) func(*Manifest) {
	return func(m *Manifest) {
		change(m)
		_ = m.Sign(key('a'))
	}
}

func TestMarshalKeepsTheSignature(t *testing.T) {
	t.Parallel()
	file, digest, err := valid(t).Marshal()
	if err != nil || digest != Digest(file) {
		t.Fatalf("%s, %v", digest, err)
	}
	var m Manifest
	if err := json.Unmarshal(file, &m); err != nil {
		t.Fatal(err)
	}
	if err := m.Verify(key('a').Public().(ed25519.PublicKey)); err != nil {
		t.Error(err)
	}
}

func FuzzVerify(f *testing.F) {
	file, _, err := valid(f).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Manifest
		if json.Unmarshal(b, &m) != nil {
			return
		}
		if err := m.Sign(key('a')); err != nil {
			t.Fatal(err)
		}
		_ = m.Verify(key('a').Public().(ed25519.PublicKey))
	})
}
