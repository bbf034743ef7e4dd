// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
)

// rpmArch are the architectures as rpm has them.
var rpmArch = map[inventory.Arch]string{inventory.AMD64: "x86_64", inventory.ARM64: "aarch64"}

// rpmPayload has the package compressed by gzip: rpm of each release reads it.
const rpmPayload = "w6.gzdio"

// treeVariable names the folder of the files to the script of the package.
const treeVariable = "IRONRAIL_TREE"

// packRPM makes the package of the files below a folder with rpmbuild of the controller. What it
// needs is what the program says, and not what rpm finds in it: libraries of Open MPI have names
// of their own there. The same files give the same bytes.
func (b build) packRPM(ctx context.Context, p Program, a archive, tree string) (string, error) {
	files, err := listFiles(tree)
	if err != nil {
		return "", err
	}
	home, err := filepath.Abs(filepath.Join(b.dir, "rpm-"+p.Package)) // also where rpm looks for macros
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", err
	}
	if tree, err = filepath.Abs(tree); err != nil {
		return "", err
	}
	spec := filepath.Join(home, "package.spec")
	if err := os.WriteFile(spec, []byte(specOf(p, a, files)), 0o644); err != nil {
		return "", err
	}
	argv := []string{"rpmbuild", "-bb", "--quiet", "--target", rpmArch[b.of.Arch] + "-linux"}
	for _, macro := range []string{"_topdir " + home, "_rpmdir " + home, "_rpmfilename %{NAME}.rpm", "_buildhost localhost", "_binary_payload " + rpmPayload, "use_source_date_epoch_as_buildtime 1", "clamp_mtime_to_source_date_epoch 1",
		"debug_package %{nil}", "__os_install_post %{nil}"} {
		argv = append(argv, "--define", macro)
	}
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	r := tool.Runner{Dir: home, Env: []string{"HOME=" + home, treeVariable + "=" + tree, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch.Unix())}}
	if err := r.Run(ctx, nil, append(argv, spec)...); errkind.Of(err) == errkind.Unsupported {
		return "", errkind.New(errkind.Unsupported, "%w", err).Do("Install it: apt-get install rpm")
	} else if err != nil {
		return "", err
	}
	made := filepath.Join(home, p.Package+".rpm")
	named := filepath.Join(b.dir, fmt.Sprintf("%s-%s-1.%s.rpm", p.Package, a.version(), rpmArch[b.of.Arch]))
	return named, os.Rename(made, named)
}

// specOf is the description of a package (rpm-spec(5)).
func specOf(p Program, a archive, files []string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "Name: %s\nVersion: %s\nRelease: 1\nSummary: %s, compiled by ironrail\nLicense: that of its sources\nAutoReqProv: no\n", p.Package, a.version(), p.About)
	for _, d := range p.Depends {
		fmt.Fprintf(&s, "Requires: %s\n", d)
	}
	fmt.Fprintf(&s, "%%description\nCompiled by ironrail of %s.\n%%install\nmkdir -p \"$RPM_BUILD_ROOT\"\ncp -a \"$%s\"/. \"$RPM_BUILD_ROOT\"/\n%%files\n%%defattr(-,root,root)\n", a.digest, treeVariable)
	for _, f := range files {
		fmt.Fprintf(&s, "%q\n", "/"+f)
	}
	return s.String()
}

// plainFile is a name that says nothing else to rpm: in a spec %(PROGRAM) is run, as root, and * and ?
// are patterns. What compiles chooses the names.
var plainFile = lazyregexp.New(`^[A-Za-z0-9_./+-]+$`)

// listFiles lists the files below a folder, and gives all the same time. A name that rpm could take for
// more is an error of kind Refused.
func listFiles(tree string) (list []string, err error) {
	if err := setTimes(tree); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(tree, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(tree, at)
		if err == nil && !plainFile.MatchString(rel) {
			err = errkind.New(errkind.Refused, "a file that was compiled is called %q", rel).Do("Name the archive of the sources of this program.")
		}
		list = append(list, filepath.ToSlash(rel))
		return err
	})
	return list, err
}
