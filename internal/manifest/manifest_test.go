// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"slices"
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
			{Offset: 0, Length: 10, Plain: ChunkSize, BLAKE3: "01"}, {Plain: ChunkSize},
			{Offset: 10, Length: 20, Plain: ChunkSize, BLAKE3: "02"}, {Offset: 30, Length: 5, Plain: 10, BLAKE3: "03"},
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
		{"a changed chunk", func(m *Manifest) { m.Chunks[0].BLAKE3 = "ff" }, "not signed"},
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
		{"format 1", signed(asFormat1), ""},
		{"format 1 with digests of format 2", signed(func(m *Manifest) { m.Format = 1 }), "not of format 1"},
		{"format 2 with digests of format 1", signed(func(m *Manifest) { asFormat1(m); m.Format = 2 }), "not of format 2"},
		{"both digests", signed(func(m *Manifest) { asFormat1(m); m.Chunks[0].BLAKE3 = "01" }), "not of format 1"},
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

// asFormat1 gives the chunks the digests that format 1 has.
func asFormat1(m *Manifest) {
	m.Format = formatSHA256
	m.Chunks = slices.Clone(m.Chunks)
	for i := range m.Chunks {
		m.Chunks[i].SHA256, m.Chunks[i].BLAKE3 = m.Chunks[i].BLAKE3, ""
	}
}

// TestDigestOfChunk: the published digest of nothing (the BLAKE3 paper's test vectors;
// FIPS 180-4's of SHA-256), and what Is takes.
func TestDigestOfChunk(t *testing.T) {
	t.Parallel()
	const blake, sha = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, c := range []Chunk{{BLAKE3: blake}, {SHA256: sha}} {
		want, _ := c.Digest()
		if got := hex.EncodeToString(c.Hash().Sum(nil)); got != want || c.SumOf(nil) != want || !c.Is(nil) || c.Is([]byte{0}) {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if (Chunk{}).Is(nil) {
		t.Error("a chunk without a digest is taken")
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
