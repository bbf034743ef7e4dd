// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/errkind"
)

// mostModule is the largest module, in bytes.
const mostModule = 512 << 20

// readModule reads a module without its compression, and names it without that. A signature
// covers the bytes before they are compressed.
func readModule(root *os.Root, file string) (module []byte, name string, err error) {
	b, err := readSmall(root, file, mostModule)
	if err != nil {
		return nil, "", err
	}
	name = path.Base(file)
	var from io.Reader
	switch ext := path.Ext(name); ext {
	case ".ko":
		return b, name, nil
	case ".gz":
		from, err = gzip.NewReader(bytes.NewReader(b))
	case ".xz":
		from, err = xz.NewReader(bytes.NewReader(b))
	case ".zst":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1)); err == nil {
			defer z.Close()
		}
		from = z
	default:
		return nil, "", errkind.New(errkind.Unsupported, "it is no kernel module by its name")
	}
	if err != nil {
		return nil, "", err
	}
	module, err = io.ReadAll(io.LimitReader(from, mostModule+1))
	if err == nil && len(module) > mostModule {
		err = errkind.New(errkind.Refused, "it is larger than %d MiB", mostModule>>20)
	}
	return module, strings.TrimSuffix(name, path.Ext(name)), err
}

// depmod makes the lists of modules anew, and the initial file system, in which a module of
// the kernel itself may have the name of one of these.
const depmod = `#!/bin/sh
set -e
depmod %[1]s
if [ -e /boot/initrd.img-%[1]s ] && command -v update-initramfs >/dev/null; then
	update-initramfs -u -k %[1]s
fi
`

// packModules makes the package of modules that lie in a tree.
func (b build) packModules(ctx context.Context, m Modules, tree, version string) (string, error) {
	name := ModulesPackage(m.Driver)
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: ironrail <root@localhost>\nSection: kernel\nPriority: optional\nDepends: kmod, %s\n"+
		"Description: kernel modules of driver %s for %s, built and signed by ironrail\nIronrail-Signer: %s\n", name, version, b.of.Arch, DKMSPackage, m.Driver, m.Kernel, m.Key.Serial())
	script := fmt.Sprintf(depmod, m.Kernel)
	return b.packTree(ctx, name, tree, map[string]string{"control": control, "postinst": script, "postrm": script})
}

// nothing is the program that stands for dkms(8), and for the script by which packages ask it
// to build (dh_dkms(1)).
const nothing = "#!/bin/sh\n# The modules of this node come signed, in packages ironrail-modules-*.\nexit 0\n"

// packDKMS makes the package that stands for dkms(8), with the version of that.
func (b build) packDKMS(ctx context.Context) (string, error) {
	version, err := tool.Runner{}.Output(ctx, "dpkg-query", "--admindir="+filepath.Join(b.root, "var/lib/dpkg"), "--show", "--showformat=${Version}", "dkms")
	if err != nil {
		return "", err
	}
	tree := filepath.Join(b.dir, "pack-dkms")
	for _, file := range []string{"usr/sbin/dkms", "usr/lib/dkms/common.postinst"} {
		at := filepath.Join(tree, filepath.FromSlash(file))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(nothing), 0o755)); err != nil {
			return "", err
		}
	}
	control := fmt.Sprintf("Package: %s\nVersion: %[2]s\nArchitecture: all\nMaintainer: ironrail <root@localhost>\nSection: kernel\nPriority: optional\nProvides: dkms (= %[2]s)\nConflicts: dkms\nReplaces: dkms\n"+
		"Description: stands for dkms where kernel modules come signed, and builds none\n", DKMSPackage, bytes.TrimSpace(version))
	return b.packTree(ctx, DKMSPackage, tree, map[string]string{"control": control})
}

// packTree makes a package of a tree and of its control files. The same files give the same
// bytes.
func (b build) packTree(ctx context.Context, name, tree string, control map[string]string) (string, error) {
	if err := os.MkdirAll(filepath.Join(tree, "DEBIAN"), 0o755); err != nil {
		return "", err
	}
	for file, text := range control {
		mode := os.FileMode(0o755)
		if file == "control" {
			mode = 0o644
		}
		if err := os.WriteFile(filepath.Join(tree, "DEBIAN", file), []byte(text), mode); err != nil {
			return "", err
		}
	}
	if err := setTimes(tree); err != nil {
		return "", err
	}
	deb := filepath.Join(b.dir, name+".deb")
	r := tool.Runner{Dir: b.dir, Env: []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch.Unix())}}
	return deb, r.Run(ctx, nil, "dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, deb)
}
