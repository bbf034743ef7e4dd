// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"

	"github.com/ironrail/ironrail/internal/errkind"
)

// The install marker lies in the last 4 KiB before the first MiB. Images start
// their partitions at 1 MiB and keep this range zero, and a GPT with 128 entries
// ends at 17 KiB, so the marker survives the growth of partitions and belongs to
// nothing else.
const (
	MarkerOffset = 1<<20 - MarkerSize
	MarkerSize   = 4 << 10
)

// The marker's form: magic, format, length of the JSON, SHA-256 of the JSON, JSON.
const (
	markerMagic  = "ironrail"
	markerFormat = 1
	markerHeader = 8 + 4 + 4 + sha256.Size
)

// State says how far an install came. It only moves downwards in this list.
type State string

// The states.
const (
	Writing     State = "writing"     // the image is being written: what stands there is no system
	Complete    State = "complete"    // written and read back
	Configuring State = "configuring" // host settings are being written
	Configured  State = "configured"  // ready to boot
)

// Marker says on the disk what ironrail has done to it.
type Marker struct {
	Text   string `json:"marker"` // as asked for: node and effect key
	State  State  `json:"state"`
	Digest string `json:"digest"` // of the image's manifest
	Image  string `json:"image"`  // sha256 of the image, set once it was read back
}

// ReadMarker returns the marker, or false when there is none that is whole.
func ReadMarker(r io.ReaderAt) (Marker, bool) {
	b := make([]byte, MarkerSize)
	if _, err := r.ReadAt(b, MarkerOffset); err != nil {
		return Marker{}, false
	}
	return parseMarker(b)
}

// ManifestDigest returns the digest of the image's manifest that the marker of the
// disk at path names; "" when it cannot be read. A nil open is Open.
func ManifestDigest(open Opener, path string) string {
	if open == nil {
		open = Open
	}
	d, err := open(path, Look)
	if err != nil {
		return ""
	}
	defer d.Close()
	m, _ := ReadMarker(d)
	return m.Digest
}

// parseMarker reads MarkerSize bytes.
func parseMarker(b []byte) (m Marker, ok bool) {
	if len(b) < markerHeader || string(b[:8]) != markerMagic || binary.LittleEndian.Uint32(b[8:]) != markerFormat {
		return m, false
	}
	n := int(binary.LittleEndian.Uint32(b[12:]))
	if n < 0 || n > len(b)-markerHeader {
		return m, false
	}
	text := b[markerHeader : markerHeader+n]
	if sum := sha256.Sum256(text); !bytes.Equal(sum[:], b[16:markerHeader]) {
		return m, false
	}
	return m, json.Unmarshal(text, &m) == nil
}

// bytes returns the marker as it lies on the disk.
func (m Marker) bytes() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(text) > MarkerSize-markerHeader {
		return nil, errkind.New(errkind.Internal, "install marker has %d bytes, at most %d fit", len(text), MarkerSize-markerHeader)
	}
	b := make([]byte, MarkerSize)
	copy(b, markerMagic)
	binary.LittleEndian.PutUint32(b[8:], markerFormat)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(text)))
	sum := sha256.Sum256(text)
	copy(b[16:], sum[:])
	copy(b[markerHeader:], text)
	return b, nil
}

// PutMarker writes the marker and waits until it is on the disk.
func PutMarker(d Device, m Marker) error {
	b, err := m.bytes()
	if err != nil {
		return err
	}
	if _, err := d.WriteAt(b, MarkerOffset); err != nil {
		return err
	}
	return d.Sync()
}
