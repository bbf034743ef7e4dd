// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/acceptance"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/overrides"
)

// putImages stores small images and returns their digests in the order of their names.
func putImages(ctx context.Context, t *testing.T, a *app, names ...string) map[string]string {
	t.Helper()
	site, _, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	s := site.Artifacts.Images
	unlock, err := s.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	digests := map[string]string{}
	for i, name := range names {
		disk := filepath.Join(t.TempDir(), "disk")
		if err := os.WriteFile(disk, bytes.Repeat([]byte{byte(i + 1)}, 8<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		digests[name], err = s.Put(ctx, store.Source{Name: "image." + name, Recipe: fmt.Sprintf("sha256:%064d", i), Disk: disk}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
	}
	return digests
}

// putState records that an image is on the disk of a node, that one was accepted with
// another, and that one is pinned.
func putState(ctx context.Context, t *testing.T, a *app, digests map[string]string) {
	t.Helper()
	file, err := state.Open(provision.StatePath(a.dir))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fence, err := file.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	written, err := install.WriteFact.New(subject.OfNode("n1"), install.Written{Image: digests["written"]}, "")
	if err != nil {
		t.Fatal(err)
	}
	var b state.Batch
	for _, o := range []struct {
		key   state.Key
		value any
	}{
		{state.NodeKey("n1"), state.Node{Name: "n1"}}, {state.NodeKey("gone"), state.Node{Name: "gone"}},
		{state.FactKey(written.Key), written},
		{state.Key{Kind: "accepted", Name: "gone"}, acceptance.History{List: []acceptance.Accepted{{Image: "x", Digest: digests["written"]}, {Image: "x", Digest: digests["accepted"]}}}},
		{state.Key{Kind: "pin", Name: "n1"}, overrides.Pin{Node: "n1", Image: "x", Digest: digests["pinned"]}},
	} {
		put, err := state.PutOf(o.key, o.value)
		if err != nil {
			t.Fatal(err)
		}
		b.Puts = append(b.Puts, put)
	}
	if _, err := file.Append(ctx, fence, b); err != nil {
		t.Fatal(err)
	}
}

// TestPrune: what a block, a disk, an acceptance or a pin refers to stays, also of nodes
// that are in no file any more. Without an answer nothing is removed.
func TestPrune(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var out, said bytes.Buffer
	a := &app{dir: t.TempDir(), in: os.Stdin, out: &out, err: &said, environ: os.LookupEnv, now: time.Now}
	writeSite := func(digest string) {
		text := "site \"s\" {}\nimage \"debian\" \"os\" {\n  release = \"bookworm\"\n  digest  = \"" + digest + "\"\n}\n"
		if err := os.WriteFile(filepath.Join(a.dir, "site.hcl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeSite("sha256:" + strings.Repeat("0", 64))
	digests := putImages(ctx, t, a, "block", "written", "accepted", "pinned", "free", "damaged")
	writeSite(digests["block"])
	putState(ctx, t, a, digests)
	site, _, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := site.Artifacts.Images.Where(digests["damaged"], store.ManifestFile)
	if err == nil {
		err = os.WriteFile(manifest, []byte("{}"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	stored := func() (names []string) {
		for name, d := range digests {
			if _, err := os.Stat(filepath.Dir(filepath.Join(a.stateDir(), "images", strings.Replace(d, ":", "-", 1), "x"))); err == nil {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	a.in = strings.NewReader("remove\n") // no terminal: nobody has read the list
	if err := a.pruneImages(ctx, false); errkind.Of(err) != errkind.Refused || len(stored()) != len(digests) {
		t.Fatalf("without an answer: %v, stored %q", err, stored())
	}
	for _, want := range []string{"stays: image os of the files", "on the disk of: n1; a rollback may go back to it: gone", "pinned to it: n1", "2 images to remove"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	out.Reset()
	a.json = true
	if err := a.pruneImages(ctx, true); err != nil {
		t.Fatal(err)
	}
	if got, want := stored(), []string{"accepted", "block", "pinned", "written"}; !slices.Equal(got, want) {
		t.Errorf("stored %q, want %q", got, want)
	}
	var list []pruned
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list) != len(digests) {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, p := range list {
		if gone := p.Digest == digests["free"] || p.Digest == digests["damaged"]; p.Removed != gone || (len(p.Keep) == 0) != gone {
			t.Errorf("%+v", p)
		}
	}
}
