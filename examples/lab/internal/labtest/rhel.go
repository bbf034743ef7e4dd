// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
)

// RHELRepositories makes and serves, as long as the test runs, repositories that look like those
// of Rocky Linux and have the files of a release of Debian, and returns the address of their
// folder, with BaseOS and AppStream, and the public key. number is that of the release that it
// says to be, such as 9.6; behind it may stand Debian's package of a kernel, in the place of the
// cloud kernel. The repositories are kept beside the lab for all tests.
func (l *Lab) RHELRepositories(release, number string) (url, key string) {
	l.t.Helper()
	if !strings.Contains(number, " ") {
		number += " linux-image-cloud-amd64"
	}
	script, err := os.ReadFile(filepath.Join(l.source(), "..", "..", "images", "rhel", "testdata", "repository.sh"))
	if err != nil {
		l.t.Fatal(err)
	}
	made := l.madeOnce("rhel-like", release, "", string(script), number)
	public, err := os.ReadFile(filepath.Join(made, "key.asc"))
	if err != nil {
		l.t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(made)))
	l.t.Cleanup(server.Close)
	return server.URL, string(public)
}
