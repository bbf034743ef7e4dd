// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Modules are the kernel modules of packages that bring them as sources for dkms(8): built
// here for one kernel, and signed.
type Modules struct {
	Driver  string // name of the block that they are of
	Kernel  string // release, such as 6.1.0-56-amd64
	Headers string // package with its headers
	Key     *modsign.Key
}

// DKMSPackage is the package that stands for dkms(8) on nodes whose modules come signed: the
// packages with sources ask for dkms, and must not build anything.
const DKMSPackage = "ironrail-dkms"

// ModulesPackage is the package with the modules of a driver block.
func ModulesPackage(driver string) string {
	return "ironrail-modules-" + strings.ToLower(strings.ReplaceAll(driver, "_", "-"))
}

// ModulesFolder is where the modules of a driver block lie, below the folder of the kernel's
// modules. depmod(8) takes what is below updates before the kernel's own.
func ModulesFolder(driver string) string { return "updates/ironrail/" + driver }

// moduleTools are what sources of modules are built with, beside the headers.
var moduleTools = []string{"autoconf", "automake", "bc", "dkms", "gawk"}

// dkmsTree is where dkms(8) builds, below the root.
const dkmsTree = "build/dkms"

// dkmsSource is a folder of sources for dkms(8).
type dkmsSource struct {
	folder        string // that is moved into the root
	name, version string
	pkg           string // that brought it
}

// BuildModules builds the modules of all packages among debs that bring sources for dkms(8),
// in dir, an absolute path to an empty folder, and returns the paths of two .deb files: those
// of ModulesPackage and of DKMSPackage. Nothing of the packages is run but dkms and what it
// builds with, as a user without rights and without a network; their own scripts are not.
// The private key stays in this process.
func BuildModules(ctx context.Context, dir string, r Root, m Modules, debs []string, say func(string)) ([]string, error) {
	if os.Geteuid() != 0 {
		return nil, errkind.New(errkind.Refused, "kernel modules are built as root, who alone can make a root file system for that").Do("Run the build as root.")
	}
	if m.Kernel == "" {
		return nil, errkind.New(errkind.Refused, "the kernel of the image is not known, so that no modules can be built for it").Do("Give the image a kernel package of its distribution.")
	}
	sources, id, err := findSources(ctx, dir, debs)
	if err != nil {
		return nil, err
	}
	r.Packages = append(slices.Clone(moduleTools), m.Headers)
	b := build{dir: dir, root: filepath.Join(dir, "root"), of: r, say: say}
	if err := b.bootstrap(ctx); err != nil {
		return nil, fmt.Errorf("root file system to build modules in: %w", err)
	}
	tree := filepath.Join(dir, "pack-modules")
	to := filepath.Join(tree, "usr/lib/modules", m.Kernel, ModulesFolder(m.Driver))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return nil, err
	}
	for _, s := range sources {
		say(fmt.Sprintf("building the kernel modules of %s for %s", s.pkg, m.Kernel))
		if err := b.modules(ctx, s, m, to); err != nil {
			return nil, fmt.Errorf("build the modules of %s: %w", s.pkg, err)
		}
	}
	id = sha256Of(fmt.Sprintf("%d %s %s %s %s", modulesVersion, id, m.Kernel, m.Headers, m.Key.Fingerprint()))
	modules, err := b.packModules(ctx, m, tree, sources[0].version+"+"+id[:16])
	if err != nil {
		return nil, err
	}
	stands, err := b.packDKMS(ctx)
	return []string{modules, stands}, err
}

// modulesVersion changes whenever the same packages would give other files.
const modulesVersion = 1

func sha256Of(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// findSources unpacks the packages that need dkms(8), and finds what it builds. id names the
// content of all of them.
func findSources(ctx context.Context, dir string, debs []string) (list []dkmsSource, id string, err error) {
	for _, deb := range slices.Sorted(slices.Values(debs)) {
		fields, err := tool.Runner{}.Output(ctx, "dpkg-deb", "--show", "--showformat=${Package}\n${Depends}\n", deb)
		if err != nil {
			return nil, "", err
		}
		name, needs, _ := strings.Cut(strings.TrimSpace(string(fields)), "\n")
		if !needsDKMS.MatchString(needs) {
			continue
		}
		sum, err := digestOfFile(deb)
		if err != nil {
			return nil, "", err
		}
		id += name + " " + sum + "\n"
		at := filepath.Join(dir, "sources-"+name)
		if err := errors.Join(os.Mkdir(at, 0o755), tool.Runner{}.Run(ctx, nil, "dpkg-deb", "-x", deb, at)); err != nil {
			return nil, "", err
		}
		found, err := sourcesIn(at, name)
		if err != nil {
			return nil, "", err
		}
		list = append(list, found...)
	}
	if len(list) == 0 {
		return nil, "", errkind.New(errkind.NotFound, "no package of the driver brings sources of kernel modules for dkms").Do("Take packages of the driver that build their module by DKMS: nothing else can be signed.")
	}
	return list, id, nil
}

// needsDKMS finds dkms among what a package depends on.
var needsDKMS = lazyregexp.New(`(?:^|[,|]\s*)dkms(?:\s|,|$)`)

func digestOfFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// sourcesIn are the folders below usr/src of an unpacked package that have a dkms.conf.
func sourcesIn(at, pkg string) (list []dkmsSource, err error) {
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := fs.Glob(root.FS(), "usr/src/*/dkms.conf")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := readSmall(root, file, mostConf)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", file, pkg, err)
		}
		folder := path.Base(path.Dir(file))
		name := confValue(text, "PACKAGE_NAME")
		version, ok := strings.CutPrefix(folder, name+"-")
		if name == "" || !ok || !safeWord.MatchString(folder) {
			return nil, errkind.New(errkind.Unsupported, "%s of package %s does not name the folder of its sources (PACKAGE_NAME is %q)", file, pkg, name)
		}
		list = append(list, dkmsSource{filepath.Join(at, "usr/src", folder), name, version, pkg})
	}
	return list, nil
}

// mostConf bounds a dkms.conf, and mostLog what is read of a make.log, in bytes.
const (
	mostConf = 1 << 20
	mostLog  = 64 << 20
)

// safeWord is a name that dkms(8) and a path take.
var safeWord = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9.+~_-]*$`)

// confLine is an assignment in a dkms.conf, which is a script of bash.
var confLine = lazyregexp.New(`(?m)^\s*(PACKAGE_NAME)=["']?([^"'\s]*)`)

// confValue is the value that a dkms.conf gives a variable; "" where it gives none.
func confValue(text []byte, name string) string {
	for _, m := range confLine.FindAllStringSubmatch(string(text), -1) {
		if m[1] == name {
			return m[2]
		}
	}
	return ""
}

// readSmall reads a regular file below a root.
func readSmall(root *os.Root, name string, most int64) ([]byte, error) {
	switch info, err := root.Stat(name); { // before it is opened: a named pipe waits for a writer
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errkind.New(errkind.Refused, "it is no file")
	case info.Size() > most:
		return nil, errkind.New(errkind.Refused, "it is larger than %d MiB", most>>20)
	}
	return root.ReadFile(name)
}

// modules builds the modules of one source in a jail, signs them, and writes them to a folder.
func (b build) modules(ctx context.Context, s dkmsSource, m Modules, to string) error {
	if err := os.Rename(s.folder, filepath.Join(b.root, "usr/src", s.name+"-"+s.version)); err != nil {
		return err
	}
	tree := filepath.Join(b.root, filepath.FromSlash(dkmsTree))
	if err := errors.Join(os.MkdirAll(tree, 0o755), os.Chown(filepath.Dir(tree), builder, builder), os.Chown(tree, builder, builder)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	r := tool.Runner{Dir: "/" + dkmsTree, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/" + dkmsTree, "TMPDIR=/" + dkmsTree, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch.Unix()), "KBUILD_BUILD_TIMESTAMP=" + epoch.UTC().Format("2006-01-02 15:04:05")}, Jail: &tool.Jail{Root: b.root, User: builder}}
	err := r.Run(ctx, nil, "/usr/sbin/dkms", "build", "--dkmstree", "/"+dkmsTree, "-m", s.name, "-v", s.version, "-k", m.Kernel)
	root, rerr := os.OpenRoot(b.root)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	defer root.Close()
	if err != nil {
		return unbuilt(ctx, root, s, err)
	}
	return signModules(root, path.Join(dkmsTree, s.name, s.version, m.Kernel), m.Key, to)
}

// unbuilt is a build that failed, with the compiler's words.
func unbuilt(ctx context.Context, root *os.Root, s dkmsSource, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if log, lerr := readSmall(root, path.Join(dkmsTree, s.name, s.version, "build/make.log"), mostLog); lerr == nil {
		if said := FirstError(log); said != "" {
			err = fmt.Errorf("%s: %w", said, err)
		}
	}
	return errkind.New(errkind.Mismatch, "%w", err).Do("Take a version of the driver that knows this kernel, or a kernel that it knows (the image's kernel attribute).")
}

// FirstError is the first error in a compiler's output (GCC's form), or of make; "": none.
func FirstError(log []byte) string {
	for _, mark := range []string{" error: ", "***"} {
		for line := range strings.Lines(string(log)) {
			if _, text, ok := strings.Cut(line, mark); ok {
				if text = strings.TrimSpace(text); text != "" {
					return text
				}
			}
		}
	}
	return ""
}

// signModules signs the modules that dkms(8) made below a folder of the root: ARCH/module/NAME.ko,
// beside which newer ones leave Module.symvers. Its own signatures, and its compression, are
// left out.
func signModules(root *os.Root, from string, key *modsign.Key, to string) error {
	files, err := fs.Glob(root.FS(), from+"/*/module/*")
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f string) bool { return !moduleFile.MatchString(f) })
	if len(files) == 0 {
		return errkind.New(errkind.Refused, "dkms ended well, and made no module").Do("Look at BUILD_EXCLUSIVE_* of its dkms.conf: it may leave this kernel out.")
	}
	for _, file := range files {
		bare, name, err := readModule(root, file)
		if err != nil {
			return fmt.Errorf("%s: %w", path.Base(file), err)
		}
		signed, err := key.Sign(bare)
		if err != nil {
			return fmt.Errorf("%s: %w", path.Base(file), err)
		}
		if err := writeNew(filepath.Join(to, name), signed); err != nil {
			return err
		}
	}
	return nil
}

// moduleFile is the name of a module, which may be compressed.
var moduleFile = lazyregexp.New(`/[^/]+\.ko(\.(gz|xz|zst))?$`)

func writeNew(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
