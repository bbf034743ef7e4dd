// SPDX-License-Identifier: Apache-2.0

package rhel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ironrail/ironrail/images/internal/dnf"
	"github.com/ironrail/ironrail/inventory"
)

// programLimit is the deadline of a program of the root.
const programLimit = 15 * time.Minute

// Folders and files of a build, in that of the maker.
const (
	confDir   = "dnf"      // of dnf's and rpm's configuration
	cacheDir  = "packages" // in the folder of downloads
	fetchRoot = "root"     // of a fetch, beside its configuration: nothing is installed in it
)

// On the node, below the root: repositories, and the keys of their packages.
const (
	nodeRepos = "etc/yum.repos.d"
	nodeKeys  = "etc/pki/rpm-gpg"
)

// id is what a repository is called by dnf.
func id(a inventory.PackageRepository) string { return "ironrail-" + a.Name }

// keyFile is the file of its keys on the node.
func keyFile(a inventory.PackageRepository) string { return nodeKeys + "/RPM-GPG-KEY-" + id(a) }

// repoFile is the configuration of a repository (dnf.conf(5)). Each package has to be signed by
// one of its keys; what its index says of digests is compared in any case.
func repoFile(a inventory.PackageRepository, key string) string {
	return fmt.Sprintf("# Written by ironrail: a repository that this image was made from.\n[%[1]s]\nname=%[1]s\nbaseurl=%[2]s\nenabled=1\ngpgcheck=1\ngpgkey=file://%[3]s\n", id(a), a.URL, key)
}

// configureDnf writes what dnf and rpm work by on the controller.
func (b *builder) configureDnf(context.Context) error {
	var list []dnf.Repository
	for _, a := range b.recipe.Repositories {
		list = append(list, dnf.Repository{ID: id(a), URL: a.URL, Key: a.Key})
	}
	return b.dnf().Configure(list, nil)
}

// cache is the folder of what dnf downloads.
func (b *builder) cache() string {
	return filepath.Join(cmp.Or(b.recipe.downloads, b.disk.Dir), cacheDir)
}

// dnf is where dnf works.
func (b *builder) dnf() dnf.Work {
	return dnf.Work{Dir: filepath.Join(b.disk.Dir, confDir), Release: b.recipe.Release, Cache: b.cache()}
}

// fetch has dnf fetch the packages of an empty root, and install none.
func (b *builder) fetch(ctx context.Context) error {
	root := filepath.Join(b.disk.Dir, confDir, fetchRoot)
	err := os.MkdirAll(root, 0o755)
	if err == nil {
		err = b.dnf().Run(ctx, b.disk.Say, b.dnf().Command(root, append([]string{"--downloadonly", "install"}, b.recipe.include()...)...)...)
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(b.disk.Dir, confDir)))
}

// install has dnf install the packages.
func (b *builder) install(ctx context.Context) error {
	return b.dnf().Run(ctx, b.disk.Say, dnf.Enclose(b.disk.Root, b.dnf().Command(b.disk.Root, append([]string{"install"}, b.recipe.include()...)...)...)...)
}
