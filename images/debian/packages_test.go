// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/internal/gpgtest"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

// archive is a signed archive that has all packages of a recipe, of bytes that nobody
// installs, and counts what is fetched of them.
type archive struct {
	url    string
	server *httptest.Server

	mu      sync.Mutex
	files   map[string][]byte // by path
	round   int               // counts resets: a request may outlive the one who asked
	fetched int               // bytes of packages in this round
	onBytes func(n int)       // called after each piece with those fetched so far; nil: not
}

// count counts a piece of a package.
func (a *archive) count(round, n int) {
	a.mu.Lock()
	if round == a.round {
		a.fetched += n
	}
	n, on := a.fetched, a.onBytes
	a.mu.Unlock()
	if on != nil {
		on(n)
	}
}

// counted is an answer whose bytes are counted in small pieces.
type counted struct {
	http.ResponseWriter
	a     *archive
	round int
}

func (c counted) Write(b []byte) (n int, err error) {
	for piece := range slices.Chunk(b, 4<<10) {
		done, err := c.ResponseWriter.Write(piece)
		n += done
		c.a.count(c.round, done)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (a *archive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	b, ok := a.files[r.URL.Path]
	a.mu.Unlock()
	round, _ := r.Context().Value(roundKey{}).(int)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/pool/") {
		w = counted{w, a, round}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// roundKey is where a connection has the round in which it was made.
type roundKey struct{}

// rememberRound notes the round of a new connection.
func (a *archive) rememberRound(ctx context.Context, _ net.Conn) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return context.WithValue(ctx, roundKey{}, a.round)
}

// reset forgets what was fetched, and says how much it was. Connections do not last beyond
// it: what is still asked for on one is of the round before.
func (a *archive) reset(onBytes func(int)) int {
	a.server.CloseClientConnections()
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.fetched
	a.round++
	a.fetched, a.onBytes = 0, onBytes
	return n
}

const packageSize = 96 << 10

// newArchive starts an archive of the packages that a recipe includes, and has the recipe
// take it.
func newArchive(t *testing.T, r *Recipe) *archive {
	t.Helper()
	a := &archive{files: map[string][]byte{}}
	a.server = httptest.NewUnstartedServer(a)
	a.server.Config.ConnContext = a.rememberRound
	a.server.Start()
	t.Cleanup(a.server.Close)
	a.url = a.server.URL
	var index strings.Builder
	random := rand.NewChaCha8([32]byte{1})
	for _, name := range r.include() {
		content := make([]byte, packageSize)
		_, _ = random.Read(content)
		path := "/pool/" + name + "_1+b1_amd64.deb"
		a.files[path] = content
		fmt.Fprintf(&index, "Package: %s\nVersion: 1:1+b1\nArchitecture: amd64\nEssential: yes\nPriority: required\nMaintainer: x\nDescription: x\nFilename: %s\nSize: %d\nSHA256: %x\n\n",
			name, path[1:], packageSize, sha256.Sum256(content))
	}
	packages := []byte(index.String())
	a.files["/dists/bookworm/main/binary-amd64/Packages"] = packages
	release := fmt.Sprintf("Origin: test\nSuite: bookworm\nCodename: bookworm\nDate: %s\nArchitectures: amd64\nComponents: main\nSHA256:\n %x %d main/binary-amd64/Packages\n",
		time.Now().UTC().Format(time.RFC1123), sha256.Sum256(packages), len(packages))
	h := gpgtest.New(t)
	key := h.NewKey("archive", "rsa2048", "0")
	a.files["/dists/bookworm/InRelease"] = h.Sign(key, "--clear-sign", release)
	public := filepath.Join(t.TempDir(), "archive.asc")
	must(t, os.WriteFile(public, []byte(h.Public(key)), 0o644))
	r.Mirrors = []string{"deb [signed-by=" + public + "] " + a.url + "/ bookworm main"}
	return a
}

// sizeBelow is how many bytes of packages lie in a folder of downloads.
func sizeBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	for _, sub := range []string{archivesDir, partialDir} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		must(t, err)
		for _, e := range entries {
			info, err := e.Info()
			must(t, err)
			n += int(info.Size())
		}
	}
	return n
}

// TestPeerFetch: what mmdebstrap and apt read of a signed archive is fetched; stopped in the
// middle, it goes on where it was; a file that changed on the disk is fetched again; one
// that the archive did not sign is refused.
func TestPeerFetch(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "mmdebstrap", "apt-get", "gpg", "mke2fs", "mkfs.vfat", "mcopy", "grub-mkimage")
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	r := Recipe{Block: "os", Release: "bookworm"}
	a := newArchive(t, &r)
	dir := filepath.Join(t.TempDir(), "downloads")
	var said []string
	fetch := func(ctx context.Context) error {
		said = nil
		return r.Fetch(ctx, dir, func(text string) { said = append(said, text) })
	}
	all := len(r.include()) * packageSize

	ctx, stop := context.WithCancel(t.Context())
	a.reset(func(n int) {
		if n > all/2 {
			stop()
		}
	})
	if err := fetch(ctx); errkind.Of(err) != errkind.Interrupted {
		t.Fatalf("stopped in the middle: %v", err)
	}
	had := sizeBelow(t, dir)
	if came := a.reset(nil); had == 0 || had > came || came >= all {
		t.Fatalf("%d bytes came, %d are there, of %d", came, had, all)
	}
	must(t, fetch(t.Context()))
	if came := a.reset(nil); came != all-had || sizeBelow(t, dir) != all {
		t.Errorf("%d bytes came beside %d of %d, %d are there", came, had, all, sizeBelow(t, dir))
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, "fetching ") && strings.HasSuffix(s, "MiB") }) {
		t.Errorf("it said %q", said)
	}
	must(t, fetch(t.Context()))
	if came := a.reset(nil); came != 0 {
		t.Errorf("%d bytes came a second time", came)
	}

	// A file of the cache, right in name and size, is taken by apt as it is.
	file := filepath.Join(dir, archivesDir, "kmod_1%3a1+b1_amd64.deb")
	content, err := os.ReadFile(file)
	must(t, err)
	content[packageSize/2] ^= 1
	must(t, os.WriteFile(file, content, 0o644))
	must(t, fetch(t.Context()))
	if came := a.reset(nil); came != packageSize {
		t.Errorf("%d bytes came for one file", came)
	}
	tryWithoutArchive(t, r, a, dir)
	tryOtherBytes(t, a, dir, fetch)
}

// tryOtherBytes tries an archive that gives other bytes than it signed, also behind a
// transfer that had begun.
func tryOtherBytes(t *testing.T, a *archive, dir string, fetch func(context.Context) error) {
	t.Helper()
	right := a.files["/pool/udev_1+b1_amd64.deb"]
	wrong := bytes.Clone(right)
	wrong[packageSize-1] ^= 1
	a.mu.Lock()
	a.files["/pool/udev_1+b1_amd64.deb"] = wrong
	a.mu.Unlock()
	name := "udev_1%3a1+b1_amd64.deb"
	for _, begun := range []int{0, 1000} {
		must(t, os.RemoveAll(filepath.Join(dir, archivesDir, name)))
		must(t, os.WriteFile(filepath.Join(dir, partialDir, name), right[:begun], 0o600))
		err := fetch(t.Context())
		if errkind.Of(err) != errkind.Mismatch {
			t.Fatalf("%d bytes begun: %v", begun, err)
		}
		for _, want := range []string{name, fmt.Sprintf("%x", sha256.Sum256(wrong)), fmt.Sprintf("%x", sha256.Sum256(right))} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %s in it", err, want)
			}
		}
		if sizeBelow(t, dir) != len(a.packages())*packageSize-packageSize {
			t.Errorf("%d bytes begun: the wrong file is kept", begun)
		}
	}
}

// packages are the paths of the packages.
func (a *archive) packages() (list []string) {
	for path := range a.files {
		if strings.HasPrefix(path, "/pool/") {
			list = append(list, path)
		}
	}
	return list
}

// tryWithoutArchive tries a build while the archive does not answer: it takes what was fetched, if
// that is all.
func tryWithoutArchive(t *testing.T, r Recipe, a *archive, dir string) {
	t.Helper()
	r.Mirrors = []string{strings.Replace(r.Mirrors[0], a.url, "http://127.0.0.1:1", 1)}
	r.downloads = dir
	var said strings.Builder
	b := builder{recipe: r, disk: bootdisk.Maker{Dir: t.TempDir(), Say: func(text string) { fmt.Fprintln(&said, text) }}}
	must(t, b.readLists(t.Context()))
	if !strings.Contains(said.String(), "those that were fetched before are taken: Failed to fetch") {
		t.Errorf("it says %q", said.String())
	}
	must(t, b.fetchPackages(t.Context()))
	must(t, os.Rename(filepath.Join(dir, archivesDir, "kmod_1%3a1+b1_amd64.deb"), filepath.Join(dir, partialDir, "kmod_1%3a1+b1_amd64.deb")))
	if err := b.readLists(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("a package is missing, and the lists are taken: %v", err)
	}
}

// TestParseURIs: only what can be compared is fetched, under a name that stays in its folder.
func TestParseURIs(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	got := parseURIs("Reading package lists...\n" +
		"'http://a/pool/p/passwd_4%2b1.deb' passwd_1%3a4+1_amd64.deb 972180 SHA256:" + sum + "\n" +
		"'http://a/x.deb' ../x.deb 5 SHA256:" + sum + "\n" +
		"'http://a/x.deb' .x.deb 5 SHA256:" + sum + "\n" +
		"'http://a/x' x 5 SHA256:" + sum + "\n" +
		"'http://a/md5.deb' md5.deb 5 MD5Sum:" + sum[:32] + "\n" +
		"'http://a/short.deb' short.deb 5 SHA256:abab\n" +
		"'http://a/none.deb' none.deb 0 SHA256:" + sum + "\n" +
		"'http://a/word.deb' word.deb many SHA256:" + sum + "\n" +
		"'file:/a/file.deb' file.deb 5 SHA256:" + sum + "\n'http://a/cut.deb\n'\n")
	want := []aptFile{{"http://a/pool/p/passwd_4%2b1.deb", "passwd_1%3a4+1_amd64.deb", 972180, sum}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
