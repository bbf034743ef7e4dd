// SPDX-License-Identifier: Apache-2.0

package write

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/volumes"
)

// memory is a volumes.Node that makes nothing and keeps the tree.
type inMemory struct{ tree []byte }

func (m *inMemory) Release(context.Context, []string) error { return nil }
func (m *inMemory) Partition(_ context.Context, disk string, p wire.LayoutPartition) (string, error) {
	return disk + p.Name, nil
}
func (m *inMemory) Array(_ context.Context, v wire.Volume, _ []string) (string, error) {
	return "/dev/" + v.Name, nil
}
func (m *inMemory) Groups(context.Context, []string) (map[string]string, error)  { return nil, nil }
func (m *inMemory) Group(context.Context, wire.Volume, string, []string) error   { return nil }
func (m *inMemory) Logical(context.Context, wire.Volume, string) (string, error) { return "", nil }
func (m *inMemory) Format(context.Context, wire.Volume, string) error            { return nil }
func (m *inMemory) Unpack(_ context.Context, _ []volumes.Mount, tree io.Reader, _ func(int64)) (err error) {
	m.tree, err = io.ReadAll(tree)
	return err
}
func (m *inMemory) Mounted(context.Context, volumes.Mount, func(rootfs.Root) error) error { return nil }

// cut packs bytes as a blob and its list.
func cut(t *testing.T, plain []byte) (m manifest.Manifest, blob []byte) {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	all := sha256.Sum256(plain)
	m = manifest.Manifest{Format: manifest.Format, Name: "image.os", Size: int64(len(plain)), SHA256: hex.EncodeToString(all[:])}
	for off := 0; off < len(plain); off += manifest.ChunkSize {
		b := plain[off:min(off+manifest.ChunkSize, len(plain))]
		c := manifest.Chunk{Plain: int64(len(b))}
		if !disk.AllZero(b) {
			packed := encoder.EncodeAll(b, nil)
			c.Offset, c.Length, c.BLAKE3 = int64(len(blob)), int64(len(packed)), manifest.Sum(b)
			blob = append(blob, packed...)
		}
		m.Chunks = append(m.Chunks, c)
	}
	m.Blob = int64(len(blob))
	return m, blob
}

const mib = 1 << 20

// bootable is the disk of an image: boot code, BIOS boot partition, EFI system partition.
func bootable(t *testing.T) []byte {
	t.Helper()
	b := make([]byte, 8*mib)
	part := func(n int, kind string, start, size uint64) gpt.Partition {
		return gpt.Partition{Number: n, Type: kind, GUID: "11111111-2222-3333-4444-55555555555" + string('0'+rune(n)), First: start * mib / 512, Last: (start+size)*mib/512 - 1, Sector: 512}
	}
	table, err := gpt.New(int64(len(b)), 512, "11111111-2222-3333-4444-555555555550", []gpt.Partition{part(1, gpt.BIOSBoot, 1, 1), part(2, gpt.EFISystem, 2, 4)})
	if err != nil {
		t.Fatal(err)
	}
	copy(b, table.ProtectiveMBR([]byte("boot code")))
	copy(b[mib:], "core")
	config, err := loadercfg.ByLabel("ironrail-root")
	if err != nil {
		t.Fatal(err)
	}
	copy(b[5*mib:], config)
	f, err := os.CreateTemp(t.TempDir(), "disk")
	if err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = table.Write(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err = os.ReadFile(f.Name()); err != nil {
		t.Fatal(err)
	}
	return b
}

const rootID = "99999999-2222-4333-8444-555555555555"

// layoutFixture is an image with both forms on a server, and two blank disks. spoil
// changes the answers.
func layoutFixture(t *testing.T, tree []byte, spoil func(path string, b []byte) []byte) (*Writer, *inMemory, wire.WriteParams) {
	t.Helper()
	return layoutOf(t, bootable(t), nil, tree, spoil)
}

// layoutOf is one with a disk, and with a disk of its loaders where they come apart.
func layoutOf(t *testing.T, plain, loaders, tree []byte, spoil func(path string, b []byte) []byte) (*Writer, *inMemory, wire.WriteParams) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	image, blob := cut(t, plain)
	list, treeBlob := cut(t, tree)
	listFile, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	image.Files = []manifest.File{{Name: manifest.TreeFile, Size: int64(len(listFile)), SHA256: strings.TrimPrefix(manifest.Digest(listFile), "sha256:")}}
	files := map[string][]byte{"/i/blob": blob, "/i/" + manifest.TreeFile: listFile, "/i/" + manifest.TreeBlob: treeBlob}
	if loaders != nil {
		list, blob := cut(t, loaders)
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		files["/i/"+manifest.LoadersFile], files["/i/"+manifest.LoadersBlob] = text, blob
		image.Files = append(image.Files, manifest.File{Name: manifest.LoadersFile, Size: int64(len(text)), SHA256: strings.TrimPrefix(manifest.Digest(text), "sha256:")})
	}
	if err := image.Sign(key); err != nil {
		t.Fatal(err)
	}
	file, digest, err := image.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	files["/i/manifest.json"] = file
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "x", time.Time{}, bytes.NewReader(spoil(r.URL.Path, bytes.Clone(b))))
	}))
	t.Cleanup(server.Close)
	l := &wire.Layout{}
	for i, name := range []string{"a", "b"} {
		path := filepath.Join(t.TempDir(), name)
		if err := errorsOf(os.WriteFile(path, nil, 0o600), os.Truncate(path, 32*mib)); err != nil {
			t.Fatal(err)
		}
		id := func(n int) string {
			return "0000000" + string('0'+rune(i)) + "-2222-3333-4444-55555555555" + string('0'+rune(n))
		}
		l.Disks = append(l.Disks, wire.LayoutDisk{Disk: wire.Disk{Path: path, Size: 32 * mib}, System: true, GUID: id(0), Partitions: []wire.LayoutPartition{
			{Number: 1, Type: gpt.BIOSBoot, GUID: id(1), Start: mib, Size: mib}, {Number: 2, Type: gpt.EFISystem, GUID: id(2), Start: 2 * mib, Size: 8 * mib},
			{Number: 3, Type: gpt.LinuxRAID, GUID: id(3), Name: "root", Start: 10 * mib, Size: 16 * mib}}})
	}
	l.Volumes = []wire.Volume{{Use: wire.VolumeRoot, Name: "root", Label: "root", Filesystem: "xfs", Mount: "/", RAID: 1, UUID: rootID, Array: rootID, Members: []wire.Member{{Disk: 0, Partition: 3}, {Disk: 1, Partition: 3}}}}
	node := &inMemory{}
	f := &fixture{}
	w := f.writer()
	w.Node = node
	return w, node, wire.WriteParams{ManifestURL: server.URL + "/i/manifest.json", BlobURL: server.URL + "/i/blob", Digest: digest, PublicKey: base64.StdEncoding.EncodeToString(pub), Marker: "n1/a/write", Layout: l}
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestLayout: both disks get the same loaders, which look for the root of the node, and
// the files come whole, though a chunk is damaged on its way.
func TestLayout(t *testing.T) {
	t.Parallel()
	tree := make([]byte, 13*mib)
	rand.Read(tree[:9*mib]) // the third chunk is short of data, the last is zero
	var once sync.Once
	w, node, p := layoutFixture(t, tree, func(path string, b []byte) []byte {
		if strings.HasSuffix(path, "/"+manifest.TreeBlob) {
			once.Do(func() { b[5*mib] ^= 1 })
		}
		return b
	})
	res, err := w.Run(t.Context(), p)
	if err != nil || !bytes.Equal(node.tree, tree) || res.Retried != 1 || res.Already || res.Layout == nil {
		t.Fatalf("%v, %d bytes, %+v", err, len(node.tree), res)
	}
	hasLoaders(t, p)
	if res, err = w.Run(t.Context(), p); err != nil || !res.Already {
		t.Errorf("again: %v, %+v", err, res)
	}
}

// TestLayoutOfForeignDisk: where the disk of the image has loaders of its vendor's, those
// of the layout come beside it, as much verified as all else.
func TestLayoutOfForeignDisk(t *testing.T) {
	t.Parallel()
	vendors, tree := make([]byte, 3*mib), []byte("files")
	rand.Read(vendors)
	w, node, p := layoutOf(t, vendors, bootable(t), tree, func(_ string, b []byte) []byte { return b })
	if _, err := w.Run(t.Context(), p); err != nil || !bytes.Equal(node.tree, tree) {
		t.Fatalf("%v, %q", err, node.tree)
	}
	hasLoaders(t, p)
	w, _, p = layoutOf(t, vendors, bootable(t), tree, func(path string, b []byte) []byte {
		if strings.HasSuffix(path, manifest.LoadersFile) {
			b[len(b)-2] ^= 1
		}
		return b
	})
	if _, err := w.Run(t.Context(), p); errkind.Of(err) != errkind.Mismatch || errkind.HasBegun(err) {
		t.Errorf("another list of loaders: %v", err)
	}
	blank(t, p)
}

// hasLoaders looks at the loaders of every disk, and at its marker.
func hasLoaders(t *testing.T, p wire.WriteParams) {
	t.Helper()
	for _, d := range p.Layout.Disks {
		b, err := os.ReadFile(d.Disk.Path)
		if err != nil {
			t.Fatal(err)
		}
		if string(b[:9]) != "boot code" || string(b[mib:mib+4]) != "core" || !strings.Contains(string(b[5*mib:5*mib+512]), "--set=root "+rootID) {
			t.Errorf("loaders of %s: %q, %q, %q", d.Disk.Path, b[:9], b[mib:mib+4], b[5*mib:5*mib+200])
		}
		if m, ok := disk.ReadMarker(bytes.NewReader(b)); !ok || m.State != disk.Complete {
			t.Errorf("marker %+v", m)
		}
	}
}

// TestLayoutRefuses: nothing is changed where the image does not prove to be the one of
// the plan.
func TestLayoutRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil string
		kind  errkind.Kind
	}{"list": {manifest.TreeFile, errkind.Mismatch}, "manifest": {"manifest.json", errkind.Mismatch}} {
		w, _, p := layoutFixture(t, make([]byte, mib), func(path string, b []byte) []byte {
			if strings.HasSuffix(path, "/"+c.spoil) {
				b[len(b)-2] ^= 1
			}
			return b
		})
		_, err := w.Run(t.Context(), p)
		if errkind.Of(err) != c.kind || errkind.HasBegun(err) {
			t.Errorf("%s: %v", name, err)
		}
		blank(t, p)
	}
	w, _, p := layoutFixture(t, make([]byte, mib), func(_ string, b []byte) []byte { return b })
	w.Node = nil
	if _, err := w.Run(t.Context(), p); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("an agent without layouts: %v", err)
	}
	blank(t, p)
}

func blank(t *testing.T, p wire.WriteParams) {
	t.Helper()
	for _, d := range p.Layout.Disks {
		if b, err := os.ReadFile(d.Disk.Path); err != nil || !disk.AllZero(b) {
			t.Errorf("disk %s was changed: %v", d.Disk.Path, err)
		}
	}
}
