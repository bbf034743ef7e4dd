// SPDX-License-Identifier: Apache-2.0

package write

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/volumes"
)

// largestBoot bounds what of an image's own disk is kept in memory for its loaders.
const largestBoot = 256 << 20

// runLayout makes the layout of p and puts the files of the image onto it.
func (w *Writer) runLayout(ctx context.Context, p wire.WriteParams, key []byte) (wire.WriteResult, error) {
	if w.Node == nil {
		return wire.WriteResult{}, errkind.New(errkind.Unsupported, "this agent makes no disk layouts")
	}
	image, err := w.manifestOf(ctx, p, key)
	if err != nil {
		return wire.WriteResult{}, err
	}
	if err := isDisk(image); err != nil {
		return wire.WriteResult{}, err
	}
	tree, found, err := w.listOf(ctx, p, image, manifest.TreeFile)
	if err != nil {
		return wire.WriteResult{}, err
	}
	if !found {
		return wire.WriteResult{}, errkind.New(errkind.NotFound, "image %s has no form for a disk layout of its own", path.Base(image.Name)).
			Do("Build the image again: `ironrail image build`.")
	}
	loaders, ownLoaders, err := w.listOf(ctx, p, image, manifest.LoadersFile)
	if err != nil {
		return wire.WriteResult{}, err
	}
	w.begin(tree.Size)
	s := &source{disk: &job{Writer: w, params: p, image: image}, tree: &job{Writer: w, params: p, image: tree}}
	s.tree.params.BlobURL = beside(p.ManifestURL, manifest.TreeBlob)
	if ownLoaders {
		s.disk.image, s.disk.params.BlobURL = loaders, beside(p.ManifestURL, manifest.LoadersBlob)
	}
	for _, v := range p.Layout.Volumes {
		if v.Use == wire.VolumeRoot {
			s.root = v.UUID
		}
	}
	maker := volumes.Maker{Find: w.Find, Open: w.Open, Node: w.Node, BIOS: w.BIOS, Progress: w.progress}
	began := time.Now()
	is, already, err := maker.Run(ctx, *p.Layout, p.Marker, p.Digest, s)
	if err != nil {
		return wire.WriteResult{}, err
	}
	return wire.WriteResult{Written: s.tree.written.Load(), Size: tree.Size, Digest: tree.SHA256, Retried: int(s.tree.retried.Load() + s.disk.retried.Load()),
		Seconds: time.Since(began).Seconds(), Already: already, Layout: &is}, nil
}

// beside is the URL of another file of the image.
func beside(manifestURL, name string) string {
	return manifestURL[:strings.LastIndex(manifestURL, "/")+1] + name
}

// listOf fetches the list of chunks of a further form of the image, such as its files, and
// believes it only with the digest that the signed manifest has for it. found: the image
// has that form.
func (w *Writer) listOf(ctx context.Context, p wire.WriteParams, image manifest.Manifest, name string) (m manifest.Manifest, found bool, err error) {
	i := slices.IndexFunc(image.Files, func(f manifest.File) bool { return f.Name == name })
	if i < 0 {
		return m, false, nil
	}
	want := "sha256:" + image.Files[i].SHA256
	file, err := w.smallFile(ctx, "list of files", beside(p.ManifestURL, name))
	if err != nil {
		return m, true, err
	}
	const verify = "Run `ironrail image verify`; the image in the controller's store is not the one in the plan."
	if got := manifest.Digest(file); got != want {
		return m, true, errkind.New(errkind.Mismatch, "the list of the image's files has digest %s, its manifest says %s", got, want).Do(verify)
	}
	if err := json.Unmarshal(file, &m); err != nil {
		return m, true, errkind.New(errkind.Corrupt, "list of the image's files: %w", err).Do(verify)
	}
	if err := m.Check(); err != nil {
		return m, true, errkind.New(errkind.Corrupt, "%w", err).Do(verify)
	}
	return m, true, nil
}

// source is volumes.Image: the loaders come from the disk of the image, or from one that
// has nothing else, and the files from the image's other form.
type source struct {
	disk, tree *job
	root       string // UUID of the root file system
}

// Boot implements volumes.Image.
func (s *source) Boot(ctx context.Context) (b volumes.Boot, err error) {
	head, err := s.head(ctx, manifest.ChunkSize)
	if err != nil {
		return b, err
	}
	table, err := gpt.Read(bytes.NewReader(head), s.disk.image.Size)
	if err != nil {
		return b, errkind.New(errkind.Invalid, "the image has no partition table: %w", err)
	}
	var end int64
	for _, p := range table.Partitions() {
		if p.Type == gpt.BIOSBoot || p.Type == gpt.EFISystem {
			end = max(end, p.Offset()+p.Size())
		}
	}
	if end > min(largestBoot, s.disk.image.Size) {
		return b, errkind.New(errkind.Invalid, "the loaders of the image end at byte %d of its disk", end)
	}
	if head, err = s.head(ctx, end); err != nil {
		return b, err
	}
	b.Code = head[:440]
	config, err := loadercfg.ByUUID(s.root)
	if err != nil {
		return b, err
	}
	for _, p := range table.Partitions() {
		switch p.Type {
		case gpt.BIOSBoot:
			b.BIOS = head[p.Offset() : p.Offset()+p.Size()]
		case gpt.EFISystem:
			b.ESP = head[p.Offset() : p.Offset()+p.Size()]
		}
	}
	if err := loadercfg.Replace(b.ESP, config); err != nil {
		return b, errkind.New(errkind.Invalid, "%w", err).Do("Build the image again with this version.")
	}
	return b, nil
}

// head is the beginning of the image's disk, end bytes or some more.
func (s *source) head(ctx context.Context, end int64) ([]byte, error) {
	var out []byte
	for i, c := range s.disk.image.Chunks {
		if int64(len(out)) >= end {
			break
		}
		if c.Zero() {
			out = append(out, make([]byte, c.Plain)...)
			continue
		}
		packed, err := s.disk.fetchOne(ctx, i)
		if err == nil {
			err = s.disk.unpacked(ctx, piece{i, packed}, func(plain []byte) error { out = append(out, plain...); return nil })
		}
		if err != nil {
			return nil, err
		}
	}
	if int64(len(out)) < min(end, s.disk.image.Size) || len(out) < 440 {
		return nil, errkind.New(errkind.Invalid, "the disk of the image has %d bytes", len(out))
	}
	return out, nil
}

// Tree implements volumes.Image.
func (s *source) Tree(ctx context.Context) io.ReadCloser {
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		w.CloseWithError(s.tree.inOrder(ctx, w))
	}()
	return closer{r, cancel}
}

// closer ends the fetching too.
type closer struct {
	*io.PipeReader
	cancel func()
}

// Close is io.Closer.
func (c closer) Close() error {
	c.cancel()
	return c.PipeReader.Close()
}

// inOrder writes the plain bytes of all chunks, each verified before.
func (j *job) inOrder(ctx context.Context, to io.Writer) error {
	var wanted []int
	for i, c := range j.image.Chunks {
		if c.Length > maxPacked {
			return errkind.New(errkind.Invalid, "chunk %d of the image has %d bytes packed, at most %d are sensible", i, c.Length, maxPacked)
		}
		if !c.Zero() {
			wanted = append(wanted, i)
		}
	}
	pieces, failed := make(chan piece, 2), make(chan error, 1)
	go func() {
		defer close(pieces)
		failed <- j.fetch(ctx, wanted, pieces)
	}()
	for i, c := range j.image.Chunks {
		write := func(plain []byte) error {
			_, err := to.Write(plain)
			return err
		}
		var err error
		if c.Zero() {
			err = write(make([]byte, c.Plain))
		} else if p, ok := <-pieces; ok {
			err = j.unpacked(ctx, p, write)
		} else if err = <-failed; err == nil {
			err = fmt.Errorf("chunk %d did not come", i)
		}
		if err != nil {
			return err
		}
		j.written.Add(c.Plain)
		j.progress("write", c.Plain)
	}
	return nil
}
