// SPDX-License-Identifier: Apache-2.0

package dnf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

// TestConfiguration: dnf and rpm work on the root alone, by the release and with the keys that
// are named.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := Work{Dir: filepath.Join(dir, "dnf"), Release: "10.1", Cache: filepath.Join(dir, "packages")}
	err := w.Configure([]Repository{
		{ID: "baseos", URL: "http://mirror.example/rocky/$releasever/BaseOS/$basearch/os", Key: "KEY A"},
		{ID: "vendor", URL: "http://mirror.example/vendor", Key: "KEY B", SignedIndex: true, Hotfixes: true},
	}, []string{"a-0:1-1.noarch", "*.i686"})
	if err != nil {
		t.Fatal(err)
	}
	key := "gpgkey=file://" + w.Dir
	for name, want := range map[string][]string{
		"dnf.conf":          {"\nmodule_platform_id=platform:el10\n", "\ngpgcheck=1\n", "\nplugins=0\n", "\ninstall_weak_deps=0\n", "\nexcludepkgs=a-0:1-1.noarch,*.i686\n"},
		"home/.rpmmacros":   {"%_dbpath /usr/lib/sysimage/rpm\n", "%_db_backend sqlite\n"},
		"repos/baseos.repo": {"[baseos]\n", "\nbaseurl=http://mirror.example/rocky/$releasever/BaseOS/$basearch/os\n", "\ngpgcheck=1\nrepo_gpgcheck=0\nmodule_hotfixes=0\n", key + "/baseos.asc\n"},
		"repos/vendor.repo": {"\ngpgcheck=0\nrepo_gpgcheck=1\nmodule_hotfixes=1\n", key + "/vendor.asc\n"},
		"baseos.asc":        {"KEY A"},
	} {
		b, err := os.ReadFile(filepath.Join(w.Dir, name))
		if err != nil {
			t.Error(err)
		}
		for _, text := range want {
			if !strings.Contains(string(b), text) {
				t.Errorf("%s has no %q:\n%s", name, text, b)
			}
		}
	}
	w = Work{Dir: "/build/dnf", Release: "9.4", Cache: "/build/packages"}
	if got := strings.Join(w.Command("/build/root", "install", "bash"), " "); got != "dnf --config=/build/dnf/dnf.conf --installroot=/build/root --releasever=9.4 --setopt=reposdir=/build/dnf/repos --setopt=varsdir=/build/dnf/vars --setopt=cachedir=/build/packages install bash" {
		t.Errorf("got %s", got)
	}
	if strings.Contains(w.conf(nil), "excludepkgs") || Database("9") != "var/lib/rpm" || Database("8") != "" {
		t.Error("what is excluded of nothing, or the database")
	}
}

// TestExplain: what dnf says becomes an error of a kind, with what to do.
func TestExplain(t *testing.T) {
	t.Parallel()
	if explain(nil) != nil {
		t.Error("an error of nothing")
	}
	for said, want := range map[string]errkind.Kind{
		"Public key for bash.rpm is not installed\nError: GPG check FAILED":                                                                  errkind.Mismatch,
		"Error: Failed to download metadata for repo 'v': repomd.xml GPG signature verification error: Bad GPG signature":                    errkind.Mismatch,
		"bash.rpm: Downloading successful, but checksum doesn't match. Calculated: 1":                                                        errkind.Mismatch,
		"No match for argument: bahs\nError: Unable to find a match: bahs":                                                                   errkind.NotFound,
		"Problem: conflicting requests\n  - nothing provides dkms >= 3.1.8 needed by kmod-nvidia-open-dkms-3:580.126.16-1.el9.noarch from v": errkind.NotFound,
		"Error: Failed to download metadata for repo 'ironrail-baseos': Cannot download repomd.xml":                                          errkind.Unreachable,
	} {
		err := explain(errors.New(said))
		if errkind.Of(err) != want || errkind.Action(err) == "" || !strings.Contains(err.Error(), said) {
			t.Errorf("%q: %v of kind %v", said, err, errkind.Of(err))
		}
	}
}
