// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// opened is an image whose manifest and configuration were read and verified.
type opened struct {
	layers []v1.Descriptor
	diffs  []v1.Hash // of the layers as they are unpacked
	config *v1.ConfigFile
	// blob puts a layer into a file, verified.
	blob func(ctx context.Context, d v1.Descriptor, to string) error
}

// open finds the image of the recipe's source for its architecture.
func (b *builder) open(ctx context.Context) (opened, error) {
	switch b.recipe.source.transport {
	case registryPrefix:
		if err := b.fetchLayout(ctx, b.downloads()); err != nil {
			return opened{}, err
		}
		return b.openLayout(b.downloads())
	case layoutPrefix:
		return b.openLayout(b.recipe.source.path(b.recipe.Site))
	case archivePrefix:
		dir := filepath.Join(b.disk.Dir, "layout")
		if err := extractLayout(ctx, b.recipe.source.path(b.recipe.Site), dir); err != nil {
			return opened{}, err
		}
		return b.openLayout(dir)
	}
	return b.openDockerArchive(b.recipe.source.path(b.recipe.Site))
}

// fetchLayout makes an OCI layout of the image of a registry: its own index or manifest,
// and all that is below it for the architecture. index.json comes last: a layout that has
// it is whole, and nothing is asked for it.
func (b *builder) fetchLayout(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, indexFile)); err == nil {
		b.disk.Say("the image was fetched before")
		return nil
	}
	blobs := filepath.Join(dir, "blobs", "sha256")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return err
	}
	r, err := b.login(ctx)
	if err != nil {
		return err
	}
	top, image, texts, err := b.manifests(ctx, r)
	if err != nil {
		return err
	}
	found, err := b.read(image, nil)
	if err != nil {
		return err
	}
	if err := r.fetchLayers(ctx, found.layers, blobs); err != nil {
		return err
	}
	m, err := image.Manifest()
	if err != nil {
		return err
	}
	if texts[m.Config.Digest.Hex], err = image.RawConfigFile(); err != nil {
		return err
	}
	for hex, text := range texts {
		if err := durable.Write(filepath.Join(blobs, hex), text, 0o644); err != nil {
			return err
		}
	}
	return finishLayout(dir, top.Descriptor, b.recipe.source.tag)
}

// manifests fetches what the source names, and of an index the image for the architecture:
// both texts by their digests, hex.
func (b *builder) manifests(ctx context.Context, r *registry) (top *remote.Descriptor, image v1.Image, texts map[string][]byte, err error) {
	if top, err = r.get(ctx, b.recipe.source.digest); err != nil {
		return nil, nil, nil, err
	}
	d := top
	if top.MediaType.IsIndex() {
		index, err := top.ImageIndex()
		if err != nil {
			return nil, nil, nil, err
		}
		chosen, err := b.choose(index)
		if err != nil {
			return nil, nil, nil, err
		}
		if d, err = r.get(ctx, chosen.String()); err != nil {
			return nil, nil, nil, err
		}
	}
	if image, err = d.Image(); err != nil {
		return nil, nil, nil, registryError(r.repo.String(), err)
	}
	return top, image, map[string][]byte{top.Digest.Hex: top.Manifest, d.Digest.Hex: d.Manifest}, nil
}

// indexFile lists what a layout has (image-layout.md).
const indexFile = "index.json"

// finishLayout writes what makes a folder of blobs a layout. The registry has said that
// the digest is there; a tag that the source has beside it is not asked for.
func finishLayout(dir string, top v1.Descriptor, tag string) error {
	listed := v1.Descriptor{MediaType: top.MediaType, Size: top.Size, Digest: top.Digest}
	if tag != "" {
		listed.Annotations = map[string]string{tagKey: tag}
	}
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{listed}})
	if err != nil {
		return err
	}
	return errors.Join(durable.Write(filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion": "1.0.0"}`), 0o644),
		durable.Write(filepath.Join(dir, indexFile), index, 0o644))
}

// login reaches the registry of the source.
func (b *builder) login(ctx context.Context) (*registry, error) {
	o := access{ca: b.recipe.CA, plainHTTP: b.recipe.PlainHTTP, username: b.recipe.Username}
	if b.recipe.Password != "" {
		if b.recipe.secrets == nil {
			return nil, errkind.New(errkind.Internal, "no secrets can be read")
		}
		var err error
		if o.password, err = b.recipe.secrets(b.recipe.Password); err != nil {
			return nil, err
		}
	}
	r, err := openRegistry(ctx, b.recipe.source.at, o, b.waits)
	if err != nil {
		return nil, err
	}
	r.say = b.disk.Say
	return r, nil
}

// openLayout finds the image in an OCI layout (image-layout.md).
func (b *builder) openLayout(dir string) (opened, error) {
	p, err := layout.FromPath(dir)
	if err != nil {
		return opened{}, notRead("OCI layout", dir, err)
	}
	index, err := p.ImageIndex()
	if err != nil {
		return opened{}, notRead("OCI layout", dir, err)
	}
	want, err := v1.NewHash(b.recipe.source.digest)
	if err != nil {
		return opened{}, err
	}
	m, err := index.IndexManifest()
	if err != nil {
		return opened{}, notRead("OCI layout", dir, err)
	}
	d, err := b.listed(m, want)
	if err != nil {
		return opened{}, err
	}
	if d.MediaType.IsIndex() {
		below, err := index.ImageIndex(want)
		if err != nil {
			return opened{}, notRead("OCI layout", dir, err)
		}
		if want, err = b.choose(below); err != nil {
			return opened{}, err
		}
		index = below
	}
	image, err := index.Image(want)
	if err != nil {
		return opened{}, notRead("OCI layout", dir, err)
	}
	if err := verifyBlob(filepath.Join(dir, "blobs", want.Algorithm, want.Hex), want, sizeOf(image)); err != nil {
		return opened{}, fmt.Errorf("manifest %s: %w", want, err)
	}
	return b.read(image, func(ctx context.Context, d v1.Descriptor, to string) error {
		return copyBlob(ctx, filepath.Join(dir, "blobs", d.Digest.Algorithm, d.Digest.Hex), d, to)
	})
}

// sizeOf is the length of an image's manifest; -1 where it cannot be read.
func sizeOf(image v1.Image) int64 {
	n, err := image.Size()
	if err != nil {
		return -1
	}
	return n
}

// tagKey is the annotation that has the tag of a manifest (annotations.md).
const tagKey = "org.opencontainers.image.ref.name"

// listed finds a digest in the index of a layout. Where a tag was given, it must stand
// for that digest.
func (b *builder) listed(m *v1.IndexManifest, want v1.Hash) (v1.Descriptor, error) {
	tag := b.recipe.source.tag
	var have []string
	for _, d := range m.Manifests {
		if d.Digest == want && (tag == "" || d.Annotations[tagKey] == tag) {
			return d, nil
		}
		have = append(have, fmt.Sprintf("%s (tag %q)", d.Digest, d.Annotations[tagKey]))
	}
	return v1.Descriptor{}, errkind.New(errkind.Mismatch, "the source is to be %s, tag %q; the layout has %s", want, tag, strings.Join(have, ", ")).
		Do("Correct the digest in the source of the image block, or bring the image that it names.")
}

// openDockerArchive finds the image in an archive as `docker save` writes it.
func (b *builder) openDockerArchive(file string) (opened, error) {
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return opened{}, notRead("docker archive", file, err).Do("It must hold one image: `docker save IMAGE`.")
	}
	id, err := image.ConfigName()
	if err != nil {
		return opened{}, notRead("docker archive", file, err)
	}
	if id.String() != b.recipe.source.digest {
		return opened{}, errkind.New(errkind.Mismatch, "the image in %s has id %s; the source says %s", file, id, b.recipe.source.digest).
			Do("Correct the digest in the source of the image block, or bring the image that it names.")
	}
	return b.read(image, func(ctx context.Context, d v1.Descriptor, to string) error {
		layer, err := image.LayerByDigest(d.Digest)
		if err != nil {
			return err
		}
		r, err := layer.Compressed()
		if err != nil {
			return err
		}
		defer r.Close()
		return copyTo(ctx, r, to) // unpacking verifies it by the digest of its content
	})
}

// notRead is an error of a source that lies on the controller.
func notRead(what, where string, err error) *errkind.Error {
	kind := errkind.Invalid
	if errors.Is(err, fs.ErrNotExist) {
		kind = errkind.NotFound
	}
	return errkind.New(kind, "%s %s: %w", what, where, err)
}

// choose finds the manifest for the recipe's architecture in an index.
func (b *builder) choose(index v1.ImageIndex) (v1.Hash, error) {
	m, err := index.IndexManifest()
	if err != nil {
		return v1.Hash{}, errkind.New(errkind.Invalid, "index: %w", err)
	}
	var have []string
	for _, d := range m.Manifests {
		if d.Platform == nil || !d.MediaType.IsImage() {
			continue
		}
		if d.Platform.OS == "linux" && d.Platform.Architecture == string(b.recipe.Arch) {
			return d.Digest, nil
		}
		have = append(have, d.Platform.OS+"/"+d.Platform.Architecture)
	}
	return v1.Hash{}, b.wrongArch("the index at its source has "+strings.Join(have, ", "), "")
}

// wrongArch is the error of an image for another architecture, with both places.
func (b *builder) wrongArch(found, file string) error {
	where := ""
	if b.recipe.Place != "" {
		where = " (" + b.recipe.Place + ")"
	}
	return errkind.New(errkind.Mismatch, "the image block%s says %s; %s%s", where, b.recipe.Arch, found, file).
		Do("Name the image of the right architecture in source, or correct arch of the image block.")
}

// read reads manifest and configuration of an image, and compares its architecture.
func (b *builder) read(image v1.Image, blob func(context.Context, v1.Descriptor, string) error) (opened, error) {
	m, err := image.Manifest()
	if err != nil {
		return opened{}, errkind.New(errkind.Invalid, "manifest: %w", err)
	}
	raw, err := image.RawConfigFile()
	if err != nil {
		return opened{}, errkind.New(errkind.Invalid, "configuration: %w", err)
	}
	if h, _, err := v1.SHA256(strings.NewReader(string(raw))); err != nil || h != m.Config.Digest {
		return opened{}, errkind.New(errkind.Corrupt, "the configuration has digest %s; the manifest says %s", h, m.Config.Digest)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return opened{}, errkind.New(errkind.Invalid, "configuration: %w", err)
	}
	if config.OS != "linux" || config.Architecture != string(b.recipe.Arch) {
		return opened{}, b.wrongArch("the configuration of the image at its source says "+config.OS+"/"+config.Architecture, "")
	}
	if len(m.Layers) == 0 || len(m.Layers) != len(config.RootFS.DiffIDs) {
		return opened{}, errkind.New(errkind.Invalid, "the manifest has %d layers and the configuration %d", len(m.Layers), len(config.RootFS.DiffIDs))
	}
	for _, d := range m.Layers {
		if !layerType(d.MediaType) {
			return opened{}, errkind.New(errkind.Unsupported, "layer %s is of type %q", d.Digest, d.MediaType).
				Do("Build the image with layers that are tar archives, plain or packed by gzip or zstd, in the image itself.")
		}
	}
	return opened{layers: m.Layers, diffs: config.RootFS.DiffIDs, config: config, blob: blob}, nil
}

// layerType reports whether a layer is an archive that lies with the image.
func layerType(t types.MediaType) bool {
	return t.IsLayer() && t.IsDistributable() || t == types.OCILayerZStd
}

// copyBlob takes a blob of a layout and verifies it. It is the same file where both are on
// one file system: it is only read.
func copyBlob(ctx context.Context, from string, d v1.Descriptor, to string) error {
	if info, err := os.Lstat(from); err == nil && info.Mode().IsRegular() && os.Link(from, to) == nil {
		return verifyBlob(to, d.Digest, d.Size)
	}
	in, err := os.Open(from)
	if err != nil {
		return notRead("blob", from, err)
	}
	defer in.Close()
	if err := copyTo(ctx, in, to); err != nil {
		return err
	}
	return verifyBlob(to, d.Digest, d.Size)
}

func copyTo(ctx context.Context, in io.Reader, to string) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, meter.WithContext(ctx, in))
	return errors.Join(err, out.Close())
}

// layoutFile are the names of files that an archive of a layout may hold.
var layoutFile = lazyregexp.New(`^(oci-layout|index\.json|blobs/sha256/[0-9a-f]{64})$`)

// extractLayout unpacks an archive of an OCI layout. Nothing but the files of a layout
// is taken.
func extractLayout(ctx context.Context, file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return notRead("OCI archive", file, err)
	}
	defer f.Close()
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return err
	}
	plain, done, err := decompress(f)
	if err != nil {
		return notRead("OCI archive", file, err)
	}
	defer done()
	r := tar.NewReader(plain)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return notRead("OCI archive", file, err)
		}
		name := path.Clean(strings.TrimPrefix(h.Name, "./"))
		if h.Typeflag != tar.TypeReg || !layoutFile.MatchString(name) {
			continue
		}
		if err := copyTo(ctx, r, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return notRead("OCI archive", file, err)
		}
	}
}
