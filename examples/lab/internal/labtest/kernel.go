// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// kernelScript fetches the package of another kernel of a release, by that release's
// archive: the one for clouds, which GRUB takes for the newer one. $1 is the folder to
// work in, $2 the release, $3 the file to write.
const kernelScript = `set -eu
cd "$1"
mkdir -p lists/partial cache/archives/partial
: >status
key='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
printf "deb $key http://deb.debian.org/debian $2 main\ndeb $key http://deb.debian.org/debian-security $2-security main\n" >sources
apt="-q -o Dir::Etc::sourcelist=$PWD/sources -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$PWD/lists -o Dir::State::status=$PWD/status -o Dir::Cache=$PWD/cache -o APT::Sandbox::User=root"
apt-get $apt update
name=$(apt-cache $apt depends --important linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)
apt-get $apt download "$name"
mv "$name"_*.deb "$3"
`

// UpdateKernel installs another kernel on nodes as their package manager does, and
// starts nothing. Its release ends in "-cloud-amd64".
func (l *Lab) UpdateKernel(release string, nodes ...string) {
	l.t.Helper()
	deb := l.madeOnce("kernel", release, ".deb", kernelScript, "")
	for _, node := range nodes {
		l.send(node, deb, "/root/kernel.deb")
		l.t.Logf("%s: %s", node, l.onNode(applyLimit, node, "dpkg -i /root/kernel.deb && rm /root/kernel.deb && sync"))
	}
}

// send copies a file to a node.
func (l *Lab) send(node, from, to string) {
	l.t.Helper()
	f, err := os.Open(from)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(l.t.Context(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(l.bin, "ironrail-lab"), append([]string{"exec", "--dir", l.machines, "--"}, l.ssh(node, 60, "cat >"+to)...)...)
	cmd.Stdin, cmd.Env = f, environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("%s: %s: %v\n%s", node, to, err, out)
	}
}
